"""Reading an answer: the letter of a choice in front, words in brackets behind, quantities, any other statement."""

from __future__ import annotations

from functools import lru_cache

from verifiers.answers.amounts import amount, has_unit, number_of_things
from verifiers.answers.equality import equal
from verifiers.answers.number_words import has_noun, number_in_front
from verifiers.answers.phrases import drop_leads, join_words, rewrite
from verifiers.answers.quantities import quantity
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.relations import with_approximation
from verifiers.answers.statements import statement
from verifiers.answers.syntax import Token, Tokens, UnreadableError, bracket_content
from verifiers.answers.tokens import tokenize
from verifiers.answers.values import (
    EMPTY,
    Choice,
    Expression,
    Value,
)

CHOICES = "ABCDEFGHJ"


@lru_cache(maxsize=4096)
def read(text: str) -> Value | None:
    """The typed value of an answer as written; None if the grammar does not know its form."""
    tokens = words_of(text)
    return read_tokens(tokens) if tokens else None


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[Token, ...]:
    """The tokens of an answer without the words that lead to it; empty where it is not read."""
    try:
        return tuple(drop_leads(join_words(tokenize(text))))
    except UnreadableError:
        return ()


def read_tokens(tokens: Tokens) -> Value | None:
    """The typed value of tokens without the words that lead to them; None where the grammar does not read them."""
    if (value := _without_aside(tokens)) is not None:
        return value
    for reading in (_value, quantity, _things):
        try:
            return reading(tokens)
        except UnreadableError:
            continue
        except (NoValueError, TooLargeError, RecursionError):
            return None
    return None


def _value(tokens: Tokens) -> Value:
    letter, tokens = _choice(tokens)
    if letter:
        if len(tokens) == 1 and tokens[0].kind == "letter":
            raise UnreadableError("two letters")
        return Choice(letter, statement(rewrite(tokens)))
    parts = amount(tokens) or amount(rewrite(tokens)) if has_unit(tokens) else None
    return parts or statement(rewrite(tokens))


_NOTHING_WORDS = (
    "no such real integer positive solution solutions value values number numbers root roots of exist exists"
)
_NOTHING = frozenset(_NOTHING_WORDS.split())


def _without_aside(tokens: Tokens) -> Value | None:
    """ "no such x", and a value without the words in brackets behind it: the value again, its noun, or a reason."""
    words = [token.text for token in tokens if token.kind == "word"]
    if words[:1] == ["no"] and tokens[0].kind == "word" and _NOTHING.issuperset(words) and len(tokens) > 1:
        return EMPTY if len(words) >= len(tokens) - 1 and tokens[-1].kind in ("word", "letter") else None
    place = max((k for k, token in enumerate(tokens) if token.is_sign("(") and token.gap), default=0)
    inside = bracket_content(tokens[place:]) if place else None
    if inside is None or not (words or (inside[1][:1] and inside[1][0].is_sign("≈"))):
        return None
    head, aside = read_tokens(tokens[:place]), read_tokens(drop_leads(inside[1]))
    if head is None or inside[1][0].is_word("since", "because"):
        return head
    if isinstance(aside, Expression):
        is_again = equal(head, aside) is True
        return head if is_again else with_approximation(head, aside.node) if aside.is_rounded else None
    is_noun = all(token.kind == "word" for token in inside[1]) and has_noun([token.text for token in inside[1]])
    return read_tokens([*tokens[:place], *inside[1]]) if is_noun else None


def _things(tokens: Tokens) -> Value:
    value = number_of_things(number_in_front(tokens))
    if value is None:
        raise UnreadableError("no number of things")
    return value


def _choice(tokens: Tokens) -> tuple[str, Tokens]:
    """The letter of a choice beside its value, `(B) 24`, `B: 24` or `24 (B)`, and the rest; "" for none."""
    if len(tokens) > 3 and tokens[0].is_word("option", "choice"):
        tokens = tokens[1:]
    is_behind = len(tokens) > 3 and _is_bracketed_choice(tokens[-3:]) and tokens[-3].gap
    if is_behind and (tokens[-4].kind in ("number", "word") or tokens[-4].is_sign("}")):  # 2010 (C)
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
