"""From the tokens of an answer to its value: conditions behind it, alternatives, lists, items.

From the loosest to the tightest: conditions ("where k is an integer"); "or" and ";"; commas and "and"; relations
(relations.py); sets, brackets and other terms (terms.py); sums and products (expressions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import lru_cache
from itertools import permutations

from verifiers.answers.amounts import amount, has_unit, number_of_things
from verifiers.answers.comparison import equal_expressions
from verifiers.answers.conditions import split
from verifiers.answers.integers import (
    both,
    congruence,
    divisible,
    integer_class,
    other_residues,
    primes,
    restrict,
    with_dots,
    without,
)
from verifiers.answers.names import name_of
from verifiers.answers.parameters import attach
from verifiers.answers.phrases import drop_leads, join_words, number_in_front, rewrite
from verifiers.answers.piecewise import holds, one_line_cases
from verifiers.answers.quantities import quantity
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.reals import as_reals, complement, half_line, intersection, interval, points, union
from verifiers.answers.relations import item, several_names
from verifiers.answers.symbols import WORDS
from verifiers.answers.syntax import (
    ALTERNATIVES,
    AND_OR,
    COMMAS,
    CONDITIONS,
    CONJUNCTIONS,
    RELATIONS,
    SET_OPERATIONS,
    Tokens,
    at_signs,
    bracket_content,
    cut,
    index_of,
    separator,
    text_of,
)
from verifiers.answers.terms import numbers_in, union_of_families
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tokens import tokenize
from verifiers.answers.tree import names, number, replace_symbols
from verifiers.answers.values import (
    EMPTY,
    Choice,
    Collection,
    Expression,
    Family,
    Literal,
    Named,
    Parameter,
    Reals,
    Value,
    bare,
    listed,
    nodes_of,
)

CHOICES = "ABCDEFGHJ"
_MAX_ITEMS = 60
_MAX_PERMUTED = 4
_LABELS = (("i", "ii", "iii", "iv", "v", "vi"), ("a", "b", "c", "d", "e", "f"), ("1", "2", "3", "4", "5", "6"))
_INCLUSIVE = separator("", "inclusive inclusively")
_EXCLUSIVE = separator("", "exclusive exclusively")
_BETWEEN = ("between", "closed between", "open between")


@lru_cache(maxsize=4096)
def read(text: str) -> Value | None:
    """The typed value of an answer as written; None if the grammar does not know its form."""
    try:
        return read_tokens(drop_leads(join_words(tokenize(text))))
    except UnreadableError:
        return None


def read_tokens(tokens: Tokens) -> Value | None:
    """The typed value of tokens without the words that lead to them; None where the grammar does not read them."""
    letter, rest = _choice(tokens)
    for reading in (lambda: _value(letter, rest), lambda: quantity(tokens), lambda: _things(tokens)):
        try:
            return reading()
        except UnreadableError:
            continue
        except (NoValueError, TooLargeError, RecursionError):
            return None
    return None


def _value(letter: str, tokens: Tokens) -> Value:
    if letter:
        if len(tokens) == 1 and tokens[0].kind == "letter":
            raise UnreadableError("two letters")
        return Choice(letter, statement(rewrite(tokens)))
    parts = amount(tokens) or amount(rewrite(tokens)) if has_unit(tokens) else None
    return parts or statement(rewrite(tokens))


def _things(tokens: Tokens) -> Value:
    value = number_of_things(number_in_front(tokens))
    if value is None:
        raise UnreadableError("no number of things")
    return value


def _choice(tokens: Tokens) -> tuple[str, Tokens]:
    """The letter of a choice beside its value, `(B) 24`, `B: 24` or `24 (B)`, and the rest; "" for none."""
    if len(tokens) > 3 and tokens[0].is_word("option", "choice"):
        tokens = tokens[1:]
    if len(tokens) > 3 and _is_bracketed_choice(tokens[-3:]) and tokens[-3].gap:
        if tokens[-4].kind in ("number", "word") or tokens[-4].is_sign("}"):  # 2010 (C)
            return tokens[-2].text, tokens[:-3]
    if len(tokens) > 3 and _is_bracketed_choice(tokens[:3]):
        is_value = tokens[3].kind in ("number", "function", "letter") or tokens[3].is_sign("-", "$", "|")
        return (tokens[1].text, tokens[3:]) if is_value else ("", tokens)
    is_one_of_several = any(
        before.is_sign(",", ";") and token.kind == "letter" and after.is_sign(":")
        for before, token, after in zip(tokens[2:], tokens[3:], tokens[4:], strict=False)
    )
    is_letter = len(tokens) > 2 and tokens[0].kind == "letter" and tokens[0].text in tuple(CHOICES)
    if is_letter and tokens[1].is_sign(")", ":", ".") and not is_one_of_several:
        return tokens[0].text, tokens[2:]
    return "", tokens


def _is_bracketed_choice(tokens: Tokens) -> bool:
    is_bracketed = tokens[0].is_sign("(") and tokens[2].is_sign(")")
    return is_bracketed and tokens[1].kind == "letter" and tokens[1].text in tuple(CHOICES)


# ------------------------------------------------------------------------------------------------ statements


def statement(tokens: Tokens) -> Value:
    """The value of a whole statement, with the conditions behind it."""
    texts = {token.text for token in tokens if token.kind in ("sign", "word")}
    for marks, reading in _READINGS:
        if not marks.isdisjoint(texts) and (value := reading(tokens)) is not None:
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
    if not _has(tokens, "≠"):
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
            value = _primes_with(value, statement(piece))
    return value


def _primes_with(members: Literal, condition: Value) -> Literal:
    if isinstance(condition, Reals | Family):
        return Literal("primes", tuple(p for p in members.parts if holds(condition, number(p))))
    raise UnreadableError("a condition on primes")


def _without_domain(tokens: Tokens) -> Value | None:
    """`f: ℝ → ℝ, f(x) = 2x` without its first part."""
    pieces, cuts = cut(tokens, at_signs(","))
    is_first = bool(cuts) and len(pieces[0]) > 2 and pieces[0][0].kind == "letter" and pieces[0][1].is_sign(":")
    return statement(tokens[len(pieces[0]) + 1 :]) if is_first and any(t.is_sign("→") for t in pieces[0]) else None


def _said_again(tokens: Tokens) -> Value:
    """The value of "1 < x < 2, i.e. (1, 2)", which is the same in each spelling."""
    from verifiers.answers.equality import equal

    pieces = [drop_leads(piece) for piece in cut(tokens, at_signs("same"))[0]]
    values = [statement(piece) for piece in pieces if piece]
    if not values or not all(equal(values[0], value) for value in values[1:]):
        raise UnreadableError("other values")
    return values[0]


def _except(tokens: Tokens) -> Value | None:
    """ "all real numbers except 2 and 3", "positive integers except 1": a set without the values behind it."""
    pieces, _ = cut(tokens, at_signs("except"))
    if len(pieces) < 2 or not pieces[0] or any(t.is_sign("∪", "∩", "∖") for t in tokens):
        return None
    if index_of(pieces[0], at_signs("powers")) is not None:
        return integer_class(tokens)
    value: Value = statement(pieces[0])
    letter = value.node.name if isinstance(value, Expression) and value.node.op == "symbol" else ""
    value = half_line("ℝ", letter) if letter else value
    for piece in pieces[1:]:
        other = statement(piece)
        if isinstance(other, Family) and (letter or isinstance(value, Family)):
            value = both(value, other_residues(other)) if isinstance(value, Family) else other_residues(other)
        elif isinstance(value, Family | Literal):
            value = without(value, numbers_in(other))
        elif (reals := as_reals(value)) is None or not reals.intervals:
            raise UnreadableError("an exception to something that is no set of reals")
        else:
            value = Reals(intersection(reals, complement(numbers_in(other))).intervals, reals.name)
    return value


def _between(tokens: Tokens) -> Value | None:
    """ "real numbers between 1 and 4", "integers from 1 to 10", "even integers between 1 and 9"; None for others."""
    place = index_of(tokens, at_signs(*_BETWEEN))
    if place is None:
        return None
    left, right = [t for t in tokens[:place] if not t.is_sign("ℝ")], list(tokens[place + 1 :])
    is_closed = tokens[place].text == "closed between" or any(map(_INCLUSIVE, right))
    is_stated = is_closed or any(map(_EXCLUSIVE, right)) or tokens[place].text == "open between"
    is_stated = is_stated and (any(map(_INCLUSIVE, right)) or any(map(_EXCLUSIVE, right)) or _has(right, ":"))
    right = [t for t in right if not _INCLUSIVE(t) and not _EXCLUSIVE(t)]
    while right and right[-1].is_sign(","):
        right.pop()
    ends = cut(right, lambda token: token.is_word("and") or token.is_sign(":"))[0]
    if len(ends) != 2:
        raise UnreadableError("between what?")
    low, high = (statement(end) for end in ends)
    nodes = nodes_of((low, high))
    if nodes is None:
        raise UnreadableError("between what?")
    reals = [interval(*nodes, has_low=closed, has_high=closed) for closed in (True, False)]
    if (numbers := integer_class(left) if left else None) is not None:
        lists = [restrict(numbers, each) for each in reals]
        if lists[0] != lists[1] and not is_stated:
            raise UnreadableError("with the ends or without?")
        return lists[0 if not any(map(_EXCLUSIVE, tokens)) else 1]
    left = [token for token in left if not token.is_word("is", "are")]
    if len(left) > 1 or (left and left[0].kind != "letter"):
        raise UnreadableError("between what?")
    return Reals(reals[not is_closed].intervals, left[0].text if left else "")


def _has(tokens: Tokens, sign: str) -> bool:
    return index_of(tokens, at_signs(sign)) is not None


def _from_to(tokens: Tokens) -> Value | None:
    """ "from 0 to 4 inclusive"; None where it is not said whether the ends count."""
    is_stated = _INCLUSIVE(tokens[-1]) or _EXCLUSIVE(tokens[-1])
    return _between([Token("sign", "between"), *tokens[1:]]) if tokens[0].is_word("from") and is_stated else None


def _named_interval(tokens: Tokens) -> Value | None:
    """ "the open interval (1, 2)", whose brackets must be those of its name; None for anything else."""
    if not tokens[0].is_sign("open interval", "closed interval"):
        return None
    value = statement(tokens[1:])
    brackets = "()" if tokens[0].text.startswith("open") else "[]"
    if not isinstance(value, Collection) or value.brackets != brackets:
        raise UnreadableError("an interval of another kind")
    return value


def _of_form(tokens: Tokens) -> Value | None:
    """Numbers of the form 4k + 1: letters without a condition are integers; "functions of the form f(x) = cx"."""
    place = index_of(tokens, at_signs("form"))
    if place is None:
        return None
    value = statement(tokens[place + 1 :])
    if isinstance(value, Expression) and names(value.node):
        value = Family(((value.node,),), tuple(Parameter(name) for name in sorted(names(value.node))))
    if _has(tokens[:place], "primes"):
        return _primes_with(Literal("primes", primes()), value)
    if isinstance(value, Family) or (isinstance(value, Named) and value.argument):
        return value
    raise UnreadableError("a form without a letter")


def _values_at_primes(tokens: Tokens) -> Value | None:
    """ "p or p^2 where p is prime": the values of expressions at all primes; None for other tokens."""
    head, conditions = split(tokens)
    if len(conditions) != 1 or not _has(conditions[0], "primes") or _has(head, "primes") or len(head) < 2:
        return None
    letters = [token.text for token in conditions[0] if token.kind == "letter"]
    value = bare(listing(head))
    if isinstance(value, Reals | Family):
        return _primes_with(Literal("primes", primes()), value)
    nodes = nodes_of(value.items if isinstance(value, Collection) and value.is_bare else (value,))
    if nodes is None or len(letters) != 1 or any(not names(node) <= {letters[0]} for node in nodes):
        raise UnreadableError("values of another letter")
    values = [rational(replace_symbols(node, {letters[0]: number(p)})) for node in nodes for p in primes()]
    if any(each is None or each.denominator != 1 for each in values):
        raise UnreadableError("values that are not whole")
    return Literal("primes", tuple(sorted({int(each) for each in values if each is not None})))


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
            parts = [_without_ends(list(tokens[start:end])) for (_, start), end in zip(starts, ends, strict=True)]
            if not all(parts):
                raise UnreadableError("a part without a value")
            return Named(tuple(f"part {n}" for n in range(1, len(parts) + 1)), tuple(map(statement, parts)))
    return None


def _permutations(tokens: Tokens) -> Value | None:
    """ "(1, 1, 2) and its permutations" as a list."""
    place = index_of(tokens, at_signs("permutations"))
    if place is None:
        return None
    if 2 < place < len(tokens) - 2:  # (1, 1) and permutations of (2, 3)
        behind = list(tokens[place + 1 :])
        behind = behind[1:] if behind[0].is_word("of") else behind
        return Collection("list", (statement(tokens[:place]), _orders_of(statement(behind))))
    rest = _without_ends([token for token in tokens if not token.is_sign("permutations")])
    return _orders_of(statement(rest))


def _orders_of(value: Value) -> Collection:
    """All tuples with the components of one, or of several, in another order."""
    if isinstance(value, Collection) and value.is_bare:
        return Collection("list", tuple(each for item_ in value.items for each in _orders_of(item_).items))
    is_tuple = isinstance(value, Collection) and value.kind == "tuple"
    if not (is_tuple or (isinstance(value, Named) and len(value.names) > 1)) or len(value.items) > _MAX_PERMUTED:
        raise UnreadableError("permutations of something else")
    orders = dict.fromkeys(permutations(value.items))
    return Collection("list", tuple(replace(value, items=order) for order in orders))


# Forms that are read before all others where one of their signs or words is there.
_READINGS: tuple[tuple[frozenset[str], Callable[[Tokens], Value | None]], ...] = (
    (frozenset(("→",)), _without_domain),
    (frozenset(("same",)), _said_again),
    (frozenset(("permutations",)), _permutations),
    (frozenset(("(",)), _labelled_parts),
    (frozenset(("if", "when", "where", "otherwise", "else")), lambda tokens: one_line_cases(tokens, statement)),
    (frozenset(("form",)), _of_form),
    (frozenset(("primes",)), _values_at_primes),
    (frozenset(("mod",)), congruence),
    (frozenset(("|", "∤")), divisible),
    (frozenset(("remainder",)), lambda t: None if any(map(RELATIONS, t)) else integer_class(t)),
    (frozenset(("powers",)), lambda t: None if any(t.is_sign("=", "∈") for t in t) else integer_class(t)),
    (frozenset(("except",)), _except),
    (frozenset(_BETWEEN), _between),
    (frozenset(("from",)), _from_to),
    (frozenset(("open interval", "closed interval")), _named_interval),
)


# ---------------------------------------------------------------------------------------------------- lists


def listing(tokens: Tokens) -> Value:
    """The value of items joined by "or", ";", "," and "and"."""
    if (named := _names(tokens) or _values_of_names(tokens)) is not None:
        return named
    pieces, cuts = cut(tokens, ALTERNATIVES)
    pieces = [each for each in map(_without_ends, pieces) if each]
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


def _without_ends(tokens: list[Token]) -> list[Token]:
    """The tokens without separators at either end."""
    ends = separator(", ; . \\\\", "and either")
    while tokens and ends(tokens[-1]):
        tokens = tokens[:-1]
    while tokens and ends(tokens[0]):
        tokens = tokens[1:]
    return tokens


def _names(tokens: Tokens) -> Value | None:
    """Anna, Ben and Clara: names in any order; None for anything else."""
    pieces = [piece for piece in cut(tokens, lambda t: ALTERNATIVES(t) or CONJUNCTIONS(t))[0] if piece]
    are_names = len(pieces) > 1 and all(t.kind == "word" and t.text not in WORDS for piece in pieces for t in piece)
    names_ = [Literal("words", (" ".join(token.text for token in piece),)) for piece in pieces]
    return Collection("list", tuple(names_)) if are_names else None


def _values_of_names(tokens: Tokens) -> Named | None:
    """`Ann: 12, Ben: 15` and "Ben has 15 and Ann has 12"; None for anything else, and for a single name."""
    if not any(token.kind == "word" and token.text not in WORDS for token in tokens) and not _has(tokens, ":"):
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
    pieces = [each for each in map(_without_ends, pieces) if each]
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
            members = _primes_with(members, each)
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
    is_point = isinstance(value, Named) and isinstance(inner, Expression) and not names(inner.node)
    return Reals(points([inner.node]).intervals, value.names[0]) if is_point else value


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


_ = (SET_OPERATIONS, bracket_content, listed)
