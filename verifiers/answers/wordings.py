"""Forms of answers that one sign or word tells, read before all others: "between 1 and 4", "(i) 12 (ii) 20"."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from itertools import permutations

from verifiers.answers.cases import cases_in_line
from verifiers.answers.integers import both, congruence, difference, divisible, either, family, has_class, integer_class
from verifiers.answers.reals import half_line, interval
from verifiers.answers.symbols import WORDS
from verifiers.answers.syntax import (
    CONDITIONS,
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
from verifiers.answers.terms import without
from verifiers.answers.tree import names
from verifiers.answers.values import (
    Collection,
    Expression,
    Family,
    Integers,
    Literal,
    Named,
    Reals,
    Value,
    nodes_of,
)

Statement = Callable[[Tokens], Value]
_MAX_PERMUTED = 4
_LABELS = (("i", "ii", "iii", "iv", "v", "vi"), ("a", "b", "c", "d", "e", "f"), ("1", "2", "3", "4", "5", "6"))
_OPERATORS = separator("+ - * / ^ =")
_INCLUSIVE, _EXCLUSIVE = separator("", "inclusive inclusively"), separator("", "exclusive exclusively")
_BETWEEN = ("between", "closed between", "open between")


def wording_of(tokens: Tokens, statement: Statement) -> Value | None:
    """The value of tokens in one of the forms; None for others."""
    texts = {token.text for token in tokens if token.kind in ("sign", "word")}
    if tokens[0].text != "(" and _MARKS.isdisjoint(texts):
        return None
    for marks, reading in _FORMS:
        if not marks.isdisjoint(texts) and (value := reading(tokens, statement)) is not None:
            return value
    return None


def _without_domain(tokens: Tokens, statement: Statement) -> Value | None:
    """`f: ℝ → ℝ, f(x) = 2x` without its first part."""
    pieces, cuts = cut(tokens, at_signs(","))
    is_first = bool(cuts) and len(pieces[0]) > 2 and pieces[0][0].kind == "letter" and pieces[0][1].is_sign(":")
    return statement(tokens[len(pieces[0]) + 1 :]) if is_first and has_sign(pieces[0], "→") else None


def _changed(tokens: Tokens, statement: Statement) -> Value | None:
    """A set with or without more values: "all reals except 2 and 3", "powers of 2, including 1"."""
    pieces, marks = cut(tokens, at_signs("except", "including"))
    pieces = [without_ends(piece) for piece in pieces]
    if not marks or not pieces[0]:
        return None
    value = statement(pieces[0])
    if isinstance(value, Expression) and value.node.op == "symbol":  # all n except n = 2
        letter = value.node.name
        has_integers = any(isinstance(statement(piece), Integers | Family) for piece in pieces[1:])
        value = family(value.node) if has_integers else half_line("ℝ", letter)
        value = replace(value, letters=((letter, None),)) if isinstance(value, Family) else value
    for mark, piece in zip(marks, pieces[1:], strict=True):
        other = statement(piece)
        if isinstance(value, Integers | Family):
            value = difference(value, other) if mark.text == "except" else either(value, other)
        elif mark.text == "except":
            value = without(value, other)
        else:
            raise UnreadableError("a set with more values")
    return value


def _between(tokens: Tokens, statement: Statement) -> Value | None:
    """ "real numbers between 1 and 4", "integers from 1 to 10", "even integers between 1 and 9"; None for others."""
    place = index_of(tokens, at_signs(*_BETWEEN))
    if tokens[0].is_word("from") and (_INCLUSIVE(tokens[-1]) or _EXCLUSIVE(tokens[-1])):
        place, tokens = 0, [Token("sign", "between"), *tokens[1:]]
    if place is None:
        return None
    left, right = [t for t in tokens[:place] if not t.is_sign("ℝ")], list(tokens[place + 1 :])
    has_in, has_out = any(map(_INCLUSIVE, right)), any(map(_EXCLUSIVE, right))
    is_closed = tokens[place].text == "closed between" or has_in
    right = without_ends([t for t in right if not _INCLUSIVE(t) and not _EXCLUSIVE(t)])
    ends = cut(right, lambda token: token.is_word("and") or token.is_sign(":"))[0]
    nodes = nodes_of(tuple(map(statement, ends)))
    if nodes is None or len(nodes) != 2:
        raise UnreadableError("between what?")
    reals = [interval(*nodes, has_low=closed, has_high=closed) for closed in (True, False)]
    if has_class(left):
        numbers = integer_class(left)
        assert numbers is not None
        lists = [both(numbers, each) for each in reals]
        is_same = lists[0].members(1_000) == lists[1].members(1_000)
        if not (is_same or has_in or has_out or has_sign(right, ":")):
            raise UnreadableError("with the ends or without?")
        return lists[0 if not has_out else 1]
    left = [token for token in left if not token.is_word("is", "are")]
    if len(left) > 1 or (left and left[0].kind != "letter"):
        raise UnreadableError("between what?")
    return Reals(reals[not is_closed].intervals, left[0].text if left else "")


def _residues(tokens: Tokens, _statement: Statement) -> Value | None:
    """Residues and divisors, whose commas and "or" separate no answers: `n ≡ 0, 1 (mod 3)`."""
    if any(token.text.startswith("begin ") or CONDITIONS(token) for token in tokens):
        return None
    if has_sign(tokens, "remainder"):
        return None if any(map(RELATIONS, tokens)) else integer_class(tokens)
    return congruence(tokens) or divisible(tokens)


def _of_form(tokens: Tokens, statement: Statement) -> Value | None:
    """Numbers of the form 4k + 1: letters without a condition are integers; "functions of the form f(x) = cx"."""
    place = index_of(tokens, at_signs("form"))
    if place is None:
        return None
    value = statement(tokens[place + 1 :])
    if isinstance(value, Expression) and names(value.node):
        value = Family(((value.node,),), tuple((name, None) for name in sorted(names(value.node))))
    if has_sign(tokens[:place], "primes"):
        members = integer_class(tokens[:place])
        assert members is not None
        return both(members, value)
    return value


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
    return _orders_of(statement(without_ends([token for token in tokens if not token.is_sign("permutations")])))


def _orders_of(value: Value) -> Collection:
    """All tuples with the components of one, or of several, in another order."""
    if isinstance(value, Collection) and value.is_bare:
        return Collection("list", tuple(each for item in value.items for each in _orders_of(item).items))
    is_row = (isinstance(value, Collection) and value.kind == "tuple") or isinstance(value, Named)
    if not is_row or not isinstance(value, Collection | Named) or len(value.items) > _MAX_PERMUTED:
        raise UnreadableError("permutations of something else")
    return Collection("list", tuple(replace(value, items=order) for order in dict.fromkeys(permutations(value.items))))


# ------------------------------------------------------------------------------------------- names and values


def names_or_values(tokens: Tokens, statement: Statement) -> Value | None:
    """Anna, Ben and Clara, in any order; `Ann: 12, Ben: 15`, "Ben has 15 and Ann has 12"; None for anything else."""
    is_name = [token.kind == "word" and token.text not in WORDS for token in tokens]
    if not any(is_name) and not has_sign(tokens, ":"):
        return None
    pieces = [piece for piece in cut(tokens, separator(", ; \\\\", "and or"))[0] if piece]
    if len(pieces) > 1 and all(t.kind == "word" and t.text not in WORDS for piece in pieces for t in piece):
        return Collection("list", tuple(Literal("words", (text_of(piece),)) for piece in pieces))
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


_FORMS: tuple[tuple[frozenset[str], Callable[[Tokens, Statement], Value | None]], ...] = (
    (frozenset(("→",)), _without_domain),
    (frozenset(("permutations",)), _permutations),
    (frozenset(("(",)), _labelled_parts),
    (frozenset(("if", "when", "where", "otherwise", "else")), cases_in_line),
    (frozenset(("mod", "|", "∤", "remainder")), _residues),
    (frozenset(("form",)), _of_form),
    (frozenset(("except", "including")), _changed),
    (frozenset((*_BETWEEN, "from")), _between),
)
_MARKS = frozenset().union(*(marks for marks, _ in _FORMS)) - {"("}
