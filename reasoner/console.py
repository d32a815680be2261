"""Lines on standard error, and text for a terminal."""

from __future__ import annotations

import sys


def say(line: str) -> None:
    """Print a line on standard error at once."""
    print(line, file=sys.stderr, flush=True)


def sparkline(values: list[float], width: int = 60) -> str:
    """Values in [0, 1] as blocks, the last `width` of them."""
    return "".join("▁▂▃▄▅▆▇█"[min(7, int(8 * value))] for value in values[-width:])


def clock(seconds: float) -> str:
    """90 -> 1:30"""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def speed(tokens_per_second: float) -> str:
    """1234.5 -> 1,234 tok/s; 3.21 -> 3.2 tok/s; 0.321 -> 19.3 tok/min"""
    if tokens_per_second >= 10:
        return f"{tokens_per_second:,.0f} tok/s"
    return f"{tokens_per_second:.1f} tok/s" if tokens_per_second >= 1 else f"{60 * tokens_per_second:.1f} tok/min"


def shortened(text: str, width: int) -> str:
    """One visible line of at most so many characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def visible(text: str) -> str:
    """Model text with nothing in it that a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
