"""Values under the conditions behind them: "where k is an integer", `k ∈ ℤ`, "for n = 0, 1, 2", "with x ≠ 2"."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from verifiers.answers.comparison import divides_by_zero
from verifiers.answers.integer_sets import integers_in, integers_with, residues_from
from verifiers.answers.qualifiers import INTEGER_LETTERS, Qualifiers
from verifiers.answers.rationals import rational
from verifiers.answers.real_parameters import real_family, take_declarations
from verifiers.answers.reals import complement, intersection
from verifiers.answers.slices import Tokens
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, is_infinite, names, number, replace_symbols, symbol
from verifiers.answers.values import (
    Assignments,
    Expression,
    Family,
    Function,
    Parameter,
    Reals,
    Relation,
    Sequence,
    Value,
)

_POINTS = (Fraction(7, 5), Fraction(11, 3))
_ARGUMENTS = frozenset("xtz")


def attach(value: Value, qualifiers: Qualifiers, statement: Callable[[Tokens], Value]) -> Value:
    """The value under its conditions: a family, a list over a finite range, a smaller set."""
    parameters, ranges, others = qualifiers
    argument = _argument(value)
    if argument:  # f(x) = 2x for all x
        others = [piece for piece in others if not _is_on_argument(piece, argument)]
        parameters = [each for each in parameters if each.name != argument]
    if argument and parameters and not ranges and not others and isinstance(value, Function):
        return function_family(value.node, argument, parameters)
    integers = (frozenset("n") if argument else INTEGER_LETTERS) | {each.name for each in parameters}
    reals, others = take_declarations(value, others, statement, integers)
    if reals and not parameters and not ranges and not others:
        return real_family(value, reals)
    if reals or (argument and (ranges or others or parameters)):
        raise UnreadableError("a condition on a function")
    if argument:
        return value
    others = [piece for piece in others if not _is_on_poles(value, piece, statement)]
    for name, nodes in ranges:
        value = _over_range(value, name, nodes)
    for piece in others:
        bound = _lower_bound(piece, statement)
        if bound is not None and bound.least is not None and isinstance(value, Family) and not _is_integers(value):
            value = residues_from(value, bound.least)
        elif (
            bound is not None
            and not isinstance(value, Reals | Family)
            and any(bound.name in names(node) for row in _items(value) for node in row)
        ):
            parameters = [*(each for each in parameters if each.name != bound.name), bound]
        else:
            value = _under(value, piece, statement)
    return _family(value, parameters) if parameters else value


def _family(value: Value, parameters: list[Parameter]) -> Value:
    """All values for the integer parameters; the integers of a set of reals."""
    if isinstance(value, Reals) and len(parameters) == 1 and value.name == parameters[0].name:
        return integers_in(value, parameters[0])
    if isinstance(value, Relation) and any(side.name == each.name for side in value.sides for each in parameters):
        raise UnreadableError("bounds of a parameter")
    items = _items(value)
    letters = frozenset().union(*(names(node) for each in items for node in each))
    known = {each.name for each in parameters}
    if isinstance(value, Expression) and len(letters - known) == 1 and letters - known <= _ARGUMENTS:
        return function_family(value.node, next(iter(letters - known)), parameters)
    if not letters & known or letters - known:
        raise UnreadableError("parameters that are not those of the family")
    if not all(len(each) > 1 or any(names(node) for node in each) for each in items):
        raise UnreadableError("members without a parameter")
    name = value.names[0] if isinstance(value, Assignments) and len(value.names) == 1 else ""
    return Family(tuple(items), tuple(each for each in parameters if each.name in letters), name)


def function_family(node: Node, argument: str, parameters: list[Parameter]) -> Family:
    """x^n for integers n as the pairs of its values at two numbers, which no other family of this kind shares."""
    items = tuple(replace_symbols(node, {argument: number(point)}) for point in _POINTS)
    used = tuple(each for each in parameters if each.name in names(node))
    if not used or names(node) - {argument} != {each.name for each in used}:
        raise UnreadableError("parameters that are not those of the family")
    return Family((items,), used)


def _argument(value: Value) -> str:
    """x of f(x) = ..., n of a_n = ...; "" for other values."""
    if isinstance(value, Function):
        return value.argument
    if isinstance(value, Assignments) and len(value.names) == 1 and isinstance(value.items[0], Expression):
        index = value.names[0].partition("_")[2]
        return index if index in names(value.items[0].node) else ""
    if isinstance(value, Sequence) and value.items:
        arguments = {_argument(each) for each in value.items}
        return arguments.pop() if len(arguments) == 1 else ""
    return ""


def _is_on_argument(piece: list[Token], argument: str) -> bool:
    """Whether a condition says where a formula holds: "for all real x", `x ≠ 0`, `n ≥ 1`."""
    letters = {token.text for token in piece if token.kind == "letter"}
    is_positive = [token.text for token in piece if token.kind != "word"] == [argument, ">", "0"]
    is_whole = argument in INTEGER_LETTERS or not any(token.is_sign("<", ">", "≤", "≥") for token in piece)
    is_whole = is_whole or is_positive
    return letters == {argument} and is_whole and not any(token.is_sign("=") for token in piece)


def _is_on_poles(value: Value, piece: list[Token], statement: Callable[[Tokens], Value]) -> bool:
    r"""Whether a condition only leaves out numbers where an expression has no value: `\frac{1}{x-1}, x \ne 1`."""
    if not isinstance(value, Expression) or not any(token.is_sign("≠") for token in piece):
        return False
    condition = statement(piece)
    if not isinstance(condition, Reals) or condition.name not in names(value.node):
        return False
    left_out = [part.low for part in complement(condition).intervals if part.low == part.high]
    is_exclusion = len(left_out) == len(complement(condition).intervals) > 0
    return is_exclusion and all(divides_by_zero(replace_symbols(value.node, {condition.name: x})) for x in left_out)


def _items(value: Value) -> list[tuple[Node, ...]]:
    if isinstance(value, Assignments) and len(value.names) == 1:
        value = value.items[0]
    if isinstance(value, Family):
        raise UnreadableError("a family of families")
    if isinstance(value, Assignments):
        return [tuple(_node(each) for each in _in_order(value))]
    if isinstance(value, Expression):
        return [(value.node,)]
    if isinstance(value, Sequence) and value.kind in ("tuple", "interval"):
        closed = 2 * (value.brackets[:1] == "[") + (value.brackets[-1:] == "]")
        return [(*map(_node, value.items), *([number(closed)] if closed and len(value.items) == 2 else []))]
    is_chain = isinstance(value, Relation) and len(value.sides) == 3 and value.sides[1].op == "symbol"
    if isinstance(value, Relation) and is_chain and {*value.signs} <= {"<", "≤"}:
        closed = 2 * (value.signs[0] == "≤") + (value.signs[1] == "≤")
        return [(value.sides[0], value.sides[2], *([number(closed)] if closed else []))]
    if isinstance(value, Sequence):
        return [row for each in value.items for row in _items(each)]
    raise UnreadableError("a family of other values")


def _in_order(value: Assignments) -> list[Value]:
    return [item for _, item in sorted(zip(value.names, value.items, strict=True), key=lambda pair: pair[0])]


def _node(value: Value) -> Node:
    if not isinstance(value, Expression):
        raise UnreadableError("a family of other values")
    return value.node


def _over_range(value: Value, name: str, nodes: tuple[Node, ...]) -> Value:
    """The list of the values for each value of a letter."""
    rows = _items(value)
    items: list[Value] = []
    for row in rows:
        if not any(name in names(node) for node in row):
            raise UnreadableError("a range of another letter")
        for each in nodes:
            parts = tuple(Expression(replace_symbols(node, {name: each})) for node in row)
            items.append(parts[0] if len(parts) == 1 else Sequence("tuple", parts, "()" if len(parts) == 2 else ""))
    return Sequence("list", tuple(items))


def _lower_bound(piece: list[Token], statement: Callable[[Tokens], Value]) -> Parameter | None:
    """The parameter of `n ≥ 0` or `k > 1`, where the letter is one of those used for integers; None for another."""
    if piece[0].kind != "letter" or piece[0].text not in INTEGER_LETTERS:
        return None
    value = statement(piece)
    if not isinstance(value, Reals) or len(value.intervals) != 1 or not is_infinite(value.intervals[0].high):
        return None
    low = value.intervals[0].low
    bound = None if is_infinite(low) else rational(low)
    if bound is None or bound.denominator != 1:
        return None
    return Parameter(value.name, int(bound) + (not value.intervals[0].has_low))


def _is_integers(value: Family) -> bool:
    """Whether a family is "integers n" or "positive integers n"."""
    is_letter = len(value.items) == 1 and len(value.items[0]) == 1 and value.items[0][0].op == "symbol"
    return is_letter and not any(each.is_natural for each in value.parameters)


def _under(value: Value, piece: list[Token], statement: Callable[[Tokens], Value]) -> Value:
    """A set of reals, or a letter alone, under one more condition."""
    other = statement(piece)
    if isinstance(value, Family) and isinstance(other, Family) and _is_integers(value):
        return integers_with(value.parameters[0], other)
    if isinstance(value, Family) and isinstance(other, Reals) and len(value.parameters) == 1:
        if value.items != ((symbol(other.name),),):
            raise UnreadableError("a condition on other integers")
        return integers_in(other, value.parameters[0])
    if (
        isinstance(value, Expression)
        and value.node.op == "symbol"
        and isinstance(other, Reals)
        and other.name == value.node.name
    ):
        return other
    letters = {token.text for token in piece if token.kind == "letter"}
    if isinstance(value, Expression) and isinstance(other, Family) and letters == {value.node.name} != {""}:
        return other  # n such that 3 ∤ n
    if isinstance(value, Reals) and isinstance(other, Reals) and other.name and value.name in ("", other.name):
        return Reals(intersection(value, other).intervals, other.name)
    raise UnreadableError("a condition on another kind of value")
