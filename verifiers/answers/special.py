"""Forms of answers that are told by one sign or word, and are read before all others."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

from verifiers.answers.conditions import Statement, split
from verifiers.answers.equality import equal
from verifiers.answers.integers import (
    both,
    congruence,
    divisible,
    integer_class,
    other_residues,
    primes,
    restrict,
    without,
)
from verifiers.answers.phrases import drop_leads
from verifiers.answers.piecewise import holds, one_line_cases
from verifiers.answers.rationals import rational
from verifiers.answers.reals import as_reals, complement, half_line, intersection, interval
from verifiers.answers.syntax import RELATIONS, Tokens, at_signs, cut, index_of, separator, text_of, without_ends
from verifiers.answers.terms import numbers_in
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tree import names, number, replace_symbols
from verifiers.answers.values import (
    Collection,
    Expression,
    Family,
    Literal,
    Named,
    Parameter,
    Reals,
    Value,
    bare,
    nodes_of,
)

_MAX_PERMUTED = 4
_LABELS = (("i", "ii", "iii", "iv", "v", "vi"), ("a", "b", "c", "d", "e", "f"), ("1", "2", "3", "4", "5", "6"))
_INCLUSIVE = separator("", "inclusive inclusively")
_EXCLUSIVE = separator("", "exclusive exclusively")
_OPERATORS = separator("+ - * / ^ =")
_BETWEEN = ("between", "closed between", "open between")


def _of_class(tokens: Tokens, _statement: Statement) -> Value | None:
    """Powers with their bounds, and remainders; None beside another relation."""
    is_bound = any(token.is_sign("powers") for token in tokens)
    is_related = any(token.is_sign("=", "∈") if is_bound else RELATIONS(token) for token in tokens)
    return None if is_related else integer_class(tokens)


def _without_domain(tokens: Tokens, statement: Statement) -> Value | None:
    """`f: ℝ → ℝ, f(x) = 2x` without its first part."""
    pieces, cuts = cut(tokens, at_signs(","))
    is_first = bool(cuts) and len(pieces[0]) > 2 and pieces[0][0].kind == "letter" and pieces[0][1].is_sign(":")
    return statement(tokens[len(pieces[0]) + 1 :]) if is_first and any(t.is_sign("→") for t in pieces[0]) else None


def _said_again(tokens: Tokens, statement: Statement) -> Value:
    """The value of "1 < x < 2, i.e. (1, 2)", which is the same in each spelling."""
    pieces = [drop_leads(piece) for piece in cut(tokens, at_signs("same"))[0]]
    values = [statement(piece) for piece in pieces if piece]
    if not values or not all(equal(values[0], value) for value in values[1:]):
        raise UnreadableError("other values")
    return values[0]


def _except(tokens: Tokens, statement: Statement) -> Value | None:
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


def _between(tokens: Tokens, statement: Statement) -> Value | None:
    """ "real numbers between 1 and 4", "integers from 1 to 10", "even integers between 1 and 9"; None for others."""
    place = index_of(tokens, at_signs(*_BETWEEN))
    if place is None:
        return None
    left, right = [t for t in tokens[:place] if not t.is_sign("ℝ")], list(tokens[place + 1 :])
    is_closed = tokens[place].text == "closed between" or any(map(_INCLUSIVE, right))
    is_stated = is_closed or any(map(_EXCLUSIVE, right)) or tokens[place].text == "open between"
    is_stated = is_stated and (any(map(_INCLUSIVE, right)) or any(map(_EXCLUSIVE, right)) or has(right, ":"))
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


def has(tokens: Tokens, sign: str) -> bool:
    return index_of(tokens, at_signs(sign)) is not None


def _from_to(tokens: Tokens, statement: Statement) -> Value | None:
    """ "from 0 to 4 inclusive"; None where it is not said whether the ends count."""
    is_stated = _INCLUSIVE(tokens[-1]) or _EXCLUSIVE(tokens[-1])
    return (
        _between([Token("sign", "between"), *tokens[1:]], statement)
        if tokens[0].is_word("from") and is_stated
        else None
    )


def _named_interval(tokens: Tokens, statement: Statement) -> Value | None:
    """ "the open interval (1, 2)", whose brackets must be those of its name; None for anything else."""
    if not tokens[0].is_sign("open interval", "closed interval"):
        return None
    value = statement(tokens[1:])
    brackets = "()" if tokens[0].text.startswith("open") else "[]"
    if not isinstance(value, Collection) or value.brackets != brackets:
        raise UnreadableError("an interval of another kind")
    return value


def _of_form(tokens: Tokens, statement: Statement) -> Value | None:
    """Numbers of the form 4k + 1: letters without a condition are integers; "functions of the form f(x) = cx"."""
    place = index_of(tokens, at_signs("form"))
    if place is None:
        return None
    value = statement(tokens[place + 1 :])
    if isinstance(value, Expression) and names(value.node):
        value = Family(((value.node,),), tuple(Parameter(name) for name in sorted(names(value.node))))
    if has(tokens[:place], "primes"):
        return primes_with(Literal("primes", primes()), value)
    if isinstance(value, Family) or (isinstance(value, Named) and value.argument):
        return value
    raise UnreadableError("a form without a letter")


def primes_with(members: Literal, condition: Value) -> Literal:
    if isinstance(condition, Reals | Family):
        return Literal("primes", tuple(p for p in members.parts if holds(condition, number(p))))
    raise UnreadableError("a condition on primes")


def _values_at_primes(tokens: Tokens, statement: Statement) -> Value | None:
    """ "p or p^2 where p is prime": the values of expressions at all primes; None for other tokens."""
    head, conditions = split(tokens)
    if len(conditions) != 1 or not has(conditions[0], "primes") or has(head, "primes") or len(head) < 2:
        return None
    letters = [token.text for token in conditions[0] if token.kind == "letter"]
    value = bare(statement(head))
    if isinstance(value, Reals | Family):
        return primes_with(Literal("primes", primes()), value)
    nodes = nodes_of(value.items if isinstance(value, Collection) and value.is_bare else (value,))
    if nodes is None or len(letters) != 1 or any(not names(node) <= {letters[0]} for node in nodes):
        raise UnreadableError("values of another letter")
    values = [rational(replace_symbols(node, {letters[0]: number(p)})) for node in nodes for p in primes()]
    if any(each is None or each.denominator != 1 for each in values):
        raise UnreadableError("values that are not whole")
    return Literal("primes", tuple(sorted({int(each) for each in values if each is not None})))


def _labelled_parts(tokens: Tokens, statement: Statement) -> Value | None:
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


def _permutations(tokens: Tokens, statement: Statement) -> Value | None:
    """ "(1, 1, 2) and its permutations" as a list."""
    place = index_of(tokens, at_signs("permutations"))
    if place is None:
        return None
    if 2 < place < len(tokens) - 2:  # (1, 1) and permutations of (2, 3)
        behind = list(tokens[place + 1 :])
        behind = behind[1:] if behind[0].is_word("of") else behind
        return Collection("list", (statement(tokens[:place]), _orders_of(statement(behind))))
    rest = without_ends([token for token in tokens if not token.is_sign("permutations")])
    return _orders_of(statement(rest))


def _orders_of(value: Value) -> Collection:
    """All tuples with the components of one, or of several, in another order."""
    if isinstance(value, Collection) and value.is_bare:
        return Collection("list", tuple(each for item_ in value.items for each in _orders_of(item_).items))
    is_row = (isinstance(value, Collection) and value.kind == "tuple") or isinstance(value, Named)
    if not is_row or not isinstance(value, Collection | Named) or len(value.items) > _MAX_PERMUTED:
        raise UnreadableError("permutations of something else")
    orders = dict.fromkeys(permutations(value.items))
    return Collection("list", tuple(replace(value, items=order) for order in orders))


# Forms that are read before all others where one of their signs or words is there.
SPECIAL_FORMS: tuple[tuple[frozenset[str], Callable[[Tokens, Statement], Value | None]], ...] = (
    (frozenset(("→",)), _without_domain),
    (frozenset(("same",)), _said_again),
    (frozenset(("permutations",)), _permutations),
    (frozenset(("(",)), _labelled_parts),
    (frozenset(("if", "when", "where", "otherwise", "else")), one_line_cases),
    (frozenset(("form",)), _of_form),
    (frozenset(("primes",)), _values_at_primes),
    (frozenset(("mod", "|", "∤")), lambda tokens, _: congruence(tokens) or divisible(tokens)),
    (frozenset(("remainder", "powers")), _of_class),
    (frozenset(("except",)), _except),
    (frozenset(_BETWEEN), _between),
    (frozenset(("from",)), _from_to),
    (frozenset(("open interval", "closed interval")), _named_interval),
)
