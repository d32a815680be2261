r"""Values for all integers of some letters, `k\pi, k \in \mathbb{Z}`: their rows, members and equality."""

from __future__ import annotations

from itertools import product

from verifiers.answers.evaluation import Evaluation
from verifiers.answers.integers import LETTERS
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.syntax import (
    UnreadableError,
)
from verifiers.answers.tree import Node, has, names, number, replace_symbols, signs, symbol
from verifiers.answers.values import (
    Collection,
    Expression,
    Family,
    Named,
    Relation,
    Value,
    bare,
    listed,
    nodes_of,
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
    if isinstance(value, Collection) and value.items:
        arguments = {argument_of(each) for each in value.items}
        return arguments.pop() if len(arguments) == 1 else ""
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

    b = a^2 is the pair (a, a^2). None for a letter alone.
    """
    rows, letters = rows_of(value), sorted(letters_in(rows_of(value)))
    item, name = bare(value), value.names[0] if isinstance(value, Named) and value.is_single else ""
    is_pair = any(len(row) > 1 for row in rows)
    if isinstance(item, Expression) and name and len(target.items[0]) == 2 and len(name) == 1 == len(letters):
        rows, is_pair = [_pair(name, item.node)], True
    is_letter = isinstance(value, Expression) and value.node.op == "symbol"
    if len(letters) != len(target.letters) or is_letter or (not is_pair and not LETTERS.issuperset(letters)):
        return None
    return Family(tuple(rows), tuple(zip(letters, (least for _, least in target.letters), strict=True)))


def _pair(name: str, node: Node) -> Row:
    """(a, a^2) for b = a^2, in the order of the letters."""
    (letter,) = names(node)
    return (symbol(letter), node) if letter < name else (node, symbol(letter))


def as_pairs(value: Family) -> Family:
    """b = a^2 for all integers a as the pairs (a, a^2); any other family as it is."""
    is_named = value.name and len(value.items) == 1 == len(value.items[0]) == len(names(value.items[0][0]))
    return Family((_pair(value.name, value.items[0][0]),), value.letters) if is_named else value


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
    if any(len(row) == 2 for row in gold.items):
        answer = as_pairs(answer)
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
