"""Phrases that stand for signs."""

from __future__ import annotations

from itertools import product

# PHRASE => SIGNS. [one|other|] is one of several words, or none. A sign of two words has a line between them; w: is
# a word, f: a function. Words in capitals are the groups below.
_GROUPS = {
    "ALL": "|all|any|every|the|a|is a|are|is|must be a|must be|some",
    "THAT": "|is|are|that are|which are|that is|which is",
    "NUMBERS": "|s| number| numbers",
    "ANY": "|all|the|any|every|the set of|the set of all",
    "REALS": "real|reals|real number|real numbers|real values|real constant|real constants|constant|constants",
}
_TABLE = """
[|all|any|every|the|all the|the set of|the set of all|set of|set of all] real numbers => ℝ
[|all|the|any|every] [real number|reals] => ℝ
all real values[| of] => ℝ
[all|any] real => ℝ
[|the|the entire] real line => ℝ
[|all] [reals|real numbers] but => ℝ except
[|the] open interval [from|between] => open_between
[|the] closed interval [from|between] => closed_between
[ANY] positive [REALS] => ℝ+
[ANY] negative [REALS] => ℝ-
[ANY] [nonnegative|non negative] [REALS] => ℝ≥0
[ANY] [nonzero|non zero] [REALS] => ℝ≠0
[all|every|any] positive => ℝ+
[all|every|any] negative => ℝ-
[all|every|any] nonnegative => ℝ≥0
[all|every|any] nonzero => ℝ≠0
[except|except for|excluding|other than|apart from|with the exception of] => except
[but not|without|different from|not including] => except
[|an|any|some|every|each|all|the|the set of|the set of all|arbitrary|an arbitrary] [integer|integers|whole number] => ℤ
[|a|any|every|each|all] [positive integer|positive integers|natural number|natural numbers] => ℤ1
[|a|any|all] [nonnegative|non negative] [integer|integers] => ℤ0
[|is|are] greater than or equal to => ≥
[|is|are] less than or equal to => ≤
[THAT|is strictly|strictly|that are strictly] [greater|larger] than => >
[THAT|is strictly|strictly|that are strictly] [less|smaller] than => <
[THAT] at least => ≥
[THAT] at most => ≤
is equal to => =
[|is|are|does|can be] not equal to => ≠
is not => ≠
[does not equal|cannot equal|cannot be] => ≠
[equals|is given by] => =
is positive => > 0
is negative => < 0
is [nonnegative|non negative] => ≥ 0
[union|union with|in union with] => ∪
intersection => ∩
[in|is in|is in the interval|inside|is inside|lying in|inside the interval|in the interval] => ∈
[can be|is any|can be any|belongs to|is a|is an] => ∈
[outside|outside of|outside the interval|is outside|is outside of|not in|is not in] => ∉
[diverges to|holds for|is true for|is satisfied for|is satisfied by] =>
[|all|the] [linear|quadratic|constant|exponential] [functions|polynomials] =>
the system is inconsistent => ∅
to => :
[|is|is an|an|all|every|any|the|must be|has to be|be] even[| integer| integers| number| numbers] => even
[|is|is an|an|all|every|any|the|must be|has to be|be] odd[| integer| integers| number| numbers] => odd
[ALL] [positive even|even positive] [integer|integers|number|numbers] => ℤ1 even
[ALL] [positive odd|odd positive] [integer|integers|number|numbers] => ℤ1 odd
[such that|so that|satisfying] => such
plus => +
[minus|negative] => -
times => *
plus or minus => ±
squared => ^ 2
cubed => ^ 3
[out of|out of every|over] => /
[|the] square root of => f:sqrt
[|the] [cube|cubic] root of => f:cbrt
[|the] fourth root of => f:sqrt [ 4 ]
[|the] fifth root of => f:sqrt [ 5 ]
[|the] sixth root of => f:sqrt [ 6 ]
[|is] [not less|no less] than => ≥
[|is] [not more|no more|not greater] than => ≤
positive infinity => ∞
[percent|per cent|pct|percentage] => %
choose => choose
modulo => w:mod
[|is|are] not congruent to => ≢
[|is|are] congruent to => ≡
[THAT] not [divisible by|a multiple of|multiples of] => ≢ 0 w:mod
[approximately|is approximately|approximately equal to|about|around|approx|is about|is around|is roughly|roughly] => ≈
[no solution|no solutions|no real solution|no real solutions|the empty set|empty set|none|there is no solution] => ∅
[there are no solutions|does not exist|no real roots|no integer solutions|no such numbers|no such integers|dne] => ∅
[null set|the null set|no answer|no positive integer solutions|empty] => ∅
[for all|for any|for every|for some|for each|where|with|for|as] => w:where
[ALL] [multiple of|multiples of|integer multiple of|integer multiples of|divisible by] => multiples
[ALL] positive[| integer] [multiple|multiples] of => ℤ1 multiples
[ALL] [nonnegative|non negative] [multiple|multiples] of => ℤ0 multiples
[ALL] even [multiple|multiples] of => even multiples
[ALL] odd [multiple|multiples] of => odd multiples
[|that|which] [|leave|leaves|leaving|with|have|has|give|gives] [|a|the] remainder[| of] => remainder
[when divided by|upon division by|on division by|after division by|if divided by] => when_divided
divided by => divided
[ALL] [power|powers] of => powers
[ALL] [nonnegative|non negative][| integer] [power|powers] of => ℤ0 powers
[ALL] positive[| integer] [power|powers] of => ℤ1 powers
[ALL] prime[NUMBERS] => primes
[ALL] [square|squares] of [|a|all|the] prime[NUMBERS] => primes ^ 2
[ALL] [cube|cubes] of [|a|all|the] prime[NUMBERS] => primes ^ 3
[|there are|there exist|an] [infinitely many|infinite number of|infinite] => ∞
[|is|are|lies|lie] [|strictly ]between => between
[|all|the|all the] integers [from|between] => ℤ closed_between
[|all|the|all the] even integers [from|between] => even closed_between
[|all|the|all the] odd integers [from|between] => odd closed_between
[|is|are|that are|which are] [coprime|relatively prime] [to|with] => coprime
and[| its| all| their| all its] permutations[| thereof] => permutations
up to permutation => permutations
[|all|any] [permutation|permutations] of => permutations
[including|and including] => including
[ALL] [perfect square|perfect squares|square number|square numbers] => squares
[ALL] [square|squares] of [integers|an integer|some integer] => squares
[ALL] [perfect cube|perfect cubes|cube number|cube numbers] => cubes
[ALL] [cube|cubes] of [integers|an integer|some integer] => cubes
[|numbers|is|are] of the form => form
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
