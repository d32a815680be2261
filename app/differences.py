"""The difference between two texts, word by word, within a bound on the work."""

from __future__ import annotations

import difflib
import re
from bisect import bisect_left
from collections import Counter
from itertools import accumulate

_WORDS = re.compile(r"\s*(?:\w+|[^\w\s])|\s+")  # with the spaces before them: a space alone would match everywhere
_MOST_STEPS = 3_000_000  # about a second

Pieces = list[tuple[str, str]]


def word_difference(a: str, b: str) -> Pieces:
    """("same" | "a" | "b", text) in order. Where the bound is reached, what is left is of A alone and of B alone."""
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
    """How many words both begin with, and with how many of the others both end."""
    shorter = min(len(a), len(b))
    start = next((i for i in range(shorter) if a[i] != b[i]), shorter)
    end = next((i for i in range(shorter - start) if a[-1 - i] != b[-1 - i]), shorter - start)
    return start, end


class BoundedMatcher(difflib.SequenceMatcher[str]):
    """SequenceMatcher that finds no further match once it has taken so many steps. In two texts that loop every word
    is found everywhere, and the steps grow with the cube of the length.
    """

    def __init__(self, a: list[str], b: list[str], most_steps: int = _MOST_STEPS) -> None:
        super().__init__(a=a, b=b, autojunk=False)
        self.steps = 0
        self._most_steps = most_steps
        places = Counter(b)
        self._steps_before = [0, *accumulate(1 + places[word] for word in a)]  # a step a word, and a place of it in B

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
