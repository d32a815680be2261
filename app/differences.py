"""The difference between two texts, word by word, with a bound on the computation."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

_WORDS = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")  # with the spaces before them, since a space matches anywhere
_MOST_STEPS = 3_000_000  # about a second

Pieces = list[tuple[str, str]]


def word_difference(a: str, b: str) -> Pieces:
    """Pieces ("same" | "a" | "b", text) in order. After the bound is reached the rest of both texts counts as
    different.
    """
    words = [_WORDS.findall(text) for text in (a, b)]
    start, end = _shared(*words)
    inner = words[0][start : len(words[0]) - end], words[1][start : len(words[1]) - end]
    pieces: Pieces = [("same", "".join(words[0][:start]))]
    for kind, a0, a1, b0, b1 in BoundedMatcher(*inner).get_opcodes():
        if kind == "equal":
            pieces.append(("same", "".join(inner[0][a0:a1])))
        else:
            pieces += [("a", "".join(inner[0][a0:a1])), ("b", "".join(inner[1][b0:b1]))]
    pieces.append(("same", "".join(words[0][len(words[0]) - end :])))
    return [(side, text) for side, text in pieces if text]


def _shared(a: list[str], b: list[str]) -> tuple[int, int]:
    """(number of words that both texts begin with, number of the remaining words that both end with)."""
    shorter = min(len(a), len(b))
    start = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    end = next((i for i in range(shorter - start) if a[-1 - i] != b[-1 - i]), shorter - start)
    return start, end


class BoundedMatcher(difflib.SequenceMatcher[str]):
    """SequenceMatcher that stops matching after `most_steps` steps. In two texts that repeat themselves every word
    occurs everywhere, and the number of steps grows with the cube of the length.
    """

    def __init__(self, a: list[str], b: list[str], most_steps: int = _MOST_STEPS) -> None:
        super().__init__(a=a, b=b, autojunk=False)
        self.steps = 0
        self._most_steps = most_steps
        places = Counter(b)
        self._steps_before = [
            0,
            *accumulate(1 + places[word] for word in a),
        ]  # per word: 1 and its count in B

    def find_longest_match(
        self, alo: int = 0, ahi: int | None = None, blo: int = 0, bhi: int | None = None
    ) -> difflib.Match:
        """The longest match in a[alo:ahi] and b[blo:bhi], or, at the bound, one of length 0."""
        last = len(self._steps_before) - 1 if ahi is None else ahi
        left = self._most_steps - self.steps
        last = min(last, bisect_left(self._steps_before, self._steps_before[alo] + left + 1) - 1)
        if last <= alo:
            return difflib.Match(alo, blo, 0)
        self.steps += self._steps_before[last] - self._steps_before[alo]
        return super().find_longest_match(alo, last, blo, bhi)
