"""Text for a terminal."""

from __future__ import annotations


def sparkline(values: list[float], width: int = 60) -> str:
    """Values in [0, 1] as blocks, the last `width` of them."""
    return "".join("▁▂▃▄▅▆▇█"[min(7, int(8 * value))] for value in values[-width:])


def clock(seconds: float) -> str:
    """90 -> 1:30"""
    return f"{int(seconds) // 60}:{int(seconds) % 60:02d}"


def shortened(text: str, width: int) -> str:
    """One visible line of at most so many characters."""
    line = visible(" ".join(text.split()))
    return line if len(line) <= width else line[: width - 1] + "…"


def visible(text: str) -> str:
    """Model text with nothing in it that a terminal would obey."""
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)
