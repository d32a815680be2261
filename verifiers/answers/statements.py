"""From tokens to a value: conditions behind an answer, alternatives, lists, items.

From the loosest to the tightest: conditions ("where k is an integer"); "or" and ";"; commas and "and"; relations
(relations.py); sets, brackets and other terms (terms.py); sums and products (expressions.py).
"""

from __future__ import annotations

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.conditions import split
from verifiers.answers.integers import (
    integer_class,
    restrict,
)
from verifiers.answers.names import name_of
from verifiers.answers.parameters import attach
from verifiers.answers.progressions import with_dots
from verifiers.answers.rationals import rational
from verifiers.answers.reals import intersection, points, union
from verifiers.answers.relations import item, several_names
from verifiers.answers.special import SPECIAL_FORMS, has, primes_with
from verifiers.answers.symbols import WORDS
from verifiers.answers.syntax import (
    ALTERNATIVES,
    AND_OR,
    COMMAS,
    CONDITIONS,
    CONJUNCTIONS,
    RELATIONS,
    Tokens,
    at_signs,
    cut,
    index_of,
    text_of,
    without_ends,
)
from verifiers.answers.terms import numbers_in, union_of_families
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import names
from verifiers.answers.values import (
    EMPTY,
    Collection,
    Expression,
    Family,
    Literal,
    Named,
    Reals,
    Value,
    bare,
)

_MAX_ITEMS = 60


# ------------------------------------------------------------------------------------------------ statements


def statement(tokens: Tokens) -> Value:
    """The value of a whole statement, with the conditions behind it."""
    texts = {token.text for token in tokens if token.kind in ("sign", "word")}
    for marks, reading in SPECIAL_FORMS:
        if not marks.isdisjoint(texts) and (value := reading(tokens, statement)) is not None:
            return value
    tokens = _spread(_without_arguments(tokens) if "=" in texts and texts & {"where", "∀"} else tokens)
    head, conditions = split(tokens)
    if not conditions or not head:
        return listing(head)
    value = _class_under(head, conditions)
    return attach(statement(head), conditions, statement) if value is None else value


def _without_arguments(tokens: Tokens) -> list[Token]:
    """The tokens without "for all x" and "for all real x" behind f(x) = ..."""
    runs = zip(tokens, tokens[1:], tokens[2:], tokens[3:], tokens[4:], strict=False)
    arguments = {run[2].text for run in runs if run[0].kind == "letter" and text_of(run[1:]) == f"({run[2].text})="}
    pieces, cuts = cut(tokens, lambda token: AND_OR(token) or CONDITIONS(token))
    result = list(pieces[0])
    for piece, mark in zip(pieces[1:], cuts, strict=True):
        rest = [token for token in piece if not (token.is_sign("ℝ", "∈") or token.is_word("real", "all", "any"))]
        is_on_argument = CONDITIONS(mark) and len(rest) == 1 and rest[0].text in arguments
        result += [] if is_on_argument else [mark, *piece]
    return result


def _spread(tokens: Tokens) -> Tokens:
    """`x ≠ 2, 3` and "x not equal to 2 or 3" as two conditions that hold together."""
    if not has(tokens, "≠"):
        return tokens
    pieces, cuts = cut(tokens, lambda token: AND_OR(token) or token.is_word("where"))
    result, left = list(pieces[0]), list[Token]()
    for place, (piece, mark) in enumerate(zip(pieces[1:], cuts, strict=True)):
        sides, relations = cut(pieces[place], RELATIONS)
        if relations:
            left = [*sides[0], relations[0]] if len(relations) == 1 and relations[0].text == "≠" else []
        is_value = bool(left and piece) and not any(map(RELATIONS, piece))
        result += [Token("word", "and"), *left, *piece] if is_value else [mark, *piece]
    return result


def _class_under(head: list[Token], conditions: list[list[Token]]) -> Value | None:
    """Primes under conditions; None for another head."""
    value = integer_class(head) if index_of(head, at_signs("primes")) is not None and len(head) < 4 else None
    if not isinstance(value, Literal):
        return None
    for piece in conditions:
        if index_of(piece, at_signs("primes")) is None:
            value = primes_with(value, statement(piece))
    return value


# ---------------------------------------------------------------------------------------------------- lists


def listing(tokens: Tokens) -> Value:
    """The value of items joined by "or", ";", "," and "and"."""
    if (named := _names(tokens) or _values_of_names(tokens)) is not None:
        return named
    pieces, cuts = cut(tokens, ALTERNATIVES)
    pieces = [each for each in map(without_ends, pieces) if each]
    if not pieces or len(pieces) > _MAX_ITEMS:
        raise UnreadableError("no items")
    values = [_conjunction(piece) for piece in pieces]
    if len(values) == 1:
        return values[0]
    if len(values) == 2 and cuts[0].is_word("or") and _is_said_twice(*values):
        return values[0]
    if not any(each.is_word("or") for each in cuts) and (system := _system(values)) is not None:
        return system
    return _alternatives([each for value in values for each in _members(value)])


def _names(tokens: Tokens) -> Value | None:
    """Anna, Ben and Clara: names in any order; None for anything else."""
    pieces = [piece for piece in cut(tokens, lambda t: ALTERNATIVES(t) or CONJUNCTIONS(t))[0] if piece]
    are_names = len(pieces) > 1 and all(t.kind == "word" and t.text not in WORDS for piece in pieces for t in piece)
    names_ = [Literal("words", (" ".join(token.text for token in piece),)) for piece in pieces]
    return Collection("list", tuple(names_)) if are_names else None


def _values_of_names(tokens: Tokens) -> Named | None:
    """`Ann: 12, Ben: 15` and "Ben has 15 and Ann has 12"; None for anything else, and for a single name."""
    if not any(token.kind == "word" and token.text not in WORDS for token in tokens) and not has(tokens, ":"):
        return None
    pieces = [piece for piece in cut(tokens, lambda t: COMMAS(t) or t.is_word("and"))[0] if piece]
    rows = [_name_and_value(piece) for piece in pieces]
    if len(rows) < 2 or not all(rows):
        return None
    return Named(tuple(row[0] for row in rows if row), tuple(statement(row[1]) for row in rows if row))


def _name_and_value(piece: list[Token]) -> tuple[str, list[Token]] | None:
    is_initials = len(piece) > 2 and piece[0].kind == piece[1].kind == "letter" and not piece[1].gap
    if is_initials and piece[0].text.isupper() and piece[1].text.islower() and piece[2].kind != "letter":
        piece = [Token("word", (piece[0].text + piece[1].text).casefold()), *piece[2:]]  # Bo
    is_word = piece[0].kind == "word" and piece[0].text not in WORDS
    is_mark = len(piece) > 2 and (piece[1].is_sign(":", "=") or piece[1].is_word("has", "gets", "have", "is"))
    if is_mark and (is_word or (piece[0].kind == "letter" and piece[1].is_sign(":"))):
        return piece[0].text, piece[2:]
    return (piece[0].text, piece[1:]) if is_word and len(piece) == 2 and piece[1].kind == "number" else None


def _is_said_twice(first: Value, second: Value) -> bool:
    """Whether "3/8 or 0.375" gives one number in two spellings."""
    both = [each.node for each in (first, second) if isinstance(each, Expression) and not names(each.node)]
    return len(both) == 2 and both[0] != both[1] and equal_expressions(*both) is True


def _members(value: Value) -> tuple[Value, ...]:
    return value.items if isinstance(value, Collection) and value.kind == "list" else (value,)


def _conjunction(tokens: list[Token]) -> Value:
    """The value of items joined by commas and "and"."""
    pieces, cuts = cut(tokens, CONJUNCTIONS)
    pieces = [each for each in map(without_ends, pieces) if each]
    if not pieces or len(pieces) > _MAX_ITEMS:
        raise UnreadableError("no items")
    if len(pieces) == 1:
        return item(pieces[0], statement)
    if any(len(each) == 1 and each[0].is_sign("…") for each in pieces):
        sides, signs = cut(pieces[0], at_signs("="))  # n = 6, 12, 18, ...
        is_named = len(signs) == 1 and name_of(sides[0]) is not None
        return with_dots([sides[1], *pieces[1:]] if is_named else pieces)
    values = [item(each, statement) for each in pieces]
    has_and = any(each.is_word("and") for each in cuts)
    if (result := _both(values, has_and=has_and)) is not None:
        return result
    named = [value for value in values if isinstance(value, Named)]
    if len(named) == len(values):
        if (indexed := _indexed_tuples(named)) is not None:
            return indexed
        several = tuple(name for value in named for name in value.names)
        if len(set(several)) == len(several) and not all(_is_index(value, values) for value in named):
            return Named(several, tuple(each for value in named for each in value.items))
    return _alternatives(values)


def _both(values: list[Value], *, has_and: bool) -> Value | None:
    """Conditions on one letter that hold together; cases where no number meets all and only commas join them.

    None for other values.
    """
    members = next((value for value in values if isinstance(value, Literal) and value.kind == "primes"), None)
    others = [value for value in values if value is not members]
    if members is not None and all(isinstance(each, Reals | Family) for each in others):
        for each in others:
            members = primes_with(members, each)
        return members
    classes = [value for value in values if isinstance(value, Family)]
    reals = [value for value in values if isinstance(value, Reals) and value.name]
    if len(classes) == 1 and reals and len(reals) == len(values) - 1:
        within = reals[0]
        for each in reals[1:]:
            within = intersection(within, each)
        return restrict(classes[0], within)
    if has_and and reals:
        values = [_condition_of(value) for value in values]
        reals = [value for value in values if isinstance(value, Reals) and value.name]
    if not reals or len(reals) < len(values):
        return None
    if len({value.name for value in reals}) > 1:
        raise UnreadableError("conditions on several letters")
    result, either = reals[0], reals[0]
    for value in reals[1:]:
        result, either = intersection(result, value), union(either, value)
    return result if result.intervals or has_and else either


def _condition_of(value: Value) -> Value:
    """x = 2 beside other conditions on x."""
    inner = bare(value)
    if not isinstance(value, Named) or not isinstance(inner, Expression) or names(inner.node):
        return value
    return Reals(points([inner.node]).intervals, value.names[0])


def _system(values: list[Value]) -> Named | None:
    """Values with one name each, all of them different, as one value with several names; None for others."""
    named = [value for value in values if isinstance(value, Named) and value.is_single]
    several = tuple(value.names[0] for value in named)
    if len(named) < len(values) or len(set(several)) < len(several) or all(_is_index(each, values) for each in named):
        return None
    return Named(several, tuple(value.items[0] for value in named))


def _alternatives(values: list[Value]) -> Value:
    """One of several values: a union of sets, or a list. Names in front of single values are dropped."""
    if any(isinstance(value, Family) for value in values):  # k = 1 or k even
        families = [_family_or_number(value) for value in values]
        if all(families):
            return union_of_families([each for each in families if each is not None])
    if any(isinstance(value, Literal) and value.kind == "primes" for value in values):
        return _with_primes(values)
    if any(isinstance(value, Reals) for value in values):
        return _union(values)
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
    result = Collection("list", tuple(plain))
    is_named = isinstance(first, Named) and not first.argument and not _is_index(first, values)
    return Named(first.names, (result,)) if is_named and isinstance(first, Named) else result


def _with_primes(values: list[Value]) -> Literal:
    """Primes, and other numbers beside them: "4 or a prime"."""
    members: set[int] = set()
    for value in values:
        node = bare(value)
        whole = rational(node.node) if isinstance(node, Expression) else None
        if isinstance(value, Literal):
            members |= {*value.parts}
        elif whole is None or whole.denominator != 1:
            raise UnreadableError("primes and other values")
        else:
            members.add(int(whole))
    return Literal("primes", tuple(sorted(members)))


def _union(values: list[Value]) -> Reals:
    """The union of sets of reals and single numbers."""
    result = EMPTY
    for value in values:
        result = union(result, numbers_in(value))
    return result


def _family_or_number(value: Value) -> Family | None:
    """A family, or a number as one without parameters."""
    if isinstance(value, Family):
        return value
    value = bare(value)
    return Family(((value.node,),), ()) if isinstance(value, Expression) and not names(value.node) else None


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
