"""One value in the type of another: a formula as the family that it is beside one, an interval as a set of reals."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verifiers.answers.families import beside_family, beside_formula
from verifiers.answers.reals import as_reals
from verifiers.answers.tree import names, replace_symbols, symbol
from verifiers.answers.values import (
    Collection,
    Expression,
    Family,
    Literal,
    Named,
    Reals,
    Relation,
    Value,
    nodes_of,
)


def coerce(gold: Value, answer: Value) -> tuple[Value, Value]:
    """Both values in one type, where one of them may be read in the type of the other; else as they are.

    Only an answer is read as a family of integers beside one, or as the formula of one: beside `n - 1` the answer "all
    integers" says nothing.
    """
    pair = type(answer), type(gold)
    if conversion := _CONVERSIONS.get(pair) or _OF_ANSWERS.get(pair):
        return gold, conversion(answer, gold) or answer
    if of_gold := _CONVERSIONS.get(pair[::-1]):
        return of_gold(gold, answer) or gold, answer
    return gold, answer


# ---------------------------------------------------------------------------------------------------- names


def without_names(gold: Value, answer: Value) -> tuple[Value, Value] | None:
    """Both values without a single name in front; None if their names differ."""
    (gold_name, gold_argument, gold_item), (name, argument, item) = _parts(gold), _parts(answer)
    if gold_argument or argument:
        if gold_argument and not argument and ("_" in name or "(" in name):
            return None  # a_n = ... and a_{n+1} = ..., f(x) = ... and f(1) = ...
        if gold_argument and argument and gold_name.casefold() != name.casefold() and gold_name and name:
            return None
        if gold_argument and argument and isinstance(item, Expression):
            item = Expression(replace_symbols(item.node, {argument: symbol(gold_argument)}))
        return gold_item, item
    if gold_name and isinstance(item, Relation) and isinstance(gold_item, Expression):
        return Relation(("=",), (symbol(gold_name), gold_item.node)), item
    if gold_name and isinstance(gold_item, Collection) and gold_item.kind == "list" and isinstance(item, Named):
        return None  # x = 3 or x = -2, and x = 3, y = -2
    if _is_set_of_solutions(gold_name, gold_item) != _is_set_of_solutions(name, item):
        return gold_item, item
    if gold_name and name and not _is_same_name(gold_name, name):
        if (
            isinstance(gold_item, Expression)
            and isinstance(item, Expression)
            and names(gold_item.node) | names(item.node)
        ):
            return _named_relation(gold_name, gold_item), _named_relation(name, item)
        return None
    return gold_item, item


def _named_relation(name: str, item: Expression) -> Relation:
    return Relation(("=",), (symbol(name), item.node))


def _is_set_of_solutions(name: str, value: Value) -> bool:
    """Whether a name is that of a set, S = {1, -3}, whose members may have another name on the other side."""
    return len(name) == 1 and name.isupper() and isinstance(value, Collection) and value.kind == "set"


def _is_same_name(gold: str, answer: str) -> bool:
    """Whether two names are one: r and radius, the angles B and ABC, x and x_0."""
    short, long = sorted((gold, answer), key=len)
    is_word = len(short) == 1 and len(long) > 3 and long.isalpha() and long.islower() and long[0] == short.casefold()
    is_angle = len(short) == 1 and len(long) == 3 and long.isupper() and long.isalpha() and long[1] == short
    return gold == answer or is_word or is_angle or (long.partition("_")[0] == short and "(" not in long)


def _parts(value: Value) -> tuple[str, str, Value]:
    """(name, argument, value) of a single named value."""
    if isinstance(value, Named) and value.is_single:
        return value.names[0], value.argument, value.items[0]
    return "", "", value


# -------------------------------------------------------------------------------------------------- other types


def _reals(value: Collection, _target: Value) -> Value | None:
    return as_reals(value)


def _as_relation(value: Named, _target: Relation) -> Value | None:
    item = value.items[0]
    if not value.is_single or not isinstance(item, Expression) or value.argument:
        return None
    return Relation(("=",), (symbol(value.names[0]), item.node))


def _time(value: Collection, target: Literal) -> Value | None:
    """A time without am and pm, which is one of 24 hours."""
    nodes = nodes_of(value.items)
    if target.kind != "time" or value.brackets != "time" or nodes is None or len(nodes) != 2:
        return None
    hour, minute = (int(node.value) for node in nodes)
    return Literal("time", (hour % 12 or 12, minute, "am" if hour < 12 else "pm"))


Conversion = Callable[[Any, Any], Value | None]
_CONVERSIONS: dict[tuple[type, type], Conversion] = {(Collection, Reals): _reals, (Collection, Literal): _time}
_OF_ANSWERS: dict[tuple[type, type], Conversion] = {
    **dict.fromkeys(((kind, Family) for kind in (Expression, Collection, Named)), beside_family),
    **dict.fromkeys(((Family, kind) for kind in (Expression, Collection, Named)), beside_formula),
    (Named, Relation): _as_relation,
}
