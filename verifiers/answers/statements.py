"""From tokens to a value: a letter that is declared behind an answer, alternatives, lists, items.

From the loosest to the tightest: declarations ("where k is an integer"); "or" and ";"; commas and "and"; relations
(relations.py); sets, brackets and other terms (terms.py); sums and products (expressions.py).
"""

from __future__ import annotations

from verifiers.answers.families import declaration, family_of
from verifiers.answers.reals import complement, intersection, points, union
from verifiers.answers.relations import item, several_names
from verifiers.answers.syntax import ALTERNATIVES, CONJUNCTIONS, Tokens, at_signs, cut, without_ends
from verifiers.answers.terms import numbers_in, without
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import names
from verifiers.answers.values import EMPTY, Collection, Expression, Named, Reals, Value, bare

_MAX_ITEMS = 60


def statement(tokens: Tokens) -> Value:
    """The value of a whole statement, with the letter that is declared behind it, or with exceptions."""
    if not tokens:
        raise UnreadableError("nothing")
    pieces, exceptions = cut(tokens, at_signs("except"))
    if exceptions:
        return without(statement(pieces[0]), statement([token for piece in pieces[1:] for token in piece]))
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
    values = [_conjunction(piece) for piece in pieces]
    if len(values) == 1:
        return values[0]
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
    values = [item(each, statement) for each in pieces]
    if len(values) == 1:
        return values[0]
    if (result := _both(values, has_and=any(each.is_word("and") for each in cuts))) is not None:
        return result
    return _system(values) or _alternatives(values)


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
