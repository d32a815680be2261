"""Searches for words in completions: the syntax, its translation for the index, and the places of the words in a text.

The index stores words without the texts, so FTS5 cannot mark hits, and its highlight() takes quadratic time on a text
that repeats a word. This module splits texts into words as FTS5's tokenizer unicode61 does: letters and digits,
ignoring case and accents.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice

Span = tuple[int, int]  # [start, end) in characters

_WORD = re.compile(r"[^\W_\u0300-\u036f]+(?:[\u0300-\u036f]+[^\W_\u0300-\u036f]*)*")  # accents may stand alone

_TERM = re.compile(r'(-?)(?:"([^"]*)"|([^\s"]+))')


@dataclass(frozen=True, slots=True)
class Term:
    """Consecutive words to search for; with `is_prefix` the last one matches every word that begins with it."""

    words: tuple[str, ...]
    is_prefix: bool

    def fts5(self) -> str:
        return f'"{" ".join(self.words)}"' + "*" * self.is_prefix


def terms(text: str) -> tuple[list[Term], list[Term]]:
    """Parse a search into (wanted, unwanted) terms: words, "phrases", begin*, -without; nothing else."""
    wanted: list[Term] = []
    unwanted: list[Term] = []
    for minus, phrase, word in _TERM.findall(text):
        words = tuple(re.findall(r"\w+", phrase or word))
        if words:
            (unwanted if minus else wanted).append(Term(words, is_prefix=word.endswith("*")))
    return wanted, unwanted


def match(text: str) -> str:
    """Translate a user's search into an FTS5 query. ValueError when it has no wanted term."""
    wanted, unwanted = terms(text)
    if not wanted:
        raise ValueError(f'nothing to search for in {text!r}: write words, "a phrase", begin*, or -without beside one')
    return " ".join([" AND ".join(term.fts5() for term in wanted), *(f"NOT {term.fts5()}" for term in unwanted)])


def hits(text: str | None, query: str) -> list[Span]:
    """The spans of the query's wanted terms in the text, in order, without overlaps."""
    wanted, _ = terms(query)
    if not (text and wanted):
        return []
    words = _words(text)
    runs: list[tuple[int, int]] = []  # numbers of the first and the last word of a hit
    for first, last in sorted(run for term in wanted for run in _runs(words, term)):
        if runs and first <= runs[-1][1]:
            runs[-1] = (runs[-1][0], max(last, runs[-1][1]))
        else:
            runs.append((first, last))
    spans = [match.span() for match in islice(_WORD.finditer(text), runs[-1][1] + 1)] if runs else []
    return [(spans[first][0], spans[last][1]) for first, last in runs]


def _words(text: str) -> list[str]:
    """The words of a text, folded for comparison."""
    words = _WORD.findall(text)
    folded = {word: _folded(word) for word in set(words)}  # a text has few different words
    return [folded[word] for word in words]


@lru_cache(maxsize=2**16)
def _folded(word: str) -> str:
    """The word in lower case, without accents."""
    letters = unicodedata.normalize("NFD", word.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


def _runs(words: Sequence[str], term: Term) -> Iterator[tuple[int, int]]:
    """(first, last) numbers of the words at each place where the term's words are consecutive."""
    wanted = _words(" ".join(term.words))
    if not wanted:
        return
    *firsts, final = wanted
    for last, word in enumerate(words):
        first = last - len(firsts)
        if (word.startswith(final) if term.is_prefix else word == final) and first >= 0 and words[first:last] == firsts:
            yield first, last


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
