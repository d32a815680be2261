"""From tokens to a value: a letter that is declared behind an answer, alternatives, lists, relations.

From the loosest to the tightest: declarations ("where k is an integer"); "or" and ";"; commas and "and"; relations;
sets, brackets and other terms (terms.py); sums and products (expressions.py).
"""

from __future__ import annotations

from dataclasses import replace

from verifiers.answers.amounts import amount, has_unit
from verifiers.answers.comparison import divides_by_zero
from verifiers.answers.evaluation import approximation
from verifiers.answers.expressions import expression
from verifiers.answers.families import INTEGERS, declaration, family_of
from verifiers.answers.integers import congruence, integer_class, within
from verifiers.answers.names import function_name_of, long_name_of, name_of, names_of
from verifiers.answers.reals import as_reals, complement, condition, intersection, points, union
from verifiers.answers.syntax import (
    ALTERNATIVES,
    CONJUNCTIONS,
    RELATIONS,
    Token,
    Tokens,
    UnreadableError,
    at_signs,
    cut,
    has_sign,
    index_of,
    without_ends,
)
from verifiers.answers.terms import numbers_in, term, without
from verifiers.answers.tree import Node, names, replace_symbols, signs, symbol
from verifiers.answers.values import EMPTY, Collection, Expression, Family, Named, Reals, Relation, Value, bare, listed

_MAX_ROUNDING = 0.05  # of a number: 22/7 ≈ 3
_MAX_ITEMS = 60


def statement(tokens: Tokens) -> Value:
    """The value of a whole statement, with the letter that is declared behind it, or with exceptions."""
    if not tokens:
        raise UnreadableError("nothing")
    pieces, exceptions = cut(tokens, at_signs("except"))
    if exceptions:
        return without(statement(pieces[0]), statement([token for piece in pieces[1:] for token in piece]))
    if has_sign(tokens, "≡", "≢") and (family := congruence(tokens)) is not None:
        return family
    if (found := declaration(tokens)) is None:
        return listing(tokens)
    head, (letter, is_integer, least) = found
    value = listing(head)
    return family_of(value, letter, least) if is_integer else value


def listing(tokens: Tokens) -> Value:
    """The value of items joined by "or", ";", "," and "and"."""
    pieces, cuts = cut(tokens, ALTERNATIVES)
    pieces = [each for each in map(without_ends, pieces) if each]
    if not pieces or len(pieces) > _MAX_ITEMS:
        raise UnreadableError("no items")
    if len(pieces) == 1:
        return _conjunction(pieces[0])
    values = [statement(piece) for piece in pieces]
    if not any(each.is_word("or") for each in cuts) and (system := _system(values)) is not None:
        return system
    return _alternatives([each for value in values for each in _members(value)])


def _members(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Collection) and value.kind == "list" else (value,)


def _conjunction(tokens: list[Token]) -> Value:
    """The value of items joined by commas and "and"."""
    pieces, cuts = cut(tokens, CONJUNCTIONS)
    pieces = [each for each in map(without_ends, pieces) if each]
    if not pieces or len(pieces) > _MAX_ITEMS:
        raise UnreadableError("no items")
    values = [_item(each) for each in pieces]
    if len(values) == 1:
        return values[0]
    if len(values) == 2 and _leaves_out_poles(*values):
        return values[0]
    if (result := _both(values, has_and=any(each.is_word("and") for each in cuts))) is not None:
        return result
    return _system(values) or _alternatives(values)


def _leaves_out_poles(value: Value, condition_: Value) -> bool:
    r"""Whether a condition only leaves out numbers where a value has none: `\frac{1}{x-1}, x \ne 1`."""
    item = bare(value)
    if not isinstance(item, Expression) or not isinstance(condition_, Reals) or condition_.name not in names(item.node):
        return False
    points_ = [part.low for part in complement(condition_).intervals if part.low == part.high]
    at = [replace_symbols(item.node, {condition_.name: each}) for each in points_]
    return len(at) == len(complement(condition_).intervals) and all(map(divides_by_zero, at))


def _both(values: list[Value], *, has_and: bool) -> Reals | None:
    """Conditions on one letter that hold together; cases where no number meets all and only commas join them.

    None for other values.
    """
    reals = [value for value in values if isinstance(value, Reals) and value.name]
    if (
        len(reals) == 1
        and reals[0] is values[0]
        and all(each.low == each.high for each in complement(reals[0]).intervals)
    ):
        return without(reals[0], Collection("list", tuple(values[1:])))  # x ≠ 2, 3
    if has_and and reals:
        reals = [each for each in map(_condition, values) if isinstance(each, Reals) and each.name]
    if not reals or len(reals) < len(values):
        return None
    if len({value.name for value in reals}) > 1:
        raise UnreadableError("conditions on several letters")
    result, either = reals[0], reals[0]
    for value in reals[1:]:
        result, either = intersection(result, value), union(either, value)
    return result if result.intervals or has_and else either


def _condition(value: Value) -> Value:
    """x = 2 beside other conditions on x."""
    inner = bare(value)
    is_number = isinstance(value, Named) and isinstance(inner, Expression) and not names(inner.node)
    if not is_number or not isinstance(value, Named) or not isinstance(inner, Expression):
        return value
    return Reals(points([inner.node]).intervals, value.names[0])


def _system(values: list[Value]) -> Named | None:
    """Named values, all names of which are different, as one value with several names; None for others."""
    named = [value for value in values if isinstance(value, Named)]
    several = tuple(name for value in named for name in value.names)
    if len(named) < len(values) or len(set(several)) < len(several) or all(_is_index(each, values) for each in named):
        return None
    return Named(several, tuple(each for value in named for each in value.items))


def _alternatives(values: list[Value]) -> Value:
    """One of several values: a union of sets, or a list. Names in front of single values are dropped."""
    if any(isinstance(value, Reals) for value in values):
        result = EMPTY
        for value in values:
            result = union(result, numbers_in(value))
        return result
    first = values[0]
    names_of = [value.names if isinstance(value, Named) and not value.argument else () for value in values]
    if len(names_of[0]) > 1 and all(each == names_of[0] for each in names_of):
        return Collection("list", tuple(values))
    if isinstance(first, Named) and len(first.names) > 1:
        return Collection("list", (first, *(several_names(first.names, value) for value in values[1:])))
    name = next((each for each in names_of if each), None)
    plain: list[Value] = []
    for value in values:
        if isinstance(value, Named) and not value.argument:
            if not value.is_single or (value.names != name and not _is_index(value, values)):
                raise UnreadableError("several names")
            plain += _members(value.items[0])
        else:
            plain.append(value)
    result_ = Collection("list", tuple(plain))
    is_named = isinstance(first, Named) and not first.argument and not _is_index(first, values)
    return Named(first.names, (result_,)) if is_named and isinstance(first, Named) else result_


def _is_index(value: Named, values: list[Value]) -> bool:
    """Whether the names of all values are x_1, x_2, ...: roots of one equation."""
    letters = {each.names[0].partition("_")[0] for each in values if isinstance(each, Named)}
    return len(letters) == 1 and "_" in value.names[0]


# ------------------------------------------------------------------------------------------------- relations


def _item(tokens: Tokens) -> Value:
    """The value of one item: a relation or a term."""
    sides, relations = cut(tokens, RELATIONS)
    texts = [each.text for each in relations]
    if not texts:
        return term(tokens, statement)
    if sides[0] and has_sign(sides[0], *INTEGERS) and has_sign(relations, "<", ">", "≤", "≥"):
        bound = _item([Token("letter", "n"), *tokens[len(sides[0]) :]])  # integers n ≥ 3
        members = integer_class(sides[0])
        if members is None or not isinstance(bound, Reals):
            raise UnreadableError("bounds of other integers")
        return within(members, bound)
    if texts == ["≈"] and not sides[0] and sides[1]:
        return _rounded(sides[1])
    if not all(sides):
        raise UnreadableError("a side is missing")
    if "≈" in texts:
        return _approximate(sides, texts)
    if texts == ["∈"]:
        return _member(sides[0], sides[1])
    if set(texts) == {"="}:
        return _equation(sides)
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


def _approximate(sides: list[list[Token]], texts: list[str]) -> Value:
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


def _member(left: Tokens, right: Tokens) -> Value:
    """`x ∈ [1, 2]`, `x ∈ {1, 2}`, `(x, y) ∈ {(1, 2), (3, 4)}`."""
    letters, value = names_of(left), term(right, statement)
    if letters is None or (isinstance(value, Expression) and len(left) > 1):
        raise UnreadableError("a member that is not a name")
    reals = as_reals(value)
    if isinstance(value, Family):
        return value
    is_set = isinstance(value, Collection) and value.kind == "set"
    if reals is not None and not is_set and len(letters) == 1:
        return Reals(reals.intervals, letters[0])
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
    if len(texts) == 1 and texts[0] in "∥⊥":
        return Relation(texts, nodes)
    reals = condition(nodes, texts)
    return Relation(texts, nodes) if reals is None else reals


def _equation(sides: list[list[Token]]) -> Value:
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
