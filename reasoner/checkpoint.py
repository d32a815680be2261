"""Checkpoints: model folders that transformers and vLLM load as they are, with the optimiser's state beside.

    runs/NAME/checkpoints/best/          a model folder alone: the best one so far on the selection problems
    runs/NAME/checkpoints/step-000020/   after 20 steps
        config.json, model.safetensors, tokenizer files
        trainer/state.json               steps done, and what the optimiser keeps in numbers
        trainer/optimizer.safetensors    the optimiser's tensors, "<parameter>.<name>"

Nothing is pickled. A checkpoint is written beside and renamed: it is whole or not there.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from transformers import PreTrainedTokenizerBase

from reasoner.rl.learner import Learner
from reasoner.rl.passes import averages, put_averages


def folder(run_dir: Path, step: int) -> Path:
    return run_dir / "checkpoints" / f"step-{step:06d}"


def save_best(run_dir: Path, step: int, learner: Learner, tokenizer: PreTrainedTokenizerBase, *, score: float) -> None:
    """Keep the policy as the best one so far. best.json in the folder says after how many steps, and why."""
    path = run_dir / "checkpoints" / "best"
    beside, before = path.with_name("best.partial"), path.with_name("best.before")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    learner.policy.save_pretrained(beside)
    tokenizer.save_pretrained(beside)
    (beside / "best.json").write_text(json.dumps({"steps_done": step, "eval/selection/pass@1": score}) + "\n")
    shutil.rmtree(before, ignore_errors=True)
    if path.is_dir():
        path.rename(before)
    beside.rename(path)
    shutil.rmtree(before, ignore_errors=True)


def best_score(run_dir: Path) -> float:
    """The selection score of the best policy that was kept; -1 where there is none."""
    path = run_dir / "checkpoints" / "best" / "best.json"
    return float(json.loads(path.read_text())["eval/selection/pass@1"]) if path.is_file() else -1.0


def save(run_dir: Path, step: int, learner: Learner, tokenizer: PreTrainedTokenizerBase, *, keep: int) -> Path:
    """Write the checkpoint after `step` steps and remove all but the `keep` newest.

    OSError, with nothing left behind, where it cannot be written.
    """
    path = folder(run_dir, step)
    beside = path.with_name(path.name + ".partial")
    shutil.rmtree(beside, ignore_errors=True)
    try:
        _write(beside, learner, tokenizer)
    except (OSError, SafetensorError) as error:
        shutil.rmtree(beside, ignore_errors=True)
        raise OSError(f"cannot write {path}: {error}") from error
    shutil.rmtree(path, ignore_errors=True)
    beside.rename(path)
    for old in saved(run_dir)[: -max(1, keep)]:
        shutil.rmtree(old)
    return path


def _write(path: Path, learner: Learner, tokenizer: PreTrainedTokenizerBase) -> None:
    (path / "trainer").mkdir(parents=True)
    learner.policy.save_pretrained(path)
    tokenizer.save_pretrained(path)
    kept = averages(learner.optimizer, list(learner.policy.named_parameters()))
    save_file(kept, path / "trainer" / "optimizer.safetensors")
    if learner.critic is not None:
        save_file(learner.critic.state(), path / "trainer" / "critic.safetensors")
    if learner.reference is not None and learner.cfg.algo.refresh_reference:
        kept = {name: tensor.clone() for name, tensor in learner.reference.state_dict().items()}
        save_file(kept, path / "trainer" / "reference.safetensors")
    (path / "trainer" / "state.json").write_text(json.dumps(learner.state()) + "\n")


def check_room(run_dir: Path, learner: Learner, *, keep: int) -> None:
    """OSError where the disk has no room for the checkpoints: weights and two averages in 4 bytes each, one more than
    are kept; and the best weights twice.
    """
    models = 1 if learner.critic is None or learner.critic.shared else 2
    needed = (12 * (keep + 1) * models + 8) * sum(parameter.numel() for parameter in learner.policy.parameters())
    there = next(folder for folder in (run_dir, *run_dir.absolute().parents) if folder.exists())
    free = shutil.disk_usage(there).free
    if free < needed:
        raise OSError(
            f"no space: the checkpoints of {run_dir} need {needed / 2**20:,.0f} MiB, and {free / 2**20:,.0f} are free"
        )


def saved(run_dir: Path) -> list[Path]:
    """The run's checkpoints, oldest first."""
    return sorted((run_dir / "checkpoints").glob("step-??????"))


def last(run_dir: Path) -> Path:
    """The newest checkpoint. ValueError when there is none."""
    found = saved(run_dir)
    if not found:
        raise ValueError(f"{run_dir} has no checkpoint yet")
    return found[-1]


def load(path: Path, learner: Learner) -> int:
    """Give the learner the optimiser state of the checkpoint whose weights it already has; the number of steps done."""
    tensors = load_file(path / "trainer" / "optimizer.safetensors")
    put_averages(learner.optimizer, list(learner.policy.named_parameters()), tensors)
    if learner.critic is not None:
        learner.critic.restore(load_file(path / "trainer" / "critic.safetensors"))
    if learner.reference is not None and learner.cfg.algo.refresh_reference:
        learner.reference.load_state_dict(load_file(path / "trainer" / "reference.safetensors"))
    learner.restore(json.loads((path / "trainer" / "state.json").read_text()))
    return learner.steps_done
