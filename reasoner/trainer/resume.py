"""Resuming a run: from the newest checkpoint that the run's records reach.

Records after that checkpoint are removed and written again. Before it, metrics.jsonl must hold every step, because
health checks and the number of tokens are computed from it; otherwise the run resumes from an older checkpoint, or is
refused. Rollout shards, validations, times, alarms and the best checkpoint do not influence training: if some are lost,
they are written again where an older checkpoint, the metrics or a checkpoint's weights allow it, and reported if not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

from reasoner.models.checksums import damage
from reasoner.runs import health
from reasoner.runs import rollouts as store
from reasoner.runs.json_files import scan_steps
from reasoner.runs.metrics import FILES, lacks_newline, metrics_prefix, truncate_logs
from reasoner.runs.run_dir import read_settings, recovery_hint, stage_of
from reasoner.runs.run_start import lock_run_dir
from reasoner.trainer import checkpoint
from reasoner.trainer.validation import BEST_BY

Log = Callable[[str], None]

_REPORTED = {
    "validation.data": "validations before and after are not comparable, nor is the best policy so far",
    # A mistake in a function ends a run, which goes on once it is mended.
    **dict.fromkeys(("reward.functions", "tools.names"), "steps before and after are not comparable"),
}


def resume_point(run_dir: Path, log: Log) -> Path | None:
    """Choose the checkpoint to resume from and report what is lost and what is written again. None if the run starts
    anew because it has not reached its first checkpoint.

    ValueError, with no change to the records, if no checkpoint is undamaged or the records reach none of them.
    """
    with lock_run_dir(run_dir):
        checkpoint.clean_partial(run_dir)
        num_steps = len(metrics_prefix(run_dir))
        checkpoints = checkpoint.valid_checkpoints(run_dir, log)
        newest = next(checkpoints, None)
        if newest is None:
            _check_no_checkpoint_is_due(run_dir, num_steps)
            return None
        reached = (path for path in chain([newest], checkpoints) if checkpoint.step_of(path) <= num_steps)
        start = next(reached, None)
        if start is None:
            raise ValueError(f"{run_dir} cannot be resumed: {_shortage(newest, num_steps)}; {recovery_hint(run_dir)}")
        if start != newest:
            log(f"{_shortage(newest, num_steps)}; {_again(start, newest)}")
        return _before_losses(run_dir, start, reached, log)


def _check_no_checkpoint_is_due(run_dir: Path, num_steps: int) -> None:
    """ValueError if so many steps are recorded that a checkpoint must be there. The first one is written beside the
    steps after it, and the second one waits for it.
    """
    if num_steps > 2 * (every := int(read_settings(run_dir)["config"].get("run.save_interval", num_steps))):
        raise ValueError(
            f"{run_dir} cannot be resumed: {num_steps} steps are recorded, a checkpoint was written every {every}, and "
            "there is none. Put one back, or start a new run under another --run.name"
        )


def _shortage(newest: Path, num_steps: int) -> str:
    return (
        f"metrics.jsonl holds {num_steps} of the {checkpoint.step_of(newest)} steps of checkpoint {newest.name}"
        " (the next line is missing, damaged or out of order)"
    )


def _again(start: Path, newest: Path) -> str:
    first, last = checkpoint.step_of(start), checkpoint.step_of(newest) - 1
    steps = f"steps {first} to {last} are" if last > first else f"step {first} is"
    return f"going back to checkpoint {start.name}: {steps} made again"


def _before_losses(run_dir: Path, start: Path, older: Iterable[Path], log: Log) -> Path:
    """`start`, or the newest older checkpoint from which every lost record that can be is written again."""
    step = checkpoint.step_of(start)
    has_rollouts = stage_of(read_settings(run_dir)) == "rl"
    metrics = [line for _, line in metrics_prefix(run_dir)[:step]]
    validated = {line["step"] for _, line in scan_steps(run_dir / "evals.jsonl") if line is not None}
    losses = {
        "rollouts": [one for one in range(step) if has_rollouts and not store.readable(store.shard_path(run_dir, one))],
        "validations": [line["step"] for line in metrics if BEST_BY in line and line["step"] + 1 not in validated],
    }
    every = sorted({lost for steps in losses.values() for lost in steps})
    if not every:
        return start
    candidates = [start, *older]
    oldest = min(checkpoint.step_of(path) for path in candidates)
    first = next((lost for lost in every if lost >= oldest), step)  # loss that can be made again
    chosen = next(path for path in candidates if checkpoint.step_of(path) <= first)
    for name, steps in losses.items():
        again = [lost for lost in steps if lost >= checkpoint.step_of(chosen)]
        gone = [lost for lost in steps if lost < checkpoint.step_of(chosen)]
        if again:
            log(f"{name} of {_numbers(again)} are missing or damaged; {_again(chosen, start)}")
        if gone:
            log(
                f"{name} of {_numbers(gone)} are missing or damaged, and no checkpoint is left from which they could "
                "be made again; training does not need them, so the run goes on without them"
            )
    return chosen


def _numbers(steps: Iterable[int]) -> str:
    """At most ten steps as text."""
    numbers = [str(step) for step in steps]
    rest = f" and {len(numbers) - 10} more" if len(numbers) > 10 else ""
    return f"step{'s' * (len(numbers) > 1)} {', '.join(numbers[:10])}{rest}"


def repair(run_dir: Path, start: int, log: Log) -> None:
    """Cut the records back to the first `start` steps. Compute the alarms from the metrics, and restore the best
    checkpoint where that is possible. The caller holds the run's lock.
    """
    for name in FILES:
        if lacks_newline(run_dir / name):
            log(f"{name} lacked the newline of its last line; it is added")
    truncate_logs(run_dir, start)
    store.delete_from(run_dir, start)
    metrics = [line for _, line in metrics_prefix(run_dir)]
    times = {line["step"] for _, line in scan_steps(run_dir / "times.jsonl") if line is not None}
    if untimed := [step for step in range(start) if step not in times]:
        log(f"times.jsonl lacks {_numbers(untimed)}: what the clock said of them is lost, and nothing else")
    health.write_alarms(run_dir, health.all_alarms(metrics))
    _repair_best(run_dir, metrics, log)


def _repair_best(run_dir: Path, metrics: list[dict[str, float]], log: Log) -> None:
    """Restore the best checkpoint: that of the first validation with the highest score."""
    scores = {int(line["step"]) + 1: line[BEST_BY] for line in metrics if BEST_BY in line}
    best = run_dir / "checkpoints" / "best"
    if not scores or not (fault := damage(best) if best.is_dir() else "it is missing"):
        return
    step = max(scores, key=lambda step: scores[step])
    at = f"checkpoints/best, the policy after {step} steps (pass@1 {scores[step]:.1%}), is lost: {fault}"
    path = checkpoint.folder(run_dir, step)
    if path.is_dir() and not damage(path):
        checkpoint.restore_best(run_dir, step, score=scores[step])
        log(f"{at}; it is restored from checkpoint {path.name}")
    else:
        log(f"{at}; the next policy with a higher score takes its place")


def check_unchanged(
    stored: Mapping[str, Any], now: Mapping[str, str], settings: Mapping[str, object], log: Log
) -> None:
    """Compare the fingerprints of `now` with those that a run's config.json holds (`stored`: run_dir.read_settings).
    ValueError where model, prompt or training data are not the ones that the run began with. Other validation problems
    and functions of the user's are reported. `settings` are those of now, by dotted key.
    """
    then = stored.get("fingerprints", {})
    for name in now:
        if name not in _REPORTED and then.get(name) != now[name]:
            raise ValueError(
                f"{name} is {settings[name]!r} as before, but its content has changed: its fingerprint is "
                f"{now[name][:16]}, and that of the run {str(then.get(name))[:16]}. Restore the old content, or start "
                "a new run"
            )
        if name in then and then[name] != now[name]:
            log(f"the content of {name} {settings[name]!r} has changed since the run began: {_REPORTED[name]}")
