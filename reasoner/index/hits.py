"""Where a search's words stand in a text.

The index keeps words without texts, so FTS5 cannot mark hits in it. The texts are tokenised once more, by the same
tokenizer: a hit here is a hit there, with its accents, its prefixes and its phrases.
"""

from __future__ import annotations

import re
import secrets
import sqlite3
from collections.abc import Sequence
from contextlib import closing

from reasoner.filters import terms
from reasoner.index.tables import TOKENIZER

Span = tuple[int, int]  # [start, end) in characters


def hits(texts: Sequence[str | None], query: str) -> list[list[Span]]:
    """Of each text, the places of any of the query's wanted words, prefixes and phrases, in order, not overlapping.

    [] for a text that is None, and for a query that names nothing to look for.
    """
    wanted, _ = terms(query)
    places: list[list[Span]] = [[] for _ in texts]
    if not wanted:
        return places
    boundary = secrets.token_hex(16)  # stands before and after each hit; no text holds it
    with closing(sqlite3.connect(":memory:")) as db:
        db.execute(f"CREATE VIRTUAL TABLE texts USING fts5 (text, tokenize='{TOKENIZER}')")
        db.executemany(
            "INSERT INTO texts (rowid, text) VALUES (?, ?)",
            # highlight() ends at a NUL; to the tokenizer a blank is the same
            ((number, text.replace("\0", " ")) for number, text in enumerate(texts) if text is not None),
        )
        query = "SELECT rowid, highlight(texts, 0, ?, ?) FROM texts WHERE texts MATCH ?"
        for number, text in db.execute(query, [boundary, boundary, " OR ".join(wanted)]):
            places[number] = _spans(text.split(boundary))
    return places


def _spans(pieces: Sequence[str]) -> list[Span]:
    """Pieces of a text in order, every second one a hit."""
    spans: list[Span] = []
    at = 0
    for number, piece in enumerate(pieces):
        if number % 2:
            spans.append((at, at + len(piece)))
        at += len(piece)
    return spans


def excerpt(text: str | None, spans: Sequence[Span], *, before: int = 40, length: int = 240) -> list[str]:
    """The text around its first hit, on one line: pieces in order, every second one a hit; [] without a hit.

    It begins at most `before` characters ahead of the hit and takes up `length` characters of the text; "…" where the
    text goes on.
    """
    if text is None or not spans:
        return []
    first = spans[0][0]
    start = max(0, first - before)
    if start and (blank := re.search(r"\s", text[start:first])):  # begin with a whole word
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
