"""Sets of integers: "all multiples of 3", even and odd ones, residues `3 (mod 7)`, powers, members with dots."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from itertools import pairwise
from math import ceil, floor, gcd

from verifiers.answers.expressions import expression
from verifiers.answers.qualifiers import parameters_of
from verifiers.answers.rationals import rational
from verifiers.answers.reals import complement
from verifiers.answers.slices import Tokens, at_signs, cut
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, add, has, is_infinite, multiply, names, number, replace_symbols, signs, symbol
from verifiers.answers.values import (
    Expression,
    Family,
    Function,
    Interval,
    Parameter,
    RealFamily,
    Reals,
    Sequence,
    Value,
)

_CLASS = Parameter("the class of a congruence")
_MEMBER = symbol("the member of a set of integers")
_WORDS = ("multiples", "remainder", "powers", "squares", "cubes", "coprime")
_LEAST = {"ℤ": None, "ℤ0": 0, "ℤ1": 1}
MAX_LISTED = 60


def integer_set(tokens: Tokens) -> Family | None:
    """The family of "multiples of 3", "integers that leave remainder 1 when divided by 4"; None for other tokens."""
    place = next((place for place, token in enumerate(tokens) if token.is_sign(*_WORDS)), None)
    if place is None:
        return None
    kind, behind = tokens[place].text, list(tokens[place + 1 :])
    if kind == "multiples" and place and tokens[place - 1].is_sign("odd", "even"):
        numbers = parity(tokens[place - 1 : place])
        return Family(((multiply(_number(behind), numbers.items[0][0]),),), numbers.parameters)
    least, is_natural = _domain(tokens[:place], kind)
    if kind in ("squares", "cubes"):
        node = Node("power", (_MEMBER, number(2 if kind == "squares" else 3)))
        if behind:
            raise UnreadableError("squares of what?")
        return _family(node, least, is_natural=least is None)
    if kind == "powers":
        return _powers(behind, least)
    if kind == "coprime":
        return _coprime(behind, least)
    if kind == "multiples":
        return _family(multiply(_number(behind), _MEMBER), least, is_natural=is_natural)
    parts, marks = cut(behind, at_signs("divided", "when divided"))
    if len(marks) != 1:
        raise UnreadableError("a remainder without a divisor")
    least = 0 if least is not None else None
    residues = cut(parts[0], lambda token: token.is_sign(",") or token.is_word("or"))[0]
    step = multiply(_number(parts[1]), _MEMBER)
    return Family(tuple((add(_number(each), step),) for each in residues), (Parameter(_MEMBER.name, least),))


def _coprime(tokens: list[Token], least: int | None) -> Family:
    """The residue classes of the integers without a common factor with a number."""
    modulus = rational(_number(tokens))
    if modulus is None or modulus.denominator != 1 or not 1 < modulus <= MAX_LISTED or least not in (None, 0, 1):
        raise UnreadableError("coprime to what?")
    step = multiply(number(modulus), _MEMBER)
    residues = [each for each in range(1, int(modulus)) if gcd(each, int(modulus)) == 1]
    parameter = Parameter(_MEMBER.name, None if least is None else 0)
    return Family(tuple((add(number(each), step),) for each in residues), (parameter,))


def remainders(tokens: Tokens) -> Family | None:
    """ "integers that leave remainder 1 or 4 when divided by 5"; None for other tokens, and for several divisors."""
    marks = [token for token in tokens if token.is_sign("remainder", "when divided", "divided")]
    has_several = any(token.is_word("or") for token in tokens)
    is_one = [mark.is_sign("remainder") for mark in marks] == [True, False]
    is_plain = not any(token.is_sign("<", ">", "≤", "≥", "primes", "except") for token in tokens)
    return integer_set(tokens) if has_several and is_one and is_plain else None


def _family(node: Node, least: int | None, *, is_natural: bool = False) -> Family:
    return Family(((node,),), (Parameter(_MEMBER.name, least, is_natural),))


def _domain(tokens: Tokens, kind: str) -> tuple[int | None, bool]:
    """The least member index that the words before say: "positive multiples" begin with 1, "integers" anywhere."""
    rest = [
        token
        for token in tokens
        if not token.is_word(
            "all", "the", "is", "are", "any", "every", "that", "which", "with", "where", "a", "an", "numbers", "number"
        )
        and not token.is_sign("such", "∈")
        and not (token.kind == "letter" and len(tokens) < 4)
    ]
    if not rest:
        return (0 if kind == "powers" else None), False
    if len(rest) == 1 and rest[0].text in _LEAST:
        return _LEAST[rest[0].text], False
    raise UnreadableError("a set of other members")


def _number(tokens: list[Token]) -> Node:
    node = expression(tokens)
    if names(node):
        raise UnreadableError("multiples of a letter")
    return node


def _powers(tokens: list[Token], least: int | None) -> Family:
    """Powers of 2 "including 1", "greater than 1" or with neither, where the power 0 may be among them or not."""
    place = next((place for place, token in enumerate(tokens) if token.is_sign("including", "except", ">", "≥")), None)
    base = _number(tokens[:place])
    power = Node("power", (base, _MEMBER))
    if place is None:
        return _family(power, least, is_natural=least == 0)
    bound, value = rational(_number(tokens[place + 1 :])), rational(base)
    sign = tokens[place].text
    if value is None or bound is None or value <= 1:
        raise UnreadableError("powers of what?")
    if sign in ("including", "except") and bound == 1:
        return _family(power, 0 if sign == "including" else 1)
    first = next((n for n in range(40) if value**n > bound or (sign == "≥" and value**n == bound)), None)
    if first is None or sign in ("including", "except"):
        raise UnreadableError("powers with another bound")
    return _family(power, first)


def of_form(tokens: Tokens, statement: Callable[[Tokens], Value]) -> Value | None:
    """Numbers of the form 4k + 1, "n of the form 2^k - 1 where k > 1": letters without a condition are integers.

    Functions "of the form f(x) = cx" are what stands behind these words.

    None where "form" is an ordinary word.
    """
    place = next((place for place, token in enumerate(tokens) if token.is_sign("form")), None)
    if place is None:
        return None
    _domain(tokens[:place], "form")
    value = statement(tokens[place + 1 :])
    if isinstance(value, Family | RealFamily | Function):
        return value
    if not isinstance(value, Expression) or not names(value.node):
        raise UnreadableError("a form without a letter")
    return Family(((value.node,),), tuple(Parameter(name) for name in sorted(names(value.node))))


def integer_domain(tokens: Tokens) -> Family | None:
    """ℤ, ℕ, "positive integers n": the integers from the least one on; None for anything else."""
    has_letter = any(token.kind == "letter" for token in tokens)
    parameters = parameters_of(tokens if has_letter else [Token("letter", "n"), *tokens])
    if not parameters or len(parameters) > 1:
        return None
    return Family(((symbol(parameters[0].name),),), tuple(parameters))


def multiples(tokens: Tokens) -> Family:
    r"""`2\mathbb{Z}`, `3\mathbb{Z}^+`, `2\mathbb{Z} + 1`."""
    domain = integer_domain(tokens[1:])
    if domain is None:
        raise UnreadableError("multiples of what?")
    ((letter,),) = domain.items
    return Family(((multiply(_number([tokens[0]]), letter),),), domain.parameters)


def shifted_integers(tokens: Tokens) -> Family:
    r"""`\frac{\pi}{4} + \pi\mathbb{Z}`: the values for all integers in the place of their sign."""
    node = expression([Token("letter", _MEMBER.name) if token.is_sign("ℤ") else token for token in tokens])
    if names(node) != {_MEMBER.name} or has(node, "power"):
        raise UnreadableError("integers in another place")
    return _family(node, None)


def integers_in(reals: Reals, parameter: Parameter) -> Value:
    """The integers of a set of reals: those of an interval without an upper end as a family, else a list."""
    is_open = len(reals.intervals) > 1 and is_infinite(reals.intervals[0].low) and is_infinite(reals.intervals[-1].high)
    if is_open and parameter.least is None:
        return _all_integers_without(complement(reals))
    values: list[Node] = []
    letter, parameters = symbol(parameter.name), []
    for part in reals.intervals:
        least, last = first_integer(part), last_integer(part)
        if parameter.least is not None:
            least = parameter.least if least is None else max(least, parameter.least)
        if last is None:
            is_natural = parameter.is_natural and is_infinite(part.low)
            parameters.append(Parameter(parameter.name, least, is_natural))
        elif least is None or last - least >= MAX_LISTED:
            raise UnreadableError("integers without a least one")
        else:
            values += map(number, range(least, last + 1))
    if parameters:
        return Family(tuple((each,) for each in (*values, letter)), tuple(parameters))
    return Sequence("list", tuple(map(Expression, values)))


def integers_with(parameter: Parameter, condition: Value) -> Value:
    """The integers of a parameter under a condition on it: a set of reals, or a congruence."""
    if isinstance(condition, Family):
        return condition if parameter.least is None else residues_from(condition, parameter.least)
    if not isinstance(condition, Reals) or condition.name not in ("", parameter.name):
        raise UnreadableError("integers with another property")
    return integers_in(condition, parameter)


def residues_from(family: Family, least: int) -> Family:
    """The members of residue classes that are at least `least`: n ≡ 1 (mod 4) with n > 0."""
    modulus, residues = _residues(family)
    first = sorted(least + (residue - least) % modulus for residue in residues)
    rest = multiply(number(modulus), _MEMBER)
    return Family(tuple((add(number(each), rest),) for each in first), (Parameter(_MEMBER.name, 0),))


def other_residues(family: Family) -> Family:
    """The integers that are in none of some residue classes: n ≢ 1 (mod 4)."""
    modulus, residues = _residues(family)
    shift = multiply(number(modulus), symbol(_CLASS.name))
    others = [each for each in range(modulus) if each not in residues]
    if not others:
        raise UnreadableError("no residue")
    return Family(tuple((add(number(each), shift),) for each in others), (_CLASS,))


def _residues(family: Family) -> tuple[int, set[int]]:
    """(m, residues) of residue classes modulo m. UnreadableError for another family."""
    rows = [[replace_symbols(item[0], {_CLASS.name: number(value)}) for value in (0, 1)] for item in family.items]
    values = [[rational(node) for node in row] for row in rows]
    if family.parameters != (_CLASS,) or any(
        value is None or value.denominator != 1 for row in values for value in row
    ):
        raise UnreadableError("no residue classes")
    pairs = [(int(row[0] or 0), int(row[1] or 0)) for row in values]
    moduli = {after - before for before, after in pairs}
    modulus = moduli.pop()
    if moduli or not 0 < modulus <= MAX_LISTED:
        raise UnreadableError("a modulus")
    return modulus, {before % modulus for before, _ in pairs}


def first_integer(part: Interval) -> int | None:
    """The least integer of an interval; None without a lower end."""
    low = None if is_infinite(part.low) else rational(part.low)
    if low is None and not is_infinite(part.low):
        raise UnreadableError("an end that is not rational")
    return None if low is None else ceil(low) + (not part.has_low and low.denominator == 1)


def last_integer(part: Interval) -> int | None:
    """The largest integer of an interval; None without an upper end."""
    high = None if is_infinite(part.high) else rational(part.high)
    if high is None and not is_infinite(part.high):
        raise UnreadableError("an end that is not rational")
    return None if high is None else floor(high) - (not part.has_high and high.denominator == 1)


def integers_without(family: Family, exceptions: Reals) -> Value:
    """ "positive integers except 1 and 4": the integers of a family without some numbers."""
    letter = symbol(family.parameters[0].name) if len(family.parameters) == 1 else None
    if letter is None or family.items != ((letter,),):
        raise UnreadableError("exceptions from other integers")
    parameter = family.parameters[0]
    if parameter.least is None:
        return _all_integers_without(exceptions)
    return integers_in(complement(exceptions), Parameter(parameter.name, parameter.least))


def _all_integers_without(exceptions: Reals) -> Family:
    """All integers but a few as those above, those below and those between the exceptions."""
    values = [rational(part.low) for part in exceptions.intervals if part.low == part.high]
    known = {int(value) for value in values if value is not None and value.denominator == 1}
    if not known or len(known) < len(exceptions.intervals) or max(known) - min(known) > MAX_LISTED:
        raise UnreadableError("exceptions that are no integers")
    above = add(number(max(known) + 1), _MEMBER)
    below = add(number(min(known) - 1), multiply(number(-1), _MEMBER))
    between = [number(each) for each in range(min(known), max(known)) if each not in known]
    return Family(tuple((each,) for each in (above, below, *between)), (Parameter(_MEMBER.name, 0),))


def with_dots(parts: list[list[Token]]) -> Value:
    r"""The members of `1, 2, 4, \ldots`, `\ldots, -2, 0, 2, \ldots` or `2, 4, \ldots, 10` as a family or a list.

    The members before the dots are an arithmetic or a geometric progression, or the values of a quadratic polynomial.
    """
    places = [place for place, part in enumerate(parts) if len(part) == 1 and part[0].is_sign("…")]
    members = [expression(part) for place, part in enumerate(parts) if place not in places]
    values = [rational(member) for member in members]
    known = [value for value in values if value is not None]
    if places == [len(parts) - 1] and len(known) == len(values):
        return _family(_term(known), 0)
    if places == [0, len(parts) - 1] and len(known) == len(values) > 2:
        steps = {after - before for before, after in pairwise(known)}
        if len(steps) == 1:
            return _family(add(number(known[0]), multiply(number(steps.pop()), _MEMBER)), None)
    if places == [len(parts) - 2] and len(known) == len(values) > 2:
        return _finite(known)
    raise UnreadableError("dots")


def _term(values: list[Fraction]) -> Node:
    """The term with index 0, 1, ... of a progression through at least three values."""
    steps = [after - before for before, after in pairwise(values)]
    if len(values) > 2 and len(set(steps)) == 1:
        return add(number(values[0]), multiply(number(steps[0]), _MEMBER))
    if len(values) > 2 and all(values) and len({b / a for a, b in pairwise(values)}) == 1:
        return multiply(number(values[0]), Node("power", (number(values[1] / values[0]), _MEMBER)))
    bends = {after - before for before, after in pairwise(steps)}
    if len(values) > 3 and len(bends) == 1:
        half = bends.pop() / 2
        square = multiply(number(half), _MEMBER, _MEMBER)
        return add(number(values[0]), multiply(number(steps[0] - half), _MEMBER), square)
    raise UnreadableError("members of an unknown sequence")


def _finite(values: list[Fraction]) -> Sequence:
    """2, 4, ..., 10: an arithmetic progression with its last term."""
    steps = {after - before for before, after in pairwise(values[:-1])}
    step = steps.pop() if len(steps) == 1 else Fraction(0)
    count = (values[-1] - values[0]) / step + 1 if step else Fraction(0)
    if count.denominator != 1 or not len(values) < count <= MAX_LISTED:
        raise UnreadableError("a sequence")
    return Sequence("set", tuple(Expression(number(values[0] + place * step)) for place in range(int(count))))


def parity(tokens: Tokens) -> Family:
    """ "even", "n even": the integers 2k; odd ones are 2k + 1."""
    place = -1 if tokens[-1].is_sign("odd", "even") else 0
    if len(tokens) == 3 and tokens[0].kind == "letter" and tokens[1].is_sign("ℤ1"):  # n is a positive even integer
        tokens = tokens[1:]
    if len(tokens) > 1 and tokens[0].is_sign("ℤ1"):  # positive ones
        least = Parameter(_CLASS.name, 0 if tokens[1].is_sign("odd") else 1)
        return Family(parity(tokens[1:]).items, (least,))
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
    value = None if names(modulus) else rational(modulus)
    is_number = modulus.op == "number" and modulus.value.denominator == 1 and modulus.value > 0
    is_multiple_of_pi = value is None and not names(modulus) and has(modulus, "pi", "degrees")  # x ≡ π/6 (mod 2π)
    if not residues or not (is_number or is_multiple_of_pi):
        raise UnreadableError("a modulus")
    shift = multiply(modulus, symbol(_CLASS.name))
    return Family(tuple((add(each, shift),) for each in residues), (_CLASS,))
