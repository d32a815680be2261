"""Searches for a text in completions; capital and small letters are the same."""

from __future__ import annotations

import re
from collections.abc import Sequence

Span = tuple[int, int]  # [start, end) in characters


def hits(text: str | None, query: str) -> list[Span]:
    """The spans of the query in the text, in order, without overlaps."""
    return [match.span() for match in re.finditer(re.escape(query), text or "", re.IGNORECASE)] if query else []


def excerpt(text: str | None, spans: Sequence[Span], *, before: int = 40, length: int = 240) -> list[str]:
    """The text around its first hit, on one line, as pieces of which every second one is a hit; [] without a hit.

    It starts at most `before` characters before the hit and covers up to `length` characters of the text; "…" marks
    where the text continues.
    """
    if text is None or not spans:
        return []
    first = spans[0][0]
    start = max(0, first - before)
    if start and (blank := re.search(r"\s", text[start:first])):  # start with a whole word
        start += blank.end()
    end = min(len(text), start + length)
    pieces = ["…" if start else ""]
    at = start
    for left, right in ((left, min(right, end)) for left, right in spans if left < end):
        pieces[-1] += text[at:left]
        pieces += [text[left:right], ""]
        at = right
    pieces[-1] += text[at:end] + ("…" if end < len(text) else "")
    return [re.sub(r"\s+", " ", piece) for piece in pieces]
