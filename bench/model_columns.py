"""The columns of bench/models.py, each a function of a model's folder and of an empty one."""

from __future__ import annotations

import json
import signal
import traceback
from collections.abc import Callable
from contextlib import closing
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch

import numpy as np
import torch
from torch import Tensor
from transformers import PreTrainedModel

from reasoner.analysis.model_export import Export, write_export
from reasoner.config.resolve import resolve
from reasoner.config.schema import Config
from reasoner.distributed.world import ALONE, World
from reasoner.inference.factory import make_engine
from reasoner.models import prefix_attention
from reasoner.models.families import has_experts
from reasoner.models.folder import BaseModel, model_fingerprint, text_config
from reasoner.models.loading import load_policy, load_tokenizer, num_ids, token_logprobs
from reasoner.models.lora import adapter_off, add_adapter
from reasoner.models.sharding import whole
from reasoner.rl.batch import collate, collate_rows
from reasoner.trainer import checkpoint
from reasoner.trainer.parity import logprobs_of, sample
from reasoner.trainer.preflight import preflight
from reasoner.trainer.sync_certificate import certify_sync
from reasoner.trainer.train import train_step
from reasoner.trainer.trainer import Trainer
from reasoner.types import SamplingParams
from tests.fixtures.families import FAMILIES, alone, plain_model, prompts_of, save_family
from tests.fixtures.packed_rows import packed_rows
from tests.fixtures.ranks import run_ranks
from tests.fixtures.run_folder import run_folder
from tests.fixtures.tiny import perturb
from tests.fixtures.toys import G, make_trainer, random_groups, trainer_and_generator

CPU = torch.device("cpu")
OURS = Path(prefix_attention.__file__).parents[1]  # the package
SECONDS = 800  # after which the process ends
LIMIT = 1e-3  # nats; a larger gap is a fault, and a training step changes ten times as much
LENGTHS = ((40, 32), (40, 20), (55, 32), (55, 7), (64, 25), (64, 1))  # (prompt, completion) of each row, in tokens
RUN = {
    "sampling.max_tokens": 32, "algo.group_size": G, "algo.beta": 0.0, "optim.warmup_steps": 0,
    "optim.max_grad_norm": 1e9,
}  # fmt: skip
LORA = {"lora.rank": 2, "optim.lr": 0.002}


def settings(folder: Path, work: Path, **values: object) -> Config:
    """Settings after the checks that train, doctor and --dry-run make before anything is written."""
    own = {"model": str(folder), "run.dir": str(work)}
    cfg = resolve([("bench", RUN | own | values)]).config
    preflight(cfg, work / "run")
    return cfg


def rows_of(folder: Path) -> list[tuple[tuple[int, ...], tuple[int, ...]]]:
    """Random rows of (prompt ids, completion ids), two of each prompt."""
    generator, ids = torch.Generator().manual_seed(0), num_ids(load_tokenizer(folder))

    def sequence(length: int) -> tuple[int, ...]:
        return tuple(torch.randint(3, ids, (length,), generator=generator).tolist())

    prompts = {length: sequence(length) for length, _ in LENGTHS}
    return [(prompts[prompt], sequence(completion)) for prompt, completion in LENGTHS]


def logprobs_of_rows(policy: PreTrainedModel, folder: Path) -> Tensor:
    """The trainer's log-probabilities of the rows, one after the other."""
    batch = collate_rows(rows_of(folder))
    prompts = (batch.prompt_ids, batch.prompt_lengths, batch.prompt_of)
    return token_logprobs(policy, *prompts, batch.completion_ids, batch.lengths, temperature=1.0)[0][batch.mask]


def logprobs_alone(folder: Path) -> Tensor:
    """Those of transformers' own model, a pass for each row."""
    model, ids = plain_model(folder), num_ids(load_tokenizer(folder))
    return torch.cat([alone(model, *row, ids) for row in rows_of(folder)])


def largest(*pairs: tuple[Tensor, Tensor]) -> float:
    """The largest |difference|; not a number if one is not."""
    return float(torch.stack([(one - other).detach().abs().max() for one, other in pairs]).max())


# --------------------------------------------------------------------------------------------------------- columns


def trainer(folder: Path, work: Path) -> float:
    settings(folder, work)
    return largest((logprobs_of_rows(load_policy(folder, device=CPU), folder), logprobs_alone(folder)))


def weight_sync(folder: Path, work: Path, *, engine: str) -> float:
    """The sync certificate: all weights changed, and put back; then samples of ids that have a text. The class of the
    trainer's model must stay as it is: vLLM takes some families from transformers.
    """
    cfg = settings(folder, work, **{"engine.name": engine})
    kind = type(load_policy(folder, device=CPU).base_model)
    methods = dict(vars(kind))
    with closing(make_engine(cfg.engine, folder, max_model_len=96, seed=0, is_updated=True)) as running:
        trainer, generator = trainer_and_generator(folder, running, cfg)
        certificate = certify_sync(trainer, generator)
        groups = sample(running, prompts_of(folder), SamplingParams(num_samples=2, max_tokens=32))
    ids = num_ids(load_tokenizer(folder))
    assert all(id < ids for group in groups for one in group.completions for id in one.token_ids), "ids without a text"
    assert methods == dict(vars(kind)), f"the engine has changed methods of {kind.__name__}"
    return max(largest(logprobs_of(groups, trainer.model, 1.0)), certificate.changed, certificate.restored)


def lora(folder: Path, work: Path, *, engine: str) -> float:
    """A training step's adapter in the engine; experts take none."""
    target = "attention" if has_experts(text_config(folder)) else "all-linear"
    cfg = settings(folder, work, **LORA, **{"engine.name": engine, "lora.target": target})
    with closing(
        make_engine(cfg.engine, folder, max_model_len=96, seed=0, adapter_rank=cfg.lora.rank, is_updated=True)
    ) as running:
        trainer, generator = trainer_and_generator(folder, running, cfg)
        take_step(trainer)
        generator.update_weights(trainer.model, version=1)
        groups = sample(running, prompts_of(folder), SamplingParams(num_samples=2, max_tokens=32))
    sampled, own = logprobs_of(groups, trainer.model, 1.0)
    with adapter_off(trainer.model):
        without = logprobs_of(groups, trainer.model, 1.0)[1]
    assert largest((own, without)) > 10 * LIMIT, "the training step has not changed the adapter"
    return largest((sampled, own))


def take_step(trainer: Trainer) -> None:
    train_step(trainer, trainer.compute_advantages(trainer.compute_logprobs(collate(random_groups()))))


def gradient(folder: Path, work: Path, world: World = ALONE, **values: object) -> Tensor:
    """The gradient of a training step, whole."""
    trainer = make_trainer(settings(folder, work, **values), load_policy(folder, device=CPU), world=world)
    take_step(trainer)
    return torch.cat([whole(p.grad).flatten() for p in trainer.model.parameters() if p.grad is not None])


def recomputation(folder: Path, work: Path) -> float | str:
    """Gradients with and without recomputation."""
    insists = {"float32": {}, "bfloat16": {"algo.importance_sampling": "token"}}  # mixtures of experts ask for it
    ways = [{"optim.recompute": on, "optim.dtype": dtype} | insists[dtype] for dtype in insists for on in (False, True)]
    stored_32, again_32, stored_16, again_16 = (gradient(folder, work, **way) for way in ways)
    return largest((stored_32, again_32), (stored_16, again_16)) or "equal"


def shards(folder: Path, work: Path) -> float:
    """The gradient of two ranks that hold halves of the weights, against that of one: relative to its largest value."""
    alone = gradient(folder, work)
    for result in run_ranks(2, sharded_gradient, folder, work):
        if isinstance(result, str):
            raise RuntimeError(result)
        relative = largest((torch.tensor(result), alone)) / float(alone.abs().max())
    return relative


def sharded_gradient(world: World, folder: Path, work: Path) -> np.ndarray:
    """gradient() of one of two ranks."""
    values = {"processes": world.size, "optim.sharding": "sharded"}
    return gradient(folder, work / str(world.rank), world, **values).numpy()


def no_mask(folder: Path, work: Path) -> float | str:
    """Log-probabilities without a mask, by both ways, against those with one; their gradients must agree too."""
    settings(folder, work)
    policy = load_policy(folder, device=CPU)

    def computed() -> tuple[Tensor, Tensor]:
        policy.zero_grad()
        logprobs = logprobs_of_rows(policy, folder)
        (logprobs * torch.linspace(-1, 1, len(logprobs))).sum().backward()
        return logprobs.detach(), torch.cat([p.grad.flatten() for p in policy.parameters() if p.grad is not None])

    masked, gradient = computed()
    if not prefix_attention.avoids_mask(policy.base_model, prefix_attention.LONG_COMPLETION, CPU):
        is_fused = policy.config._attn_implementation == "sdpa"
        return "with a mask: " + ("sliding windows" if is_fused else "plain attention")
    with patch.object(prefix_attention, "LONG_COMPLETION", 2):
        split = computed()
    with packed_rows():
        packed = computed()
    if torch.equal(split[0], masked) and torch.equal(packed[0], masked):
        return "with a mask: keys and values differ in size"
    relative = largest((split[1], gradient), (packed[1], gradient)) / float(gradient.abs().max())
    assert relative < LIMIT, f"gradients differ by {relative:.1g} of the largest value"
    return largest((split[0], masked), (packed[0], masked))


def export(folder: Path, work: Path) -> float:
    """A checkpoint of changed weights, exported, and loaded by plain transformers and by us."""
    cfg = settings(folder, work)
    trainer = make_trainer(cfg, perturb(load_policy(folder, device=CPU)))
    return reloaded(trainer, folder, work)


def reloaded(trainer: Trainer, folder: Path, work: Path) -> float:
    run_dir, out = run_folder(work / "run", [], steps=1, model=str(folder)), work / "out"
    checkpoint.save(run_dir, 1, trainer, load_tokenizer(folder), keep=1)
    write_export(Export.of(run_dir, "last"), out)
    own = logprobs_of_rows(trainer.model, folder)
    return largest((logprobs_alone(out), own), (logprobs_of_rows(load_policy(out, device=CPU), out), own))


def merged_export(folder: Path, work: Path) -> float:
    """The same for an adapter, which is exported as a whole model."""
    target = "attention" if has_experts(text_config(folder)) else "all-linear"
    cfg = settings(folder, work, **LORA, **{"lora.target": target})
    policy = load_policy(folder, device=CPU)
    add_adapter(policy, cfg.lora, seed=0)
    trainer = make_trainer(cfg, policy, base_model=BaseModel("bench", str(folder), model_fingerprint(folder)))
    take_step(trainer)
    return reloaded(trainer, folder, work)


COLUMNS: dict[str, Callable[[Path, Path], float | str]] = {
    "trainer": trainer,
    "transformers": partial(weight_sync, engine="transformers"),
    "vLLM": partial(weight_sync, engine="vllm"),
    "LoRA in transformers": partial(lora, engine="transformers"),
    "LoRA in vLLM": partial(lora, engine="vllm"),
    "recomputation": recomputation,
    "shards": shards,
    "no mask": no_mask,
    "export": export,
    "export of LoRA": merged_export,
}


def cell(column: str, folder: Path) -> str:
    """The largest gap in nats, or "refused: REASON", or "FAILED: ERROR" for all else that can happen."""
    with TemporaryDirectory() as work:
        try:
            result = COLUMNS[column](folder, Path(work))
        except Exception as error:
            is_ours = Path(traceback.extract_tb(error.__traceback__)[-1].filename).is_relative_to(OURS)
            if is_ours and isinstance(error, ValueError | RuntimeError):
                return f"refused: {reason(error)}"
            traceback.print_exception(error)
            return f"FAILED: {type(error).__name__}: {error}"
    if isinstance(result, str):
        return result
    return (
        f"{result:.0e}".replace("0e+00", "0").replace("e-0", "e-") if result < LIMIT else f"FAILED: {result:.2g} nats"
    )


def reason(error: Exception) -> str:
    """The reason in a message, without what it is the reason for and without the ways out."""
    text = str(error)
    return (text.partition(": ")[2] or text).partition("; use")[0]


def main(family: str) -> None:
    """Print a line of JSON for each cell; the process ends after SECONDS."""
    signal.alarm(SECONDS)
    with TemporaryDirectory() as folder:
        if family in FAMILIES:
            save_family(family, Path(folder))
        else:  # refused by its name
            (Path(folder) / "config.json").write_text(json.dumps({"model_type": family}))
        for column in COLUMNS:
            print(json.dumps({column: cell(column, Path(folder))}), flush=True)
