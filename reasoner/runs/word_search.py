"""Searches for words in completions: words, "phrases", begin*, -without. Case and accents are ignored."""

from __future__ import annotations

import re
import unicodedata
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache

Span = tuple[int, int]  # [start, end) in characters
_TERM = re.compile(r'(-?)(?:"([^"]*)"|([^\s"]+))')
_LETTER, _RE2_LETTER = r"[^\W_]", r"[\pL\pN]"  # a letter or digit, for Python and for Arrow
_OTHER, _RE2_OTHER = r"[\W_]", r"[^\pL\pN]"


def _plain(text: str) -> str:
    """The text in lower case, without accents."""
    letters = unicodedata.normalize("NFD", text.casefold())
    return "".join(letter for letter in letters if not unicodedata.combining(letter))


@lru_cache(maxsize=1)
def _accented() -> dict[str, str]:
    """By letter: itself and its forms with accents, in both cases."""
    forms = defaultdict(set)
    for letter in map(chr, range(0xC0, 0x2000)):
        if len(plain := _plain(letter)) == 1 and letter.isalpha():
            forms[plain].add(letter)
    return {plain: "".join(sorted(letters | {plain, plain.upper()})) for plain, letters in forms.items()}


@lru_cache(maxsize=64)
def _terms(query: str) -> list[tuple[bool, list[str], bool]]:
    """(is wanted, a pattern for each word, whether the last one is the beginning of a word) of each term."""
    terms = []
    for minus, phrase, word in _TERM.findall(query):
        words = re.findall(r"[^\W_]+", _plain(phrase or word))
        if words:
            classes = ["".join(f"[{_accented().get(c, c + c.upper())}]" for c in own) for own in words]
            terms.append((not minus, classes, word.endswith("*")))
    return sorted(terms, key=lambda term: not term[0])


def check(query: str) -> str:
    """The query. ValueError when it has no wanted term."""
    if not any(is_wanted for is_wanted, _, _ in _terms(query)):
        raise ValueError(f'nothing to search for in {query!r}: write words, "a phrase", begin*, or -without beside one')
    return query


def patterns(query: str) -> list[tuple[str, bool]]:
    """A pattern for Arrow of each term, and whether a completion must have it, or must not; the wanted ones first."""
    return [
        (f"(?:^|{_RE2_OTHER}){f'{_RE2_OTHER}+'.join(words)}{'' if is_prefix else f'(?:$|{_RE2_OTHER})'}", is_wanted)
        for is_wanted, words, is_prefix in _terms(query)
    ]


def hits(text: str | None, query: str) -> list[Span]:
    """The spans of the query's wanted terms in the text, in order, without overlaps."""
    spans = []
    for is_wanted, words, is_prefix in _terms(query):
        end = f"{_LETTER}*" if is_prefix else f"(?!{_LETTER})"
        pattern = f"(?<!{_LETTER})(?=({f'{_OTHER}+'.join(words)}{end}))"
        spans += [match.span(1) for match in re.finditer(pattern, text or "")] if is_wanted else []
    merged: list[Span] = []
    for start, stop in sorted(spans):
        if merged and start < merged[-1][1]:
            merged[-1] = merged[-1][0], max(stop, merged[-1][1])
        else:
            merged.append((start, stop))
    return merged


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
