r"""Numbers with units, `60\ \mathrm{km/h}`, "2 hours 15 minutes", `\$12.50`; numerals with a base, times of day."""

from __future__ import annotations

from fractions import Fraction
from itertools import pairwise

from verifiers.answers.expressions import expression
from verifiers.answers.rationals import rational
from verifiers.answers.syntax import WORDS, Token, Tokens, UnreadableError, at_signs, bracket_content, cut, nesting
from verifiers.answers.units import UNITS, Unit, pieces_of_amount, rate, unit, unit_of_word, with_joined_units
from verifiers.answers.values import Amount, Clock, Node, Numeral, add, is_numeral, multiply, names, number
from verifiers.answers.words import changes_answer, changes_value, has_doubt, has_noun, in_words

_CURRENCY = ("$", "€", "£", "₹", "¥")
_NO_NOUN_WORDS = "divide divides and but mod plus minus times divided over is are was were has have than to each"
_NO_NOUNS = frozenset(_NO_NOUN_WORDS.split())  # behind a number: what follows is no noun
_NUMBERED = ("grade", "place", "floor", "century", "position", "row", "column")  # the 12th of them is number 12
_COMPARISONS = frozenset(("too", "less", "fewer", "than"))
_DIMENSIONS = ("old", "long", "wide", "tall", "high", "deep", "thick", "away", "apart")  # behind a unit
_PREPOSITION_WORDS = (
    "in at on by and for from with among amongst before after until excluding including versus ignoring counting "
    "besides without despite unlike where while when against"
)
_PREPOSITIONS = frozenset(_PREPOSITION_WORDS.split())
_PRONOUNS = ("them", "him", "her", "us", "me", "you", "it")
_DIGITS = "0123456789ABCDEF"
_CODES = ("usd", "eur", "gbp", "inr", "jpy", "cny", "rmb", "chf", "rs")


def has_unit(tokens: Tokens) -> bool:
    """Whether a word or a sign among the tokens is a unit."""
    return [token.text for token in tokens[:2]] == ["U", "S"] or any(
        (token.kind == "word" or token.is_sign(*_CURRENCY, "°")) and (token.text == "°" or unit_of_word(token))
        for token in tokens
    )


def amount(tokens: Tokens) -> Amount | None:
    """The amount that tokens are, in the unit of its last part; None for anything else."""
    if len(tokens) > 2 and tokens[-1].is_word(*_DIMENSIONS):
        tokens = tokens[:-1]
    pairs = zip([*tokens[:1], *tokens[:-1]], tokens, strict=True)
    tokens = [token for before, token in pairs if not (token.is_sign(".") and unit_of_word(before))]  # 2 ft. 6 in.
    parts = [_part(piece) for piece in pieces_of_amount(with_joined_units(tokens)) if piece]
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not parts:
        return None
    last = known[-1][1]
    for (_, before), (_, after) in pairwise(known):
        if before.powers != after.powers or before.factor <= after.factor:
            return None
    nodes = [node if part == last else multiply(node, number(part.factor / last.factor)) for node, part in known]
    if len(nodes) == 1:
        return Amount(nodes[0], last.powers, last.factor)
    total = rational(add(*nodes)) if all(is_numeral(node) for node, _ in known) else None  # 3 hours 20 minutes: 200
    return Amount(add(*nodes) if total is None else number(total), last.powers, last.factor, len(nodes))


def number_of_things(tokens: Tokens) -> Amount | None:
    """A number of things that have no unit: "3 apples", "2/3 of the total", "12th grade"; None for anything else."""
    tokens, is_ordinal = _without_ordinal(tokens)
    size = next((place for place, token in enumerate(tokens) if token.kind == "word"), 0)
    words = [token.text for token in tokens[size:]]
    if (
        size
        and (size == 1 or tokens[0].kind != "word")
        and (quotient := unit(tokens[size:], has_nouns=True)) is not None
    ):
        node = expression(tokens[:size])
        is_plain = not (names(node) or changes_value(words) or has_doubt(" ".join(words)))
        return Amount(node, quotient.powers, quotient.factor) if is_plain else None
    if (
        not size
        or any(token.kind != "word" for token in tokens[size:])
        or (len(words) == 1 and words[0] in WORDS and not has_noun(words))
    ):
        return None
    if (
        words[0] in _PREPOSITIONS
        or any(word in _NO_NOUNS for word in words)
        or has_doubt(" ".join(words))
        or changes_value(words)
    ):
        return None
    if words[-1] == "more" or (words[-1] in _PRONOUNS and words[-2:-1] != ["of"]) or not _COMPARISONS.isdisjoint(words):
        return None
    if changes_answer(words[0]) and not words[-1].endswith("s"):
        return None
    if is_ordinal and (len(words) > 1 or words[0] not in _NUMBERED):
        return None
    node = expression(tokens[:size])
    is_one = rational(node) in (1, -1) or is_ordinal
    if not (is_one or has_noun(words) or len(words) == 1 or words[0] == "of" or node.op in ("div", "mixed")):
        return None
    return None if names(node) else Amount(node, ((" ".join(words).removesuffix("s"), 1),), Fraction(1))


def _without_ordinal(tokens: Tokens) -> tuple[Tokens, bool]:
    """The tokens without the ending of an ordinal behind a first number, 12th or 12^{th}; whether there was one."""
    text, end = "", 1
    while end < len(tokens) and (len(text) < 2 or tokens[end].is_sign("}")):
        text += "" if tokens[end].is_sign("^", "{", "}") else tokens[end].text
        end += 1
    is_ordinal = text in ("st", "nd", "rd", "th") and tokens[0].kind == "number"
    return ([tokens[0], *tokens[end:]], True) if is_ordinal else (tokens, False)


def _part(tokens: list[Token]) -> tuple[Node, Unit] | None:
    """The number and the unit of one part; a currency may stand in front."""
    size, currency = _currency(tokens)
    if currency is not None:
        is_twice = len(tokens) > 2 and unit_of_word(tokens[-1]) == currency  # $5 dollars
        end = next((place for place, token in enumerate(tokens) if token.is_word("per", "a", "an")), len(tokens))
        end = next((place for place in range(end) if tokens[place].is_sign("/")), end)
        over = rate(currency, tokens[end:])
        node = _number(tokens[size : end if over else -1 if is_twice else None])
        return None if node is None else (node, over or currency)
    depth = nesting(tokens[0])
    for place in range(1, len(tokens)):
        depth += nesting(tokens[place])
        if nesting(tokens[place]) == -1 or depth != nesting(tokens[place]):
            continue
        if tokens[place].kind == "number" or tokens[place].is_sign("^", "+", "-", "*", "!", "%"):
            continue
        is_product = place > 1 and tokens[place].kind == "letter" and tokens[place].text.isupper()
        if is_product and not tokens[place].gap:  # \sqrt{5}A
            continue
        value = unit(tokens[place:])
        if value is not None and (node := _number(tokens[:place])) is not None:
            return node, value
    return None


def _currency(tokens: list[Token]) -> tuple[int, Unit | None]:
    """The currency in front, `\\$`, `US$` or USD, and its number of tokens."""
    if tokens[0].is_sign(*_CURRENCY) or (tokens[0].kind == "word" and tokens[0].text.casefold() in _CODES):
        return 1, unit_of_word(tokens[0])
    texts = [token.text for token in tokens[:3]]
    if texts[:2] == ["U", "S"] and len(tokens) > 2:
        return 2 + (texts[2] == "$"), UNITS["dollar"]
    return 0, None


def _number(tokens: list[Token]) -> Node | None:
    try:
        return expression(tokens)
    except UnreadableError:
        return None


def numeral(tokens: Tokens) -> Numeral | None:
    r"""`1011_2`, `(2A7)_{16}`, "1011 in base 2", `1234_{\text{five}}`."""
    pieces, marks = cut(tokens, lambda token: token.is_sign("_") or token.is_word("base"))
    inside = None if marks else _last_bracket(tokens)
    if inside is not None and any(token.is_word("base") for token in inside):
        pieces = [list(tokens[: -len(inside) - 2]), inside]
    if len(pieces) != 2:
        return None
    left, right = pieces
    while left and (left[-1].is_word("in") or left[-1].is_sign("∈")):
        left = left[:-1]
    minus = "-" if left and left[0].is_sign("-") else ""
    digits, base = _digits(left[len(minus) :]), _base(right)
    return Numeral(minus + digits, base) if digits and base else None


def numeral_with_letters(tokens: Tokens) -> Numeral | None:
    """A numeral in base 12 or 16 that its letters tell, FF_{16} or 0x1A3, and that is no product; None for others."""
    texts = [token.text for token in tokens]
    text, base = "".join(texts).upper(), 16
    is_prefixed = text[:2] == "0X"
    if is_prefixed:
        digits = text[2:]
    elif texts[-4:-2] == ["_", "{"] and texts[-2] in ("12", "16") and len(texts) > 5:
        digits, base = "".join(texts[:-4]).upper(), int(texts[-2])
    else:
        return None
    is_numeral = set(digits) <= set(_DIGITS[:base]) and not any(token.gap for token in tokens[1:])
    return Numeral(digits, base) if digits and is_numeral and (is_prefixed or not digits.isdigit()) else None


def _last_bracket(tokens: Tokens) -> list[Token] | None:
    place = next((place for place, token in enumerate(tokens) if place and token.is_sign("(")), 0)
    inside = bracket_content(tokens[place:]) if place else None
    return None if inside is None else inside[1]


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
    if len(rest) != 1:
        return 0
    word = rest[0].text
    value = int(word) if word.isdigit() and len(word) < 3 else in_words(word)
    return value if value and 2 <= value <= 36 else 0


def clock(tokens: Tokens) -> Clock | None:
    """4:30 p.m., 9 AM; None for anything else."""
    pieces = cut(tokens, at_signs(":"))[0]
    half = "".join(token.text for token in pieces[-1][1:] if token.text != ".").casefold()
    numbers = [piece[0].text for piece in pieces if piece and (len(piece) == 1 or piece is pieces[-1])]
    is_time = half in ("am", "pm") and len(numbers) == len(pieces) <= 3
    if not is_time or not all(text.isdigit() and len(text) <= 2 for text in numbers):
        return None
    hour, minute, second = (*map(int, numbers), 0, 0)[:3]
    return Clock(hour % 12 + 12 * (half == "pm"), minute, second) if 1 <= hour <= 12 else None
