"""Values under the conditions behind them: "where k is an integer", `k ∈ ℤ`, "for n = 0, 1, 2", "with x ≠ 2"."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

from verifiers.answers.comparison import divides_by_zero
from verifiers.answers.conditions import INTEGER_LETTERS, Conditions, Statement, read_conditions
from verifiers.answers.evaluation import Evaluation, approximation
from verifiers.answers.integers import both, from_least, residues_of, restrict
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.reals import complement, intersection
from verifiers.answers.syntax import INEQUALITIES
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, has, is_infinite, names, number, replace_symbols, symbol
from verifiers.answers.values import (
    Collection,
    Expression,
    Family,
    Interval,
    Item,
    Literal,
    Named,
    Parameter,
    Reals,
    Relation,
    Value,
    bare,
    listed,
)

_POINTS = (Fraction(7, 5), Fraction(11, 3))
_ARGUMENTS = frozenset("xtz")


def attach(value: Value, pieces: list[list[Token]], statement: Statement) -> Value:
    """The value under its conditions: a family, a list over a finite range, a smaller set."""
    argument = argument_of(value)
    pieces = [piece for piece in pieces if not (argument and _is_on_argument(piece, argument))]
    pieces = [piece for piece in pieces if not _is_on_domain(value, piece, statement)]
    letters = letters_of(value)
    is_plain = isinstance(value, Expression) and len(letters) < 2 and not has(value.node, "i")
    integers = frozenset("n") if argument else INTEGER_LETTERS
    found = read_conditions(pieces, frozenset() if is_plain else letters, integers, statement)
    found.parameters = [each for each in found.parameters if each.name != argument or each.domain is not None]
    is_real = any(each.domain is not None for each in found.parameters)
    if is_real or argument:
        return _functions(value, argument, found)
    for name, nodes in found.ranges:
        value = _over_range(value, name, nodes)
    for piece in found.others:
        value = _under(value, piece, statement, found)
    return integer_family(value, found.parameters) if found.parameters else value


def _functions(value: Value, argument: str, found: Conditions) -> Value:
    """A function, or a value with real parameters, under conditions that only declare parameters."""
    if found.ranges or found.others or (found.parameters and len({p.domain is None for p in found.parameters}) > 1):
        raise UnreadableError("a condition on a function")
    if not found.parameters:
        return value
    if found.parameters[0].domain is not None:
        return real_family(value, found.parameters)
    item = bare(value)
    if not isinstance(item, Expression) or not isinstance(value, Named) or not value.argument:
        raise UnreadableError("a condition on a function")
    return function_family(item.node, argument, found.parameters)


def argument_of(value: Value) -> str:
    """x of f(x) = ..., n of a_n = ...; "" for other values."""
    if isinstance(value, Named) and value.is_single:
        index = value.names[0].partition("_")[2]
        item = value.items[0]
        return value.argument or (index if isinstance(item, Expression) and index in names(item.node) else "")
    if isinstance(value, Collection) and value.items:
        arguments = {argument_of(each) for each in value.items}
        return arguments.pop() if len(arguments) == 1 else ""
    return ""


def _is_on_argument(piece: list[Token], argument: str) -> bool:
    """Whether a condition says where a formula holds: "for all real x", `x ≠ 0`, `n ≥ 1`."""
    letters = {token.text for token in piece if token.kind == "letter"}
    is_positive = [token.text for token in piece if token.kind != "word"] == [argument, ">", "0"]
    is_bound = any(token.is_sign("<", ">", "≤", "≥") for token in piece)
    is_equation = any(token.is_sign("=") for token in piece)
    return letters == {argument} and (argument in INTEGER_LETTERS or not is_bound or is_positive) and not is_equation


def _is_on_domain(value: Value, piece: list[Token], statement: Statement) -> bool:
    r"""Whether a condition leaves out no number with a value: `\frac{1}{x-1}, x \ne 1`, `\sqrt{x}, x \ge 0`."""
    item = bare(_right_side(value))
    if not isinstance(item, Expression) or not any(map(INEQUALITIES, piece)) or piece[0].kind != "letter":
        return False
    condition = statement(piece)
    if not isinstance(condition, Reals) or condition.name not in names(item.node):
        return False
    others = complement(condition).intervals
    points = [point for part in others for point in _samples(part)]
    return bool(points) and not any(_has_value(replace_symbols(item.node, {condition.name: x})) for x in points)


def _samples(part: Interval) -> list[Node]:
    """The point that an interval is, or some numbers in it."""
    if part.low == part.high:
        return [part.low]
    ends = [None if is_infinite(end) else approximation(end) for end in (part.low, part.high)]
    low, high = (None if isinstance(end, complex) else end for end in ends)
    start = low if low is not None else (high or 0.0) - 10
    size = (high if high is not None else start + 10) - start
    return [number(Fraction(start + size * share).limit_denominator(10**6)) for share in (0.03, 0.37, 0.61, 0.96)]


def _has_value(node: Node) -> bool:
    """Whether a tree has a real value, or one that other letters decide."""
    if names(node):
        return not divides_by_zero(node)
    try:
        run = Evaluation(60)
        run.value(node)
    except (NoValueError, TooLargeError):
        return False
    return run.is_real


# ------------------------------------------------------------------------------------------------ members


def items_of(value: Value) -> list[Item]:
    """The rows of a family: numbers, components of tuples and ends of intervals, values in the names' order."""
    value = bare(value)
    if isinstance(value, Named):
        pairs = sorted(zip(value.names, value.items, strict=True), key=lambda pair: pair[0])
        return [tuple(_node(item) for _, item in pairs)]
    if isinstance(value, Expression):
        return [(value.node,)]
    if isinstance(value, Collection) and value.kind == "tuple":
        closed = 2 * (value.brackets[0] == "[") + (value.brackets[-1] == "]")
        return [(*map(_node, value.items), *([number(closed)] if closed and len(value.items) == 2 else []))]
    is_chain = isinstance(value, Relation) and len(value.sides) == 3 and value.sides[1].op == "symbol"
    if isinstance(value, Relation) and is_chain and {*value.signs} <= {"<", "≤"}:
        closed = 2 * (value.signs[0] == "≤") + (value.signs[1] == "≤")
        return [(value.sides[0], value.sides[2], *([number(closed)] if closed else []))]
    if isinstance(value, Collection) and value.is_bare:
        return [row for each in value.items for row in items_of(each)]
    raise UnreadableError("a family of other values")


def _node(value: Value) -> Node:
    if not isinstance(value, Expression):
        raise UnreadableError("a family of other values")
    return value.node


def letters_of(value: Value) -> frozenset[str]:
    """The letters of a value beside the argument of a function; none where it has no rows."""
    try:
        rows = items_of(_right_side(value))
    except UnreadableError:
        return frozenset()
    return letters_in(rows) - {argument_of(value)}


def letters_in(rows: list[Item] | tuple[Item, ...]) -> frozenset[str]:
    return frozenset().union(*(names(node) for row in rows for node in row))


def _right_side(value: Value) -> Value:
    """y = cx as the named value cx; other values as they are."""
    if isinstance(value, Relation) and value.signs == ("=",) and value.sides[0].op == "symbol":
        return Named((value.sides[0].name,), (Expression(value.sides[1]),))
    return value


def integer_family(value: Value, parameters: list[Parameter]) -> Value:
    """All values for integer parameters; the integers of a set of reals."""
    if isinstance(value, Reals) and len(parameters) == 1 and value.name == parameters[0].name:
        parameter = parameters[0]
        return restrict(Family(((symbol(parameter.name),),), (parameter,)), value)
    if isinstance(value, Relation) and any(side.name == each.name for side in value.sides for each in parameters):
        raise UnreadableError("bounds of a parameter")
    rows = items_of(value)
    letters, known = letters_in(rows), {each.name for each in parameters}
    if isinstance(value, Expression) and len(letters - known) == 1 and letters - known <= _ARGUMENTS:
        return function_family(value.node, next(iter(letters - known)), parameters)
    if not letters & known or letters - known or not all(len(row) > 1 or names(row[0]) for row in rows):
        raise UnreadableError("parameters that are not those of the family")
    name = value.names[0] if isinstance(value, Named) and value.is_single else ""
    return Family(tuple(rows), tuple(each for each in parameters if each.name in letters), name)


def function_family(node: Node, argument: str, parameters: list[Parameter]) -> Family:
    """x^n for integers n as the pairs of its values at two numbers, which no other family of this kind shares."""
    items = tuple(replace_symbols(node, {argument: number(point)}) for point in _POINTS)
    used = tuple(each for each in parameters if each.name in names(node))
    if not used or names(node) - {argument} != {each.name for each in used}:
        raise UnreadableError("parameters that are not those of the family")
    return Family((items,), used)


def real_family(value: Value, parameters: list[Parameter]) -> Family:
    """The family of a value for all values of its real parameters."""
    value = _right_side(value)
    rows = items_of(value)
    if not {each.name for each in parameters} <= letters_in(rows):
        raise UnreadableError("parameters that are not those of the family")
    single = value if isinstance(value, Named) and value.is_single else None
    if isinstance(value, Collection) and value.is_bare and isinstance(value.items[0], Named):
        single = value.items[0]  # f(x) = cx or f(x) = x + c
    names_ = {each.names for each in value.items if isinstance(each, Named)} if isinstance(value, Collection) else set()
    if len(names_) > 1:
        raise UnreadableError("functions of several names")
    return Family(tuple(rows), tuple(parameters), single.names[0] if single else "", argument_of(value))


def _over_range(value: Value, name: str, nodes: tuple[Node, ...]) -> Value:
    """The list of the values for each value of a letter."""
    items: list[Value] = []
    for row in items_of(value):
        if not any(name in names(node) for node in row):
            raise UnreadableError("a range of another letter")
        for each in nodes:
            parts = tuple(Expression(replace_symbols(node, {name: each})) for node in row)
            items.append(parts[0] if len(parts) == 1 else Collection("tuple", parts, "()"))
    return listed(items)


def _under(value: Value, piece: list[Token], statement: Statement, found: Conditions) -> Value:
    """A set of reals, a letter alone, integers or a value with an integer letter, under one more condition."""
    other = statement(piece)
    name = other.name if isinstance(other, Reals) else ""
    bound = _lower_bound(other) if piece[0].kind == "letter" and piece[0].text in INTEGER_LETTERS else None
    if isinstance(value, Family):
        return _members_under(value, other, bound)
    node = value.node if isinstance(value, Expression) else None
    if bound is not None and not isinstance(value, Reals) and name in letters_of(value):
        if node == symbol(name) and not any(each.name == name for each in found.parameters):
            return other
        found.parameters = [each for each in found.parameters if each.name != name]
        found.parameters.append(replace(bound, name=name))
        return value
    if node is not None and node.op == "symbol" and name == node.name:
        return other
    letters = {token.text for token in piece if token.kind == "letter"}
    if node is not None and isinstance(other, Family | Literal) and letters == {node.name} != {""}:
        return other  # n such that 3 ∤ n
    if isinstance(value, Reals) and isinstance(other, Reals) and name and value.name in ("", name):
        return Reals(intersection(value, other).intervals, name)
    raise UnreadableError("a condition on another kind of value")


def _members_under(value: Family, other: Value, bound: Parameter | None) -> Value:
    if isinstance(other, Family):
        return both(value, other)
    if not isinstance(other, Reals):
        raise UnreadableError("a condition on a family")
    is_letter = value.items == ((symbol(other.name),),)
    if not is_letter and bound is not None and bound.least is not None and residues_of(value)[0] > 1:
        return from_least(value, bound.least)
    if is_letter or residues_of(value)[:2] == (1, {0}):
        return restrict(value, other)
    raise UnreadableError("a condition on other integers")


def _lower_bound(value: Value) -> Parameter | None:
    """The integers of `n ≥ 0` or `k > 1`; None for other conditions."""
    if not isinstance(value, Reals) or len(value.intervals) != 1 or not is_infinite(value.intervals[0].high):
        return None
    (part,) = value.intervals
    bound = None if is_infinite(part.low) else rational(part.low)
    if bound is None or bound.denominator != 1:
        return None
    return Parameter(value.name, int(bound) + (not part.has_low))
