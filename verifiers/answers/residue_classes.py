"""Classes of integers: even and odd ones, and those with a residue, `3 (mod 7)`."""

from __future__ import annotations

from verifiers.answers.expressions import expression
from verifiers.answers.slices import Tokens, cut
from verifiers.answers.token import UnreadableError
from verifiers.answers.tree import add, multiply, number, signs, symbol
from verifiers.answers.values import Family, Parameter, Value

_CLASS = Parameter("the class of a congruence")


def parity(tokens: Tokens) -> Family:
    """ "even", "n even": the integers 2k; odd ones are 2k + 1."""
    place = -1 if tokens[-1].is_sign("odd", "even") else 0
    if len(tokens) > 2 or (len(tokens) == 2 and tokens[-1 - place].kind != "letter"):
        raise UnreadableError("what is even?")
    double = multiply(number(2), symbol(_CLASS.name))
    return Family(((add(double, number(1)) if tokens[place].is_sign("odd") else double,),), (_CLASS,))


def residue_class(tokens: Tokens) -> Value:
    """3 (mod 7), and 2, 3 mod 7: integers with a residue."""
    place = next(place for place, token in enumerate(tokens) if token.is_word("mod"))
    left, right = list(tokens[:place]), list(tokens[place + 1 :])
    if left and left[-1].is_sign("("):
        if not right or not right[-1].is_sign(")"):
            raise UnreadableError("brackets do not match")
        left, right = left[:-1], right[:-1]
    modulus = expression(right)
    residues = [each for part in cut(left, lambda token: token.is_sign(",") or token.is_word("or", "and"))[0] if part
                for each in signs(expression(part))]  # fmt: skip
    if not residues or modulus.op != "number" or modulus.value.denominator != 1 or modulus.value < 1:
        raise UnreadableError("a modulus")
    shift = multiply(modulus, symbol(_CLASS.name))
    return Family(tuple((add(each, shift),) for each in residues), (_CLASS,))
