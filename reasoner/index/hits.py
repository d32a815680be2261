"""Where a search's words stand in a text.

The index keeps words without texts, so FTS5 cannot mark hits in it, and its highlight() takes quadratic time on a text
that repeats a word. The texts are cut into words here as its tokenizer unicode61 does: letters and digits, whatever
their case and accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from functools import lru_cache

from reasoner.filters import Term, terms

Span = tuple[int, int]  # [start, end) in characters
Word = tuple[str, int, int]  # in lower case without accents, start, end

_WORD = re.compile(r"[^\W_\u0300-\u036f]+(?:[\u0300-\u036f]+[^\W_\u0300-\u036f]*)*")  # accents may stand alone


def hits(text: str | None, query: str) -> list[Span]:
    """The places of any of the query's wanted words, prefixes and phrases, in order, not overlapping.

    [] for a text that is None, and for a query that names nothing to look for.
    """
    wanted, _ = terms(query)
    words = _words(text) if text and wanted else []
    spans: list[Span] = []
    for start, end in sorted(span for term in wanted for span in _places(words, term)):
        if spans and start < spans[-1][1]:
            spans[-1] = (spans[-1][0], max(end, spans[-1][1]))
        else:
            spans.append((start, end))
    return spans


def _words(text: str) -> list[Word]:
    return [(_folded(match[0]), *match.span()) for match in _WORD.finditer(text)]


@lru_cache(maxsize=2**16)
def _folded(word: str) -> str:
    """The word as it is compared."""
    letters = unicodedata.normalize("NFD", word.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _places(words: Sequence[Word], term: Term) -> Iterator[Span]:
    """Where the term's words follow each other."""
    *firsts, last = [word for word, _, _ in _words(" ".join(term.words))] or [""]
    if not last:
        return
    for at in range(len(words) - len(firsts)):
        final, _, end = words[at + len(firsts)]
        is_last = final.startswith(last) if term.is_prefix else final == last
        if is_last and all(words[at + n][0] == first for n, first in enumerate(firsts)):
            yield words[at][1], end


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
