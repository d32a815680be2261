"""Equality of equations and inequalities, with each other and with the single value that one states."""

from __future__ import annotations

from verifiers.answers.comparison import equal_expressions, proportional
from verifiers.answers.results import Result, all_equal
from verifiers.answers.scalars import equal_scalars, is_closed
from verifiers.answers.tree import Node, has, names, number, subtract, symbol
from verifiers.answers.values import Assignments, Expression, Relation, Value

_FUNCTIONS = ("sin", "cos", "tan", "cot", "sec", "csc", "ln", "log", "unknownlog", "binomial", "factorial", "absolute")
_OF_UNKNOWN = ("ln", "log", "unknownlog", "factorial")
_UNKNOWNS = frozenset("xyztrθ")  # letters whose equation may be a curve
_MIRROR = {">": "<", "≥": "≤"}


def equal_relations(gold: Value, answer: Value) -> Result:
    """Relations up to a factor and up to the side on which they are read; an answer's value behind `=`."""
    if (
        isinstance(gold, Relation)
        and isinstance(answer, Assignments)
        and len(answer.names) == 1
        and isinstance(answer.items[0], Expression)
    ):
        answer = Relation(("=",), (symbol(answer.names[0]), answer.items[0].node))
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        return _equal_pair_of_relations(_rising(gold), _rising(answer))
    if isinstance(answer, Relation) and answer.signs == ("=",) and isinstance(gold, Expression):
        left, right = answer.sides
        if not names(left) and equal_expressions(left, right) is not True:
            return False
        if names(right):
            return _stated(gold, left, right)
        if names(gold.node):
            return False
        is_open = left.op in _OF_UNKNOWN and left.args[0].op == "symbol"  # ln x = 2 is to be solved
        is_asked = len(names(left)) != 1 or has(left, *_FUNCTIONS) or _has_reciprocal(left)
        is_asked = is_asked and not is_open  # a + b = 12, x + 1/x = 5, but not x^2 = 12 or x + 2 = 5
        return equal_scalars(gold, Expression(right)) if is_asked else False
    if isinstance(gold, Relation) and isinstance(answer, Expression) and is_closed(answer.node):
        return equal_scalars(Expression(gold.sides[1]), answer) if _is_asked(gold) else False
    return None


def _is_asked(gold: Relation) -> bool:
    r"""Whether a gold gives the value of an expression of several letters that are no unknowns: `m + n = 17`."""
    left, right = gold.sides[0], gold.sides[-1]
    is_value = gold.signs == ("=",) and is_closed(right) and len(names(left)) > 1
    return is_value and names(left).isdisjoint(_UNKNOWNS) and right != number(0)


def _has_reciprocal(node: Node) -> bool:
    """Whether a sum has a letter and its reciprocal: x + 1/x."""
    is_over = [each.op == "div" and bool(names(each.args[1])) for each in node.args if names(each)]
    return node.op == "add" and True in is_over and False in is_over


def _stated(gold: Expression, left: Node, right: Node) -> Result:
    """The right side with letters that an answer states: of an identity, or behind a name in other letters."""
    is_name = bool(names(left)) and names(left).isdisjoint(names(gold.node) | names(right))
    return equal_scalars(gold, Expression(right)) if is_name or equal_expressions(left, right) else None


def _rising(relation: Relation) -> Relation:
    if set(relation.signs) <= {">", "≥"}:
        return Relation(tuple(_MIRROR[each] for each in reversed(relation.signs)), tuple(reversed(relation.sides)))
    return relation


def _equal_pair_of_relations(gold: Relation, answer: Relation) -> Result:
    if gold.signs != answer.signs:
        return False
    if gold.signs[0] in "∥⊥":
        orders = [answer.sides, answer.sides[::-1]]
        return any(all_equal(map(equal_expressions, gold.sides, sides)) for sides in orders)
    if len(gold.signs) == 1:
        differences = [subtract(*each.sides) for each in (gold, answer)]
        return proportional(differences[0], differences[1], has_sign=gold.signs[0] in "<≤")
    same = all_equal(map(equal_expressions, gold.sides, answer.sides))
    return True if same else None if set(gold.signs) == {"="} else same
