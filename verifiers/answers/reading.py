"""Reading an answer: the letter of a choice in front, words in brackets behind, quantities, any other statement."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from verifiers.answers.amounts import amount, has_unit, number_of_things
from verifiers.answers.equality import equal
from verifiers.answers.number_words import has_noun, in_words, number_in_front
from verifiers.answers.phrases import drop_leads, join_words, rewrite
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.statements import statement, with_approximation
from verifiers.answers.syntax import Token, Tokens, UnreadableError, at_signs, bracket_content, cut, text_of
from verifiers.answers.tokens import tokenize
from verifiers.answers.values import (
    EMPTY,
    Choice,
    Expression,
    Literal,
    Value,
)

CHOICES = "ABCDEFGHJ"
_LABELS = (("i", "ii"), ("a", "b"))


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
    has_labels = any(all(f"({label})" in text_of(tokens) for label in labels) for labels in _LABELS)
    if has_labels and any(token.kind == "number" for token in tokens):
        return None  # values of several parts
    if (value := _without_aside(tokens)) is not None:
        return value
    for reading in (_value, _quantity, _things):
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


# ----------------------------------------------------------------------------------------------- quantities


def _quantity(tokens: Tokens) -> Literal:
    """A numeral with a base or a time of day. UnreadableError for anything else."""
    if (value := _numeral(tokens) or _clock(tokens)) is None:
        raise UnreadableError("no quantity")
    return value


def _numeral(tokens: Tokens) -> Literal | None:
    r"""`1011_2`, `(2A7)_{16}`, "1011 in base 2", `1234_{\text{five}}`."""
    if any(token.is_word("base") for token in tokens):  # 1011 (base 2)
        tokens = [token for token in tokens if not token.is_sign("(", ")")]
    pieces, marks = cut(tokens, lambda token: token.is_sign("_") or token.is_word("base"))
    if len(marks) == 2 and not pieces[1]:
        pieces = [pieces[0], pieces[2]]
    if len(pieces) != 2:
        return None
    left, right = pieces
    while left and (left[-1].is_word("in") or left[-1].is_sign("∈")):
        left = left[:-1]
    minus = "-" if left and left[0].is_sign("-") else ""
    digits, base = _digits(left[len(minus) :]), _base(right)
    return Literal("base", (minus + digits, base)) if digits and base else None


def _digits(tokens: list[Token]) -> str:
    inside = bracket_content(tokens)
    tokens = tokens if inside is None else inside[1]
    is_plain = all(token.kind in ("number", "letter", "word") and token.text.isalnum() for token in tokens)
    text = "".join(token.text for token in tokens).upper()
    is_joined = not any(right.gap and not (_is_digit(left) or _is_digit(right)) for left, right in pairwise(tokens))
    return text if is_plain and tokens and is_joined and text.isascii() else ""


def _is_digit(token: Token) -> bool:
    r"""Whether a token is a letter that is a digit, as in `1\text{A}3`."""
    return token.kind in ("letter", "word") and set(token.text.upper()) <= set("ABCDEF")


def _base(tokens: list[Token]) -> int:
    rest = [token for token in tokens if not (token.is_sign("{", "}", "(", ")") or token.is_word("base"))]
    word = rest[0].text if len(rest) == 1 else ""
    value = int(word) if word.isdigit() and len(word) < 3 else in_words(word)
    return value if value and 2 <= value <= 36 else 0


def _clock(tokens: Tokens) -> Literal | None:
    """4:30 p.m., 9 AM."""
    pieces, colons = cut(tokens, at_signs(":"))
    half = "".join(token.text for token in pieces[-1][1:] if token.text != ".").casefold()
    numbers = [piece[0].text for piece in pieces if piece]
    is_time = half in ("am", "pm") and len(numbers) == len(pieces) < 3 and (not colons or len(pieces[0]) == 1)
    if not is_time or not all(text.isdigit() and len(text) <= 2 for text in numbers):
        return None
    return Literal("time", (*(*map(int, numbers), 0)[:2], half))
