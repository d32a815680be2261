"""One value in the type of another: a formula as the family that it is beside one, an interval as a set of reals."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.conditions import INTEGER_LETTERS
from verifiers.answers.inequalities import bounds_of
from verifiers.answers.integers import restrict
from verifiers.answers.parameters import function_family, items_of, letters_in, letters_of, real_family
from verifiers.answers.reals import as_reals, complement
from verifiers.answers.token import UnreadableError
from verifiers.answers.tree import Node, has, is_infinite, names, number, replace_symbols, signs, subtract, symbol
from verifiers.answers.values import (
    ALL_REALS,
    Collection,
    Expression,
    Family,
    Literal,
    Named,
    Parameter,
    Piecewise,
    Reals,
    Relation,
    Value,
    bare,
    listed,
    nodes_of,
)
from verifiers.answers.vectors import components, tuple_of

_VARIABLES = frozenset("xyztuvsrθ")
_SOLUTIONS = frozenset(("y", "f", "g", "u", "F", "h", "x", "z"))  # names of solutions of differential equations
_FACTORS = frozenset("ckC")  # letters that are constants beside the argument of a function
_NO_CONSTANTS = frozenset("xyzn")  # letters that are taken for constants only where they are declared


def coerce(gold: Value, answer: Value) -> tuple[Value, Value]:
    """Both values in one type, where one of them may be read in the type of the other; else as they are.

    Only an answer is read as a family of integers beside one, or as the formula of one: beside `n - 1` the answer "all
    integers" says nothing.
    """
    for _ in range(2):  # a relation as bounds, then an interval as a set of reals as well
        if type(gold) is type(answer):
            break
        conversion = _CONVERSIONS.get((type(answer), type(gold))) or _OF_ANSWERS.get((type(answer), type(gold)))
        if conversion and (converted := conversion(answer, gold)) is not None:
            answer = converted
            continue
        of_gold = _CONVERSIONS.get((type(gold), type(answer)))
        if isinstance(answer, Family) and answer.is_real:
            of_gold = _opened
        converted = of_gold(gold, answer) if of_gold else None
        gold = gold if converted is None else converted
    return gold, answer


# ---------------------------------------------------------------------------------------------------- names


def without_names(gold: Value, answer: Value) -> tuple[Value, Value] | None:
    """Both values without a single name in front; None if their names differ."""
    if not (_has_many(gold) and _has_many(answer)):
        gold, answer = _link(gold), _link(answer)
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


def _has_many(value: Value) -> bool:
    return isinstance(value, Collection) or (isinstance(value, Named) and not value.is_single)


def _link(value: Value) -> Value:
    """The last link of a chain x = y = 5; any other value as it is."""
    if not isinstance(value, Named) or not value.is_chain:
        return value
    letters = {name.partition("_")[0] for name in value.names}
    last = letters.pop() if len(letters) == 1 else value.names[-1]  # x of x_1 = x_2 = 5
    return Named((last,), value.items[-1:])


def _parts(value: Value) -> tuple[str, str, Value]:
    """(name, argument, value) of a single named value."""
    if isinstance(value, Named) and value.is_single:
        return value.names[0], value.argument, value.items[0]
    return "", "", value


# -------------------------------------------------------------------------------------------- sets of reals


def _bounds(value: Relation, target: Reals) -> Value | None:
    """1/3 ≤ x/y ≤ 3 beside a set without a letter."""
    return bounds_of(value) if not target.name else None


def _reals(value: Collection, _target: Value) -> Value | None:
    return as_reals(value)


# ------------------------------------------------------------------------------------ families of integers


def _members(value: Value, target: Family) -> Value | None:
    """A formula, a list or a tuple with integer letters, with the domain of the gold's parameters.

    A letter alone says nothing.
    """
    if target.is_real:
        return _opened(value, target)
    if isinstance(value, Expression) and value.node.op == "symbol":
        return None
    pairs = _pairs(value, target)
    family = pairs or _family(value)
    if family is None or isinstance(value, Reals):
        return family
    domains = {(each.least, each.is_natural) for each in target.parameters}
    if len(domains) != 1 or (not pairs and (None, False) in domains):
        return family
    ((least, is_natural),) = domains
    return replace(family, parameters=tuple(Parameter(each.name, least, is_natural) for each in family.parameters))


def _family(value: Value) -> Family | None:
    """A value whose only letters are letters of integers as the family of all such integers."""
    if isinstance(value, Reals):
        return _bounded_integers(value)
    rows = _rows(value)
    letters = letters_in(rows)
    if isinstance(value, Expression) and len(letters - INTEGER_LETTERS) == 1 == len(letters) - 1:
        (argument,) = letters - INTEGER_LETTERS
        return function_family(value.node, argument, [Parameter(name) for name in letters - {argument}])
    if not rows or not letters or not letters <= INTEGER_LETTERS or not all(map(letters_in, ([row] for row in rows))):
        return None
    return Family(tuple(rows), tuple(Parameter(name) for name in sorted(letters)))


def _rows(value: Value) -> list[tuple[Node, ...]]:
    """The rows of a value, with both signs of ± as two; none where it has no rows."""
    is_closed = isinstance(value, Collection) and value.kind == "tuple" and not value.is_plain_tuple
    try:
        rows = [] if is_closed or (isinstance(value, Named) and value.is_single) else items_of(value)
    except UnreadableError:
        return []
    return [tuple(both.args) for row in rows for both in signs(Node("tuple", row))]


def _pairs(value: Value, target: Family) -> Family | None:
    """(k, k), a = b or b = 2a beside pairs of integers, as pairs of such integers."""
    sizes = {len(item) for item in target.items}
    if len(sizes) > 1 or sizes == {1} or len({each.least for each in target.parameters}) != 1:
        return None
    if target.parameters[0].least not in (None, 0, 1):
        return None
    if isinstance(value, Named) and equal_letters(value) and len(equal_letters(value)) in sizes:
        letter = equal_letters(value)[-1]
        return Family(((symbol(letter),) * len(equal_letters(value)),), (Parameter(letter),))
    if isinstance(value, Named) and value.is_single and sizes == {2}:
        (name,), item = value.names, value.items[0]
        letters = names(item.node) if isinstance(item, Expression) else frozenset()
        if len(letters) != 1 or name in letters or len(name) > 1 or not isinstance(item, Expression):
            return None
        (letter,) = letters
        row = (symbol(letter), item.node) if letter < name else (item.node, symbol(letter))
        return Family((row,), (Parameter(letter),))
    rows = _rows(value) if isinstance(value, Collection) else []
    if not rows or not letters_in(rows):
        return None
    return Family(tuple(rows), tuple(Parameter(name) for name in sorted(letters_in(rows))))


def _bounded_integers(value: Reals) -> Family | None:
    """n ≥ 3 as the integers from 3 on; None without an integer letter, and for other sets."""
    others = complement(value).intervals
    is_without_points = bool(others) and all(part.low == part.high for part in others)  # n ≠ 3
    has_least = bool(value.intervals) and (is_without_points or not is_infinite(value.intervals[0].low))
    if value.name not in INTEGER_LETTERS or not has_least or not is_infinite(value.intervals[-1].high):
        return None
    integers = restrict(Family(((symbol(value.name),),), (Parameter(value.name),)), value)
    return integers if isinstance(integers, Family) else None


def _formula(value: Family, target: Value) -> Value | None:
    """A family beside a formula, without the words for which integers it holds.

    The letter is the formula's own, and may be another one in tuples and multiples of pi. A letter alone is no formula.
    """
    if value.is_real:
        return None
    nodes = _nodes(target)
    letters = frozenset().union(*map(names, nodes))
    if len(letters) != 1 or (isinstance(target, Expression) and target.node.op == "symbol"):
        return None
    is_tuple = isinstance(target, Named) or (isinstance(target, Collection) and target.is_plain_tuple)
    is_free = is_tuple or any(has(node, "pi", "degrees") for node in nodes)
    change = {each.name: symbol(*letters) for each in value.parameters if is_free}
    rows = [tuple(Expression(replace_symbols(node, change)) for node in item) for item in value.items]
    return listed([row[0] if len(row) == 1 else Collection("tuple", row, "()") for row in rows])


def _nodes(value: Value) -> list[Node]:
    """The expressions in a value."""
    items = value.items if isinstance(value, Collection | Named) else ()
    return [value.node] if isinstance(value, Expression) else [node for each in items for node in _nodes(each)]


# ------------------------------------------------------------------------------- families of real parameters


def with_constants(gold: Value) -> Value:
    r"""A gold with constants of integration, `x^2 + C` or `y = Ce^x`, as the family; any other one as it is."""
    item = bare(gold)
    if not isinstance(item, Expression):
        return gold
    name = gold.names[0] if isinstance(gold, Named) else ""
    argument = gold.argument if isinstance(gold, Named) else ""
    letters = names(item.node)
    constants = frozenset(each for each in letters if each == "C" or (each[:2] in ("C_", "c_") and each[2:].isdigit()))
    if argument and len(letters - {argument}) == 1 and letters - {argument} <= _FACTORS:
        constants = letters - {argument}  # f(x) = cx
    elif (
        not constants
        or not constants < letters
        or not letters - constants <= _VARIABLES | {argument}
        or (constants == {"C"} and not (name.partition("(")[0] in _SOLUTIONS or _is_added(item.node, "C")))
    ):
        return gold
    return real_family(gold, [Parameter(each, domain=ALL_REALS) for each in sorted(constants)])


def _is_added(node: Node, name: str) -> bool:
    """Whether a letter is a summand of a tree, or of one factor of a product: `(t + C)e^{-t}`."""
    factors = [each for each in node.args if name in names(each)] if node.op in ("mul", "div", "neg") else []
    if len(factors) == 1 and has(factors[0], "add") and _is_added(factors[0], name):
        return True
    slope = subtract(*(replace_symbols(node, {name: number(value)}) for value in (1, 0)))
    at = {each: number(3) for each in names(slope)}
    return name in names(node) and equal_expressions(slope, replace_symbols(slope, at)) is True


def _opened(value: Value, family: Family) -> Value | None:
    """A value beside a family with real parameters: its letters that are no variables of the family are parameters."""
    if isinstance(value, Named) and len(equal_letters(value)) in {len(item) for item in family.items}:
        letter = Expression(symbol(equal_letters(value)[-1]))  # x = y = z beside (t, t, t)
        value = Collection("tuple", (letter,) * len(equal_letters(value)), "()")
    is_relation = isinstance(value, Relation) and (value.signs != ("=",) or value.sides[0].op != "symbol")
    letters = frozenset() if is_relation else letters_of(value)
    try:
        plain = real_family(value, [])
    except UnreadableError:
        return None
    variables = letters_in(family.items) - {each.name for each in family.parameters}
    if plain.argument and family.argument:
        variables = (variables - {family.argument}) | {plain.argument}
    free = letters - variables
    if free & _NO_CONSTANTS and (variables or not isinstance(value, Collection)):
        return None
    return replace(plain, parameters=tuple(Parameter(each, domain=ALL_REALS) for each in sorted(free)))


# -------------------------------------------------------------------------------------------- other types


def equal_letters(value: Named) -> tuple[str, ...]:
    """The letters of `x = y = z`, which have one value that is not said; () for other values."""
    last = value.items[-1]
    if (
        value.argument
        or not (value.is_chain or value.is_single)
        or not isinstance(last, Expression)
        or last.node.op != "symbol"
    ):
        return ()
    letters = (*value.names, last.node.name)
    return letters if len(set(letters)) == len(letters) and all(len(name) == 1 for name in letters) else ()


def _vector(value: Expression, target: Collection) -> Value | None:
    """3i - 2j + k beside a vector, and \\binom{1}{2} beside a column."""
    if target.kind not in ("tuple", "matrix"):
        return None
    if value.node.op == "binomial" and target.kind == "matrix":
        return Collection("tuple", tuple(map(Expression, value.node.args)), "()")
    return tuple_of(components(value.node)) if {"j"} <= names(value.node) <= {"j", "k"} else None


def _beside_collection(value: Relation, target: Collection) -> Value | None:
    """1/3 ≤ x/y ≤ 3 beside an interval, AP/PB = 2/3 beside a ratio."""
    if target.kind == "ratio":
        named = _ratio(value, target)
        return named and named.items[0]
    return bounds_of(value) if as_reals(target) is not None else None


def _ratio(value: Relation, target: Value) -> Named | None:
    """AP/PB = 2/3 beside a ratio, as the ratio AP:PB."""
    left, right, item = value.sides[0], value.sides[-1], bare(target)
    is_ratio = isinstance(item, Collection) and item.kind == "ratio"
    parts = [_letters(each) for each in left.args] if left.op == "div" else []
    if not is_ratio or value.signs != ("=",) or names(right) or len(parts) != 2 or not all(parts):
        return None
    return Named((":".join(parts),), (Collection("ratio", (Expression(right), Expression(number(1)))),))


def _letters(node: Node) -> str:
    """The letters of a product of letters, AP; "" for another expression."""
    factors = node.args if node.op == "mul" else (node,)
    return "".join(each.name for each in factors) if all(each.op == "symbol" for each in factors) else ""


def _as_relation(value: Named, _target: Relation) -> Value | None:
    item = value.items[0]
    if not value.is_single or not isinstance(item, Expression) or value.argument:
        return None
    return Relation(("=",), (symbol(value.names[0]), item.node))


def _one_piece(value: Expression, _target: Piecewise) -> Value:
    return Piecewise(((value, ALL_REALS),))


def _time(value: Collection, target: Literal) -> Value | None:
    """A time without am and pm, which is one of 24 hours."""
    nodes = nodes_of(value.items)
    if target.kind != "time" or value.brackets != "time" or nodes is None or len(nodes) != 2:
        return None
    hour, minute = (int(node.value) for node in nodes)
    return Literal("time", (hour % 12 or 12, minute, "am" if hour < 12 else "pm"))


Conversion = Callable[[Any, Any], Value | None]
_CONVERSIONS: dict[tuple[type, type], Conversion] = {
    (Relation, Reals): _bounds,
    (Collection, Reals): _reals,
    (Reals, Family): _members,
    (Expression, Collection): _vector,
    (Relation, Collection): _beside_collection,
    (Relation, Named): _ratio,
    (Expression, Piecewise): _one_piece,
    (Collection, Literal): _time,
}
_OF_ANSWERS: dict[tuple[type, type], Conversion] = {
    **dict.fromkeys(((kind, Family) for kind in (Expression, Collection, Named, Relation)), _members),
    **dict.fromkeys(((Family, kind) for kind in (Expression, Collection, Named)), _formula),
    (Named, Relation): _as_relation,
}
