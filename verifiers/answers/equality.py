"""Whether a typed answer is the same as a typed gold: names, then one type for both, then the equality of that type.

The gold decides which form an answer must have.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from verifiers.answers.coerce import PARAMETERS, coerce, without_names
from verifiers.answers.comparison import equal_expressions
from verifiers.answers.families import equal_families, equal_spaces
from verifiers.answers.integers import equal_integers
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.reals import as_reals, equal_reals
from verifiers.answers.scalars import equal_amounts, equal_relations, equal_scalars, is_closed, is_unfinished
from verifiers.answers.syntax import UnreadableError
from verifiers.answers.values import (
    ALL_REALS,
    EMPTY,
    Amount,
    Choice,
    Clock,
    Collection,
    Expression,
    Family,
    Integers,
    Named,
    Node,
    Numeral,
    Reals,
    Relation,
    Result,
    Space,
    Value,
    all_equal,
    divide,
    matched,
    multiply,
    names,
    nodes_of,
    replace_symbols,
    signs,
    symbol,
)

_NO_CONSTANTS = frozenset("xyzn")  # letters that are never constants


def equal(gold: Value, answer: Value) -> Result:
    """True or False where it is decided; None where another layer must decide."""
    try:
        return _equal(gold, answer)
    except (UnreadableError, NoValueError, TooLargeError, RecursionError):
        return None


def _equal(gold: Value, answer: Value) -> Result:
    if isinstance(gold, Choice) or isinstance(answer, Choice):
        return _equal_choices(gold, answer)
    gold, answer = plain(gold), plain(answer)
    if isinstance(gold, Named) and isinstance(answer, Named) and len(gold.names) > 1 and answer.is_single:
        return False
    if isinstance(gold, Relation) and isinstance(answer, Named):
        gold, answer = coerce(gold, answer)
    if isinstance(gold, Family | Space) or isinstance(answer, Space):
        gold, answer = coerce(gold, answer)
    if (sides := without_names(gold, answer)) is None:
        return False
    gold, answer = coerce(*sides)
    if type(gold) is type(answer):
        return _EQUALITIES[type(gold)](gold, answer)
    return _equal_types(gold, answer)


def plain(value: Value) -> Value:
    """A value without brackets that do not matter: a set or a list of one value is that value."""
    if isinstance(value, Collection) and value.is_bare and len(value.items) == 1 and value.items[0] != EMPTY:
        is_nested = isinstance(value.items[0], Collection) and value.kind == value.items[0].kind == "set"
        return value if is_nested else plain(value.items[0])
    if not isinstance(value, Named) or not value.is_single:
        return value
    item = plain(value.items[0])
    letter, _, index = value.names[0].partition("_")
    is_sequence = len(index) == 1 and index.isalpha() and isinstance(item, Expression) and names(item.node) == {index}
    if is_sequence and not value.argument:
        return Named((letter,), (item,), index)  # a_n = 2n + 1
    return replace(value, items=(item,))


def _equal_choices(gold: Value, answer: Value) -> Result:
    """A choice with its value is either of them; where both sides have both, both count."""
    if isinstance(gold, Choice) and isinstance(answer, Choice):
        return gold.letter == answer.letter and equal(gold.value, answer.value)
    choice, other = (gold, answer) if isinstance(gold, Choice) else (answer, gold)
    assert isinstance(choice, Choice)
    if isinstance(other, Expression) and other.node.op == "symbol" and other.node.name in tuple("ABCDEFGHJ"):
        return other.node.name == choice.letter
    return equal(choice.value, answer) if choice is gold else equal(gold, choice.value)


def _equal_numbers(gold: Expression, answer: Expression) -> Result:
    """Numbers and expressions, also with other letters for the gold's constants of integration."""
    result = equal_scalars(gold, answer)
    letters = names(gold.node)
    constants = [] if result else [name for name in sorted(letters) if _is_constant(name, gold.node)]
    if not result and not constants and letters - names(answer.node) == {"c"} and "C" in names(answer.node):
        constants = ["c"] if _is_constant("C", replace_symbols(gold.node, {"c": symbol("C")})) else []
    others = sorted(names(answer.node) - (letters - {*constants}))
    if not constants or len(others) != len(constants) or not _NO_CONSTANTS.isdisjoint(others):
        return result
    sides = zip((gold, answer), (constants, others), strict=True)
    return (
        equal_spaces(*(Space(((side.node,),), tuple((c, ALL_REALS) for c in free)) for side, free in sides)) or result
    )


def _is_constant(name: str, node: Node) -> bool:
    """Whether a letter is C_1, or C in a function of x or t, or as a summand of a factor: `(t^2 + C)e^{-at}`."""
    if len(name) == 3 and name[:2] in ("C_", "c_") and len(names(node)) > 1:
        return name[2].isdigit()
    parts = [each for each in node.args if name in names(each)]
    is_summand = (node.op == "add" and parts == [symbol(name)]) or names(node) in ({name, "x"}, {name, "t"})
    is_inside = node.op in ("mul", "add") and len(parts) == 1
    return name == "C" and (is_summand or (is_inside and _is_constant(name, *parts)))


# ---------------------------------------------------------------------------------------------- collections


def _equal_named(gold: Named, answer: Named) -> Result:
    if sorted(gold.names) != sorted(answer.names) or len(gold.items) != len(
        answer.items
    ):  # a name twice holds two candidates
        return False
    values = dict(zip(answer.names, answer.items, strict=True))
    return all_equal(equal(item, values[name]) for name, item in zip(gold.names, gold.items, strict=True))


def _equal_to_names(gold: Value, answer: Value) -> Result:
    """Several named values beside others: in the gold's order, or in the alphabetical order of the answer's names."""
    if isinstance(gold, Named):
        is_ordered = isinstance(answer, Collection) and (answer.kind == "list" or answer.is_plain_tuple)
        if not is_ordered or not isinstance(answer, Collection) or len(answer.items) != len(gold.items):
            return False if isinstance(answer, Expression | Collection) else None
        if answer.is_plain_tuple:
            return _equal_collections(Collection("tuple", gold.items, "()"), answer)
        return all_equal(map(equal, gold.items, answer.items))
    assert isinstance(answer, Named)
    if isinstance(gold, Collection) and gold.kind == "tuple":
        pairs = sorted(zip(answer.names, answer.items, strict=True), key=lambda pair: pair[0])
        return len(pairs) == len(gold.items) and all_equal(map(equal, gold.items, (item for _, item in pairs)))
    if isinstance(gold, Collection) and gold.kind == "list":
        return _equal_unordered(gold.items, answer.items)
    return False if isinstance(gold, Expression) else None


def _equal_collections(gold: Collection, answer: Collection) -> Result:
    if "matrix" in (gold.kind, answer.kind):
        return _equal_matrices(gold, answer)
    if "ratio" in (gold.kind, answer.kind):
        return _equal_ratios(gold, answer) if gold.kind == answer.kind else None
    answer = _with_letter_of(gold, answer)
    gold, answer = _expanded(gold), _expanded(answer)
    if gold.is_bare != answer.is_bare:
        one, other = as_reals(gold), as_reals(answer)
        if one is not None and other is not None and "set" in (gold.kind, answer.kind):
            return _equal_sets(one, other)
        is_long = gold.kind == "list" and len(gold.items) > 2 and answer.kind == "tuple"
        return is_long and len(gold.items) == len(answer.items) and all_equal(map(equal, gold.items, answer.items))
    if gold.is_bare:
        return _equal_unordered(gold.items, answer.items)
    brackets = [each.brackets.replace("⟨⟩", "()") for each in (gold, answer)]
    if brackets[0] != brackets[1] or len(gold.items) != len(answer.items):
        return False
    return all_equal(map(equal, gold.items, answer.items))


def _equal_unordered(gold: tuple[Value, ...], answer: tuple[Value, ...]) -> Result:
    """Whether two lists hold the same values, in any order.

    Repeated values count where all are the same, and among angles and amounts, whose list is no set of solutions.
    """
    one, other = _flat(gold), _flat(answer)
    if len(one) != len(other) and any(map(_is_measured, one)):
        return False
    if len(one) != len(other):
        one, other = _distinct(one), _distinct(other)
        if len(one) != len(other) or len(one) < 2:
            return False
    return matched(one, other, equal)


def _is_measured(value: Value) -> bool:
    return isinstance(value, Amount) or (isinstance(value, Expression) and value.node.op == "degrees")


def _flat(values: tuple[Value, ...]) -> list[Value]:
    r"""The values with lists in the list (from `\pm`) and tuples of both signs taken apart."""
    result: list[Value] = []
    for value in values:
        value = _expanded(value) if isinstance(value, Collection) else value
        result += _flat(value.items) if isinstance(value, Collection) and value.kind == "list" else [value]
    return result


def _distinct(values: list[Value]) -> list[Value]:
    result: list[Value] = []
    for value in values:
        if not any(equal(value, other) for other in result):
            result.append(value)
    return result


def _expanded(value: Collection) -> Collection:
    r"""A tuple with `\pm` in it as the list of the tuples that it stands for; any other collection as it is."""
    nodes = nodes_of(value.items) if value.kind == "tuple" else None
    both = signs(Node("tuple", tuple(nodes))) if nodes else []
    if len(both) < 2:
        return value
    return Collection("list", tuple(replace(value, items=tuple(map(Expression, node.args))) for node in both))


def _with_letter_of(gold: Collection, answer: Collection) -> Collection:
    """(t, 2t, 3t) beside (k, 2k, 3k) in the gold's letter, where each is the only one; any other value as it is."""
    letters = [_only_letter(each) for each in (gold, answer)]
    if not all(letters) or letters[0] == letters[1]:
        return answer
    change = {letters[1]: symbol(letters[0])}
    nodes = [replace_symbols(node, change) for node in nodes_of(answer.items) or []]
    return replace(answer, items=tuple(map(Expression, nodes)))


def _only_letter(value: Collection) -> str:
    """The only letter of a tuple where it may be any parameter; "" for other values."""
    nodes = nodes_of(value.items) if value.is_plain_tuple else None
    letters = frozenset().union(*map(names, nodes or []))
    return next(iter(letters)) if nodes and len(letters) == 1 and letters <= PARAMETERS else ""


def _equal_matrices(gold: Collection, answer: Collection) -> Result:
    """Matrices entry by entry. A row or a column is the same as the vector in brackets, [[1, 2], [3, 4]] a matrix."""
    rows = [_rows(each) for each in (gold, answer)]
    if rows[0] is not None and rows[1] is not None:
        if [len(row) for row in rows[0]] != [len(row) for row in rows[1]]:
            return False
        return all_equal(equal(*pair) for both in zip(*rows, strict=True) for pair in zip(*both, strict=True))
    entries = [_entries(each) for each in (gold, answer)]
    if entries[0] is None or entries[1] is None:
        return None
    return len(entries[0]) == len(entries[1]) and all_equal(map(equal, entries[0], entries[1]))


def _rows(value: Collection) -> list[tuple[Value, ...]] | None:
    rows = [item.items for item in value.items if isinstance(item, Collection) and item.kind == "tuple"]
    return rows if len(rows) == len(value.items) and value.kind != "set" else None


def _entries(value: Collection) -> tuple[Value, ...] | None:
    """The components of a vector: a row, a column, or a tuple."""
    rows = _rows(value)
    if rows is not None and len(rows) == 1:
        return rows[0]
    if rows is not None and all(len(row) == 1 for row in rows):
        return tuple(row[0] for row in rows)
    return value.items if value.kind == "tuple" and value.brackets in ("()", "[]", "⟨⟩") else None


def _equal_ratios(gold: Collection, answer: Collection) -> Result:
    """Ratios up to a factor. What may be a time of day must be the same."""
    terms = nodes_of(gold.items) or [], nodes_of(answer.items) or []
    if len(terms[0]) != len(terms[1]):
        return False
    if all_equal(map(equal_expressions, *terms)):
        return True
    if gold.brackets == "time" and len(terms[0]) == 2:
        return False if answer.brackets == "time" else None
    base = terms[0][0], terms[1][0]
    return all_equal(
        equal_expressions(multiply(one, base[1]), multiply(other, base[0])) for one, other in zip(*terms, strict=True)
    )


def _equal_sets(gold: Reals, answer: Reals) -> Result:
    if gold == EMPTY or answer == EMPTY:
        return gold == answer  # only what is written as the empty set is empty
    if (gold.name and answer.name and gold.name != answer.name) or not equal_reals(gold, answer):
        return False
    ends = [[end for part in each.intervals for end in (part.low, part.high)] for each in (gold, answer)]
    return not any(map(is_unfinished, *ends))


# --------------------------------------------------------------------------------------- values of two types


def _equal_types(gold: Value, answer: Value) -> Result:
    """The result for values of different types."""
    kinds = {type(gold), type(answer)}
    if Numeral in kinds:
        return _without_base(gold, answer)
    if Clock in kinds:
        return _of_24_hours(gold, answer)
    if Amount in kinds:
        return equal_amounts(gold, answer)
    if Relation in kinds:
        return equal_relations(gold, answer)
    if Named in kinds:
        return _equal_to_names(gold, answer)
    if isinstance(gold, Collection) and gold.kind == "ratio" and isinstance(answer, Expression):
        nodes = nodes_of(gold.items)
        return equal_scalars(Expression(divide(*nodes)), answer) if nodes and len(nodes) == 2 else None
    if EMPTY in (gold, answer):
        return False
    if Reals in kinds:
        other = answer if isinstance(gold, Reals) else gold
        return False if isinstance(other, Expression) and is_closed(other.node) else None
    if kinds & {Family, Integers, Space}:
        return False
    return False if Collection in kinds and Expression in kinds else None


def _without_base(gold: Value, answer: Value) -> Result:
    """A numeral beside a number: the gold's base may be left out, and an answer's base of 10."""
    numeral, other = (gold, answer) if isinstance(gold, Numeral) else (answer, gold)
    if not isinstance(numeral, Numeral) or not isinstance(other, Expression):
        return None
    is_plain = numeral is gold or numeral.base == 10
    return True if is_plain and _digits_of(other.node) == numeral.digits else None


def _of_24_hours(gold: Value, answer: Value) -> Result:
    """A time with am or pm beside one without, which is one of 24 hours."""
    clock, other = (gold, answer) if isinstance(gold, Clock) else (answer, gold)
    if not isinstance(clock, Clock) or not isinstance(other, Collection) or other.brackets != "time":
        return None
    parts = [int(node.value) for node in nodes_of(other.items) or ()]
    return (*parts, 0)[:3] == (clock.hour, clock.minute, clock.second)


def _digits_of(node: Node) -> str:
    """The digits that an expression is, if it stands for a numeral without its base: 1011, 1A3."""
    return node.name if node.op == "symbol" else str(rational(node))


_EQUALITIES: dict[type, Callable[[Any, Any], Result]] = {
    Expression: _equal_numbers,
    Reals: _equal_sets,
    Collection: _equal_collections,
    Named: _equal_named,
    Relation: equal_relations,
    Family: equal_families,
    Space: equal_spaces,
    Integers: equal_integers,
    Amount: equal_amounts,
    Numeral: lambda gold, answer: gold == answer,
    Clock: lambda gold, answer: gold == answer,
}
