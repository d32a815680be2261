"""Items of an answer with a relation in them: `x = 3`, `f(x) = 2x`, `x ∈ [1, 2]`, `x < 3`, `\\sqrt{10} ≈ 3.16`."""

from __future__ import annotations

from dataclasses import replace

from verifiers.answers.amounts import amount, has_unit
from verifiers.answers.evaluation import approximation
from verifiers.answers.expressions import expression
from verifiers.answers.families import INTEGERS
from verifiers.answers.names import function_name_of, long_name_of, name_of, names_of
from verifiers.answers.reals import as_reals, complement, condition, points
from verifiers.answers.syntax import RELATIONS, Tokens, at_signs, cut, index_of
from verifiers.answers.terms import Statement, term
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, names, signs, symbol
from verifiers.answers.values import Collection, Expression, Named, Reals, Relation, Value, listed

_MAX_ROUNDING = 0.05  # of a number: 22/7 ≈ 3


def item(tokens: Tokens, statement: Statement) -> Value:
    """The value of one item: a relation or a term."""
    sides, relations = cut(tokens, RELATIONS)
    texts = [each.text for each in relations]
    if not texts:
        return term(tokens, statement)
    if texts == ["≈"] and not sides[0] and sides[1]:
        return _rounded(sides[1])
    if not all(sides):
        raise UnreadableError("a side is missing")
    if "≈" in texts:
        return _approximate(sides, texts, statement)
    if texts == ["∈"]:
        return _member(sides[0], sides[1], statement)
    if set(texts) == {"="}:
        return _equation(sides, statement)
    if set(texts) & {"∈", "∉", "≡", "≢"}:
        raise UnreadableError("a relation of several kinds")
    return _comparison(tuple(map(_quantity, sides)), tuple(texts))


def _rounded(tokens: Tokens) -> Value:
    if has_unit(tokens) and (value := amount(tokens)) is not None:
        return replace(value, is_rounded=True)
    node = expression(tokens)
    if names(node):
        raise UnreadableError("approximately an expression with letters")
    return Expression(node, is_rounded=True)


def _approximate(sides: list[list[Token]], texts: list[str], statement: Statement) -> Value:
    """`x ≈ 3.16`, and `x = √10 ≈ 3.16` as the exact value with the rounded one behind it."""
    place = texts.index("≈")
    has_letters = any(token.kind == "letter" and token.text not in "πei" for token in sides[0])
    if place == 0 and (name_of(sides[0]) is not None or has_letters):
        return _named(sides[0], Expression(expression(sides[-1])))
    exact = [*sides[0]]
    for text, side in zip(texts[:place], sides[1 : place + 1], strict=True):
        exact += [Token("sign", text), *side]
    value = statement(exact)
    try:
        return with_approximation(value, expression(sides[place + 1]))
    except UnreadableError:
        return value


def with_approximation(value: Value, node: Node) -> Value:
    """A number, or a named one, with the rounded value behind it; another value as it is."""
    if isinstance(value, Named) and value.is_single:
        return replace(value, items=(with_approximation(value.items[0], node),))
    if not isinstance(value, Expression) or names(value.node) or names(node):
        return value
    try:
        exact, rounded = approximation(value.node), approximation(node)
    except OverflowError:
        return value
    is_near = abs(exact - rounded) <= _MAX_ROUNDING * max(abs(exact), abs(rounded))
    return Expression(value.node, value.is_rounded, node) if is_near else value


def _member(left: Tokens, right: Tokens, statement: Statement) -> Value:
    """`x ∈ [1, 2]`, `x ∈ {1, 2}`, `(x, y) ∈ {(1, 2), (3, 4)}`."""
    letters, value = names_of(left), term(right, statement)
    if letters is None or (isinstance(value, Expression) and len(left) > 1):
        raise UnreadableError("a member that is not a name")
    reals = as_reals(value)
    is_set = isinstance(value, Collection) and value.kind == "set"
    if reals is not None and not is_set and len(letters) == 1:
        return Reals(reals.intervals, letters[0])
    if isinstance(value, Collection) and is_set and len(letters) == 1:
        return Named(letters, (listed(value.items),))
    return several_names(letters, value) if len(letters) > 1 and isinstance(value, Collection) else value


# ----------------------------------------------------------------------------------------------- comparison


def _quantity(tokens: Tokens) -> Node:
    """An expression, or the value of a function as a letter of its own: f(x) ≥ 2."""
    return symbol(name_of(tokens) or "") if function_name_of(tokens) is not None else expression(tokens)


def _comparison(nodes: tuple[Node, ...], texts: tuple[str, ...]) -> Value:
    """The set of reals of a condition on one letter; another relation as it is."""
    if texts == ("≠",) and len(signs(nodes[1])) > 1 and nodes[0].op == "symbol":
        return Reals(complement(points(signs(nodes[1]))).intervals, nodes[0].name)
    if any(len(signs(node)) > 1 for node in nodes):
        raise UnreadableError("both signs in a relation")
    if len(texts) == 1 and texts[0] in "∥⊥":
        return Relation(texts, nodes)
    reals = condition(nodes, texts)
    return Relation(texts, nodes) if reals is None else reals


# ------------------------------------------------------------------------------------------------- equations


def _equation(sides: list[list[Token]], statement: Statement) -> Value:
    """A named value, a function, or an equation; of a chain of equal values the last one."""
    for side in sides[1:-1]:
        if index_of(side, at_signs("…")) is None:  # S = 1 + 2 + ... + 10 = 55
            statement(side)
    if any(token.is_sign(*INTEGERS) for token in sides[-1]):
        raise UnreadableError("a domain as a value")
    if len(sides) > 2 and all(map(name_of, sides[:-1])):
        raise UnreadableError("several names of one value")
    return _named(sides[0], statement(sides[-1]))


def _named(left: Tokens, value: Value) -> Value:
    several = names_of(left)
    if several is not None and len(several) > 1:
        return several_names(several, value)
    node = value.node if isinstance(value, Expression) else None
    if [token.text for token in left] == ["e"] and node is not None and not names(node):
        return Named(("e",), (value,))  # an eccentricity, where no e is in the value
    if node is not None and (function := function_name_of(left)) is not None:
        return Named((function[0],), (value,), function[1])
    if (name := name_of(left)) is not None:
        both_signs = signs(node) if node is not None else []
        return Named((name,), (listed([Expression(each) for each in both_signs]) if len(both_signs) > 1 else value,))
    if node is None:
        if not isinstance(value, Collection) or value.kind not in ("matrix", "ratio"):
            raise UnreadableError("an equation of other values")
        return Named((long_name_of(left),), (value,))
    try:
        relation = Relation(("=",), (expression(left), node))
    except UnreadableError:
        if names(node):
            raise
        return Named((long_name_of(left),), (value,))
    if relation.sides[1].op == "symbol" and not names(relation.sides[0]):  # 5 = x
        return Named((relation.sides[1].name,), (Expression(relation.sides[0]),))
    return relation


def several_names(several: tuple[str, ...], value: Value) -> Value:
    """(x, y) = (1, 2), also for a list of pairs."""
    if isinstance(value, Collection) and value.is_plain_tuple and len(value.items) == len(several):
        return Named(several, value.items)
    if isinstance(value, Collection) and value.is_bare:
        return Collection("list", tuple(several_names(several, each) for each in value.items))
    raise UnreadableError("names for other values")
