"""Items joined by "or", ";", commas and "and": lists, conditions that hold together, several named values."""

from __future__ import annotations

from itertools import permutations

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.integer_sets import integers_without, with_dots
from verifiers.answers.items import item, several_names
from verifiers.answers.names import name_of
from verifiers.answers.names_in_words import list_of_names, values_of_names
from verifiers.answers.reals import as_reals, complement, intersection, points, union
from verifiers.answers.slices import Tokens, at_signs, cut
from verifiers.answers.terms import Statement
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import names
from verifiers.answers.values import Assignments, Expression, Family, Reals, Sequence, Value

_MAX_ITEMS = 60
_MAX_PERMUTED = 4


def permutations_of(value: Value) -> Sequence:
    """All tuples with the components of one, or of several, in another order."""
    if isinstance(value, Assignments) and len(value.names) > 1:
        rows = _orders(value.items)
        return Sequence("list", tuple(Assignments(value.names, row) for row in rows))
    if isinstance(value, Sequence) and value.kind in ("tuple", "interval"):
        return Sequence("list", tuple(Sequence(value.kind, row, value.brackets) for row in _orders(value.items)))
    if isinstance(value, Sequence):
        return Sequence("list", tuple(item for each in value.items for item in permutations_of(each).items))
    raise UnreadableError("permutations of something else")


def _orders(items: tuple[Value, ...]) -> list[tuple[Value, ...]]:
    if len(items) > _MAX_PERMUTED:
        raise UnreadableError("too many permutations")
    return list(dict.fromkeys(permutations(items)))


def listing(tokens: Tokens, statement: Statement) -> Value:
    """The value of items joined by "or", ";", "," and "and"."""
    for reading in (list_of_names, values_of_names):
        if (value := reading(tokens, statement)) is not None:
            return value
    pieces, cuts = cut(tokens, lambda token: token.is_word("or") or token.is_sign(";", "\\\\"))
    pieces = [each for each in map(_without_commas, pieces) if each]
    if not pieces or len(pieces) > _MAX_ITEMS:
        raise UnreadableError("no items")
    if len(pieces) == 1:
        return _conjunction(pieces[0], statement)
    values = [_conjunction(piece, statement) for piece in pieces]
    if len(values) == 2 and cuts[0].is_word("or") and _is_said_twice(*values):
        return values[0]
    if not any(each.is_word("or") for each in cuts) and (system := _system(values)) is not None:
        return system
    if all(isinstance(value, Assignments) and len(value.names) > 1 for value in values):
        return Sequence("list", tuple(values))
    return _alternatives([item for value in values for item in _members(value)])


def _is_said_twice(first: Value, second: Value) -> bool:
    """Whether "3/8 or 0.375" gives one number in two spellings."""
    both = [each.node for each in (first, second) if isinstance(each, Expression) and not names(each.node)]
    return len(both) == 2 and both[0] != both[1] and equal_expressions(*both) is True


def _without_commas(tokens: list[Token]) -> list[Token]:
    while tokens and (tokens[-1].is_sign(",") or tokens[-1].is_word("and", "either")):
        tokens = tokens[:-1]
    while tokens and (tokens[0].is_sign(",") or tokens[0].is_word("and", "either")):
        tokens = tokens[1:]
    return tokens


def _members(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Sequence) and value.kind == "list" else (value,)


def _conjunction(tokens: Tokens, statement: Statement) -> Value:
    """The value of items joined by commas and "and"."""
    pieces, cuts = cut(tokens, lambda token: token.is_sign(",") or token.is_word("and"))
    items = [_without_commas(each) for each in pieces]
    items = [each for each in items if each]
    if not items or len(items) > _MAX_ITEMS:
        raise UnreadableError("no items")
    if len(items) == 1:
        return item(items[0], statement)
    if any(len(each) == 1 and each[0].is_sign("…") for each in items):
        return _progression(items)
    values = [item(each, statement) for each in items]
    if isinstance(values[0], Family) and (integers := _integers_without(items[0], values)) is not None:
        return integers
    if (swapped := _class_in_front(items, values)) is not None:
        return statement(swapped)
    has_and = any(each.is_word("and") for each in cuts)
    if has_and and any(isinstance(value, Reals) and value.name for value in values):
        values = [_condition_of(value) for value in values]
    if all(isinstance(value, Reals) and value.name for value in values):
        return _both([value for value in values if isinstance(value, Reals)], has_and=has_and)
    named = [value for value in values if isinstance(value, Assignments)]
    if len(named) == len(values) > 1 and (indexed := _indexed_tuples(named)) is not None:
        return indexed
    is_indexed = len(named) == len(values) and all(_is_index(value, values) for value in named)
    if (
        not is_indexed
        and len(named) == len(values)
        and len({name for value in named for name in value.names}) == sum(len(value.names) for value in named)
    ):
        return Assignments(
            tuple(n for value in named for n in value.names), tuple(i for value in named for i in value.items)
        )
    return _alternatives(values)


def _class_in_front(items: list[list[Token]], values: list[Value]) -> list[Token] | None:
    """`n ≥ 3, n odd` as `n odd, n ≥ 3`; None for other values."""
    if len(values) != 2 or not isinstance(values[0], Reals) or not isinstance(values[1], Family):
        return None
    is_class = len(items[1]) == 2 and items[1][1].is_sign("even", "odd") and items[1][0].text == values[0].name
    return [*items[1], Token("sign", ","), *items[0]] if is_class else None


def _integers_without(first: list[Token], values: list[Value]) -> Value | None:
    """`n ∈ ℕ, n ≠ 2`: the integers under conditions on their letter; None for other values."""
    conditions = [value for value in values[1:] if isinstance(value, Reals) and value.name == first[0].text]
    family = values[0]
    is_plain = isinstance(family, Family) and len(family.parameters) == 1
    if len(first) < 2 or not first[1].is_sign("∈") or len(conditions) < len(values) - 1 or not is_plain:
        return None
    within = conditions[0]
    for each in conditions[1:]:
        within = intersection(within, each)
    return integers_without(family, complement(within)) if isinstance(family, Family) else None


def _progression(items: list[list[Token]]) -> Value:
    """The members of `n = 6, 12, 18, ...`, whose name is left out."""
    sides, signs = cut(items[0], at_signs("="))
    if len(signs) == 1 and name_of(sides[0]) is not None:
        items = [sides[1], *items[1:]]
    return with_dots(items)


def _system(values: list[Value]) -> Assignments | None:
    """Values with one name each, all of them different, as one value with several names; None for others."""
    named = [value for value in values if isinstance(value, Assignments) and len(value.names) == 1]
    several = tuple(value.names[0] for value in named)
    if len(named) < len(values) or len(set(several)) < len(several) or all(_is_index(each, values) for each in named):
        return None
    return Assignments(several, tuple(value.items[0] for value in named))


def _condition_of(value: Value) -> Value:
    """x = 2 beside other conditions on x."""
    if not (isinstance(value, Assignments) and len(value.names) == 1):
        return value
    number = value.items[0]
    if not isinstance(number, Expression) or names(number.node):
        return value
    return Reals(points([number.node]).intervals, value.names[0])


def _both(values: list[Reals], *, has_and: bool) -> Value:
    """Conditions that hold together; if no number meets all and only commas join them, they are cases."""
    if len({value.name for value in values}) > 1:
        raise UnreadableError("conditions on several letters")
    result, either = values[0], values[0]
    for value in values[1:]:
        result, either = intersection(result, value), union(either, value)
    return result if result.intervals or has_and else either


def _alternatives(values: list[Value]) -> Value:
    """One of several values: a union of sets of reals, or a list. Names in front of single values are dropped."""
    families = [value for value in values if isinstance(value, Family)]
    if families and len(families) < len(values):  # k = 1 or k even
        families = [value for value in map(_family_or_number, values) if value is not None]
    if families and len(families) == len(values):
        parameters = {each.name: each for family in families for each in family.parameters}
        if len({each for family in families for each in family.parameters}) > len(parameters):
            raise UnreadableError("one parameter with two domains")
        return Family(tuple(item for family in families for item in family.items), tuple(parameters.values()))
    first_value = values[0]
    if all(_names_of(value) == _names_of(first_value) for value in values) and len(_names_of(first_value)) > 1:
        return Sequence("list", tuple(values))
    if isinstance(first_value, Assignments) and len(first_value.names) > 1:
        return Sequence("list", (first_value, *(several_names(first_value.names, value) for value in values[1:])))
    if any(isinstance(value, Reals) for value in values) and len(values) > 1:
        return _union(values)
    first = next((value.names for value in values if isinstance(value, Assignments)), None)
    plain: list[Value] = []
    for value in values:
        if (
            isinstance(value, Assignments)
            and len(value.names) == 1
            and (value.names == first or _is_index(value, values))
        ):
            plain += _members(value.items[0])
        elif isinstance(value, Assignments) and len(value.names) > 1:
            raise UnreadableError("names and other values")
        elif isinstance(value, Assignments):
            raise UnreadableError("several names")
        else:
            plain.append(value)
    listed = Sequence("list", tuple(plain))
    if isinstance(values[0], Assignments) and not _is_index(values[0], values):
        return Assignments(values[0].names, (listed,))
    return listed


def _union(values: list[Value]) -> Reals:
    """The union of sets of reals and single numbers."""
    result = Reals(())
    for value in values:
        inner = value.items[0] if isinstance(value, Assignments) and len(value.names) == 1 else value
        part = points([inner.node]) if isinstance(inner, Expression) else as_reals(inner)
        if part is None:
            raise UnreadableError("sets and other values")
        result = union(result, part)
    return result


def _names_of(value: Value) -> tuple[str, ...]:
    return value.names if isinstance(value, Assignments) else ()


def _family_or_number(value: Value) -> Family | None:
    """A family, or a number as one without parameters."""
    if isinstance(value, Family):
        return value
    if isinstance(value, Assignments) and len(value.names) == 1:
        value = value.items[0]
    return Family(((value.node,),), ()) if isinstance(value, Expression) and not names(value.node) else None


def _indexed_tuples(values: list[Assignments]) -> Sequence | None:
    """(x_1, y_1) = (1, 2), (x_2, y_2) = (2, 1) as a list of solutions with the names x and y; None for others."""
    plain = {tuple(name.partition("_")[0] for name in value.names) for value in values}
    indices = [{name.partition("_")[2] for name in value.names} for value in values]
    if len(plain) > 1 or any(len(each) != 1 for each in indices) or len(set.union(*indices)) < len(values):
        return None
    (several,) = plain
    if len(several) < 2 or len(set(several)) < len(several):
        return None
    return Sequence("list", tuple(Assignments(several, value.items) for value in values))


def _is_index(value: Assignments, values: list[Value]) -> bool:
    """Whether the names of all values are x_1, x_2, ...: roots of one equation."""
    letters = {each.names[0].partition("_")[0] for each in values if isinstance(each, Assignments)}
    return len(letters) == 1 and "_" in value.names[0]
