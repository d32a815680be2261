"""Progress inside a step or an evaluation: "sampled 96/256 completions, 12,345 tokens, 812 tok/s; graded 64/256".

Whoever works counts; a terminal shows the text as it stands, a log gets a plain line now and then. Nothing of it is
stored, and no number of a run depends on it.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from rich.console import Console
from rich.live import Live
from rich.text import Text

from reasoner.console import clock, speed

FIRST, LATER = 10, 30  # seconds without a line before a log gets one: at the beginning, and from then on
_BETWEEN = 0.25  # seconds between two counts of tokens

Counted = Callable[[], tuple[int, int]]  # (completions that are complete, tokens of all) of a call so far
Tick = Callable[[Counted], object]  # what an engine calls after every token of each row


def uncounted(counted: Counted) -> None:
    """A Tick for whoever shows no progress."""


@dataclass(frozen=True, slots=True)
class _Count:
    done: int
    total: int
    rest: str  # what follows the numbers


class Progress:
    """Counts by name, of one piece of work at a time. For any thread.

    `say` prints a line of a log; None where a display reads text() instead, or nobody does. `now` gives seconds.
    """

    def __init__(
        self, say: Callable[[str], object] | None = None, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        self._say = say
        self.now = now
        self._lock = threading.Lock()
        self._title = ""
        self._counts: dict[str, _Count] = {}
        self._quiet_since, self._wait = now(), FIRST
        self._next = now()

    def begin(self, title: str) -> None:
        """Another piece of work: what was counted is forgotten."""
        with self._lock:
            self._title = title
            self._counts.clear()

    def count(self, name: str, done: int, total: int, *, rest: str = "") -> None:
        """So much of it is done, so far; prints a line where a log has waited long enough for one."""
        with self._lock:
            self._counts[name] = _Count(done, total, rest)
            is_late = self.now() - self._quiet_since >= self._wait
            if is_late:
                self.line_printed()
        if is_late and self._say is not None:
            self._say(self.text())

    def line_printed(self) -> None:
        """The log has got a line: no other is wanted for a while."""
        self._quiet_since, self._wait = self.now(), LATER

    def is_due(self) -> bool:
        """Whether what is costly to count should be counted now."""
        is_due = self.now() >= self._next
        if is_due:
            self._next = self.now() + _BETWEEN
        return is_due

    def text(self) -> str:
        """The title and every count; empty where nothing has been counted."""
        with self._lock:
            counts = [f"{name} {c.done:,}/{c.total:,}{c.rest}" for name, c in self._counts.items()]
            return f"{self._title + ': ' if self._title else ''}{'; '.join(counts)}" if counts else ""


class SampleCount:
    """The completions and tokens of a call that samples, which may do so in parts."""

    def __init__(self, progress: Progress, total: int) -> None:
        self._progress, self._total = progress, total
        self._began = progress.now()
        self._done = self._sampled = self._tokens = 0  # of the parts that are complete; sampled: not read from a cache
        self._show(0, 0)

    def tick(self, counted: Counted) -> None:
        """A Tick of the part under way."""
        if self._progress.is_due():
            self._show(*counted())

    def add(self, completions: int, *, sampled: int, tokens: int) -> None:
        """A part is complete; `sampled` of its completions, with so many tokens, were not in a cache."""
        self._done += completions
        self._sampled += sampled
        self._tokens += tokens
        self._show(0, 0)

    def _show(self, completions: int, tokens: int) -> None:
        done, sampled, tokens = self._done + completions, self._sampled + completions, self._tokens + tokens
        seconds = self._progress.now() - self._began
        rest = " completions"
        if tokens and seconds > 0:
            rest += f", {tokens:,} tokens, {speed(tokens / seconds)}"
        if sampled and seconds >= FIRST and done < self._total:
            rest += f", {clock(seconds / sampled * (self._total - done))} left"
        self._progress.count("sampled", done, self._total, rest=rest)


@contextmanager
def shown_progress() -> Iterator[Progress]:
    """Progress on standard error: a line that changes on a terminal, plain lines in a log."""
    console = Console(stderr=True)
    if not console.is_terminal:
        yield Progress(_print)
        return
    progress = Progress()
    with live(console, lambda: Text(progress.text(), "dim", overflow="ellipsis", no_wrap=True), transient=True):
        yield progress


def live(console: Console, renderable: Callable[[], Text | object], *, transient: bool = False) -> Live:
    """A display that asks for what it shows four times a second. Standard output goes through it only where it is a
    terminal too: what is piped into a file goes there.
    """
    return Live(
        console=console,
        get_renderable=renderable,  # type: ignore[arg-type]
        refresh_per_second=4,
        transient=transient,
        redirect_stdout=sys.stdout.isatty(),
    )


def _print(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
