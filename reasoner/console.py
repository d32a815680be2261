"""Output to the terminal: results on standard output, messages on standard error, and their formatting.

No other file of the package prints; tests/architecture/test_printing.py checks it.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import IO, Any, cast

_is_silent = False
_reword: Callable[[str], str] = str


@contextmanager
def silent(is_silent: bool) -> Iterator[None]:
    """A block in which nothing is printed, if `is_silent`: of several processes one speaks for all."""
    global _is_silent
    before, _is_silent = _is_silent, is_silent
    try:
        yield
    finally:
        _is_silent = before


@contextmanager
def rewording(function: Callable[[str], str]) -> Iterator[None]:
    """A block in which messages go through `function` before they are printed: those of the Python API."""
    global _reword
    before, _reword = _reword, function
    try:
        yield
    finally:
        _reword = before


def wording(line: str) -> str:
    """A message in the words of whoever is called: the command line, or the Python API."""
    return _reword(line)


def messages() -> IO[str]:
    """Standard error, to write messages to: _Messages."""
    return cast("IO[str]", _Messages())


class _Messages:
    """Standard error as a stream to write to. What is written after its terminal is closed, or the reader of its pipe
    gone, is lost: no message is worth a run.
    """

    def __init__(self) -> None:
        self._stream = sys.stderr

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write the text, and return its length."""
        with _lost_after(self._stream, errno.EIO, errno.EPIPE):
            self._stream.write(text)
        return len(text)

    def flush(self) -> None:
        """Flush the stream."""
        with _lost_after(self._stream, errno.EIO, errno.EPIPE):
            self._stream.flush()


@contextmanager
def _lost_after(stream: IO[str], *errors: int) -> Iterator[None]:
    """A block that writes to a stream. After one of the errors what is written to it is lost, without an error."""
    try:
        yield
    except OSError as error:
        if error.errno not in errors:
            raise
        drop_output(stream)


def drop_output(stream: IO[str]) -> None:
    """Drop what a stream still holds, and what is written to it from now on."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def log(line: str) -> None:
    """Print a message on standard error and flush it."""
    if not _is_silent:
        print(wording(line), file=messages(), flush=True)


def print_result(text: str) -> None:
    """Print the result of a command on standard output. Control characters are escaped: texts of models, data sets and
    folders of others stand in it.
    """
    print_raw(f"{escape_controls(text)}\n")


def print_raw(text: str) -> None:
    """Print a text on standard output as it is and flush it. It is lost where the terminal is closed."""
    if not _is_silent:
        with _lost_after(sys.stdout, errno.EIO):
            print(text, end="", flush=True)


_COLOURS = {"dim": 2, "green": 32}  # codes of SGR, ECMA-48


def colour(text: str, name: str) -> str:
    """The text in a colour, dim or green, where standard error is a terminal and NO_COLOR is not set."""
    if not sys.stderr.isatty() or os.environ.get("NO_COLOR"):
        return text
    return f"\x1b[{_COLOURS[name]}m{text}\x1b[0m"


def sparkline(values: list[float], width: int = 60) -> str:
    """Draw the last `width` values, each in [0, 1], as block characters."""
    return "".join("▁▂▃▄▅▆▇█"[min(7, int(8 * value))] for value in values[-width:])


def first_line(error: object) -> str:
    """The first line of an error's message, for a message of one line; the error's type where it has none."""
    return (str(error).strip().splitlines() or [type(error).__name__])[0]


def clock(seconds: float) -> str:
    """Format seconds as minutes:seconds: 90 -> 1:30."""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def speed(tokens_per_second: float) -> str:
    """Format a speed: 1234.5 -> 1,234 tok/s; 3.21 -> 3.2 tok/s; 0.321 -> 19.3 tok/min."""
    if tokens_per_second >= 10:
        return f"{tokens_per_second:,.0f} tok/s"
    return f"{tokens_per_second:.1f} tok/s" if tokens_per_second >= 1 else f"{60 * tokens_per_second:.1f} tok/min"


def shorten(text: str, width: int) -> str:
    """Shorten the text to one printable line of at most `width` characters."""
    line = escape_controls(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def escape_controls(text: str) -> str:
    """Escape control characters in model text, which a terminal would interpret."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def markdown_table(rows: Sequence[Sequence[object]]) -> str:
    """A table in Markdown whose first row is the header. A bar is escaped, and a line break is a space."""
    lines = ["| " + " | ".join(map(markdown_cell, row)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def markdown_cell(value: object) -> str:
    """The text of a cell in a table in Markdown."""
    return str(value).replace("|", "\\|").replace("\n", " ")
