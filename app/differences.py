"""The difference between two texts, word by word, with a bound on the computation."""

from __future__ import annotations

import re
from difflib import SequenceMatcher
from itertools import groupby
from operator import itemgetter

_WORDS = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")  # with the spaces before them, since a space matches anywhere
_MOST_WORDS = 4_000  # of each text that are compared

Pieces = list[tuple[str, str]]


def word_difference(a: str, b: str) -> Pieces:
    """Pieces ("same" | "a" | "b", text) in order. Of the part in which the texts differ _MOST_WORDS are compared;
    the rest of both counts as different.
    """
    words = [_WORDS.findall(text) for text in (a, b)]
    start, end = _shared(*words)
    own, other = (text[start : len(text) - end] for text in words)
    pieces = [("same", word) for word in words[0][:start]]
    # In texts that repeat themselves every word occurs everywhere, which takes cubic time. So in a long text difflib
    # begins no match at a frequent word (autojunk).
    matcher = SequenceMatcher(None, own[:_MOST_WORDS], other[:_MOST_WORDS])
    for kind, a0, a1, b0, b1 in matcher.get_opcodes():
        sides = [("same", own[a0:a1])] if kind == "equal" else [("a", own[a0:a1]), ("b", other[b0:b1])]
        pieces += [(side, word) for side, part in sides for word in part]
    pieces += [("a", word) for word in own[_MOST_WORDS:]] + [("b", word) for word in other[_MOST_WORDS:]]
    pieces += [("same", word) for word in words[0][len(words[0]) - end :]]
    return [(side, "".join(word for _, word in part)) for side, part in groupby(pieces, key=itemgetter(0))]


def _shared(a: list[str], b: list[str]) -> tuple[int, int]:
    """(number of words that both texts begin with, number of the remaining words that both end with)."""
    shorter = min(len(a), len(b))
    start = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    end = next((i for i in range(shorter - start) if a[-1 - i] != b[-1 - i]), shorter - start)
    return start, end
