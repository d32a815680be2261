r"""Values for all integers of some letters, `k\pi, k \in \mathbb{Z}`, or for all reals: rows, members and equality.

Spaces, `(1,2) + t(3,4)` or `y = C_1e^x + C_2e^{2x}`, are equal if other names of the parameters make them the
same; and, where both are linear in parameters without bounds, if each spans the other: the changes of their values at
points, and the difference of these.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import permutations, product
from typing import Any
from zlib import crc32

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.evaluation import Evaluation
from verifiers.answers.integers import LETTERS
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.reals import equal_reals
from verifiers.answers.syntax import UnreadableError
from verifiers.answers.values import (
    ALL_REALS,
    Collection,
    Expression,
    Family,
    Named,
    Node,
    Reals,
    Relation,
    Result,
    Space,
    Value,
    bare,
    has,
    listed,
    matched,
    names,
    nodes_of,
    number,
    replace_symbols,
    signs,
    symbol,
)

_NUM_SMALL, _NUM_LARGE = (3, 2), (40, 9)  # of values of one letter, of each of two, in members to find and among them
_DIGITS = 50
Row = tuple[Node, ...]


# ------------------------------------------------------------------------------------------------------- rows


def rows_of(value: Value) -> list[Row]:
    """The components of the members of a value, with both signs of ±; none for a value of another kind.

    Of an interval the ends and which of them are in it; of several names the values in the names' order.
    """
    value = bare(value)
    if isinstance(value, Collection) and value.is_bare:
        rows = [rows_of(item) for item in value.items]
        return [row for each in rows for row in each] if all(rows) else []
    is_chain = isinstance(value, Relation) and len(value.sides) == 3 and value.sides[1].op == "symbol"
    if isinstance(value, Relation) and is_chain and {*value.signs} <= {"<", "≤"}:
        return [_with_ends((value.sides[0], value.sides[2]), value.signs[0] == "≤", value.signs[1] == "≤")]
    items: tuple[Value, ...] = (value,)
    if isinstance(value, Named):
        items = tuple(item for _, item in sorted(zip(value.names, value.items, strict=True), key=lambda pair: pair[0]))
    if isinstance(value, Collection):
        items = value.items if value.kind == "tuple" else ()
    nodes = nodes_of(items)
    if not nodes:
        return []
    if isinstance(value, Collection) and len(nodes) == 2 and not value.is_plain_tuple:
        return [_with_ends((nodes[0], nodes[1]), value.brackets[0] == "[", value.brackets[-1] == "]")]
    return [both_.args for both_ in signs(Node("tuple", tuple(nodes)))]


def argument_of(value: Value) -> str:
    """x of f(x) = ..., n of a_n = ...; "" for other values."""
    if isinstance(value, Named) and value.is_single:
        index, item = value.names[0].partition("_")[2], value.items[0]
        return value.argument or (index if isinstance(item, Expression) and index in names(item.node) else "")
    return ""


def _with_ends(row: Row, has_low: bool, has_high: bool) -> Row:
    return (*row, number(2 * has_low + has_high)) if has_low or has_high else row


def letters_in(rows: list[Row] | tuple[Row, ...]) -> frozenset[str]:
    return frozenset().union(*(names(node) for row in rows for node in row))


def listed_rows(rows: list[Row]) -> Value:
    members = [tuple(map(Expression, row)) for row in rows]
    return listed([row[0] if len(row) == 1 else Collection("tuple", row, "()") for row in members])


def beside_family(value: Value, target: Family) -> Family | None:
    """An answer with the letters of integers of a gold, or as many others, which need not be declared again.

    None for a letter alone.
    """
    rows, letters = rows_of(value), sorted(letters_in(rows_of(value)))
    is_pair = any(len(row) > 1 for row in rows)
    is_letter = isinstance(value, Expression) and value.node.op == "symbol"
    if len(letters) != len(target.letters) or is_letter or (not is_pair and not LETTERS.issuperset(letters)):
        return None
    return Family(tuple(rows), tuple(zip(letters, (least for _, least in target.letters), strict=True)))


def beside_formula(value: Family, target: Value) -> Value | None:
    """A family beside a formula, without the words for which integers it holds.

    The letter is the formula's own, and may be another one in tuples and multiples of pi. A letter alone is no formula.
    """
    rows = rows_of(target)
    letters = letters_in(rows)
    is_letter = isinstance(target, Expression) and target.node.op == "symbol"
    if len(letters) != 1 or len(value.letters) != 1 or not letters <= LETTERS or is_letter:
        return None
    is_free = any(len(row) > 1 or has(node, "pi", "degrees") for row in rows for node in row)
    ((letter, least),) = value.letters
    change = {letter: symbol(*letters)} if is_free and least is None else {}
    return listed_rows([tuple(replace_symbols(node, change) for node in row) for row in value.items])


# ---------------------------------------------------------------------------------------------------- equality


def equal_families(gold: Family, answer: Family) -> bool:
    """Whether each side's members for small integers are among the other's for larger ones."""
    try:
        return _holds(gold, answer) and _holds(answer, gold)
    except (NoValueError, TooLargeError, OverflowError) as error:
        raise UnreadableError("a family without values") from error


def _holds(whole: Family, part: Family) -> bool:
    few, many = (sizes[min(max(len(f.letters) for f in (whole, part)), 2) - 1] for sizes in (_NUM_SMALL, _NUM_LARGE))
    return _members(part, few) <= _members(whole, many)


def _members(value: Family, size: int) -> set[str]:
    """The members for integers from -size to size, or the first 2 * size from the least one, to 50 digits."""
    if len(value.letters) > 2:
        raise UnreadableError("a family of many letters")
    result = set()
    for row in value.items:
        used = [(name, least) for name, least in value.letters if name in letters_in([row])]
        ranges = [
            range(start, start + 2 * size + 1) for _, least in used for start in (-size if least is None else least,)
        ]
        for values in product(*ranges):
            point = {name: number(each) for (name, _), each in zip(used, values, strict=True)}
            result.add("; ".join(_digits(replace_symbols(node, point)) for node in row))
    return result


def _digits(node: Node) -> str:
    run = Evaluation(4 * _DIGITS + 60)
    value = run.value(node)
    parts = (value.real, value.imag)
    tiny = run.mp.mpf(10) ** -_DIGITS
    return ",".join("0" if abs(part) < tiny else run.mp.nstr(part, _DIGITS) for part in parts)


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
    """Whether other names of the parameters make two rows the same, and their domains."""
    for order in permutations(ones):
        change = {name: symbol(to) for (name, _), (to, _) in zip(others, order, strict=True)}
        rows = zip(gold, (replace_symbols(node, change) for node in answer), strict=True)
        if all(equal_expressions(*pair) is True for pair in rows):
            return all(equal_reals(own, domain) for (_, own), (_, domain) in zip(order, others, strict=True))
    return False


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
