"""Items of an answer with a relation in them: `x = 3`, `f(x) = 2x`, `x ∈ [1, 2]`, `x < 3`, `\\sqrt{10} ≈ 3.16`."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise, starmap

from verifiers.answers.expressions import expression, function_name_of, is_quantity, long_name_of, name_of, names_of
from verifiers.answers.integers import (
    DOMAINS,
    both,
    congruence,
    divisible,
    has_class,
    integer_class,
)
from verifiers.answers.reals import as_reals, complement, condition, points
from verifiers.answers.scalars import contradicts, is_rounding
from verifiers.answers.syntax import (
    RELATIONS,
    Token,
    Tokens,
    UnreadableError,
    at_signs,
    cut,
    index_of,
    separator,
)
from verifiers.answers.terms import Statement, term
from verifiers.answers.values import (
    Collection,
    Expression,
    Family,
    Integers,
    Named,
    Node,
    Reals,
    Relation,
    Value,
    listed,
    names,
    signs,
    symbol,
)

_MODULI = separator("≡ ≢", "mod")
_SPECIAL = separator(": | ∤ ≡ ≢", "mod")  # of labels, divisors and residues


def item(tokens: Tokens, statement: Statement) -> Value:
    """The value of one item: a relation or a term."""
    if any(map(_SPECIAL, tokens)):
        tokens = _without_label(tokens)
        members = divisible(tokens) or (congruence(tokens) if cut(tokens, _MODULI)[1] else None)
        if members is not None:
            return members
    sides, relations = cut(tokens, RELATIONS)
    texts = [each.text for each in relations]
    if not texts:
        return term(tokens, statement)
    if has_class(sides[0]) or (sides[0] and sides[0][0].is_sign("ℝ") and len(sides[0]) < 3):
        return _within_class(sides[0], texts, sides, statement)
    if not all(sides):
        return _one_sided(sides, texts)
    if "≈" in texts:
        return _approximate(sides, texts, statement)
    if texts in (["∈"], ["∉"]):
        return _member(sides[0], sides[1], statement, is_member=texts == ["∈"])
    if set(texts) <= {"=", "≡"}:
        return _equation(sides, statement)
    if set(texts) & {"∈", "∉", "≡", "≢"}:
        raise UnreadableError("a relation of several kinds")
    return _comparison(tuple(map(_quantity, sides)), tuple(texts))


def _one_sided(sides: list[list[Token]], texts: list[str]) -> Value:
    """ "about 3", "at least 3"."""
    is_behind = len(texts) == 1 and not sides[0] and bool(sides[1])
    if is_behind and texts[0] == "≈":
        return _rounded(sides[1])
    if is_behind and texts[0] in "<>≤≥" and (bound := condition((symbol("x"), expression(sides[1])), (texts[0],))):
        return Reals(bound.intervals)
    raise UnreadableError("a side is missing")


def _without_label(tokens: Tokens) -> Tokens:
    """The equation of a curve without the name in front of it: `ℓ: y = 2x - 3`; other tokens as they are."""
    pieces, colons = cut(tokens, at_signs(":"))
    if len(colons) != 1 or name_of(pieces[0]) is None or not all(t.kind == "letter" for t in pieces[0]):
        return tokens
    is_equation = [each.text for each in cut(pieces[1], RELATIONS)[1]] == ["="]
    return pieces[1] if is_equation and len({t.text for t in pieces[1] if t.kind == "letter"}) > 1 else tokens


def _within_class(left: list[Token], texts: list[str], sides: list[list[Token]], statement: Statement) -> Value:
    """Members of a set within bounds: "integers n ≥ 3", "all real numbers less than 3"."""
    name = next((token.text for token in left if token.kind == "letter"), "")
    related = [Token("letter", name or ("n" if has_class(left) else "x"))]
    for text, side in zip(texts, sides[1:], strict=True):
        related += [Token("sign", text), *side]
    bound = item(related, statement)
    if not has_class(left):
        return Reals(bound.intervals, name) if isinstance(bound, Reals) else bound
    members = integer_class(left)
    if members is None or not isinstance(bound, Reals | Integers | Family):
        raise UnreadableError("bounds of other integers")
    return both(members, replace(bound, name="n") if isinstance(bound, Reals) else bound)


def _rounded(tokens: Tokens) -> Value:
    node = expression(tokens)
    if names(node):
        raise UnreadableError("approximately an expression with letters")
    return Expression(node, is_rounded=True)


def _approximate(sides: list[list[Token]], texts: list[str], statement: Statement) -> Value:
    """`x ≈ 3.16`, and `x = √10 ≈ 3.16` as the exact value with the rounded one behind it."""
    place = texts.index("≈")
    has_letters = any(token.kind == "letter" and token.text not in "πei" for token in sides[0])
    if place == 0 and (name_of(sides[0]) is not None or has_letters):
        return _named(sides[0], Expression(expression(sides[-1]), is_rounded=True))
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
    return Expression(value.node, value.is_rounded, node) if is_rounding(value.node, node) else value


def _member(left: Tokens, right: Tokens, statement: Statement, *, is_member: bool) -> Value:
    """`x ∈ [1, 2]`, `x ∉ [1, 2]`, `x ∈ {1, 2}`, `(x, y) ∈ {(1, 2), (3, 4)}`, `x/y ∈ (1, 2)`."""
    letters, value = names_of(left), term(right, statement)
    reals = as_reals(value)
    if letters is None and is_member and reals is not None and len(reals.intervals) == 1:
        (part,) = reals.intervals
        node = expression(left)
        return Relation(("≤" if part.has_low else "<", "≤" if part.has_high else "<"), (part.low, node, part.high))
    if letters is None or (isinstance(value, Expression) and len(left) > 1):
        raise UnreadableError("a member that is not a name")
    if not is_member:
        if reals is None or len(letters) > 1:
            raise UnreadableError("not a member of what?")
        return Reals(complement(reals).intervals, letters[0])
    is_set = isinstance(value, Collection) and value.kind == "set"
    if reals is not None and not is_set and len(letters) == 1:
        return Reals(reals.intervals, letters[0], is_real=True)
    if isinstance(value, Collection) and is_set and len(letters) == 1:
        return Named(letters, (listed(value.items),))
    return several_names(letters, value) if len(letters) > 1 and isinstance(value, Collection) else value


def _quantity(tokens: Tokens) -> Node:
    """An expression, or the value of a function as a letter of its own: f(x) ≥ 2."""
    return symbol(name_of(tokens) or "") if function_name_of(tokens) is not None else expression(tokens)


def _comparison(nodes: tuple[Node, ...], texts: tuple[str, ...]) -> Value:
    """The set of reals of a condition on one letter; another relation as it is."""
    if texts == ("≠",) and len(signs(nodes[1])) > 1 and nodes[0].op == "symbol":
        return Reals(complement(points(signs(nodes[1]))).intervals, nodes[0].name)
    if any(len(signs(node)) > 1 for node in nodes):
        raise UnreadableError("both signs in a relation")
    reals = condition(nodes, texts)
    return Relation(texts, nodes) if reals is None else reals


def _equation(sides: list[list[Token]], statement: Statement) -> Value:
    """A named value, a function, or an equation; of a chain of equal values the last one.

    One rounded is equal, 8/3 = 2.67. UnreadableError where two values are not: x = 41 = 42.
    """
    if len(sides) > 2 and (chain := _chain(sides, statement)) is not None:
        return chain
    if any(token.is_sign(*DOMAINS) for token in sides[-1]):
        raise UnreadableError("a domain as a value")
    dotted = at_signs("…")  # S = 1 + 2 + ... + 10 = 55
    values = [statement(side) for side in sides[1:] if index_of(side, dotted) is None or side is sides[-1]]
    if any(starmap(contradicts, pairwise(values))):
        raise UnreadableError("values that are not equal")
    return _named(sides[0], values[-1])


def _chain(sides: list[list[Token]], statement: Statement) -> Value | None:
    """x = y = z = 1 as a value for each name, and as two of them for ±1; None where a side in front is no letter."""
    named = [(long_name_of if side[0].is_sign("∠") else name_of)(side) for side in sides[:-1]]
    several = tuple(name for name in named if name is not None and "(" not in name)
    is_name = all(side[0].kind == "letter" or side[0].is_sign("∠") for side in sides[:-1])
    if len(set(several)) < len(sides) - 1 or not is_name:
        return None
    value = statement(sides[-1])
    values = value.items if isinstance(value, Collection) else (value,)
    if not all(isinstance(v, Expression) and (v.node.op == "symbol" or not names(v.node)) for v in values):
        return None
    return listed([Named(several, (each,) * len(several), is_chain=True) for each in values])


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
        return _named_structure(left, value)
    if not names(node) and is_quantity(left):
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


def _named_structure(left: Tokens, value: Value) -> Value:
    kind = value.kind if isinstance(value, Collection) else ""
    if kind == "matrix" and len(left) > 2 and left[0].kind == "letter" and left[1].is_sign("^"):
        return Named(("".join(token.text for token in left if token.text not in "{}"),), (value,))  # A^{-1}
    if kind not in ("matrix", "ratio"):
        raise UnreadableError("an equation of other values")
    return Named((long_name_of(left),), (value,))


def several_names(several: tuple[str, ...], value: Value) -> Value:
    """(x, y) = (1, 2), also for a list of pairs."""
    if isinstance(value, Collection) and value.is_plain_tuple and len(value.items) == len(several):
        return Named(several, value.items)
    if isinstance(value, Collection) and value.is_bare:
        return Collection("list", tuple(several_names(several, each) for each in value.items))
    raise UnreadableError("names for other values")
