"""Phrases that stand for signs."""

from __future__ import annotations

from itertools import product

# PHRASE => SIGNS. [one|other|] is one of several words, or none. A sign of two words has a line between them; w: is
# a word, f: a function. Words in capitals are the groups below.
_GROUPS = {
    "THAT": "|is|are|that are|which are|that is|which is",
    "ANY": "|all|any|every|the|all the",
    "REALS": "[real|reals|real number|real numbers]",
}
_TABLE = """
[ANY] REALS => ℝ
[ANY] REALS but => ℝ except
[ANY] positive REALS => ℝ+
[ANY] negative REALS => ℝ-
[ANY] [nonnegative|non negative] REALS => ℝ≥0
[ANY] [nonzero|non zero] REALS => ℝ≠0
[except|except for|excluding|other than] => except
[|an|any|some|every|each|all] [integer|integers] => ℤ
[|a|any|every|all] positive [integer|integers] => ℤ1
[|a|any|all] [nonnegative|non negative] [integer|integers] => ℤ0
[THAT] greater than or equal to => ≥
[THAT] less than or equal to => ≤
[THAT|is strictly|strictly] [greater|larger] than => >
[THAT|is strictly|strictly] [less|smaller] than => <
[THAT] at least => ≥
[THAT] at most => ≤
[is equal to|equals|is given by] => =
[|is|are|does|can be] not equal to => ≠
[is not|does not equal|cannot equal|cannot be] => ≠
is positive => > 0
is negative => < 0
[union|union with] => ∪
intersection => ∩
[in|is in|is in the interval|is any|can be any|belongs to|is a|is an] => ∈
to => :
such that => such
plus => +
[minus|negative] => -
times => *
plus or minus => ±
squared => ^ 2
cubed => ^ 3
[out of|over|divided by] => /
[|the] square root of => f:sqrt
[|the] [cube|cubic] root of => f:cbrt
choose => choose
[percent|per cent|pct|percentage] => %
[positive infinity] => ∞
modulo => w:mod
[approximately|is approximately|approximately equal to|about|around|approx|is about|is around|is roughly|roughly] => ≈
[no solution|no solutions|no real solution|no real solutions|the empty set|empty set|none|there is no solution] => ∅
[there are no solutions|does not exist|no real roots|no integer solutions|no such numbers|no such integers|dne] => ∅
[for all|for any|for every|for some|for each|where|with|for] => w:where
"""


def _phrases() -> dict[tuple[str, ...], tuple[tuple[str, str], ...]]:
    result: dict[tuple[str, ...], tuple[tuple[str, str], ...]] = {}
    for line in _TABLE.strip().splitlines():
        pattern, _, signs = line.partition("=>")
        for name, group in _GROUPS.items():
            pattern = pattern.replace(name, group)
        parts = [part.split("|") for part in pattern.replace("]", "[").split("[")]
        value = tuple(map(_token, signs.split()))
        result |= {tuple("".join(words).split()): value for words in product(*parts)}
    return result


def _token(text: str) -> tuple[str, str]:
    kind = {"w:": "word", "f:": "function"}.get(text[:2])
    return (kind, text[2:]) if kind else ("number" if text.isdigit() else "sign", text.replace("_", " "))


PHRASES = _phrases()
