"""Experiment trackers: a copy of the metrics and of a few rollouts for wandb or TensorBoard.

The run folder holds the truth. These libraries queue what they get and send it from threads of their own. A tracker
that raises an error is reported once and left out from then on; the run goes on.
"""

from __future__ import annotations

import math
import os
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from textwrap import indent

from reasoner.config.other_names import did_you_mean
from reasoner.console import shorten

_ROWS = 16  # rollouts of a step
_COLUMNS = ("question", "completion", "reward", "advantage", "verdict")

Log = Callable[[str], None]  # shows a line
Row = Mapping[str, object]  # a rollout, with _COLUMNS


@dataclass(frozen=True, slots=True)
class Sink:
    """An open tracker. Each function may raise."""

    log: Callable[[int, Mapping[str, float]], object]  # step, metrics
    rollouts: Callable[[int, Sequence[Row]], object]  # step, one row or more
    finish: Callable[[str], object]  # finished | failed


class Tracking:
    """The trackers of a run."""

    def __init__(
        self, names: Iterable[str], run_dir: Path, config: Mapping[str, object], *, start: int = 0, log: Log
    ) -> None:
        """`names`: of tracker_names(). `start`: steps done before: a resumed run goes on in its old charts."""
        self._log = log
        self._sinks: dict[str, Sink] = {}
        for name in names:
            with self._leaving_out(name):
                self._sinks[name] = TRACKERS[name](run_dir, config, start)

    def __enter__(self) -> Tracking:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        for name, sink in list(self._sinks.items()):
            with self._leaving_out(name):
                sink.finish("finished" if kind is None else "failed")

    def log_step(self, step: int, metrics: Mapping[str, float], rows: Sequence[Row] = ()) -> None:
        """Send the finite metrics of a step, without `step` itself (the axis), and the first of its rollouts."""
        finite = {name: value for name, value in metrics.items() if name != "step" and math.isfinite(value)}
        shown = [{name: row[name] for name in _COLUMNS} for row in rows[:_ROWS]]
        for name, sink in list(self._sinks.items()):
            with self._leaving_out(name):
                sink.log(step, finite)
                if shown:
                    sink.rollouts(step, shown)

    @contextmanager
    def _leaving_out(self, name: str) -> Iterator[None]:
        """A block that calls a tracker: after an error the tracker is left out."""
        try:
            yield
        except Exception as error:  # the boundary to foreign code: whatever it raises must not reach the run
            self._sinks.pop(name, None)
            fault = shorten(f"{type(error).__name__}: {error}", 160)
            self._log(f"tracker {name}: {fault} (the run goes on without it)")


def tracker_names(setting: str) -> list[str]:
    """The names in run.track, each once. ValueError for one that is not in TRACKERS or whose library is not
    installed.
    """
    names = list(dict.fromkeys(filter(None, setting.split(","))))
    for name in names:
        if name not in TRACKERS:
            raise ValueError(f"unknown tracker {name!r}; known are {', '.join(TRACKERS)}{did_you_mean(name, TRACKERS)}")
        if find_spec(name) is None:
            raise ValueError(f'tracker {name!r} is not installed; it comes with pip install "reasoner-rlvr[{name}]"')
    return names


def _wandb(run_dir: Path, config: Mapping[str, object], start: int) -> Sink:
    import wandb

    run_id = run_dir / "wandb-run-id"
    if not run_id.is_file():
        run_id.write_text(secrets.token_hex(4))
    try:  # offline without a login, and where no server takes it; WANDB_MODE has the last word
        offline = "WANDB_MODE" not in os.environ and not wandb.login(prompt=False)
    except wandb.errors.CommError:
        offline = True
    opened = wandb.init(
        project="reasoner",
        name=run_dir.name,
        id=run_id.read_text(),
        resume="allow",
        mode="offline" if offline else None,
        dir=run_dir,
        config=dict(config),
        settings=wandb.Settings(console="off", finish_timeout=30),  # no server may hold up the end of the process
    )
    opened.define_metric("*", step_metric="step")  # wandb's own step only grows, and a resumed run goes back

    def table(rows: Sequence[Row]) -> object:
        return wandb.Table(list(rows[0]), [list(row.values()) for row in rows])

    return Sink(
        log=lambda step, metrics: opened.log({"step": step, **metrics}),
        rollouts=lambda step, rows: opened.log({"step": step, "rollouts": table(rows)}),
        finish=lambda status: opened.finish(exit_code=0 if status == "finished" else 1),
    )


def _tensorboard(run_dir: Path, config: Mapping[str, object], start: int) -> Sink:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(run_dir / "tensorboard"), purge_step=start)

    def log(step: int, metrics: Mapping[str, float]) -> None:
        for name, value in metrics.items():
            writer.add_scalar(name, value, step)
        writer.flush()

    def rollouts(step: int, rows: Sequence[Row]) -> None:
        for number, row in enumerate(rows[:4]):  # a page of texts has no room for more
            text = "\n".join(f"{name}: {value}" for name, value in row.items())
            writer.add_text(f"rollouts/{number}", indent(text, "    "), step)  # as code: Markdown would eat <think>

    return Sink(log, rollouts, lambda status: writer.close())


# A new tracker is a function, a line here, and an extra in pyproject.toml: the name is the package's and the extra's.
TRACKERS: dict[str, Callable[[Path, Mapping[str, object], int], Sink]] = {"wandb": _wandb, "tensorboard": _tensorboard}
