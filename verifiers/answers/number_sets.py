"""Sets of reals that have a sign of their own: ∅, ℝ, the positive and the negative reals, ℝ without some numbers."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.expressions import expression
from verifiers.answers.integer_classes import integer_class, within
from verifiers.answers.integer_sets import integers_in
from verifiers.answers.reals import ALL_REALS, complement, interval, points
from verifiers.answers.slices import Tokens, at_signs, bracket_content, cut
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import INFINITY, MINUS_INFINITY, number
from verifiers.answers.values import Family, Nothing, Parameter, Reals, Sequence, Value

BETWEEN = ("between", "open between", "closed between")
_INCLUSIVE = ("inclusive", "inclusively")
_EXCLUSIVE = ("exclusive", "exclusively")
_HALVES = {
    "ℝ+": interval(number(0), INFINITY, has_low=False, has_high=False),
    "ℝ-": interval(MINUS_INFINITY, number(0), has_low=False, has_high=False),
    "ℝ≥0": interval(number(0), INFINITY, has_low=True, has_high=False),
    "ℝ≠0": complement(points([number(0)])),
}


def between(tokens: Tokens) -> Value | None:
    """ "real numbers between 1 and 4", "m is between -6 and 2, inclusive" as an interval; None for anything else."""
    place = next((place for place, token in enumerate(tokens) if token.is_sign(*BETWEEN)), None)
    if place is None or any(token.is_sign("except") for token in tokens):
        return None
    left, right = [token for token in tokens[:place] if not token.is_sign("ℝ")], list(tokens[place + 1 :])
    if left and left[0].is_sign("ℤ"):
        return _integers_between(right)
    if left and (numbers := integer_class(left)) is not None:
        return _class_between(numbers, right)
    is_closed = tokens[place].text.startswith("closed") or (bool(right) and right[-1].is_word(*_INCLUSIVE))
    while right and (right[-1].is_word(*_INCLUSIVE, *_EXCLUSIVE) or right[-1].is_sign(",")):
        right.pop()
    ends = cut(right, lambda token: token.is_word("and") or token.is_sign(":"))[0]
    if len(left) > 1 or (left and left[0].kind != "letter") or len(ends) != 2:
        raise UnreadableError("between what?")
    low, high = map(expression, ends)
    reals = interval(low, high, has_low=is_closed, has_high=is_closed)
    return Reals(reals.intervals, left[0].text if left else "")


def _integers_between(right: list[Token]) -> Value:
    """ "integers from 1 to 10", "integers between 1 and 10, inclusive"; "between" alone leaves the ends open."""
    reals = between([Token("sign", "closed between"), *right])
    is_stated = any(token.is_sign(":") or token.is_word(*_INCLUSIVE) for token in right)
    if not is_stated or not isinstance(reals, Reals):
        raise UnreadableError("with the ends or without?")
    return integers_in(reals, Parameter("n"))


def _class_between(numbers: Family, right: list[Token]) -> Value:
    """ "even integers between 1 and 9": the ends must be no members, or it must be said whether they count."""
    is_stated = any(token.is_sign(":") or token.is_word(*_INCLUSIVE, *_EXCLUSIVE) for token in right)
    is_open = any(token.is_word(*_EXCLUSIVE) for token in right)
    several = [between([Token("sign", sign), *right]) for sign in ("closed between", "between")]
    lists = [within(numbers, each) for each in several if isinstance(each, Reals)]
    if len(lists) != 2 or (lists[0] != lists[1] and not is_stated):
        raise UnreadableError("with the ends or without?")
    return lists[is_open]


def from_to(tokens: Tokens) -> Value | None:
    """ "from 0 to 4 inclusive"; None where it is not said whether the ends count."""
    if not tokens[0].is_word("from") or not tokens[-1].is_word(*_INCLUSIVE, *_EXCLUSIVE):
        return None
    return between([Token("sign", "between"), *tokens[1:]])


def named_interval(tokens: Tokens, statement: Callable[[Tokens], Value]) -> Value | None:
    """ "the open interval (1, 2)", whose brackets must be those of its name; None for anything else."""
    if not tokens[0].is_sign("open interval", "closed interval"):
        return None
    value = statement(tokens[1:])
    brackets = "()" if tokens[0].text.startswith("open") else "[]"
    if not isinstance(value, Sequence) or value.brackets != brackets:
        raise UnreadableError("an interval of another kind")
    return value


def number_set(tokens: Tokens) -> Value | None:
    """∅, ℝ and its parts; None for anything else."""
    texts = [token.text for token in tokens]
    if texts == ["∅"]:
        return Nothing()
    if texts[0] in _HALVES and len(texts) == 1:
        return _HALVES[texts[0]]
    if texts[0] in _HALVES and len(texts) == 2 and tokens[1].kind == "letter":
        return Reals(_HALVES[texts[0]].intervals, texts[1])
    if texts[0] not in ("ℝ", "R"):
        return None
    if len(tokens) == 2 and texts[0] == "ℝ" and tokens[1].kind == "letter":
        return Reals(ALL_REALS.intervals, texts[1])
    rest = [text for text in texts[1:] if text not in "{}^_"]
    if tokens[0].kind == "letter" and len(tokens) > 1:
        return None
    if not rest:
        return ALL_REALS if texts == ["ℝ"] else None
    marks = {
        "+": "ℝ+",
        ">0": "ℝ+",
        "-": "ℝ-",
        "<0": "ℝ-",
        "≥0": "ℝ≥0",
        "+0": "ℝ≥0",
        "0+": "ℝ≥0",
        "≠0": "ℝ≠0",
        "*": "ℝ≠0",
    }
    if "".join(rest) in marks:
        return _HALVES[marks["".join(rest)]]
    if rest[0] == "-" and (inside := bracket_content(list(tokens)[2:])) is not None and inside[0] in ("\\{", "{"):
        return complement(points([expression(part) for part in cut(inside[1], at_signs(","))[0]]))
    return None
