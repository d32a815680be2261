"""The grammar above expressions: the typed value of a whole answer, with the conditions behind it.

From the loosest to the tightest: conditions behind ("where k is an integer"); "or" and ";", then commas and "and"
(listings.py); relations (items.py); terms (terms.py): sets, brackets, environments, and single expressions
(expressions.py).
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from verifiers.answers.amounts import amount, has_unit, number_of_things
from verifiers.answers.choices import CHOICES
from verifiers.answers.congruences import spread_modulus, with_congruences
from verifiers.answers.equivalence import equal
from verifiers.answers.integer_sets import (
    integer_set,
    integers_with,
    integers_without,
    of_form,
    other_residues,
    remainders,
    residue_class,
)
from verifiers.answers.items import RELATIONS, item
from verifiers.answers.listings import listing, permutations_of
from verifiers.answers.names_in_words import labelled_parts
from verifiers.answers.number_sets import BETWEEN, between, from_to, named_interval
from verifiers.answers.parameters import attach
from verifiers.answers.phrases import drop_leads, join_words, number_in_front, rewrite
from verifiers.answers.pieces import one_line_cases
from verifiers.answers.primes import primes
from verifiers.answers.qualifiers import split_qualifiers
from verifiers.answers.quantities import quantity
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.reals import ALL_REALS, as_reals, complement, intersection
from verifiers.answers.sentences import bare, stated_values
from verifiers.answers.sentences_of_nothing import states_nothing
from verifiers.answers.slices import Tokens, at_signs, cut
from verifiers.answers.terms import numbers_of
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tokens import tokenize
from verifiers.answers.tree import names
from verifiers.answers.values import Assignments, Choice, Expression, Family, Nothing, Reals, Sequence, Value


@lru_cache(maxsize=4096)
def read(text: str) -> Value | None:
    """The typed value of an answer as written; None if the grammar does not know its form."""
    try:
        return _read(text)
    except (NoValueError, TooLargeError, RecursionError):
        return None


def _read(text: str) -> Value | None:
    try:
        tokens = list(tokenize(text))
        if states_nothing(tokens):
            return Nothing()
        tokens = bare(drop_leads(join_words(tokens)))
        choice, rest = _choice(tokens)
        if not choice:
            parts = amount(tokens) or amount(rewrite(tokens)) if has_unit(tokens) else None
            return parts or statement(rewrite(tokens))
        if len(rest) == 1 and rest[0].kind == "letter":
            raise UnreadableError("two letters")
        return Choice(choice, statement(rewrite(rest)))
    except UnreadableError:
        return _quantity(text)


@lru_cache(maxsize=4096)
def read_sentence(text: str) -> Value | None:
    """The typed value that a sentence around one value states; None where it states none."""
    try:
        candidates = stated_values(join_words(tokenize(text)))
        return next((value for tokens in candidates if (value := read_tokens(tokens)) is not None), None)
    except (UnreadableError, NoValueError, TooLargeError, RecursionError):
        return None


def read_tokens(tokens: Tokens) -> Value | None:
    """The typed value of tokens; None where the grammar does not read them."""
    try:
        value = statement(rewrite(tokens))
        has_letters = isinstance(value, Expression) and names(value.node)
        return amount(tokens) or value if has_letters else value
    except (NoValueError, TooLargeError, RecursionError):
        return None
    except UnreadableError:
        pass
    try:
        return quantity(tokens)
    except UnreadableError:
        return None


def tokens_of(text: str) -> tuple[Token, ...]:
    """The tokens of an answer in words without the words that lead to it; empty where there are none."""
    try:
        return tuple(drop_leads(join_words(tokenize(text))))
    except UnreadableError:
        return ()


def read_with_units(text: str, value: Value) -> Value:
    """The value of a text beside an amount: where its letters can be units, `5m`, an amount as well."""
    named = isinstance(value, Assignments) and len(value.names) == 1
    inner = value.items[0] if isinstance(value, Assignments) and named else value
    if not isinstance(inner, Expression) or not names(inner.node):
        return value
    try:
        return amount(cut(tokenize(text), at_signs("="))[0][-1] if named else tokenize(text)) or value  # v = 15 m/s
    except UnreadableError:
        return value


def _quantity(text: str) -> Value | None:
    try:
        return quantity(drop_leads(join_words(tokenize(text))))
    except UnreadableError:
        pass
    try:
        return number_of_things(number_in_front(drop_leads(join_words(tokenize(text)))))
    except UnreadableError:
        return None


def choice_in_words(text: str) -> tuple[str, list[Token]]:
    """The letter of a choice and the words behind it, "(E) none of these"; "" for none."""
    tokens = list(tokens_of(text))
    is_choice = len(tokens) > 3 and tokens[0].is_sign("(") and tokens[1].kind == "letter" and tokens[2].is_sign(")")
    return (tokens[1].text, tokens[3:]) if is_choice and tokens[1].text in CHOICES else ("", tokens)


def _choice(tokens: list[Token]) -> tuple[str, list[Token]]:
    """The letter of a choice that stands before its value, `(B) 24` or `B: 24`, and the rest; "" for none."""
    if len(tokens) > 3 and tokens[0].is_word("option", "choice"):
        tokens = tokens[1:]
    behind = tokens[-3:]
    is_behind = len(tokens) > 3 and behind[0].is_sign("(") and behind[0].gap and behind[2].is_sign(")")
    if (
        is_behind and behind[1].text in CHOICES and (tokens[-4].kind in ("number", "word") or tokens[-4].is_sign("}"))
    ):  # 2010 (C)
        return behind[1].text, tokens[:-3]
    letters = [token.text if token.kind == "letter" and token.text in CHOICES else "" for token in tokens[:2]]
    if len(tokens) > 3 and tokens[0].is_sign("(") and letters[1] and tokens[2].is_sign(")"):
        is_value = tokens[3].kind in ("number", "function", "letter") or tokens[3].is_sign("-", "$", "|")
        return (letters[1], tokens[3:]) if is_value else ("", tokens)
    is_one_of_several = any(
        before.is_sign(",", ";") and token.kind == "letter" and after.is_sign(":")
        for before, token, after in zip(tokens[2:], tokens[3:], tokens[4:], strict=False)
    )
    if len(tokens) > 2 and letters[0] and tokens[1].is_sign(")", ":", ".") and not is_one_of_several:
        return letters[0], tokens[2:]
    return "", tokens


def statement(tokens: Tokens) -> Value:
    """The value of a whole statement, with the conditions behind it."""
    texts = {token.text for token in tokens if token.kind in ("sign", "word")}
    if "→" in texts:
        tokens = _without_domain(tokens)
    if ("where" in texts or "∀" in texts) and "=" in texts:
        tokens = _without_arguments(tokens)
    for marks, reading in _READINGS:
        if not marks.isdisjoint(texts) and (value := reading(tokens)) is not None:
            return value
    if "same" in texts:
        return _said_again(tokens)
    if "mod" in texts and "=" in texts:
        tokens = with_congruences(tokens)
        texts = {token.text for token in tokens}
    pieces, exceptions = cut(tokens, at_signs("except"))
    if exceptions and pieces[0] and not any(token.is_sign("∪", "∩", "∖") for token in tokens):
        return _except(pieces, statement(pieces[0]))
    tokens = spread_modulus(tokens) if "≡" in texts else _spread_exclusions(tokens) if "≠" in texts else tokens
    head, qualifiers = split_qualifiers(tokens)
    value = item(head, statement) if _is_congruence(head) else listing(head, statement)
    return attach(value, qualifiers, statement) if qualifiers else value


def _without_domain(tokens: Tokens) -> Tokens:
    """`f: ℝ → ℝ, f(x) = 2x` without its first part."""
    pieces, cuts = cut(tokens, at_signs(","))
    is_first = bool(cuts) and len(pieces[0]) > 2 and pieces[0][0].kind == "letter" and pieces[0][1].is_sign(":")
    return tokens[len(pieces[0]) + 1 :] if is_first and any(token.is_sign("→") for token in pieces[0]) else tokens


def _without_arguments(tokens: Tokens) -> list[Token]:
    """The tokens without "for all x" and "for all real x" behind f(x) = ..."""
    runs = zip(tokens, tokens[1:], tokens[2:], tokens[3:], tokens[4:], strict=False)
    arguments = {run[2].text for run in runs if run[0].kind == "letter" and _text(run[1:]) == f"({run[2].text})="}
    pieces, cuts = cut(tokens, lambda token: token.is_sign(",", ";", "∀") or token.is_word("and", "or", "where"))
    result = list(pieces[0])
    for piece, separator in zip(pieces[1:], cuts, strict=True):
        rest = [token for token in piece if not (token.is_sign("ℝ", "∈") or token.is_word("real", "all", "any"))]
        is_on_argument = (
            (separator.is_word("where") or separator.is_sign("∀")) and len(rest) == 1 and rest[0].text in arguments
        )
        result += [] if is_on_argument else [separator, *piece]
    return result


def _text(tokens: Tokens) -> str:
    return "".join(token.text for token in tokens)


def _said_again(tokens: Tokens) -> Value:
    """The value of "1 < x < 2, i.e. (1, 2)", which is the same in each spelling."""
    pieces = [bare(drop_leads(piece)) for piece in cut(tokens, at_signs("same"))[0]]
    values = [statement(drop_leads([*piece])) for piece in pieces if piece]
    if not values or not all(equal(values[0], value) for value in values[1:]):
        raise UnreadableError("other values")
    return values[0]


def _permutations(tokens: Tokens) -> Value | None:
    """ "(1, 1, 2) and its permutations" as a list."""
    place = next((place for place, token in enumerate(tokens) if token.is_sign("permutations")), 0)
    if 2 < place < len(tokens) - 2:  # (1, 1) and permutations of (2, 3)
        first, behind = drop_leads(tokens[:place]), tokens[place + 1 :]
        items = (statement(first), permutations_of(statement(behind[1:] if behind[0].is_word("of") else behind)))
        return Sequence("list", items)
    if not (tokens[-1].is_sign("permutations") or tokens[0].is_sign("permutations")):
        return None
    rest = [token for token in tokens if not token.is_sign("permutations")]
    return permutations_of(statement(rest[:-1] if rest and rest[-1].is_sign(",") else rest))


# Forms that are read before all others where one of their signs or words is there.
_READINGS: tuple[tuple[frozenset[str], Callable[[Tokens], Value | None]], ...] = (
    (frozenset(("powers",)), integer_set),
    (frozenset(("remainder",)), remainders),
    (frozenset(BETWEEN), between),
    (frozenset(("from",)), from_to),
    (frozenset(("open interval", "closed interval")), lambda tokens: named_interval(tokens, statement)),
    (frozenset(("primes",)), lambda tokens: primes(tokens, statement, numbers_of)),
    (frozenset(("form",)), lambda tokens: of_form(tokens, statement)),
    (frozenset(("(",)), lambda tokens: labelled_parts(tokens, statement)),
    (frozenset(("if", "when", "where", "otherwise", "else")), lambda tokens: one_line_cases(tokens, statement)),
    (frozenset(("permutations",)), _permutations),
)


def _except(pieces: list[list[Token]], value: Value) -> Value:
    """A set of reals without the values that are named behind it."""
    is_letter = isinstance(value, Expression) and value.node.op == "symbol"
    if (
        len(pieces) == 2
        and pieces[1][:1]
        and pieces[1][0].is_sign("multiples")
        and (isinstance(value, Family) or is_letter)
    ):
        multiples = residue_class([Token("number", "0"), Token("word", "mod"), *pieces[1][1:]])
        if not isinstance(multiples, Family):
            raise UnreadableError("multiples of what?")
        others = other_residues(multiples)
        return integers_with(value.parameters[0], others) if isinstance(value, Family) else others
    if isinstance(value, Family) and len(pieces) == 2:
        return integers_without(value, numbers_of(pieces[1], statement))
    reals = as_reals(value)
    if reals is None and isinstance(value, Expression) and value.node.op == "symbol":
        reals = Reals(ALL_REALS.intervals, value.node.name)
    if reals is None or not reals.intervals:
        raise UnreadableError("an exception to something that is no set of reals")
    for piece in pieces[1:]:
        reals = intersection(reals, complement(numbers_of(piece, statement)))
    return Reals(reals.intervals, reals.name)


def _is_congruence(tokens: Tokens) -> bool:
    """Whether there is one congruence, `n ≡ 2, 3 (mod 7)` or `2, 3 (mod 7)`, whose commas separate residues."""
    num_congruences = len(cut(tokens, at_signs("≡", "≢"))[1])
    is_bare = bool(tokens) and tokens[0].kind == "number" and not num_congruences and not cut(tokens, RELATIONS)[1]
    return (num_congruences == 1 or is_bare) and sum(token.is_word("mod") for token in tokens) == 1


def _spread_exclusions(tokens: Tokens) -> list[Token]:
    """`x ≠ 2, 3` and "x not equal to 2 or 3" as two conditions that hold together."""
    pieces, cuts = cut(tokens, lambda token: token.is_sign(",") or token.is_word("and", "or", "where"))
    result: list[Token] = list(pieces[0])
    left: list[Token] | None = None
    for piece, before, separator in zip(pieces[1:], pieces, cuts, strict=False):
        sides, relations = cut(before, RELATIONS)
        if len(relations) == 1 and relations[0].text == "≠":
            left = sides[0]
        elif relations:
            left = None
        if left and piece and not cut(piece, RELATIONS)[1]:
            result += [Token("word", "and"), *left, Token("sign", "≠"), *piece]
        else:
            result += [separator, *piece]
    return result
