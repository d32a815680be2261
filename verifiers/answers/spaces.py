r"""Spaces: `(1,2) + t(3,4)`, `y = C_1e^x + C_2e^{2x}`, `f(x) = cx` for all real values of their parameters.

Two are equal if other names and signs of the parameters make them the same; and, where both are linear in parameters
without bounds, if each spans the other: the changes of their values at points, and the difference of these.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from typing import Any
from zlib import crc32

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.evaluation import Evaluation
from verifiers.answers.families import Row, argument_of, letters_in, rows_of
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.reals import equal_reals
from verifiers.answers.tree import Node, names, negate, number, replace_symbols, symbol
from verifiers.answers.values import ALL_REALS, Collection, Interval, Reals, Result, Space, Value, matched

_PRECISION = 400  # bits
_TINY = 1e-60
_MAX_PARAMETERS, _MAX_RENAMED = 4, 3
Point = dict[str, Node]


def beside_space(value: Value, target: Space) -> Space | None:
    """A value with as many letters as a space has parameters, beside it, with the same domains; None for another."""
    argument = argument_of(value)
    if isinstance(value, Collection) and value.kind == "list" and len(target.items) == 1:
        return None
    rows = rows_of(value)
    own = letters_in(target.items) - {name for name, _ in target.parameters} - {target.argument}
    letters = sorted(letters_in(rows) - {argument or target.argument} - own)
    if not rows or len(letters) != len(target.parameters):
        return None
    domains = tuple(domain for _, domain in target.parameters)
    return Space(tuple(rows), tuple(zip(letters, domains, strict=True)), argument or target.argument)


def equal_spaces(gold: Space, answer: Space) -> Result:
    """Whether two spaces are the same; None if that is not decided."""
    if len(gold.items) != len(answer.items):
        return None
    argument = gold.argument or answer.argument
    gold, answer = _with_own_letters(gold, "p", argument), _with_own_letters(answer, "q", argument)
    return matched(gold.items, answer.items, lambda one, other: _equal_rows(one, gold, other, answer))


def _with_own_letters(value: Space, letter: str, argument: str) -> Space:
    """The space with its argument and its parameters under names that no other letter has."""
    change = {name: symbol(f"{letter}·{place}") for place, (name, _) in enumerate(value.parameters)}
    change |= {value.argument or argument: symbol("argument")}
    items = tuple(tuple(replace_symbols(node, change) for node in row) for row in value.items)
    return Space(items, tuple((change[name].name, domain) for name, domain in value.parameters))


def _equal_rows(gold: Row, gold_space: Space, answer: Row, answer_space: Space) -> Result:
    used = [letters_in([row]) for row in (gold, answer)]
    ones = [pair for pair in gold_space.parameters if pair[0] in used[0]]
    others = [pair for pair in answer_space.parameters if pair[0] in used[1]]
    if len(gold) != len(answer) or used[0] - dict(ones).keys() != used[1] - dict(others).keys():
        return False
    if max(len(ones), len(others)) > _MAX_PARAMETERS:
        return None
    if len(ones) == len(others) <= _MAX_RENAMED and _is_renamed(gold, ones, answer, others):
        return True
    if not all(equal_reals(domain, ALL_REALS) for _, domain in (*ones, *others)):
        return False if len(ones) == len(others) == 1 else None
    try:
        return _same_span(gold, [name for name, _ in ones], answer, [name for name, _ in others])
    except (NoValueError, TooLargeError, ZeroDivisionError):
        return None


def _is_renamed(gold: Row, ones: list[tuple[str, Reals]], answer: Row, others: list[tuple[str, Reals]]) -> bool:
    """Whether other names and signs of the parameters make two rows the same, and their domains."""
    for order in permutations(ones):
        for signs in product((1, -1), repeat=len(order)):
            rows = list(zip(others, order, signs, strict=True))
            change = {name: symbol(to) if sign > 0 else negate(symbol(to)) for (name, _), (to, _), sign in rows}
            if all(
                equal_expressions(one, replace_symbols(other, change)) is True
                for one, other in zip(gold, answer, strict=True)
            ):
                return all(
                    equal_reals(domain, own if sign > 0 else _mirrored(own)) for (_, own), (_, domain), sign in rows
                )
    return False


def _mirrored(reals: Reals) -> Reals:
    return Reals(
        tuple(
            Interval(negate(part.high), negate(part.low), part.has_high, part.has_low)
            for part in reversed(reals.intervals)
        )
    )


def _same_span(gold: Row, ones: list[str], answer: Row, others: list[str]) -> Result:
    """Whether the changes of each side, and the difference of both, are combinations of the other's changes."""
    one, other = _changes(gold, ones), _changes(answer, others)
    if one is None or other is None:
        return None
    difference = [before - after for before, after in zip(one[0], other[0], strict=True)]
    return _rank(one[1:]) == _rank(other[1:]) == _rank([*one[1:], *other[1:], difference])


def _changes(row: Row, parameters: list[str]) -> list[list[Any]] | None:
    """The values of a row at points, and their change for each parameter; None where they are not linear in these."""
    variables = sorted(letters_in([row]) - {*parameters})
    places = range(2 * _MAX_PARAMETERS + 3 if variables else 1)

    def at(values: list[Fraction]) -> list[Any]:
        point = {name: number(value) for name, value in zip(parameters, values, strict=True)}
        return [_value(node, point, place) for place in places for node in row]

    base = [Fraction(3 + 2 * k, 7) for k in range(len(parameters))]
    start = at(base)
    steps = []
    for k in range(len(parameters)):
        moved = at([value + (k == each) for each, value in enumerate(base)])
        steps.append([after - before for after, before in zip(moved, start, strict=True)])
    far = at([value + 2 + 3 * k for k, value in enumerate(base)])
    for place, value in enumerate(far):
        line = start[place] + sum((2 + 3 * k) * step[place] for k, step in enumerate(steps))
        if abs(value - line) > _TINY * (1 + abs(value)):
            return None
    return [start, *steps]


def _value(node: Node, point: Point, place: int) -> Any:
    """The value at a point, with small positive numbers for all other letters."""
    rest = {name: number(Fraction(3 + 7 * place + crc32(name.encode()) % 11, 17)) for name in names(node)}
    return Evaluation(_PRECISION).value(replace_symbols(node, rest | point))


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
