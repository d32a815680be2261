"""Experiment trackers: a copy of the metrics and of a few rollouts for trackio, wandb or TensorBoard, best effort.

The run folder holds the truth. A tracker that fails, hangs or lags loses records and nothing else: each has a thread
and a bounded queue of its own, and training waits for none of them.
"""

from __future__ import annotations

import math
import os
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from difflib import get_close_matches
from functools import cache, partial
from importlib.util import find_spec
from pathlib import Path
from queue import Empty, Queue
from textwrap import indent

from reasoner.console import shorten

_FAULTS = 3  # in a row, after which a tracker is switched off
_ROWS = 16  # rollouts of a step

Log = Callable[[str], None]  # shows a line
Row = Mapping[str, object]  # a rollout: question, completion, reward, advantage, verdict


@dataclass(frozen=True, slots=True)
class TrackedRun:
    """The run, as a tracker gets it when it opens."""

    name: str
    project: str
    config: Mapping[str, object]
    folder: Path  # for the tracker's files; trackio has one store for all runs instead
    start: int = 0  # steps done before: a resumed run goes on in its old charts


@dataclass(frozen=True, slots=True)
class Sink:
    """An open tracker. Called from one thread, in the order of the steps; may raise, and may take its time."""

    log: Callable[[int, Mapping[str, float]], object]  # step, metrics
    rollouts: Callable[[int, Sequence[Row]], object]  # step, one row or more
    finish: Callable[[str], object]  # finished | failed


class Tracking:
    """The trackers of a run. ValueError, before anything opens, for an unknown name or a library that is missing."""

    def __init__(
        self, names: Sequence[str], run: TrackedRun, *, log: Log, capacity: int = 256, timeout: float = 5.0
    ) -> None:
        check_trackers(names)
        self._log, self._timeout = log, timeout  # the seconds that close waits for all of them together
        self._channels = [_Channel(name, partial(TRACKERS[name], run), log, capacity) for name in dict.fromkeys(names)]

    def __enter__(self) -> Tracking:
        return self

    def __exit__(self, kind: type[BaseException] | None, *rest: object) -> None:
        self.close("finished" if kind is None else "failed")

    def log_step(self, step: int, metrics: Mapping[str, float], rows: Sequence[Row]) -> None:
        """Send a step's metrics, and the first of its rollouts."""
        self.log(step, metrics)
        self.rollouts(step, rows)

    def log(self, step: int, metrics: Mapping[str, float]) -> None:
        """Send the finite metrics of a step. `step` itself is the axis and is left out."""
        finite = {name: value for name, value in metrics.items() if name != "step" and math.isfinite(value)}
        for channel in self._channels:
            channel.offer(lambda sink: sink.log(step, finite))

    def rollouts(self, step: int, rows: Sequence[Row]) -> None:
        shown = [dict(row) for row in rows[:_ROWS]]
        for channel in self._channels if shown else ():
            channel.offer(lambda sink: sink.rollouts(step, shown))

    def close(self, status: str) -> None:
        """Let the trackers finish, within the timeout, and say what they did not get."""
        until = time.monotonic() + self._timeout
        for channel in self._channels:
            channel.end(status)
        for channel in self._channels:
            channel.thread.join(max(0.0, until - time.monotonic()))
            late = f" still busy after {self._timeout:g} s," if channel.thread.is_alive() else ""
            if (unsent := channel.offered - channel.sent) or late:
                self._log(f"tracker {channel.name}:{late} {unsent} of {channel.offered} records were not sent")


def check_trackers(names: Sequence[str]) -> None:
    """ValueError for a name that is not in TRACKERS and for a tracker whose library is not installed."""
    for name in names:
        if name not in TRACKERS:
            hint = "".join(f"; did you mean {close!r}?" for close in get_close_matches(name, TRACKERS, 1))
            raise ValueError(f"unknown tracker {name!r}; known are {', '.join(TRACKERS)}{hint}")
        if find_spec(name) is None:
            raise ValueError(f'tracker {name!r} is not installed; it comes with pip install "reasoner-rlvr[{name}]"')


class _Channel:
    """One tracker with its queue, and the thread that opens it and hands it the records."""

    def __init__(self, name: str, open_sink: Callable[[], Sink], log: Log, capacity: int) -> None:
        self.name = name
        self.offered = self.sent = 0
        self._sink = cache(open_sink)  # tried again until it has succeeded
        self._log = log
        self._capacity = capacity
        self._status = ""
        self._faults = 0  # in a row
        self._has_warned = False
        self._queue: Queue[Callable[[Sink], object] | None] = Queue()
        self.thread = threading.Thread(target=self._work, name=f"tracker {name}", daemon=True)
        self.thread.start()

    def offer(self, record: Callable[[Sink], object]) -> None:
        """Queue a record, at the expense of the oldest where the queue is full."""
        self.offered += 1
        with suppress(Empty):  # the thread may take it first
            while self._queue.qsize() >= self._capacity:
                self._queue.get_nowait()
        self._queue.put(record)

    def end(self, status: str) -> None:
        self._status = status
        self._queue.put(None)

    def _work(self) -> None:
        self._deliver(lambda sink: None)  # opens it: seconds of imports, maybe of network
        while self._faults < _FAULTS and (record := self._queue.get()) is not None:
            self.sent += self._deliver(record)
        if self._faults < _FAULTS:
            self._deliver(lambda sink: sink.finish(self._status))

    def _deliver(self, record: Callable[[Sink], object]) -> bool:
        """Hand over a record; False if that failed."""
        try:
            record(self._sink())
        except Exception as error:  # the boundary to foreign code: whatever it raises must not reach the run
            self._faults += 1
            if not self._has_warned:
                self._has_warned = True
                fault = shorten(f"{type(error).__name__}: {error}", 160)
                self._log(f"tracker {self.name}: {fault} (the run goes on; {_FAULTS} in a row switch the tracker off)")
            return False
        self._faults = 0
        return True


def _trackio(run: TrackedRun) -> Sink:
    import trackio

    opened = trackio.init(run.project, name=run.name, config=dict(run.config), resume="allow" if run.start else "never")

    def trace(row: Row) -> object:  # not a trackio.Table, which shows 250 characters of a text
        said = [{"role": "user", "content": row["question"]}, {"role": "assistant", "content": row["completion"]}]
        return trackio.Trace(said, {name: row[name] for name in ("reward", "advantage", "verdict")})

    return Sink(
        log=lambda step, metrics: opened.log(dict(metrics), step=step),
        rollouts=lambda step, rows: opened.log({"rollouts": [trace(row) for row in rows]}, step=step),
        finish=lambda status: opened.finish(),
    )


def _wandb(run: TrackedRun) -> Sink:
    import wandb

    run_id = run.folder / "wandb-run-id"
    if not run_id.is_file():
        run_id.write_text(secrets.token_hex(4))
    try:  # offline without a login, and where no server takes it; WANDB_MODE has the last word
        offline = "WANDB_MODE" not in os.environ and not wandb.login(prompt=False)
    except wandb.errors.CommError:
        offline = True
    opened = wandb.init(
        project=run.project,
        name=run.name,
        id=run_id.read_text(),
        resume="allow",
        mode="offline" if offline else None,
        dir=run.folder,
        config=dict(run.config),
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


def _tensorboard(run: TrackedRun) -> Sink:
    from torch.utils.tensorboard import SummaryWriter

    writer = SummaryWriter(str(run.folder / "tensorboard"), purge_step=run.start)

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
TRACKERS: dict[str, Callable[[TrackedRun], Sink]] = {"trackio": _trackio, "wandb": _wandb, "tensorboard": _tensorboard}
