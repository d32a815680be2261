"""Checkpoints: model folders that transformers and vLLM load as they are, with the optimiser's state beside.

    runs/NAME/checkpoints/best/          a model folder alone: the best one so far on the validation problems
    runs/NAME/checkpoints/step-000020/   after 20 steps
        config.json, model.safetensors, tokenizer files
        with LoRA adapter_config.json, adapter_model.safetensors, base_model.json (name and fingerprint of its base)
        instead of model.safetensors
        trainer/state.json               steps done, and what the optimiser keeps in numbers
        trainer/optimizer.safetensors    the optimiser's tensors, "<parameter>.<name>"
        sha256.json                      of every other file (reasoner.models.checksums), also of the best

Where N ranks hold shards, each writes every N-th layer, in whole tensors: model-00001-of-0000N.safetensors and so on,
with transformers' index. Any number of ranks reads them.

Nothing is pickled. A checkpoint is written beside its place, synced and renamed: it is complete or absent. Later damage
by the disk shows in its checksums, which whatever loads the model compares.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory

import torch
from safetensors import SafetensorError
from transformers import PreTrainedTokenizerBase

from reasoner.console import first_line
from reasoner.distributed.world import ALONE, World
from reasoner.models.adapter_files import Adapter
from reasoner.models.checksums import CHECKSUMS, check_file, damage, sha256, write_checksums
from reasoner.models.lora import has_adapter, save_policy, trained_parameters
from reasoner.models.saving import file_name, save_tensors, stored_tensors, write_index
from reasoner.models.sharding import load_state
from reasoner.rl.optimizers import load_optimizer_state
from reasoner.runs.io import sync
from reasoner.runs.run_dir import list_checkpoints, nearest
from reasoner.trainer.snapshot import Snapshot, checkpoint_bytes, num_trained, snapshot
from reasoner.trainer.trainer import Trainer

_PARTIAL = ".partial"  # of the name of a folder that is being written
_CANNOT_SAVE = (ValueError, TypeError, AttributeError, RuntimeError, SafetensorError)  # of a model or a tokenizer


def folder(run_dir: Path, step: int) -> Path:
    return run_dir / "checkpoints" / f"step-{step:06d}"


def save_best(
    run_dir: Path,
    step: int,
    trainer: Trainer,
    tokenizer: PreTrainedTokenizerBase,
    contents: Snapshot | None = None,
    *,
    score: float,
    world: World = ALONE,
) -> None:
    """Save the policy as the best one so far. best.json in the folder holds the number of steps and the score.
    `contents` and `world` as in save().
    """
    state = contents or snapshot(trainer)

    def write(path: Path) -> dict[str, str]:
        if world.is_first:
            _write_score(path, step, score)
        return _write_model(path, trainer, tokenizer, state)

    _write_together(run_dir / "checkpoints" / "best", write, world)


def best_score(run_dir: Path) -> float | None:
    """Validation score of the best checkpoint; None if there is none or its best.json is damaged."""
    path = run_dir / "checkpoints" / "best" / "best.json"
    try:
        check_file(path)
        return float(json.loads(path.read_text())["validation/pass@1"])
    except (OSError, ValueError, TypeError, KeyError):
        return None


def restore_best(run_dir: Path, step: int, *, score: float) -> None:
    """Restore the best checkpoint from the one after `step` steps, with the bytes that save_best() wrote."""

    def write(path: Path) -> None:
        shutil.copytree(folder(run_dir, step), path, ignore=shutil.ignore_patterns("trainer", CHECKSUMS))
        _write_score(path, step, score)
        write_checksums(path)

    _put(run_dir / "checkpoints" / "best", write)


def _write_score(path: Path, step: int, score: float) -> None:
    path.mkdir(parents=True, exist_ok=True)
    (path / "best.json").write_text(json.dumps({"steps_done": step, "validation/pass@1": score}) + "\n")


def save(
    run_dir: Path,
    step: int,
    trainer: Trainer,
    tokenizer: PreTrainedTokenizerBase,
    contents: Snapshot | None = None,
    *,
    keep: int,
    every: int = 1,
    world: World = ALONE,
) -> Path:
    """Write the checkpoint after `step` steps, and remove later ones and, as prune() does, earlier ones. `contents` is
    snapshot() by default. A collective operation of `world`, the ranks that have a part of the contents.

    OSError, with nothing left behind, if it cannot be written.
    """
    path, state = folder(run_dir, step), contents or snapshot(trainer)
    _write_together(path, lambda beside: _write(beside, trainer, tokenizer, state), world)
    if world.is_first:
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


def _write_together(path: Path, write: Callable[[Path], Mapping[str, str]], world: World) -> None:
    """Let each rank of `world` write its part of a folder, and the first one complete it. `write` returns the file's
    name by tensor of the rank's part of the model. OSError on every rank if one of them cannot write.
    """

    def write_parts(beside: Path) -> None:
        world.gather(None, "the folder of the checkpoint")  # the first rank has removed what was there
        files: dict[str, str] = {}
        sums: dict[str, str] = {}
        errors: list[str] = []
        for own_files, own_sums, error in world.gather(_own_part(beside, write, world), "the parts of the checkpoint"):
            files.update(own_files)
            sums.update(own_sums)
            errors += [error] * bool(error)
        if errors:
            raise OSError(errors[0])
        if world.is_first:
            write_index(beside, files)
            write_checksums(beside, known=sums)

    if world.is_first:
        _put(path, write_parts)
    else:
        write_parts(path.with_name(path.name + _PARTIAL))


def _own_part(
    beside: Path, write: Callable[[Path], Mapping[str, str]], world: World
) -> tuple[Mapping[str, str], Mapping[str, str], str]:
    """Write this rank's part: (its files of the model by tensor, checksums by file, the error). All ranks but the
    first, which does it for the rest, sync their files and sum them up.
    """
    try:
        files, sums = write(beside), {}
        if not world.is_first:
            for own in sorted(beside.rglob(file_name("*", world.rank, world.size))):
                sync(own)
                sums[own.relative_to(beside).as_posix()] = sha256(own)
        return files, sums, ""
    except (OSError, *_CANNOT_SAVE) as error:  # the other ranks wait for this one's part
        return {}, {}, str(error)


def _put(path: Path, write: Callable[[Path], None]) -> None:
    """Write a folder beside `path`, then put it in the place of what is there."""
    beside, before = (path.with_name(path.name + suffix) for suffix in (_PARTIAL, ".before"))
    shutil.rmtree(beside, ignore_errors=True)
    try:
        write(beside)
        for file in sorted(beside.rglob("*")):
            sync(file)
    except BaseException as error:
        shutil.rmtree(beside, ignore_errors=True)
        if isinstance(error, OSError):
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
    for left in [*(run_dir / "checkpoints").glob(f"*{_PARTIAL}"), *(run_dir / "checkpoints").glob("*.before")]:
        shutil.rmtree(left)


def _write(path: Path, trainer: Trainer, tokenizer: PreTrainedTokenizerBase, contents: Snapshot) -> dict[str, str]:
    """Write a part of a checkpoint. Returns the file's name by tensor of the model's part."""
    (path / "trainer").mkdir(parents=True, exist_ok=True)
    for stem in ("optimizer", "critic", "reference"):
        if (tensors := getattr(contents, stem)) is not None:
            save_tensors(tensors, path / "trainer" / file_name(stem, contents.part, contents.num_parts))
    if not contents.part:
        (path / "trainer" / "state.json").write_text(json.dumps(contents.numbers) + "\n")
    return _write_model(path, trainer, tokenizer, contents)


def _write_model(
    path: Path, trainer: Trainer, tokenizer: PreTrainedTokenizerBase, contents: Snapshot
) -> dict[str, str]:
    """The model folder in a checkpoint."""
    if not contents.part:
        path.mkdir(parents=True, exist_ok=True)
        tokenizer.save_pretrained(path)
    parts = {"part": contents.part, "num_parts": contents.num_parts}
    return save_policy(trainer.model, path, trainer.base_model, contents.model, **parts)


def valid_checkpoints(run_dir: Path, log: Callable[[str], None]) -> Iterator[Path]:
    """Yield the undamaged checkpoints, newest first, and report the damaged ones.

    ValueError at the end if there are checkpoints and all are damaged.
    """
    checkpoints = list_checkpoints(run_dir)[::-1]
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
    with TemporaryDirectory(prefix="trial-", suffix=_PARTIAL, dir=place) as trial:
        try:
            _write(Path(trial) / "checkpoint", trainer, tokenizer, Snapshot(weights, one, numbers=trainer.state()))
        except _CANNOT_SAVE as error:
            raise ValueError(f"no checkpoint of {trainer.cfg.model} can be saved: {first_line(error)}") from error


def room_needed(trainer: Trainer, *, keep: int) -> tuple[int, int]:
    """Bytes of (one checkpoint, all that are there at once): one more than are kept while it is written, and the best
    weights twice.
    """
    one = checkpoint_bytes(trainer)
    return one, (keep + 1) * one + 8 * num_trained(trainer)


def step_of(path: Path) -> int:
    """The number in a name such as step-000020 or step-000020.parquet."""
    return int(path.name.removeprefix("step-").partition(".")[0])


def load(path: Path, trainer: Trainer) -> int:
    """Load all state but the policy's weights into a trainer that was built from them. Returns the steps done."""
    stored = path / "trainer"
    load_optimizer_state(trainer.optimizer, trained_parameters(trainer.model), stored_tensors(stored, "optimizer"))
    if trainer.critic is not None:
        trainer.critic.restore(stored_tensors(stored, "critic"))
    if trainer.reference is not None and trainer.cfg.algo.ref_sync_steps:
        load_state(trainer.reference, stored_tensors(stored, "reference"))
    trainer.restore(json.loads((path / "trainer" / "state.json").read_text()))
    return trainer.steps_done
