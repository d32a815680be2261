"""One value as another: without the names in front of both, and in the type of the other, where it may be read so."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verifiers.answers.families import argument_of, beside_family, beside_formula, beside_space, letters_in, rows_of
from verifiers.answers.integers import integers_of
from verifiers.answers.reals import as_reals, condition, equal_reals
from verifiers.answers.values import (
    ALL_REALS,
    ZERO,
    Collection,
    Expression,
    Family,
    Integers,
    Named,
    Node,
    Reals,
    Relation,
    Space,
    Value,
    is_infinite,
    names,
    replace_symbols,
    symbol,
)
from verifiers.answers.vectors import components, tuple_of

Pair = tuple[Value, Value]
PARAMETERS = frozenset("ktsmnλμ")  # letters that a tuple without a word about them may have in another's place
_FACTORS = frozenset("ckC")  # letters that are constants beside the argument of a function


def coerce(gold: Value, answer: Value) -> tuple[Value, Value]:
    """Both values in one type, where one of them may be read in the type of the other; else as they are.

    Only an answer is read as a family of integers beside one, or as the formula of one: beside `n - 1` the answer "all
    integers" says nothing.
    """
    for golds, answers, conversion in _CONVERSIONS:
        if isinstance(gold, golds) and isinstance(answer, answers) and (both := conversion(gold, answer)) is not None:
            return both
    return gold, answer


def _spaces(gold: Value, answer: Value) -> Pair | None:
    """A formula beside a space, whose letters are its parameters: those of a gold only where these have no bounds.

    A number of letters alone has none, `2n` or S = 2n: "c for any constant c" is not it.
    """
    if isinstance(gold, Space):
        space = None if isinstance(answer, Space) else beside_space(answer, gold)
        return None if space is None else (gold, space)
    assert isinstance(answer, Space)
    if not all(equal_reals(reals, ALL_REALS) for _, reals in answer.parameters):
        return None
    if isinstance(gold, Expression):
        return (gold, Expression(*answer.items[0])) if len(answer.items) == 1 == len(answer.items[0]) else None
    space = beside_space(gold, answer)
    if space is None:
        return None
    letters = letters_in(space.items)
    has_others = argument_of(gold) or letters != {name for name, _ in space.parameters}
    is_tuple = all(len(row) > 1 for row in space.items) and letters <= PARAMETERS
    return (space, answer) if has_others or is_tuple else None


def _integers(gold: Value, answer: Value) -> Pair | None:
    """Both as sets of integers. A formula as gold does not say for which integers it holds."""
    is_formula = isinstance(gold, Expression | Collection | Named) and bool(letters_in(rows_of(gold)))
    one, other = (None, None) if is_formula else (integers_of(gold), integers_of(answer))
    return None if one is None or other is None else (one, other)


def _bounds_of_integers(gold: Value, answer: Value) -> Pair | None:
    """n > 2 and n ≥ 3."""
    assert isinstance(gold, Reals) and isinstance(answer, Reals)
    ends = [end for side in (gold, answer) for part in side.intervals for end in (part.low, part.high)]
    are_whole = all(is_infinite(end) or (end.op == "number" and end.value.denominator == 1) for end in ends)
    return _integers(gold, answer) if gold.name == answer.name == "n" and are_whole else None


def _beside_family(gold: Value, answer: Value) -> Pair | None:
    assert isinstance(gold, Family)
    family = beside_family(answer, gold)
    return None if family is None else (gold, family)


def _beside_formula(gold: Value, answer: Value) -> Pair | None:
    assert isinstance(answer, Family)
    formula = beside_formula(answer, gold)
    return None if formula is None else (gold, formula)


def _collections(gold: Value, answer: Value) -> Pair | None:
    """A relation or an expression beside a collection."""
    is_gold = isinstance(gold, Collection)
    target, value = (gold, answer) if is_gold else (answer, gold)
    if not isinstance(target, Collection) or not isinstance(value, Relation | Expression):
        return None
    other = _as_collection(value, target)
    whole = as_reals(target) if isinstance(other, Reals) else target
    if other is None or whole is None:
        return None
    return (whole, other) if is_gold else (other, whole)


def _equations(gold: Value, answer: Value) -> Pair | None:
    relation = _relation(answer) if isinstance(answer, Named) else None
    return None if relation is None else (gold, relation)


def _sets(gold: Value, answer: Value) -> Pair | None:
    one, other = as_reals(gold), as_reals(answer)
    return None if one is None or other is None else (one, other)


def _as_collection(value: Relation | Expression, target: Collection) -> Value | None:
    r"""1/3 ≤ x/y ≤ 3 beside an interval, 3i + 2j beside a vector, `\binom{1}{2}` a column."""
    if isinstance(value, Relation):
        return bounds_of(value)
    if value.node.op == "binomial" and target.kind == "matrix":
        return Collection("tuple", tuple(map(Expression, value.node.args)), "()")
    is_vector = target.kind in ("tuple", "matrix") and {"j"} <= names(value.node) <= {"j", "k"}
    return tuple_of(components(value.node)) if is_vector else None


def bounds_of(relation: Relation) -> Reals | None:
    """The bounds of one expression of several letters, `1/3 ≤ x/y ≤ 3`; None for another relation."""
    inside = [side for side in relation.sides if names(side)]
    if len(inside) != 1 or len(names(inside[0])) < 2 or not {*relation.signs} <= {"<", ">", "≤", "≥"}:
        return None
    whole = symbol("an expression of several letters")
    reals = condition(tuple(whole if side is inside[0] else side for side in relation.sides), relation.signs)
    return None if reals is None else Reals(reals.intervals)


def link(value: Value) -> Value:
    """The last link of a chain x = y = 5; any other value as it is."""
    if not isinstance(value, Named) or not value.is_chain or not value.items:
        return value
    letters = {name.partition("_")[0] for name in value.names}
    last = letters.pop() if len(letters) == 1 else value.names[-1]  # x of x_1 = x_2 = 5
    return Named((last,), value.items[-1:])


def _has_many(value: Value) -> bool:
    return isinstance(value, Collection) or (isinstance(value, Named) and not value.is_single)


def _relation(value: Named) -> Relation | None:
    """The equation of a named value; None for a function and for several names."""
    item = value.items[0]
    if not value.is_single or not isinstance(item, Expression) or value.argument:
        return None
    return Relation(("=",), (symbol(value.names[0]), item.node))


def without_names(gold: Value, answer: Value) -> tuple[Value, Value] | None:
    """Both values without a single name in front; None if their names differ."""
    if not (_has_many(gold) and _has_many(answer)):
        gold, answer = link(gold), link(answer)
    (gold_name, gold_argument, gold_item), (name, argument, item) = _parts(gold), _parts(answer)
    if gold_argument or argument:
        if gold_argument and not argument and ("_" in name or "(" in name):
            return None  # a_n = ... and a_{n+1} = ..., f(x) = ... and f(1) = ...
        if gold_argument and argument and gold_name.casefold() != name.casefold() and gold_name and name:
            return None
        if gold_argument and argument and isinstance(item, Expression):
            item = _with_factor(gold_item, replace_symbols(item.node, {argument: symbol(gold_argument)}), gold_argument)
        return gold_item, item
    if gold_name and isinstance(item, Relation) and isinstance(gold_item, Expression):
        if not names(gold_item.node) and not _is_solved(item, gold_name):
            return None
        return Relation(("=",), (symbol(gold_name), gold_item.node)), item
    if gold_name and isinstance(gold_item, Collection) and gold_item.kind == "list" and isinstance(item, Named):
        return None  # x = 3 or x = -2, and x = 3, y = -2
    if _is_set_of_solutions(gold_name, gold_item) != _is_set_of_solutions(name, item):
        return gold_item, item
    if gold_name and name and not _is_same_name(gold_name, name):
        relations = [_relation(each) for each in (gold, answer) if isinstance(each, Named)]
        has_letters = any(isinstance(each, Expression) and names(each.node) for each in (gold_item, item))
        return (relations[0], relations[1]) if relations[0] and relations[1] and has_letters else None
    return gold_item, item


def _is_solved(equation: Relation, name: str) -> bool:
    """Whether an equation of one unknown gives its value: x - 3 = 0, but not 2x = 6 or x + 2 = 5."""
    left = [each for each in equation.sides if each != ZERO]
    return len(left) == 1 and left[0].op == "add" and len(left[0].args) == 2 and symbol(name) in left[0].args


def _with_factor(gold: Value, node: Node, argument: str) -> Expression:
    """f(x) = ax in the letter of the gold f(x) = cx, where each is the only one beside the argument."""
    letters = [names(each) - {argument} for each in (gold.node if isinstance(gold, Expression) else node, node)]
    if letters[0] <= _FACTORS and len(letters[0]) == len(letters[1]) == 1:
        node = replace_symbols(node, {next(iter(letters[1])): symbol(*letters[0])})
    return Expression(node)


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


_FORMULA = (Expression, Collection, Named, Relation)
_CONVERSIONS: tuple[tuple[Any, Any, Callable[[Value, Value], Pair | None]], ...] = (
    (Space, object, _spaces),
    (object, Space, _spaces),
    (Integers, object, _integers),
    (object, Integers, _integers),
    (Reals, Reals, _bounds_of_integers),
    (Reals, Family, _integers),
    (Family, Reals, _integers),
    (Family, _FORMULA, _beside_family),
    (_FORMULA[:3], Family, _beside_formula),
    (Collection, (Relation, Expression), _collections),
    ((Relation, Expression), Collection, _collections),
    (Relation, Named, _equations),
    (Reals, Collection, _sets),
    (Collection, Reals, _sets),
)
