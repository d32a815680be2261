"""The log of a run while it trains: metrics.jsonl, times.jsonl, evals.jsonl, alarms.jsonl and the console."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from reasoner.console import clock, escape_controls, log, sparkline, speed, wording
from reasoner.distributed.world import ALONE, World
from reasoner.progress import Progress, live
from reasoner.runs.health import Alarm, read_alarms, write_alarms
from reasoner.runs.json_files import append_line
from reasoner.runs.metric_names import METRICS, TIMES, Place, shown_at
from reasoner.runs.metrics import read_metrics

_SPEED = TIMES["tokens_per_second"]
# How the console shows a value, by its unit.
_FORMATS: dict[str, Callable[[float], str]] = {
    "": "{:.3f}".format,
    "share": lambda share: f"{share:.1%}" if share < 0.1 else f"{share:.0%}",  # a line fits 120 columns
    "tokens": "{:.0f}".format,
    "nats per token": "{:.4f}".format,
    "tokens per second": speed,
}
_NO_SIGNAL = (
    "no completion of the first step is correct: look at the prompt (prompt.style: does it ask for the form that is "
    "graded?), at the truncated share (sampling.max_tokens), and at reasoner doctor, which measures how often the "
    "model solves such problems"
)


class MetricsLogger:
    """Log of a run: appends one line per step to the files, and shows progress on standard error.

    On a terminal the progress is a live panel, otherwise one plain line per step. Every rank of `world` has the metrics
    of all steps; the first alone writes and shows them.
    """

    def __init__(
        self,
        run_dir: Path,
        *,
        steps: int,
        start: int,
        max_tokens: int = 0,
        world: World = ALONE,
        place: Place = "console",
    ) -> None:
        """`steps` and `max_tokens` (0: no limit) end the run, whichever comes first; `start` steps are done. `place`
        names the metrics of the line after each step (reasoner.runs.metric_names).
        """
        self._validation = [row for row in shown_at(place) if row.name.startswith("validation/")]
        self._columns = [row for row in shown_at(place) if row not in self._validation]
        self.run_dir = run_dir
        self._world = world
        self.steps = steps
        self.max_tokens = max_tokens
        self.history = world.from_first(lambda: read_metrics(run_dir), "the metrics of earlier steps")
        assert len(self.history) == start, f"{len(self.history)} steps are recorded of {start}"
        self._done_before = self._done()
        self._before = max((line.get("time/run", 0.0) for line in self.history), default=0.0)
        self._example = ""
        self.progress = Progress()  # inside a step or an evaluation
        self.began = time.monotonic()
        self.live = live(self._shown) if world.is_first else None  # calls _shown() at once
        if self.live is None:
            self.progress.log = self.log

    def __enter__(self) -> MetricsLogger:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def alarm(self, alarms: Sequence[Alarm]) -> None:
        """Record new alarms and print them."""
        if alarms and self._world.is_first:
            write_alarms(self.run_dir, [*read_alarms(self.run_dir), *alarms])
        for alarm in alarms:
            self.log(alarm.text)

    def log(self, line: str) -> None:
        """Print one plain line beside the progress."""
        if self.live is not None:
            self.live.console.print(wording(line), highlight=False, markup=False)
        else:
            log(line)
            self.progress.line_printed()

    def log_validation(self, step: int, **results: Mapping[str, object]) -> None:
        """Record a validation after `step` steps: `sampled`, `greedy` and, where there are some, `measures`."""
        self._append("evals", {"step": step, **{name: own for name, own in results.items() if own}})

    def write(self, metrics: Mapping[str, float], times: Mapping[str, float], *, example: str = "") -> None:
        """Record a step. `example` is a completion to show on a terminal. Names must be those of METRICS and TIMES.

        A value that is not finite is left out of the file, because JSON has no word for it.
        """
        assert metrics.keys() <= METRICS.keys(), f"metrics that METRICS lacks: {metrics.keys() - METRICS.keys()}"
        assert times.keys() <= TIMES.keys(), f"times that TIMES lacks: {times.keys() - TIMES.keys()}"
        timed = {"step": metrics["step"], **times, "time/run": 60 * self.minutes()}
        self._append("times", timed)
        self._append("metrics", {name: value for name, value in metrics.items() if math.isfinite(value)})
        self.history.append({**metrics, **timed})
        if self.live is not None:
            self._example = example
            self.live.refresh()
        else:
            self.log(self._line())
        if metrics["step"] == 0 and metrics.get("correct") == 0:
            self.log(_NO_SIGNAL)

    def _append(self, name: str, line: Mapping[str, object]) -> None:
        if self._world.is_first:
            append_line(self.run_dir / f"{name}.jsonl", line)

    @property
    def steps_done(self) -> int:
        return int(self.history[-1]["step"]) + 1 if self.history else 0

    def num_tokens(self) -> float:
        """Number of tokens sampled by the steps so far."""
        return self.history[-1].get("num_tokens", 0.0) if self.history else 0.0

    def minutes(self) -> float:
        """Minutes of the run so far: steps, validations and checkpoints."""
        return (self._before + time.monotonic() - self.began) / 60

    def _done(self) -> float:
        """The share of the run that is done: of its steps or, where that is more, of its sampled tokens."""
        of_tokens = self.num_tokens() / self.max_tokens if self.max_tokens else 0.0
        return min(1.0, max(self.steps_done / self.steps, of_tokens))

    def _cells(self) -> dict[str, str]:
        """The newest step by column: step, done, the metrics that the console shows, time left."""
        newest, done = self.history[-1], self._done()
        left = (time.monotonic() - self.began) * (1 - done) / (done - self._done_before)  # at the speed so far
        by_tokens = done > self.steps_done / self.steps
        return {
            "step": f"{newest['step']:.0f}",
            "done": f"{done:.0%} of {self.max_tokens:,} tokens" if by_tokens else f"{self.steps_done}/{self.steps}",
            **{row.label: _FORMATS[row.unit](newest[row.name]) for row in self._columns if row.name in newest},
            "left": clock(left),
        }

    def _line(self) -> str:
        cells, newest = self._cells(), self.history[-1]
        step, done, left = (cells.pop(name) for name in ("step", "done", "left"))
        del cells[_SPEED.label]
        metrics = "  ".join(f"{label} {text}" for label, text in cells.items())
        line = f"step {step} ({done} done)  {metrics}  {left} left"
        if any(row.name in newest for row in self._validation):
            known = [row for row in self._validation if row.name in newest]
            scores = (f"{row.label} {_FORMATS[row.unit](newest[row.name])}" for row in known)
            line += f"  | {self.steps_done} steps done: {', '.join(scores)}"
        return line

    def _shown(self) -> Group:
        """The panel of the steps so far, once this process has done one, and the progress within the current one."""
        within = Text(self.progress.text(), "dim", overflow="ellipsis", no_wrap=True)
        return Group(*(self._panel() if self._done() > self._done_before else ()), within)

    def _panel(self) -> list[RenderableType]:
        table = Table(box=None, padding=(0, 1), show_header=True, header_style="bold")
        cells = self._cells()
        for name in cells:
            table.add_column(name, justify="right", no_wrap=True)
        table.add_row(*cells.values())
        score = METRICS["validation/pass@1"]
        curve = next(row for row in self._columns if row.unit == "share")
        validations = [line for line in self.history if score.name in line]
        example = " ".join(escape_controls(self._example).split())
        scores = "  ".join(f"{line['step'] + 1:.0f}: {line[score.name]:.1%}" for line in validations[-6:])
        return [
            Padding(ProgressBar(total=1.0, completed=self._done(), width=60), 0),  # ends its line
            table,
            Text(f"{curve.label}  {sparkline([line[curve.name] for line in self.history if curve.name in line])}"),
            Text(f"{score.label} by steps done  {scores}" if scores else ""),
            *([Text(f"a completion: {example}", "dim", overflow="ellipsis", no_wrap=True)] if example else []),
        ]
