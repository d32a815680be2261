"""Checkpoints: model folders that transformers and vLLM load as they are, with the optimiser's state beside.

    runs/NAME/checkpoints/best/          a model folder alone: the best one so far on the validation problems
    runs/NAME/checkpoints/step-000020/   after 20 steps
        config.json, model.safetensors, tokenizer files
        with LoRA adapter_config.json, adapter_model.safetensors, base_model.json (name and fingerprint of its base)
        instead of model.safetensors
        trainer/state.json               steps done, and what the optimiser keeps in numbers
        trainer/optimizer.safetensors    the optimiser's tensors, "<parameter>.<name>"
        README.md                        model card (reasoner.analysis.model_card), also of the best
        sha256.json                      of every other file (reasoner.models.checksums), also of the best

Nothing is pickled. A checkpoint is written beside its place, synced and renamed: it is complete or absent. Later damage
by the disk shows in its checksums, which whatever loads the model compares.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator
from dataclasses import fields
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerBase

from reasoner.console import first_line
from reasoner.models.adapter_files import Adapter
from reasoner.models.checksums import CHECKSUMS, check_file, damage, write_checksums
from reasoner.models.lora import PolicyWeights, has_adapter, save_policy, trained_parameters
from reasoner.models.sharding import load_state
from reasoner.rl.batch import Batch
from reasoner.rl.optimizers import load_optimizer_state
from reasoner.runs.io import atomic_path, sync
from reasoner.runs.run_dir import STEP_PATTERN
from reasoner.trainer.snapshot import Snapshot, snapshot
from reasoner.trainer.trainer import Trainer


def folder(run_dir: Path, step: int) -> Path:
    return run_dir / "checkpoints" / f"step-{step:06d}"


def save_best(
    run_dir: Path,
    step: int,
    trainer: Trainer,
    tokenizer: PreTrainedTokenizerBase,
    *,
    score: float,
    card: str = "",
    weights: PolicyWeights | None = None,
) -> None:
    """Save the policy as the best one so far. best.json in the folder holds the number of steps and the score; `card`
    is the text of its model card, `weights` are policy_weights(), where the policy is sharded.
    """

    def write(path: Path) -> None:
        path.mkdir(parents=True)
        save_policy(trainer.model, path, trainer.base_model, weights)
        tokenizer.save_pretrained(path)
        _write_card(path, card)
        _write_score(path, step, score)
        write_checksums(path)

    _put(run_dir / "checkpoints" / "best", write)


def best_score(run_dir: Path) -> float | None:
    """Validation score of the best checkpoint; None if there is none or its best.json is damaged."""
    path = run_dir / "checkpoints" / "best" / "best.json"
    try:
        check_file(path)
        return float(json.loads(path.read_text())["validation/pass@1"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def best_damage(run_dir: Path) -> str:
    """Describe what is wrong with the best checkpoint; empty if it is there, as it was written."""
    path = run_dir / "checkpoints" / "best"
    return damage(path) if path.is_dir() else "it is missing"


def restore_best(run_dir: Path, step: int, *, score: float) -> None:
    """Restore the best checkpoint from the one after `step` steps, with the bytes that save_best() wrote."""

    def write(path: Path) -> None:
        shutil.copytree(folder(run_dir, step), path, ignore=shutil.ignore_patterns("trainer", CHECKSUMS))
        _write_score(path, step, score)
        write_checksums(path)

    _put(run_dir / "checkpoints" / "best", write)


def _write_score(path: Path, step: int, score: float) -> None:
    (path / "best.json").write_text(json.dumps({"steps_done": step, "validation/pass@1": score}) + "\n")


def _write_card(path: Path, card: str) -> None:
    if card:
        (path / "README.md").write_text(card, "utf-8")


def save(
    run_dir: Path,
    step: int,
    trainer: Trainer,
    tokenizer: PreTrainedTokenizerBase,
    *,
    keep: int,
    every: int = 1,
    card: str = "",
    tensors: Snapshot | None = None,
) -> Path:
    """Write the checkpoint after `step` steps, with `card` as the text of its model card, and remove later ones and, as
    prune() does, earlier ones. `tensors`: snapshot(), where the models are sharded.

    OSError, with nothing left behind, if it cannot be written.
    """
    path, contents = folder(run_dir, step), tensors or snapshot(trainer)
    _put(path, lambda beside: _write(beside, trainer, tokenizer, contents, card))
    for later in list_checkpoints(run_dir):
        if step_of(later) > step:
            shutil.rmtree(later)
    prune(run_dir, step, keep=keep, every=every)
    return path


def prune(run_dir: Path, step: int, *, keep: int, every: int) -> None:
    """Remove the checkpoints before that of `step`, but the newest `keep` - 1. Those outside the schedule, which an
    interrupted run leaves, are removed first, so that a resumed run ends with the same ones.
    """
    before = [old for old in list_checkpoints(run_dir) if step_of(old) < step]
    scheduled = [old for old in before if every and step_of(old) % every == 0]
    newest = scheduled[max(0, len(scheduled) - (keep - 1)) :]
    for old in before:
        if old not in newest:
            shutil.rmtree(old)


def _put(path: Path, write: Callable[[Path], None]) -> None:
    """Write a folder beside `path`, then put it in the place of what is there."""
    beside, before = (path.with_name(f"{path.name}.{word}") for word in ("partial", "before"))
    shutil.rmtree(beside, ignore_errors=True)
    try:
        write(beside)
        for file in sorted(beside.rglob("*")):
            sync(file)
    except BaseException as error:
        shutil.rmtree(beside, ignore_errors=True)
        if isinstance(error, OSError | SafetensorError):
            raise OSError(f"cannot write {path}: {error}") from error
        raise
    shutil.rmtree(before, ignore_errors=True)
    if path.is_dir():
        path.rename(before)
    beside.rename(path)
    sync(path.parent)
    shutil.rmtree(before, ignore_errors=True)


def clean_partial(run_dir: Path) -> None:
    """Remove what a crash left of a checkpoint that was being written."""
    for before in (run_dir / "checkpoints").glob("*.before"):
        if not before.with_suffix("").exists():
            before.rename(before.with_suffix(""))
    for left in [*(run_dir / "checkpoints").glob("*.partial"), *(run_dir / "checkpoints").glob("*.before")]:
        shutil.rmtree(left)


def _write(path: Path, trainer: Trainer, tokenizer: PreTrainedTokenizerBase, tensors: Snapshot, card: str) -> None:
    (path / "trainer").mkdir(parents=True)
    save_policy(trainer.model, path, trainer.base_model, tensors.model)
    tokenizer.save_pretrained(path)
    _write_card(path, card)
    save_file(dict(tensors.optimizer), path / "trainer" / "optimizer.safetensors")
    if tensors.critic is not None:
        save_file(dict(tensors.critic), path / "trainer" / "critic.safetensors")
    if tensors.reference is not None:
        # Copies, since tied weights would be refused; in the machine's memory, not the GPU's.
        reference = {name: tensor.to("cpu", copy=True) for name, tensor in tensors.reference.items()}
        save_file(reference, path / "trainer" / "reference.safetensors")
    (path / "trainer" / "state.json").write_text(json.dumps(trainer.state()) + "\n")
    write_checksums(path)


def valid_checkpoints(run_dir: Path, log: Callable[[str], None]) -> Iterator[Path]:
    """Yield the undamaged checkpoints, newest first, and report the damaged ones.

    After a rollback the checkpoint that it wrote is newer than those of later steps, which a crash may have left.
    ValueError at the end if there are checkpoints and all are damaged.
    """
    checkpoints = sorted(list_checkpoints(run_dir), key=lambda path: (attempt_of(path), path.name), reverse=True)
    num_valid = 0
    for path in checkpoints:
        fault = damage(path)
        num_valid += not fault
        if fault:
            log(f"checkpoint {path.name} is damaged: {fault}")
        else:
            yield path
    if checkpoints and not num_valid:
        raise ValueError(f"{run_dir} has no undamaged checkpoint; its rollouts and metrics are unchanged")


def attempt_of(path: Path) -> int:
    """Number of rollbacks before the checkpoint was written; 0 if its state cannot be read."""
    try:
        return int(json.loads((path / "trainer" / "state.json").read_text())["attempt"])
    except (OSError, ValueError, TypeError, KeyError):
        return 0


def check_room(run_dir: Path, trainer: Trainer, *, keep: int) -> None:
    """OSError if the disk has no room for the checkpoints, those included that are there."""
    needed, free = room_needed(trainer, keep=keep)[1], shutil.disk_usage(nearest(run_dir)).free
    present = sum(file.stat().st_size for file in (run_dir / "checkpoints").rglob("*") if file.is_file())
    if free + present < needed:
        mib = [f"{size / 2**20:,.0f}" for size in (needed, present, free)]
        raise OSError(
            f"no space: the checkpoints of {run_dir} need {mib[0]} MiB; those that are there take {mib[1]}, and "
            f"{mib[2]} are free"
        )


def check_saves(run_dir: Path, trainer: Trainer, tokenizer: PreTrainedTokenizerBase) -> None:
    """Write a trial checkpoint, with a single number as the tensors, beside those of the run, and remove it.

    ValueError for a model or a tokenizer that cannot be saved; OSError where the run's folder cannot be written.
    """
    one = {"layer.lora_A.weight": torch.zeros(1)}
    weights = Adapter(1, 1.0, one) if has_adapter(trainer.model) else one
    checkpoints = run_dir / "checkpoints"  # clean_partial() removes there what a kill leaves
    place = checkpoints if checkpoints.is_dir() else nearest(run_dir.parent)
    with TemporaryDirectory(prefix="trial-", suffix=".partial", dir=place) as trial:
        try:
            _write(Path(trial) / "checkpoint", trainer, tokenizer, Snapshot(weights, one), "")
        except (ValueError, TypeError, AttributeError, RuntimeError, SafetensorError) as error:
            raise ValueError(f"no checkpoint of {trainer.cfg.model} can be saved: {first_line(error)}") from error


def room_needed(trainer: Trainer, *, keep: int) -> tuple[int, int]:
    """Bytes of (one checkpoint, all that are there at once): trained weights in 4 bytes, two moments in 4 or 1 each,
    a reference that follows the policy, one more than are kept while it is written; and the best weights twice.
    """
    models = 1 if trainer.critic is None or trainer.critic.shared else 2
    parameters = sum(parameter.numel() for _, parameter in trained_parameters(trainer.model))
    size = 4 + 2 * (1 if trainer.cfg.optim.state_dtype == "8bit" else 4)
    reference = trainer.reference if trainer.cfg.algo.ref_sync_steps else None
    tensors = reference.state_dict().values() if reference is not None else ()  # tied ones are written twice
    one = size * models * parameters + sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return one, (keep + 1) * one + 8 * parameters


def nearest(folder: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    return next(place for place in (folder, *folder.absolute().parents) if place.exists())


def list_checkpoints(run_dir: Path) -> list[Path]:
    """The run's checkpoints, oldest first."""
    return sorted((run_dir / "checkpoints").glob(STEP_PATTERN))


def step_of(path: Path) -> int:
    """The number in a name such as step-000020 or step-000020.parquet."""
    return int(path.name.removeprefix("step-").partition(".")[0])


def load(path: Path, trainer: Trainer) -> int:
    """Load all state but the policy's weights into a trainer that was built from them. Returns the steps done."""
    tensors = load_file(path / "trainer" / "optimizer.safetensors")
    load_optimizer_state(trainer.optimizer, trained_parameters(trainer.model), tensors)
    if trainer.critic is not None:
        trainer.critic.restore(load_file(path / "trainer" / "critic.safetensors"))
    if trainer.reference is not None and trainer.cfg.algo.ref_sync_steps:
        load_state(trainer.reference, load_file(path / "trainer" / "reference.safetensors"))
    trainer.restore(json.loads((path / "trainer" / "state.json").read_text()))
    return trainer.steps_done


def dump(run_dir: Path, step: int, batch: Batch) -> Path:
    """Write the batch of a step whose gradient was not finite, by field name. Returns the file."""
    path = run_dir / "dumps" / f"step-{step:06d}.safetensors"
    path.parent.mkdir(parents=True, exist_ok=True)
    tensors = {field.name: getattr(batch, field.name) for field in fields(batch)}
    with atomic_path(path) as beside:
        save_file({name: value.contiguous() for name, value in tensors.items() if value is not None}, beside)
    return path
