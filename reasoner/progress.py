"""Progress inside a step or an evaluation: "sampled 96/256 completions, 12,345 tokens, 812 tok/s; graded 64/256".

The working code counts; a terminal shows the current text, a log gets a plain line from time to time. Nothing is
stored, and no number of a run depends on it.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial

from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from reasoner.console import clock, log, messages, speed

FIRST, LATER = 10, 30  # seconds without output before a log gets a line: the first time, and later
_COUNT_INTERVAL = 0.25  # seconds between two counts of tokens

CurrentCounts = Callable[[], tuple[int, int]]  # returns (finished completions, tokens of all) of a call so far
OnDecodeStep = Callable[[CurrentCounts], object]  # called by an engine after each decoding step


@dataclass(frozen=True, slots=True)
class _Count:
    done: int
    total: int
    suffix: str  # text after the numbers


class Progress:
    """Counts by name, of one piece of work at a time. Any thread may count and read.

    There is no lock: the handler of a signal prints a message beside the display, which reads the counts, in the middle
    of any method. Each method reads or replaces all counts at once.

    `log` prints a line to a log; None if a display reads text() instead, or for no output. `now` returns seconds.
    """

    def __init__(
        self, log: Callable[[str], object] | None = None, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self.log = log
        self.now = now
        self._title = ""
        self._counts: dict[str, _Count] = {}  # replaced, never changed
        self.check: Callable[[], object] = lambda: None  # called after each decoding step; may raise to end a call
        self._quiet_since, self._wait = now(), FIRST
        self._next = now()

    def begin(self, title: str) -> None:
        """Start another piece of work and clear the counts."""
        self._title, self._counts = title, {}

    def count(self, name: str, done: int, total: int, *, rest: str = "") -> None:
        """Set a count, with `rest` as text after the numbers. Prints a line if the log has had none for long enough."""
        self._counts = {**self._counts, name: _Count(done, total, rest)}
        if self.now() - self._quiet_since >= self._wait:
            self.line_printed()
            if self.log is not None:
                self.log(self.text())

    def counter(self, name: str) -> Callable[[int, int], None]:
        """A function of (done, total) that sets a count."""
        return partial(self.count, name)

    def line_printed(self) -> None:
        """Note that the log got a line, which postpones the next one."""
        self._quiet_since, self._wait = self.now(), LATER

    def is_due(self) -> bool:
        """Whether a costly count should be made now; at most every 0.25 seconds."""
        is_due = self.now() >= self._next
        if is_due:
            self._next = self.now() + _COUNT_INTERVAL
        return is_due

    def text(self) -> str:
        """The title and all counts; empty if nothing has been counted."""
        counts = [f"{name} {c.done:,}/{c.total:,}{c.suffix}" for name, c in self._counts.items()]
        return f"{self._title + ': ' if self._title else ''}{'; '.join(counts)}" if counts else ""


class SampleCount:
    """Counts completions and tokens of a sampling call, which may have several parts."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total = progress, total
        self._began = progress.now()
        self._done = self._sampled = self._tokens = 0  # of finished parts; sampled: not from a cache
        self._show(0, 0)

    def on_decode_step(self, counted: CurrentCounts) -> None:
        """Update the count of the part in progress: an OnDecodeStep callback."""
        self._progress.check()
        if self._progress.is_due():
            self._show(*counted())

    def add(self, completions: int, *, sampled: int, tokens: int) -> None:
        """Add a finished part. `sampled` of its completions, with `tokens` tokens, were not in a cache."""
        self._done += completions
        self._sampled += sampled
        self._tokens += tokens
        self._show(0, 0)

    def _show(self, completions: int, tokens: int) -> None:
        done, sampled, tokens = self._done + completions, self._sampled + completions, self._tokens + tokens
        seconds = self._progress.now() - self._began
        suffix = " completions"
        if tokens and seconds > 0:
            suffix += f", {tokens:,} tokens, {speed(tokens / seconds)}"
        if sampled and seconds >= FIRST and done < self._total:
            suffix += f", {clock(seconds / sampled * (self._total - done))} left"
        self._progress.count("sampled", done, self._total, rest=suffix)


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Show progress on standard error: one updated line on a terminal, plain lines in a log or a notebook."""
    progress = Progress()
    display = live(lambda: Text(progress.text(), "dim", overflow="ellipsis", no_wrap=True), transient=True)
    if display is None:
        progress.log = log
        yield progress
        return
    display.start()
    try:
        yield progress
    finally:
        display.stop()


def live(renderable: Callable[[], RenderableType], *, transient: bool = False) -> Live | None:
    """A display on the terminal that is refreshed from `renderable` four times a second; None where standard error is
    none.

    Standard output is redirected through it only if it is a terminal too, so that piped output stays unchanged.
    """
    console = Console(file=messages())
    if console.is_jupyter or not console.is_terminal:
        return None
    return Live(
        console=console,
        get_renderable=renderable,
        refresh_per_second=4,
        transient=transient,
        redirect_stdout=sys.stdout.isatty(),
    )
