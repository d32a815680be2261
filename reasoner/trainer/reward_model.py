"""Training of a reward model in a run folder: metrics, checkpoints, exact resume, and a report on held-out problems.

The optimiser, the schedule and the checkpoints are those of every stage (reasoner.trainer.trainer).
The last checkpoint is the finished model, normalised; those before it are in the loss's own unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from data.files import read_files
from reasoner.config.resolve import with_values
from reasoner.config.schema import Config
from reasoner.config.stages import STAGES
from reasoner.console import log, print_result
from reasoner.distributed.world import ALONE, World
from reasoner.models.checksums import sha256
from reasoner.models.reward_model import check_pad, fold_normalization, load_reward_model, new_reward_model, reward_std
from reasoner.preferences.dataset import Comparison, Split, comparisons_of, num_pairs, split_by_problem
from reasoner.preferences.evaluation import evaluate_scores, report_text
from reasoner.preferences.loss import Pairs, backward_preferences, collate_comparisons, share_in_order
from reasoner.preferences.scoring import score_comparisons
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rl.batch import Batch
from reasoner.rl.passes import RewardModelPasses
from reasoner.rollouts.prompts import load_template
from reasoner.runs.io import write_text
from reasoner.runs.json_files import write_json
from reasoner.runs.run_dir import read_settings
from reasoner.sft.batches import num_steps, rows_of_step
from reasoner.sft.examples import text_reader
from reasoner.trainer.resolve_run import resolve_resumed_run
from reasoner.trainer.run import TrainingRun
from reasoner.trainer.setup import RunContext, StageData, TrainingStage
from reasoner.trainer.summary import reward_model_plan
from reasoner.trainer.trainer import Trainer


def train_reward_model(run: TrainingRun, split: Split) -> None:
    """Train until the preferences have come rm.epochs times, and normalise the model; report on held-out problems."""
    cfg, trainer = run.cfg, run.trainer
    for step, timer in run.steps():
        with timer.phase("time/train"):
            with run.save_if_interrupted():
                size = {"num": cfg.rm.prompts, "epochs": cfg.rm.epochs}
                rows = rows_of_step(split.training, step, **size, seed=cfg.seed)
                batch, pairs = collate_comparisons(rows)
                batch = batch.to(trainer.model.device)
            metrics = {"step": step, **train_on_pairs(trainer, batch, pairs)}
            if run.is_finished and cfg.rm.normalize:
                scores = [score for own in score_comparisons(passes_of(trainer), split.training) for score in own]
                flat = torch.tensor(scores)
                fold_normalization(trainer.model, mean=float(flat.mean()), std=float(flat.std(correction=0)))
        run.record(step, metrics, timer.times(int(batch.lengths.sum())))
    write_report(run, split.heldout)


def train_on_pairs(trainer: Trainer, batch: Batch, pairs: Pairs) -> dict[str, float]:
    """Take the optimiser step of a batch of compared completions. Returns its metrics (names: docs/METRICS.md)."""
    center, on_microbatch = trainer.cfg.rm.center, trainer.progress.counter("trained")
    with trainer.gradient():
        passes = passes_of(trainer)
        loss, scores = backward_preferences(passes, batch, pairs, center=center, on_microbatch=on_microbatch)
    scores = scores.cpu().double()
    return {
        "loss": loss,
        "reward_model/accuracy": share_in_order(scores, pairs),
        "reward_model/margin": float((pairs.weights * (scores[pairs.chosen] - scores[pairs.rejected])).sum()),
        "reward_model/score_mean": float(scores.mean()),
        "reward_model/score_std": float(scores.std(correction=0)),
        **trainer.single_update(),
    }


def passes_of(trainer: Trainer) -> RewardModelPasses:
    """The passes of the reward model that a trainer trains."""
    optim = trainer.cfg.optim
    return RewardModelPasses(trainer.model, optim.dtype, optim.micro_batch_tokens)


def write_report(run: TrainingRun, heldout: Sequence[Comparison]) -> None:
    """Print the report on the held-out problems, and write it to report.txt and report.json."""
    if not heldout:
        log(f"no problem is held out (rm.heldout_share {run.cfg.rm.heldout_share:g}): no report")
        return
    with run.shutdown.interruptible():
        scores = score_comparisons(passes_of(run.trainer), heldout)
    report = evaluate_scores(heldout, scores, std=reward_std(run.trainer.model))
    write_text(run.run_dir / "report.txt", report_text(report) + "\n")
    write_json(run.run_dir / "report.json", asdict(report))
    print_result(report_text(report))


# ----------------------------------------------------------------------------------------- data and model


def load_data(context: RunContext) -> StageData:
    """The preferences of rm.data, split by problem. ValueError for preferences that cannot be used."""
    rm = context.cfg.rm
    split = load_preferences(context.cfg, context.tokenizer, context.context)
    steps = num_steps(len(split.training), rows=rm.prompts, epochs=rm.epochs)
    origin = f"reasoner {STAGES['reward-model'].command}"
    resolved = with_values(context.resolved, {"steps": steps}, origin=origin)
    digest = sha256(Path(rm.data))
    return StageData(
        examples=split,
        resolved=resolved,
        fingerprints={"rm.data": digest},
        plan=reward_model_plan(resolved.config, split),
        contents=_contents(rm.data, digest, split),
    )


def build_reward_trainer(
    cfg: Config,
    tokenizer: PreTrainedTokenizerBase,
    *,
    start_from: Path,
    base: Path,
    device: torch.device,
    world: World = ALONE,
) -> Trainer:
    """The trainer of a reward model: a new one on the language model `base`, or that of the checkpoint `start_from`."""
    is_new = start_from == base
    model = new_reward_model(base, tokenizer, device=device) if is_new else load_reward_model(start_from, device=device)
    check_pad(model)
    model.requires_grad_(True)
    return Trainer(model, None, resolve_algorithm(cfg.algo), cfg, world=world)


def load_preferences(cfg: Config, tokenizer: PreTrainedTokenizerBase, context: int) -> Split:
    """The run's preferences, split by problem. ValueError if there are none."""
    encode = text_reader(tokenizer, load_template(cfg.prompt.style).stop)
    comparisons = comparisons_of(read_files(Path(cfg.rm.data)), encode)
    limit = min(cfg.rm.max_tokens or context, context)
    try:
        return split_by_problem(comparisons, share=cfg.rm.heldout_share, seed=cfg.seed, max_tokens=limit)
    except ValueError as error:
        raise ValueError(f"{cfg.rm.data}: {error}") from None


def heldout_comparisons(folder: Path, tokenizer: PreTrainedTokenizerBase, context: int) -> Sequence[Comparison]:
    """The comparisons that the run of a reward model's checkpoint held out. ValueError for a folder of no such run."""
    run_dir = folder.parent.parent
    if folder.parent.name != "checkpoints" or not (run_dir / "data.json").is_file():
        raise ValueError(
            f"{folder} is no checkpoint of a run that trained a reward model; name preferences with --data"
        )
    resolved, _ = resolve_resumed_run(str(run_dir), {}, origin="", runs=run_dir.parent, stage="reward-model")
    cfg = resolved.config
    if sha256(Path(cfg.rm.data)) != read_settings(run_dir)["fingerprints"]["rm.data"]:
        raise ValueError(f"{cfg.rm.data} has changed since {run_dir} was trained on it; name preferences with --data")
    return load_preferences(cfg, tokenizer, context).heldout


def _contents(source: str, digest: str, split: Split) -> dict[str, object]:
    """What the model was trained on, for data.json."""
    sides: dict[str, tuple[Comparison, ...]] = {"training": split.training, "heldout": split.heldout}
    counts = {
        f"{side}_{what}": count
        for side, own in sides.items()
        for what, count in (
            ("problems", len({one.problem_id for one in own})),
            ("prompts", len(own)),
            ("pairs", num_pairs(own)),
        )
    }
    return {"source": source, "sha256": digest, **counts, "left_out": {"too long": split.too_long}}


REWARD_MODEL = TrainingStage(
    load_data=load_data,
    train=train_reward_model,
    place="reward-model",
    build_trainer=build_reward_trainer,
)
