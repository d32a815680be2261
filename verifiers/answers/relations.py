"""Items of an answer with a relation in them: `x = 3`, `f(x) = 2x`, `x ∈ [1, 2]`, `x < 3`, `\\sqrt{10} ≈ 3.16`."""

from __future__ import annotations

from dataclasses import replace

from verifiers.answers.amounts import amount, has_unit
from verifiers.answers.evaluation import approximation
from verifiers.answers.expressions import expression
from verifiers.answers.inequalities import condition
from verifiers.answers.integers import DOMAINS, both, congruence, coprime, divisible, integer_class, restrict
from verifiers.answers.names import are_capitals, function_name_of, is_quantity, long_name_of, name_of, names_of
from verifiers.answers.piecewise import holds
from verifiers.answers.reals import as_reals, complement, points
from verifiers.answers.syntax import INEQUALITIES, RELATIONS, Tokens, at_signs, cut, index_of, separator
from verifiers.answers.terms import Statement, term
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import Node, divide, is_infinite, names, number, signs, symbol
from verifiers.answers.values import (
    Collection,
    Expression,
    Family,
    Literal,
    Named,
    Reals,
    Relation,
    Value,
    listed,
)

_MODULI = separator("≡ ≢", "mod")
_MAX_ROUNDING = 0.05  # of a number: 22/7 ≈ 3
_NOISE = ("a", "an", "any", "all", "every", "is", "are", "the", "that")
_BOUNDS = frozenset("<>≤≥")


def item(tokens: Tokens, statement: Statement) -> Value:
    """The value of one item: a relation or a term."""
    tokens = _without_label(tokens)
    if family := divisible(tokens) or (congruence(tokens) if index_of(tokens, _MODULI) is not None else None):
        return family
    sides, relations = cut(tokens, RELATIONS)
    texts = [each.text for each in relations]
    if len(tokens) > 3 and tokens[-1].is_sign("even", "odd", "primes") and any(map(INEQUALITIES, tokens)):
        within, numbers = item(tokens[:-1], statement), integer_class([tokens[0], tokens[-1]])  # n ≥ 3 odd
        return restrict(numbers, within) if isinstance(within, Reals) and numbers is not None else within
    if not texts:
        return term(tokens, statement)
    if not all(sides):
        return _one_sided(sides, texts)
    if "≈" in texts:
        return _approximate(sides, texts, statement)
    if texts == ["↦"]:
        return _mapping(sides[0], sides[1])
    if (members := _class_members(sides, texts, statement)) is not None:
        return members
    if texts in (["∈"], ["∉"]):
        return _membership(sides[0], sides[1], statement, is_member=texts == ["∈"])
    if texts[0] == "∈" and len(sides) == 3 and sides[1][0].is_sign("ℝ"):
        return item([*sides[0], relations[1], *sides[2]], statement)  # x can be any real number at most 2
    if texts == ["="] and (family := coprime(*sides)) is not None:
        return family
    if set(texts) <= {"=", "≡"}:
        return _equation(sides, statement)
    if set(texts) & {"∈", "∉", "≡", "≢"}:
        raise UnreadableError("a relation of several kinds")
    return _comparison(tuple(map(_quantity, sides)), tuple(texts))


def _without_label(tokens: Tokens) -> Tokens:
    """The equation of a curve without the name in front of it: `ℓ: y = 2x - 3`; other tokens as they are."""
    pieces, colons = cut(tokens, at_signs(":"))
    if len(colons) != 1 or name_of(pieces[0]) is None or not all(t.kind == "letter" for t in pieces[0]):
        return tokens
    is_equation = [each.text for each in cut(pieces[1], RELATIONS)[1]] == ["="]
    return pieces[1] if is_equation and len({t.text for t in pieces[1] if t.kind == "letter"}) > 1 else tokens


def _one_sided(sides: list[list[Token]], texts: list[str]) -> Value:
    """ "about 3", "at least 3"."""
    if len(texts) == 1 and not sides[0] and sides[1]:
        if texts[0] == "≈":
            return _rounded(sides[1])
        if texts[0] in _BOUNDS:
            bound = condition((symbol("x"), expression(sides[1])), (texts[0],))
            if bound is not None:
                return Reals(bound.intervals)
    raise UnreadableError("a side is missing")


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


def _mapping(left: Tokens, right: Tokens) -> Value:
    """f: x ↦ 2x + 1, and x ↦ 2x + 1 without a name."""
    parts, colons = cut(left, at_signs(":"))
    letters = [name_of(part) or "" for part in parts]
    if len(colons) > 1 or "" in letters:
        raise UnreadableError("a mapping of something else")
    return Named((letters[0] if colons else "",), (Expression(expression(right)),), letters[-1])


# ----------------------------------------------------------------------------------------------- membership


def _class_members(sides: list[list[Token]], texts: list[str], statement: Statement) -> Value | None:
    """ "integers n ≥ 3", "even integers greater than 2", "primes congruent to 1 mod 4"; None without such a class."""
    if not any(token.kind == "sign" and token.text in _CLASS_SIGNS for token in sides[0]):
        return None
    if sides[0][0].is_sign("ℝ") and len(sides[0]) < 3 and "∈" not in texts:  # all real numbers less than 3
        name = sides[0][1].text if len(sides[0]) == 2 else ""
        reals = item(_related([Token("letter", name or "x")], texts, sides), statement)
        return Reals(reals.intervals, name) if isinstance(reals, Reals) else reals
    numbers = None if texts[0] in "=∈∉" else integer_class(sides[0])
    if numbers is None:
        return None
    condition_ = statement(_related([Token("letter", "n")], texts, sides))
    if isinstance(condition_, Family):
        if isinstance(numbers, Literal):
            return Literal("primes", tuple(p for p in numbers.parts if holds(condition_, number(p))))
        return both(numbers, condition_)
    if not isinstance(condition_, Reals):
        raise UnreadableError("a condition of another kind")
    return restrict(numbers, condition_)


_CLASS_SIGNS = frozenset((*DOMAINS, "ℝ", "even", "odd", "multiples", "remainder", "coprime", "primes", "powers"))


def _related(first: list[Token], texts: list[str], sides: list[list[Token]]) -> list[Token]:
    result = list(first)
    for text, side in zip(texts, sides[1:], strict=True):
        result += [Token("sign", text), *side]
    return result


def _membership(left: Tokens, right: Tokens, statement: Statement, *, is_member: bool) -> Value:
    if left[0].is_sign("ℝ") and len(left) < 3:  # any real number in [4, 8], all real x outside [0, 1]
        left = [*left[1:]] or [Token("letter", "x")]
    letters, value = names_of(left), term(right, statement)
    reals = as_reals(value)
    if letters is None:
        if is_member and reals is not None:
            return _bounded(expression(left), reals)
        raise UnreadableError("a member that is not a name")
    if isinstance(value, Family | Literal) and len(letters) == 1 and is_member:
        return replace(value, name=letters[0]) if isinstance(value, Family) else value
    if isinstance(value, Expression) and len(left) > 1:
        raise UnreadableError("a member of a number")
    if not is_member:
        if reals is None or len(letters) > 1:
            raise UnreadableError("not a member of what?")
        return Reals(complement(reals).intervals, letters[0])
    is_set = isinstance(value, Collection) and value.kind == "set"
    if reals is not None and not is_set and len(letters) == 1:
        return Reals(reals.intervals, letters[0])
    if isinstance(value, Collection) and is_set and len(letters) == 1:
        return Named(letters, (listed(value.items),))
    if len(letters) > 1 and isinstance(value, Collection):
        return several_names(letters, value)
    return value


def _bounded(node: Node, reals: Reals) -> Relation:
    """x/y in an interval as the relation that bounds it."""
    if len(reals.intervals) != 1 or is_infinite(reals.intervals[0].low) or is_infinite(reals.intervals[0].high):
        raise UnreadableError("bounds of another kind")
    (part,) = reals.intervals
    return Relation(("≤" if part.has_low else "<", "≤" if part.has_high else "<"), (part.low, node, part.high))


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
    if len(sides) > 2:
        if (chain := _chain(sides, statement)) is not None:
            return chain
        for side in sides[1:-1]:
            if index_of(side, at_signs("…")) is None:  # S = 1 + 2 + ... + 10 = 55
                statement(side)
        sides = [sides[0], sides[-1]]
    if any(token.is_sign(*DOMAINS) for token in sides[1]):
        raise UnreadableError("a domain as a value")
    return _named(sides[0], statement(sides[1]))


def _chain(sides: list[list[Token]], statement: Statement) -> Value | None:
    """x = y = z = 1 as a value for each name, and as two of them for ±1; None where a side in front is no letter."""
    named = [(long_name_of if side[0].is_sign("∠") else name_of)(side) for side in sides[:-1]]
    several = tuple(name for name in named if name is not None and "(" not in name)
    is_name = all(side[0].kind == "letter" or side[0].is_sign("∠") for side in sides[:-1])
    if len(set(several)) < len(sides) - 1 or not is_name:
        return None
    value = statement(sides[-1])
    if isinstance(value, Collection) and value.kind != "list":  # x = y = (1, 2)
        return Named(several, (value,) * len(several), is_chain=True)
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
    if left[0].is_sign("begin vmatrix") and left[-1].is_sign("end vmatrix"):
        return Named(("det",), (value,))
    if not names(node) and is_quantity(left):
        return Named((long_name_of(left),), (value,))
    try:
        relation = Relation(("=",), (_quotient_of_lengths(left) or expression(left), node))
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


def _quotient_of_lengths(tokens: Tokens) -> Node | None:
    """AP/PB with both letters of each length in it; None for another expression."""
    sides, slashes = cut(tokens, at_signs("/"))
    are_lengths = len(slashes) == 1 and all(len(side) == 2 and are_capitals(side) for side in sides)
    return divide(*map(expression, sides)) if are_lengths else None


def several_names(several: tuple[str, ...], value: Value) -> Value:
    """(x, y) = (1, 2), also for a list of pairs."""
    if isinstance(value, Collection) and value.is_plain_tuple and len(value.items) == len(several):
        return Named(several, value.items)
    if isinstance(value, Collection) and value.is_bare:
        return Collection("list", tuple(several_names(several, each) for each in value.items))
    if isinstance(value, Family):
        return value
    raise UnreadableError("names for other values")
