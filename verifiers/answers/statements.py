"""From tokens to a value: a letter that is declared behind an answer, alternatives, lists, relations.

From the loosest to the tightest: declarations ("where k is an integer"); "or" and ";"; commas and "and"; relations;
sets, brackets and other terms (terms.py); sums and products (expressions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import reduce
from itertools import permutations

from verifiers.answers.conditions import split, under, without_arguments
from verifiers.answers.families import letters_in, rows_of
from verifiers.answers.integers import (
    both,
    congruence,
    difference,
    divisible,
    either,
    integers_of,
)
from verifiers.answers.reals import half_line, intersection, points, union
from verifiers.answers.relations import item, several_names
from verifiers.answers.syntax import (
    ALTERNATIVES,
    AND_OR,
    CONDITIONS,
    CONJUNCTIONS,
    RELATIONS,
    Token,
    Tokens,
    UnreadableError,
    at_signs,
    cut,
    has_sign,
    index_of,
    separator,
    text_of,
    without_ends,
)
from verifiers.answers.terms import numbers_in, without
from verifiers.answers.values import (
    EMPTY,
    Collection,
    Expression,
    Family,
    Integers,
    Named,
    Reals,
    Value,
    bare,
    names,
)

_MAX_PERMUTED = 4
_LABELS = (("i", "ii", "iii", "iv", "v", "vi"), ("a", "b", "c", "d", "e", "f"), ("1", "2", "3", "4", "5", "6"))
_OPERATORS = separator("+ - * / ^ =")
_MAX_ITEMS = 60


def statement(tokens: Tokens) -> Value:
    """The value of a whole statement, with the conditions behind it."""
    if not tokens:
        raise UnreadableError("nothing")
    if (value := _wording(tokens)) is not None:
        return value
    is_function = has_sign(tokens, "=") and any(map(CONDITIONS, tokens))
    head, conditions = split(_spread(without_arguments(tokens) if is_function else tokens))
    return under(statement(head), conditions, statement) if conditions and head else listing(head)


def _spread(tokens: Tokens) -> Tokens:
    """`x ≠ 2, 3` and "x not equal to 2 or 3" as two conditions that hold together."""
    if not has_sign(tokens, "≠"):
        return tokens
    pieces, cuts = cut(tokens, lambda token: AND_OR(token) or CONDITIONS(token))
    result, left = list(pieces[0]), list[Token]()
    for place, (piece, mark) in enumerate(zip(pieces[1:], cuts, strict=True)):
        sides, relations = cut(pieces[place], RELATIONS)
        if relations:
            left = [*sides[0], relations[0]] if len(relations) == 1 and relations[0].text == "≠" else []
        is_value = bool(left and piece) and not any(map(RELATIONS, piece))
        result += [Token("word", "and"), *left, *piece] if is_value else [mark, *piece]
    return result


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
    values = [item(each, statement) for each in pieces]
    if len(values) == 1:
        return values[0]
    if (result := _both(values, has_and=any(each.is_word("and") for each in cuts))) is not None:
        return result
    return _system(values) or _alternatives(values)


def _both(values: list[Value], *, has_and: bool) -> Reals | Integers | None:
    """Conditions on one letter that hold together; cases where no number meets all and only commas join them.

    None for other values.
    """
    reals = [value for value in values if isinstance(value, Reals) and value.name]
    classes = [value for value in values if isinstance(value, Integers | Family)]
    if classes and reals and len(classes) + len(reals) == len(values):  # n odd, n > 2
        return reduce(both, values[1:], integers_of(values[0]) or both(values[0], values[0]))
    if len(classes) == len(values) > 1 and any(isinstance(value, Integers) for value in values) and not has_and:
        return reduce(both, values[1:], both(values[0], values[0]))  # p prime, p ≡ 1 (mod 4)
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


def _system(values: list[Value]) -> Value | None:
    """Named values, all names of which are different, as one value with several names; None for others."""
    named = [value for value in values if isinstance(value, Named)]
    if len(named) == len(values) and (indexed := _indexed_tuples(named)) is not None:
        return indexed
    several = tuple(name for value in named for name in value.names)
    if len(named) < len(values) or len(set(several)) < len(several) or all(_is_index(each, values) for each in named):
        return None
    return Named(several, tuple(each for value in named for each in value.items))


def _alternatives(values: list[Value]) -> Value:
    """One of several values: a union of sets, or a list. Names in front of single values are dropped."""
    if any(isinstance(value, Integers) for value in values):  # 4, and all primes
        return reduce(either, values[1:], both(values[0], values[0]))
    if any(isinstance(value, Family) for value in values):
        return _families(values)
    if any(isinstance(value, Reals) for value in values):
        if EMPTY in values:
            raise UnreadableError("a set, or none")
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


def _families(values: list[Value]) -> Family:
    """The members of families of the same letters, and of single numbers or tuples, in one."""
    parts = [each if isinstance(each, Family) else Family(tuple(rows_of(each)), ()) for each in values]
    letters = {name: least for part in parts for name, least in part.letters}
    rows = tuple(row for part in parts for row in part.items)
    is_one = all((name, least) in letters.items() for part in parts for name, least in part.letters)
    if not is_one or not all(part.items for part in parts) or not letters_in(rows) <= letters.keys():
        raise UnreadableError("families of several letters")
    return Family(rows, tuple(letters.items()))


def _indexed_tuples(values: list[Named]) -> Collection | None:
    """(x_1, y_1) = (1, 2), (x_2, y_2) = (2, 1) as a list of solutions with the names x and y; None for others."""
    plain = {tuple(name.partition("_")[0] for name in value.names) for value in values}
    indices = [{name.partition("_")[2] for name in value.names} for value in values]
    if len(plain) > 1 or any(len(each) != 1 for each in indices) or len(set.union(*indices)) < len(values):
        return None
    (several,) = plain
    if len(several) < 2 or len(set(several)) < len(several):
        return None
    return Collection("list", tuple(Named(several, value.items) for value in values))


def _is_index(value: Named, values: list[Value]) -> bool:
    """Whether the names of all values are x_1, x_2, ...: roots of one equation."""
    letters = {each.names[0].partition("_")[0] for each in values if isinstance(each, Named)}
    return len(letters) == 1 and "_" in value.names[0]


# ------------------------------------------------------------------------------------ forms told by one sign or word


def _wording(tokens: Tokens) -> Value | None:
    """The value of tokens in one of the forms; None for others."""
    texts = {token.text for token in tokens if token.kind in ("sign", "word")}
    if tokens[0].text != "(" and _MARKS.isdisjoint(texts):
        return None
    for marks, reading in _FORMS:
        if not marks.isdisjoint(texts) and (value := reading(tokens)) is not None:
            return value
    return None


def _without_domain(tokens: Tokens) -> Value | None:
    """`f: ℝ → ℝ, f(x) = 2x` without its first part."""
    pieces, cuts = cut(tokens, at_signs(","))
    is_first = bool(cuts) and len(pieces[0]) > 2 and pieces[0][0].kind == "letter" and pieces[0][1].is_sign(":")
    return statement(tokens[len(pieces[0]) + 1 :]) if is_first and has_sign(pieces[0], "→") else None


def _without_exceptions(tokens: Tokens) -> Value | None:
    """A set without some values: "all reals except 2 and 3", "all n except n = 2"."""
    pieces, marks = cut(tokens, at_signs("except"))
    pieces = [without_ends(piece) for piece in pieces]
    if not marks or not pieces[0]:
        return None
    value = statement(pieces[0])
    if isinstance(value, Expression) and value.node.op == "symbol":
        value = half_line("ℝ", value.node.name)
    for piece in pieces[1:]:
        other = statement(piece)
        value = difference(value, other) if isinstance(value, Integers | Family) else without(value, other)
    return value


def _residues(tokens: Tokens) -> Value | None:
    """Residues and divisors, whose commas and "or" separate no answers: `n ≡ 0, 1 (mod 3)`."""
    if any(token.text.startswith("begin ") or CONDITIONS(token) for token in tokens):
        return None
    return congruence(tokens) or divisible(tokens)


def _labelled_parts(tokens: Tokens) -> Value | None:
    """(i) 12 (ii) 20: values with the labels in front of them; None for anything else."""
    if not tokens[0].is_sign("("):
        return None
    for labels in _LABELS:
        starts: list[tuple[int, int]] = []
        for place, token in enumerate(tokens):
            label = labels[len(starts)] if len(starts) < len(labels) else ""
            size = next((n for n in range(3, 6) if text_of(tokens[place : place + n]) == f"({label})"), 0)
            if token.is_sign("(") and label and size:
                starts.append((place, place + size))
        if len(starts) > 1 and starts[0][0] == 0:
            ends = [place for place, _ in starts[1:]] + [len(tokens)]
            parts = [without_ends(list(tokens[start:end])) for (_, start), end in zip(starts, ends, strict=True)]
            if not all(parts) or any(_OPERATORS(part[0]) or _OPERATORS(part[-1]) for part in parts):
                return None  # (1)/(2)
            return Named(tuple(f"part {n}" for n in range(1, len(parts) + 1)), tuple(map(statement, parts)))
    return None


def _permutations(tokens: Tokens) -> Value | None:
    """ "(1, 1, 2) and its permutations" as a list."""
    place = index_of(tokens, at_signs("permutations"))
    if place is None:
        return None
    return _orders_of(statement(without_ends([token for token in tokens if not token.is_sign("permutations")])))


def _orders_of(value: Value) -> Collection:
    """All tuples with the components of one, or of several, in another order."""
    if isinstance(value, Collection) and value.is_bare:
        return Collection("list", tuple(each for item in value.items for each in _orders_of(item).items))
    is_row = (isinstance(value, Collection) and value.kind == "tuple") or isinstance(value, Named)
    if not is_row or not isinstance(value, Collection | Named) or len(value.items) > _MAX_PERMUTED:
        raise UnreadableError("permutations of something else")
    return Collection("list", tuple(replace(value, items=order) for order in dict.fromkeys(permutations(value.items))))


_FORMS: tuple[tuple[frozenset[str], Callable[[Tokens], Value | None]], ...] = (
    (frozenset(("→",)), _without_domain),
    (frozenset(("permutations",)), _permutations),
    (frozenset(("(",)), _labelled_parts),
    (frozenset(("mod", "|", "∤")), _residues),
    (frozenset(("except",)), _without_exceptions),
)
_MARKS = frozenset().union(*(marks for marks, _ in _FORMS)) - {"("}
