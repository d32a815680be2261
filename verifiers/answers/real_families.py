"""Families with real parameters: lines and planes, `f(x) = cx`, general solutions with constants of integration.

Two families are equal if a linear change of the parameters, with a linear inverse, turns one into the other. The change
is guessed from values at sample points and then proved: the expressions must agree after the substitution.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from typing import Any
from zlib import crc32

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.evaluation import Evaluation
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.reals import complement, equal_reals, interval, union
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

_PRECISION = 200  # bits
_MAX_PARAMETERS = 4
_MAX_DENOMINATOR = 1_000
Domains = tuple[tuple[str, Reals], ...]
Rows = list[list[Node]]


def equal_real_families(gold: Family, answer: Family) -> Result:
    """Whether two families have the same members; None if that is not decided."""
    is_function = bool(gold.argument and answer.argument and gold.name and answer.name)
    if is_function and gold.name.casefold() != answer.name.casefold():
        return False
    if answer.argument and gold.argument:
        answer = _with_argument(answer, gold.argument)
    if len(gold.items) != len(answer.items):
        return None
    domains = _domains(gold), _domains(answer)
    return matched(gold.items, answer.items, lambda one, other: _equal_items(one, domains[0], other, domains[1]))


def _domains(family: Family) -> Domains:
    return tuple((each.name, each.domain or ALL_REALS) for each in family.parameters)


def _with_argument(family: Family, argument: str) -> Family:
    """The family of functions of another letter; parameters of that name get another one."""
    away = {each.name: symbol(f"{each.name} ") for each in family.parameters}
    change = away | {family.argument: symbol(argument)}
    items = tuple(tuple(replace_symbols(node, change) for node in item) for item in family.items)
    parameters = tuple(Parameter(f"{each.name} ", domain=each.domain) for each in family.parameters)
    return Family(items, parameters, family.name, argument)


def _equal_items(gold: Item, gold_domains: Domains, answer: Item, answer_domains: Domains) -> bool | None:
    if len(gold) != len(answer):
        return False
    gold, gold_domains = _renamed(gold, gold_domains, "p")
    answer, answer_domains = _renamed(answer, answer_domains, "q")
    variables = [frozenset().union(*map(names, item)) - {n for n, _ in d} for item, d in
                 ((gold, gold_domains), (answer, answer_domains))]  # fmt: skip
    if variables[0] != variables[1]:
        return False
    if max(len(gold_domains), len(answer_domains)) > _MAX_PARAMETERS:
        return None
    rows = [[_affine(node, [name for name, _ in domains]) for node in item] for item, domains in
            ((gold, gold_domains), (answer, answer_domains))]  # fmt: skip
    known = [[row for row in side if row is not None] for side in rows]
    if [len(side) for side in known] == [len(gold), len(answer)]:
        return _equal_affine(known[0], gold_domains, known[1], answer_domains)
    return _equal_renamed(gold, gold_domains, answer, answer_domains)


def _renamed(item: Item, domains: Domains, letter: str) -> tuple[Item, Domains]:
    """The item with its own parameters only, under names of their own."""
    used = frozenset().union(*map(names, item))
    own = [(name, reals) for name, reals in domains if name in used]
    change = {name: symbol(f"{letter}·{place}") for place, (name, _) in enumerate(own)}
    item = tuple(replace_symbols(node, change) for node in item)
    return item, tuple((f"{letter}·{place}", reals) for place, (_, reals) in enumerate(own))


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
        return [each if each == ZERO else negate(each) for each in known[0]]
    if node.op == "add":
        return [_sum([each for each in column if each != ZERO]) for column in zip(*known, strict=True)]
    is_open = [bool(names(each) & set(parameters)) for each in node.args]
    if node.op == "div" and is_open == [True, False]:
        return [each if each == ZERO else divide(each, node.args[1]) for each in known[0]]
    if node.op == "mul" and sum(is_open) == 1:
        factors = [each for each, has_parameter in zip(node.args, is_open, strict=True) if not has_parameter]
        row = known[is_open.index(True)]
        return [each if each == ZERO else _product([*factors, each]) for each in row]
    return None


def _sum(terms: list[Node]) -> Node:
    return add(*terms) if len(terms) > 1 else terms[0] if terms else ZERO


def _product(factors: list[Node]) -> Node:
    factors = [each for each in factors if each != ONE]
    return multiply(*factors) if len(factors) > 1 else factors[0] if factors else ONE


def _equal_affine(gold: Rows, gold_domains: Domains, answer: Rows, answer_domains: Domains) -> bool | None:
    """Compare families whose rows are [constant, coefficients of the parameters], one row for each component."""
    if len(gold_domains) != len(answer_domains):
        return False
    try:
        change = _linear_change(gold, answer)
    except (NoValueError, TooLargeError, ZeroDivisionError, ValueError):  # the last two: mpmath, a singular matrix
        return None
    if change is None:
        return False
    matrix, start = change
    for one, other in zip(gold, answer, strict=True):
        columns = [_combination(other[1:], start, first=other[0])]
        columns += [_combination(other[1:], [row[place] for row in matrix]) for place in range(len(gold_domains))]
        for left, right in zip(one, columns, strict=True):
            if (result := equal_expressions(left, right)) is not True:
                return result
    return _same_domains(gold_domains, answer_domains, matrix, start)


def _combination(nodes: list[Node], factors: list[Node], first: Node = ZERO) -> Node:
    terms = [
        _product([factor, node]) for factor, node in zip(factors, nodes, strict=True) if ZERO not in (factor, node)
    ]
    return _sum([*([] if first == ZERO else [first]), *terms])


def _linear_change(gold: Rows, answer: Rows) -> tuple[list[list[Node]], list[Node]] | None:
    """(A, b) such that the answer at A p + b is the gold at p, by values at points; None if there is none.

    The entries are rational numbers; for one parameter and no variable also an exact quotient.
    """
    size = len(answer[0]) - 1
    variables = frozenset().union(*(names(node) for row in (*gold, *answer) for node in row))
    places = range(2 * size + 2 if variables else 1)
    sides = [[[_value(node, place) for node in row] for row in side for place in places] for side in (gold, answer)]
    mp = Evaluation(_PRECISION).mp
    if size == 0:
        return [], []
    left = mp.matrix([row[1:] for row in sides[1]])
    right = [mp.matrix([one[0] - other[0] for one, other in zip(*sides, strict=True)])]
    right += [mp.matrix([row[1 + place] for row in sides[0]]) for place in range(size)]
    solutions = [mp.lu_solve(left, column) for column in right]
    if size == 1 and not variables:
        row = next(place for place, values in enumerate(sides[1]) if abs(values[1]) > 1e-20)
        start = divide(subtract(gold[row][0], answer[row][0]), answer[row][1])
        slope = divide(gold[row][1], answer[row][1])
        return ([[_exact(slope)]], [_exact(start)]) if abs(sides[0][row][1]) > 1e-20 else None
    entries = [[_fraction(solution[row]) for row in range(size)] for solution in solutions]
    if any(value is None for column in entries for value in column):
        return None
    matrix = [[entries[1 + column][row] or Fraction(0) for column in range(size)] for row in range(size)]
    if mp.det(mp.matrix([[mp.mpf(v.numerator) / v.denominator for v in row] for row in matrix])) == 0:
        return None
    return [[number(value) for value in row] for row in matrix], [number(value or 0) for value in entries[0]]


def _exact(node: Node) -> Node:
    value = rational(node)
    return node if value is None else number(value)


def _value(node: Node, place: int = 0) -> Any:
    """The value at one of some points of small positive coordinates."""
    point = {name: number(Fraction(3 + 7 * place + crc32(name.encode()) % 11, 17)) for name in names(node)}
    return Evaluation(_PRECISION).value(replace_symbols(node, point))


def _fraction(value: Any) -> Fraction | None:
    """The rational number of small denominator that a value is, to 28 digits."""
    if abs(getattr(value, "imag", 0)) > 1e-30 or abs(value) > 1e9:
        return None
    mp = Evaluation(_PRECISION).mp
    real = mp.mpf(value.real)
    guess = Fraction(str(mp.nstr(real, 30))).limit_denominator(_MAX_DENOMINATOR)
    return guess if abs(real - mp.mpf(guess.numerator) / guess.denominator) < 1e-28 else None


def _same_domains(gold: Domains, answer: Domains, matrix: list[list[Node]], start: list[Node]) -> bool | None:
    """Whether the change of parameters q = A p + b maps the gold's domains onto the answer's."""
    if all(equal_reals(reals, ALL_REALS) for _, reals in (*gold, *answer)):
        return True
    for row, (_, reals) in enumerate(answer):
        places = [place for place, each in enumerate(matrix[row]) if abs(_value(each)) > 1e-20]
        if len(places) != 1:
            return None
        if not equal_reals(gold[places[0]][1], _preimage(reals, matrix[row][places[0]], start[row])):
            return False
    return True


def _preimage(reals: Reals, slope: Node, start: Node) -> Reals:
    """The numbers p for which slope * p + start is in the set."""
    result = EMPTY
    is_rising = _value(slope).real > 0
    for part in reals.intervals:
        ends = [_end(part.low, slope, start, is_rising), _end(part.high, slope, start, is_rising)]
        closed = [part.has_low, part.has_high]
        if not is_rising:
            ends, closed = ends[::-1], closed[::-1]
        result = union(result, interval(ends[0], ends[1], has_low=closed[0], has_high=closed[1]))
    return result if reals.intervals else complement(ALL_REALS)


def _end(node: Node, slope: Node, start: Node, is_rising: bool) -> Node:
    if is_infinite(node):
        return node if is_rising else negate(node)
    return divide(subtract(node, start), slope)


def _equal_renamed(gold: Item, gold_domains: Domains, answer: Item, answer_domains: Domains) -> bool | None:
    """True if other names or signs of the parameters make the items the same; else None."""
    if len(gold_domains) != len(answer_domains):
        return None
    for order in permutations(gold_domains):
        for signs in product((1, -1), repeat=len(order)):
            values = {
                name: symbol(other) if sign > 0 else negate(symbol(other))
                for (name, _), (other, _), sign in zip(answer_domains, order, signs, strict=True)
            }
            pairs = zip(gold, answer, strict=True)
            if all(equal_expressions(one, replace_symbols(other, values)) is True for one, other in pairs):
                domains = zip(order, answer_domains, signs, strict=True)
                return all(equal_reals(g[1], _preimage(a[1], number(sign), number(0))) for g, a, sign in domains)
    return None
