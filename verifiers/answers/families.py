"""Families of values with integer parameters, compared as sets: exactly where they are linear, else by their members.

Linear families of one unit (rational multiples of one number, such as 1 or pi) are residues modulo a common period.
Others are listed for small parameters; each of these members must be one of the other side's for larger ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from itertools import product
from math import gcd

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.evaluation import Evaluation, approximation
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.real_families import equal_real_families
from verifiers.answers.results import Result
from verifiers.answers.token import UnreadableError
from verifiers.answers.tree import Node, add, divide, has, multiply, names, number, replace_symbols, subtract
from verifiers.answers.values import Family, Parameter

_MAX_RESIDUES = 400
_NUM_SMALL, _NUM_LARGE = 4, 14  # of values of a parameter, each side of zero, in members to find and to find them among
_MAX_MEMBERS = 900
_DIGITS = 50


def equal_families(gold: Family, answer: Family) -> Result:
    """Whether two families have the same members; None if that is not decided."""
    if gold.is_real or answer.is_real:
        return equal_real_families(gold, answer) if gold.is_real and answer.is_real else False
    if has_degrees(gold) != has_degrees(answer):
        plain = answer if has_degrees(gold) else gold
        if not any(has(node, "pi") for item in plain.items for node in item):
            gold, answer = without_degrees(gold), without_degrees(answer)
    try:
        exact = _equal_linear(gold, answer)
        if exact is not None:
            return exact
        return any(
            _equal_members(_starting(gold, first), _starting(answer, second))
            for first, second in product((0, 1) if _is_natural(gold) else (0,), (0, 1) if _is_natural(answer) else (0,))
        )
    except (NoValueError, TooLargeError, OverflowError) as error:
        raise UnreadableError("a family without values") from error


def has_degrees(family: Family) -> bool:
    return any(has(node, "degrees") for item in family.items for node in item)


def without_degrees(family: Family) -> Family:
    return Family(tuple(tuple(map(_plain, item)) for item in family.items), family.parameters)


def _plain(node: Node) -> Node:
    if node.op == "degrees":
        return node.args[0]
    return Node(node.op, tuple(map(_plain, node.args)), node.name, node.value)


def _is_natural(family: Family) -> bool:
    return any(each.is_natural for each in family.parameters)


def _starting(family: Family, least: int) -> Family:
    parameters = tuple(Parameter(each.name, least if each.is_natural else each.least) for each in family.parameters)
    return Family(family.items, parameters)


# ------------------------------------------------------------------------------------------- linear families


def _equal_linear(gold: Family, answer: Family) -> bool | None:
    """Compare residues modulo the common period; None where a side is not linear over all integers."""
    gold_side, answer_side = _progressions(gold), _progressions(answer)
    if gold_side is None or answer_side is None:
        return None
    unit = gold_side[0][1]
    scaled = []
    for side in (gold_side, answer_side):
        rows = []
        for start, step in side:
            ratio = _ratio(step, unit)
            if ratio is None:
                return False  # periods that have no common multiple
            rows.append((start, abs(ratio)))
        scaled.append(rows)
    period = _common_multiple([ratio for rows in scaled for _, ratio in rows])
    residues = [_residues(rows, unit, period) for rows in scaled]
    length = multiply(unit, number(period))
    return all(
        any(_is_congruent(one, other, length) for other in residues[1 - side])
        for side in (0, 1)
        for one in residues[side]
    )


def _progressions(family: Family) -> list[tuple[Node, Node]] | None:
    """(start, step) of each item; None if one is not an arithmetic progression over all integers."""
    if any(each.least is not None or each.is_natural for each in family.parameters):
        return None
    result = []
    for item in family.items:
        if len(item) != 1:
            return None
        row = _progression(item[0], [each.name for each in family.parameters if each.name in names(item[0])])
        if row is None:
            return None
        result.append(row)
    return result


def _progression(node: Node, letters: list[str]) -> tuple[Node, Node] | None:
    if not letters or names(node) - set(letters):
        return None
    zero = {name: number(0) for name in letters}
    start = replace_symbols(node, zero)
    steps = []
    for name in letters:
        step = subtract(replace_symbols(node, {**zero, name: number(1)}), start)
        line = add(start, multiply(step, number(7)))
        if equal_expressions(replace_symbols(node, {**zero, name: number(7)}), line) is not True:
            return None
        steps.append(step)
    point = {name: number(place + 3) for place, name in enumerate(letters)}
    plane = add(start, *(multiply(step, number(place + 3)) for place, step in enumerate(steps)))
    if equal_expressions(replace_symbols(node, point), plane) is not True:
        return None
    ratios = [_ratio(step, steps[0]) for step in steps]
    if None in ratios:
        return None
    values = [each for each in ratios if each]
    common = values[0]
    for each in values[1:]:
        common = _common_divisor(common, each)
    return start, multiply(steps[0], number(common))


def _ratio(left: Node, right: Node) -> Fraction | None:
    """The exact quotient of two numbers if it is a rational of small denominator; None for another, and for 0."""
    value = approximation(divide(left, right))
    if isinstance(value, complex) or not 1e-6 < abs(value) < 1e6:
        return None
    fraction = Fraction(value).limit_denominator(5_000)
    return fraction if equal_expressions(left, multiply(right, number(fraction))) else None


def _common_divisor(left: Fraction, right: Fraction) -> Fraction:
    below = left.denominator * right.denominator
    return Fraction(gcd(left.numerator * right.denominator, right.numerator * left.denominator), below)


def _common_multiple(values: list[Fraction]) -> Fraction:
    result = values[0]
    for each in values[1:]:
        result = result * each / _common_divisor(result, each)
    return abs(result)


def _residues(rows: list[tuple[Node, Fraction]], unit: Node, period: Fraction) -> list[Node]:
    result = []
    for start, step in rows:
        count = period / step
        if count > _MAX_RESIDUES:
            raise UnreadableError("too many residues")
        result += [add(start, multiply(unit, number(step * place))) for place in range(int(count))]
    if len(result) > _MAX_RESIDUES:
        raise UnreadableError("too many residues")
    return result


def _is_congruent(left: Node, right: Node, period: Node) -> bool:
    difference = subtract(left, right)
    value = approximation(divide(difference, period))
    if isinstance(value, complex) or abs(value - round(value)) > 1e-9:
        return False
    return equal_expressions(difference, multiply(number(round(value)), period)) is True


# --------------------------------------------------------------------------------------------------- members


def _equal_members(gold: Family, answer: Family) -> bool:
    return _holds_members(answer, gold) and _holds_members(gold, answer)


def _holds_members(whole: Family, part: Family) -> bool:
    """Whether a family has the first members of another one among its own; False if that one has none."""
    small = set(members(part, _NUM_SMALL))
    return bool(small) and small <= set(members(whole, _NUM_LARGE))


def members(family: Family, size: int) -> Iterator[tuple[str, ...]]:
    """Members for parameters from -size to size, or the first 2 * size from a lower bound, as texts of 50 digits."""
    ranges = [
        range(-size, size + 1) if each.least is None else range(each.least, each.least + 2 * size)
        for each in family.parameters
    ]
    count = 1
    for each in ranges:
        count *= len(each)
    if count * len(family.items) > _MAX_MEMBERS:
        raise UnreadableError("too many members")
    for item in family.items:
        letters = frozenset().union(*map(names, item))
        used = [
            each if parameter.name in letters else each[:1]
            for each, parameter in zip(ranges, family.parameters, strict=True)
        ]
        for values in product(*used):
            point = {each.name: number(value) for each, value in zip(family.parameters, values, strict=True)}
            yield tuple(_digits(replace_symbols(node, point)) for node in item)


def _digits(node: Node) -> str:
    """A number to 50 digits. NoValueError for one that holds other letters."""
    run = Evaluation(4 * _DIGITS + 60)
    value = run.value(node)
    parts = (value.real, value.imag)
    tiny = run.mp.mpf(10) ** -_DIGITS
    return ",".join("0" if abs(part) < tiny else run.mp.nstr(part, _DIGITS) for part in parts)
