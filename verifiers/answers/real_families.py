"""Families with real parameters: `(1,2) + t(3,4)`, `y = C_1e^x + C_2e^{2x}`, `f(x) = cx`, compared as sets.

Where both are linear in parameters without bounds, they are the same if each spans the other: the coefficients of the
parameters, and the difference of the constant parts, as values at points. With bounds, a linear change of one
parameter must map one domain onto the other, and otherwise other names and signs of the parameters.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from typing import Any
from zlib import crc32

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.evaluation import Evaluation
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.reals import equal_reals, interval, union
from verifiers.answers.results import Result, matched
from verifiers.answers.tree import (
    ONE,
    ZERO,
    Node,
    add,
    divide,
    is_infinite,
    multiply,
    names,
    negate,
    number,
    replace_symbols,
    subtract,
    symbol,
)
from verifiers.answers.values import ALL_REALS, EMPTY, Family, Item, Parameter, Reals

_PRECISION = 400  # bits
_TINY = 1e-60
_MAX_PARAMETERS = 4
Domains = tuple[tuple[str, Reals], ...]
Rows = list[list[Node]]  # for each component the constant part, then the coefficient of each parameter


def equal_real_families(gold: Family, answer: Family) -> Result:
    """Whether two families have the same members; None if that is not decided."""
    is_function = bool(gold.argument and answer.argument and gold.name and answer.name)
    if is_function and gold.name.casefold() != answer.name.casefold():
        return False
    if answer.argument and gold.argument:
        answer = _with_argument(answer, gold.argument)
    if len(gold.items) != len(answer.items):
        return None
    return matched(gold.items, answer.items, lambda one, other: _equal_items(one, gold, other, answer))


def _with_argument(family: Family, argument: str) -> Family:
    """The family of functions of another letter; parameters of that name get another one."""
    away = {each.name: symbol(f"{each.name} ") for each in family.parameters}
    change = away | {family.argument: symbol(argument)}
    items = tuple(tuple(replace_symbols(node, change) for node in item) for item in family.items)
    parameters = tuple(Parameter(f"{each.name} ", domain=each.domain) for each in family.parameters)
    return Family(items, parameters, family.name, argument)


def _equal_items(gold: Item, gold_family: Family, answer: Item, answer_family: Family) -> Result:
    if len(gold) != len(answer):
        return False
    gold, domains = _own(gold, gold_family, "p")
    answer, others = _own(answer, answer_family, "q")
    letters = [frozenset().union(*map(names, item)) for item in (gold, answer)]
    if letters[0] - {name for name, _ in domains} != letters[1] - {name for name, _ in others}:
        return False
    if max(len(domains), len(others)) > _MAX_PARAMETERS:
        return None
    rows = _rows(gold, domains), _rows(answer, others)
    if rows[0] is None or rows[1] is None:
        return _equal_renamed(gold, domains, answer, others)
    if len(domains) != len(others):
        return False
    try:
        if all(equal_reals(reals, ALL_REALS) for _, reals in (*domains, *others)):
            return _same_span(rows[0], rows[1])
        if len(domains) == 1:
            return _equal_scaled(rows[0], domains[0][1], rows[1], others[0][1])
    except (NoValueError, TooLargeError, ZeroDivisionError):
        return None
    return _equal_renamed(gold, domains, answer, others)


def _own(item: Item, family: Family, letter: str) -> tuple[Item, Domains]:
    """The item with its own parameters only, under names of their own."""
    used = frozenset().union(*map(names, item))
    own = [each for each in family.parameters if each.name in used]
    change = {each.name: symbol(f"{letter}·{place}") for place, each in enumerate(own)}
    domains = tuple((f"{letter}·{place}", each.domain or ALL_REALS) for place, each in enumerate(own))
    return tuple(replace_symbols(node, change) for node in item), domains


def _rows(item: Item, domains: Domains) -> Rows | None:
    rows = [_affine(node, [name for name, _ in domains]) for node in item]
    known = [row for row in rows if row is not None]
    return known if len(known) == len(rows) else None


def _affine(node: Node, parameters: list[str]) -> list[Node] | None:
    """[constant, coefficient of each parameter] where the form of an expression is linear in them; None for others."""
    if not names(node) & set(parameters):
        return [node, *(ZERO for _ in parameters)]
    if node.op == "symbol":
        return [ZERO, *(ONE if name == node.name else ZERO for name in parameters)]
    parts = [_affine(each, parameters) for each in node.args]
    known = [each for each in parts if each is not None]
    if len(known) < len(parts):
        return None
    if node.op == "neg":
        return [negate(each) for each in known[0]]
    if node.op == "add":
        return [add(*column) for column in zip(*known, strict=True)]
    is_open = [bool(names(each) & set(parameters)) for each in node.args]
    if node.op == "div" and is_open == [True, False]:
        return [divide(each, node.args[1]) for each in known[0]]
    if node.op == "mul" and sum(is_open) == 1:
        factors = [each for each, has_parameter in zip(node.args, is_open, strict=True) if not has_parameter]
        return [multiply(*factors, each) for each in known[is_open.index(True)]]
    return None


def _same_span(gold: Rows, answer: Rows) -> bool:
    """Whether the coefficients of each side, and the difference of the constants, are combinations of the other's."""
    size = len(gold[0]) - 1
    has_variables = any(names(node) for row in (*gold, *answer) for node in row)
    lines = []
    for place in range(2 * size + 3 if has_variables else 1):
        for one, other in zip(gold, answer, strict=True):
            values = [[_value(node, place) for node in row] for row in (one, other)]
            lines.append((values[0][1:], values[1][1:], [values[0][0] - values[1][0]]))
    ranks = [_rank([line[side] for line in lines]) for side in (0, 1)]
    return ranks[0] == ranks[1] == _rank([[*line[0], *line[1], *line[2]] for line in lines])


def _rank(rows: list[list[Any]]) -> int:
    """The rank of a matrix, by elimination with the largest pivot."""
    rows, rank = [list(row) for row in rows], 0
    for column in range(len(rows[0])):
        pivot = max(range(rank, len(rows)), key=lambda place: abs(rows[place][column]), default=rank)
        if pivot >= len(rows) or abs(rows[pivot][column]) < _TINY:
            continue
        rows[rank], rows[pivot] = rows[pivot], rows[rank]
        for place in range(rank + 1, len(rows)):
            factor = rows[place][column] / rows[rank][column]
            rows[place] = [one - factor * other for one, other in zip(rows[place], rows[rank], strict=True)]
        rank += 1
    return rank


def _value(node: Node, place: int) -> Any:
    """The value at one of some points of small positive coordinates."""
    point = {name: number(Fraction(3 + 7 * place + crc32(name.encode()) % 11, 17)) for name in names(node)}
    return Evaluation(_PRECISION).value(replace_symbols(node, point))


def _equal_scaled(gold: Rows, domain: Reals, answer: Rows, other: Reals) -> Result:
    """One parameter on each side: whether q = slope * p + start makes the rows the same and maps the domains."""
    place = next((k for k, row in enumerate(answer) if abs(_value(row[1], 0)) > _TINY), None)
    if place is None:
        return None
    slope = _plain(divide(gold[place][1], answer[place][1]))
    start = _plain(divide(subtract(gold[place][0], answer[place][0]), answer[place][1]))
    if names(slope) or names(start):
        return None
    for one, row in zip(gold, answer, strict=True):
        pairs = ((one[1], multiply(slope, row[1])), (one[0], add(row[0], multiply(start, row[1]))))
        if (result := equal_expressions(*pairs[0]) and equal_expressions(*pairs[1])) is not True:
            return result
    return equal_reals(domain, _preimage(other, slope, start))


def _plain(node: Node) -> Node:
    """A quotient as a number, where it is the same number at two points; else as it is."""
    values = [_value(node, place) for place in (0, 1)]
    if names(node) and abs(values[0] - values[1]) < _TINY:
        return number(Fraction(str(values[0].real)).limit_denominator(1_000))
    value = None if names(node) else rational(node)
    return node if value is None else number(value)


def _preimage(reals: Reals, slope: Node, start: Node) -> Reals:
    """The numbers p for which slope * p + start is in the set."""
    result, is_rising = EMPTY, _value(slope, 0).real > 0
    for part in reals.intervals:
        ends = [_end(part.low, slope, start, is_rising), _end(part.high, slope, start, is_rising)]
        closed = [part.has_low, part.has_high]
        if not is_rising:
            ends, closed = ends[::-1], closed[::-1]
        result = union(result, interval(ends[0], ends[1], has_low=closed[0], has_high=closed[1]))
    return result


def _end(node: Node, slope: Node, start: Node, is_rising: bool) -> Node:
    if is_infinite(node):
        return node if is_rising else negate(node)
    return divide(subtract(node, start), slope)


def _equal_renamed(gold: Item, domains: Domains, answer: Item, others: Domains) -> Result:
    """True if other names or signs of the parameters make the items the same; else None."""
    if len(domains) != len(others):
        return None
    for order in permutations(domains):
        for signs in product((1, -1), repeat=len(order)):
            rows = list(zip(others, order, signs, strict=True))
            values = {name: symbol(other) if s > 0 else negate(symbol(other)) for (name, _), (other, _), s in rows}
            pairs = zip(gold, answer, strict=True)
            if all(equal_expressions(one, replace_symbols(other, values)) is True for one, other in pairs):
                return all(equal_reals(g, _preimage(a, number(s), number(0))) for (_, a), (_, g), s in rows)
    return None
