"""Tokens, and cutting sequences of them at separators outside brackets, from the loosest separator to the tightest."""

from __future__ import annotations

from collections.abc import Callable, Sequence, Set
from dataclasses import dataclass


class UnreadableError(Exception):
    """The grammar does not know this text. Other layers decide."""


@dataclass(frozen=True, slots=True)
class Token:
    r"""One token. `kind`: number, letter, function, operator (\lim), word, sign or vulgar (½).

    `gap`: whether there is white space before it.
    """

    kind: str
    text: str
    gap: bool = False

    def is_sign(self, *signs: str) -> bool:
        return self.kind == "sign" and self.text in signs

    def is_word(self, *words: str) -> bool:
        return self.kind == "word" and self.text in words


Tokens = Sequence[Token]
Test = Callable[[Token], bool]
# A value does not end with these, and with tokens of these kinds.
_SEPARATORS = (",", ";", ":", "\\\\", "&", "=", "<", ">", "≤", "≥", "+", "-", "*", "/", "^", "_")
_OPEN = ("word", "function", "operator")
_OPENING = frozenset(("(", "[", "{", "\\{", "⟨", "⌊", "⌈"))
_CLOSING = frozenset((")", "]", "}", "\\}", "⟩", "⌋", "⌉"))


def separator(signs: str, words: str = "") -> Test:
    """The test for tokens that are one of some signs or words."""
    known = {"sign": frozenset(signs.split()), "word": frozenset(words.split())}
    return lambda token: token.text in known.get(token.kind, ())


def at_signs(*signs: str) -> Test:
    return lambda token: token.kind == "sign" and token.text in signs


# The levels of an answer, from the loosest to the tightest; terms are read by `terms.py`, sums by `expressions.py`.
CONDITIONS = separator("such ∀", "where if")
ALTERNATIVES = separator("; \\\\", "or")
CONJUNCTIONS = separator(",", "and")
RELATIONS = separator("= < > ≤ ≥ ≠ ∈ ∉ ≈ ≡ ≢ ↦ ∥ ⊥")
SET_OPERATIONS = separator("∪ ∩ ∖")
COMMAS = separator(", ;")
AND_OR = separator(", ;", "and or")
INEQUALITIES = separator("< > ≤ ≥ ≠")
_ENDS = separator(", ; . \\\\", "and either")


def nesting(token: Token) -> int:
    """1 for an opening bracket or environment, -1 for a closing one, else 0."""
    if token.kind != "sign":
        return 0
    if token.text in _OPENING or token.text.startswith("begin "):
        return 1
    return -1 if token.text in _CLOSING or token.text.startswith("end ") else 0


def cut(tokens: Tokens, is_cut: Test) -> tuple[list[list[Token]], list[Token]]:
    """The pieces between the tokens that `is_cut` names, outside brackets, and those tokens."""
    pieces: list[list[Token]] = [[]]
    cuts: list[Token] = []
    depth = 0
    for token in tokens:
        step = nesting(token)
        if depth == 0 and step == 0 and is_cut(token):
            cuts.append(token)
            pieces.append([])
            continue
        depth += step
        if depth < 0:
            raise UnreadableError("brackets do not match")
        pieces[-1].append(token)
    if depth:
        raise UnreadableError("brackets do not match")
    return pieces, cuts


def index_of(tokens: Tokens, is_one: Test) -> int | None:
    """The place of the first token that passes a test, within brackets or not; None without one."""
    return next((place for place, token in enumerate(tokens) if is_one(token)), None)


def has_sign(tokens: Tokens, *signs: str) -> bool:
    return any(token.is_sign(*signs) for token in tokens)


def text_of(tokens: Tokens) -> str:
    return "".join(token.text for token in tokens)


def bracket_content(tokens: Tokens) -> tuple[str, list[Token], str] | None:
    """(opening, inside, closing) if one pair of brackets, of any kinds, is around all of the tokens; else None."""
    if len(tokens) < 2 or nesting(tokens[0]) != 1 or nesting(tokens[-1]) != -1:
        return None
    depth = 0
    for place, token in enumerate(tokens):
        depth += nesting(token)
        if depth == 0:
            return (tokens[0].text, list(tokens[1:-1]), token.text) if place == len(tokens) - 1 else None
    return None


def is_tuple(tokens: Tokens) -> bool:
    """Whether tokens are several components in round brackets."""
    inside = bracket_content(tokens)
    return inside is not None and inside[0] in ("(", "⟨") and bool(cut(inside[1], COMMAS)[1])


def _is_set_end(token: Token) -> bool:
    return nesting(token) == -1 or token.is_sign("ℝ", "ℤ", "ℕ")


def without_ends(tokens: list[Token]) -> list[Token]:
    """The tokens without separators at either end."""
    while tokens and _ENDS(tokens[-1]):
        tokens = tokens[:-1]
    while tokens and _ENDS(tokens[0]) and not tokens[0].is_sign("."):
        tokens = tokens[1:]
    return tokens


def brackets(tokens: Tokens) -> list[Token]:
    """The tokens with brackets in one spelling: `]1, 2[` as (1, 2), `<1, 2>` as ⟨1, 2⟩, U between intervals as ∪."""
    result = list(tokens)
    if len(result) > 4 and result[0].is_sign("<") and result[-1].is_sign(">"):
        result[0], result[-1] = Token("sign", "⟨"), Token("sign", "⟩")
    if not any(token.is_sign("\\}") for token in result):  # one large brace in front of cases
        pairs = zip(result, [*result[1:], Token("end", "")], strict=False)
        result = [one for one, other in pairs if not (one.is_sign("\\{") and other.text.startswith("begin "))]
    has_comma: list[bool] = []  # for each open bracket
    for place, token in enumerate(result):
        before, after = result[place - 1 : place], result[place + 1 : place + 2]
        is_between = bool(before and after) and nesting(before[0]) == -1 and nesting(after[0]) == 1
        is_last = not after or after[0].is_sign("∪", "∩", "∖", ".", ",")
        if token.is_sign(",", ";") and has_comma:
            has_comma[-1] = True
        elif token.is_sign("]") and not has_comma:
            result[place] = Token("sign", "(", token.gap)
            has_comma.append(False)
        elif token.is_sign("[") and has_comma and has_comma[-1] and is_last:
            result[place] = Token("sign", ")", token.gap)
            has_comma.pop()
        elif nesting(token) == 1:
            if token.is_sign("\\{") and place > 1 and before[0].is_sign("-") and _is_set_end(result[place - 2]):
                result[place - 1] = Token("sign", "∖")  # ℝ - {2}
            has_comma.append(False)
        elif nesting(token) == -1 and has_comma:
            has_comma.pop()
        elif token.kind == "letter" and token.text == "U" and is_between:
            result[place] = Token("sign", "∪")
    return result


# ------------------------------------------------------------------------------------------------- borders


def with_commas(tokens: Tokens, borders: Set[int], quads: Set[int]) -> list[Token]:
    r"""The tokens with a comma at each border that stands between values: `x = 4 \quad y = 5`, `$2$ $-1$`.

    `borders` are the places of the tokens behind line breaks and new formulas, `quads` of those behind wide spaces,
    which separate named values, and any value from a number. Within brackets or behind a separator is no border.
    """
    result: list[Token] = []
    depth, has_value = 0, False  # whether an equation has begun since the last separator
    for place, token in enumerate(tokens):
        before = tokens[place - 1 : place]
        is_behind_value = bool(before) and before[0].kind not in _OPEN and not before[0].is_sign(*_SEPARATORS)
        if depth == 0 and is_behind_value and place in borders | quads:
            rest = tokens[place:]
            is_value = (has_value and _is_named(rest)) or _begins_value(rest, is_number=place not in borders)
            result += [Token("sign", ",")] if is_value else []
        depth += nesting(token)
        if depth == 0:
            has_value = token.is_sign("=") or (has_value and not token.is_sign(",", ";", "\\\\"))
        result.append(token)
    return result


def _is_named(tokens: Tokens) -> bool:
    """Whether tokens begin with a letter, with or without an index, and an equals sign or a sign of membership."""
    end = 1
    if len(tokens) > 2 and tokens[1].is_sign("_"):
        end = 3
        while end < len(tokens) and tokens[2].is_sign("{") and not tokens[end - 1].is_sign("}"):
            end += 1
    return tokens[0].kind == "letter" and end < len(tokens) and tokens[end].is_sign("=", "∈")


def _begins_value(tokens: Tokens, *, is_number: bool) -> bool:
    """Whether tokens begin with a number or a function, or any other value, with or without a sign of its own."""
    rest = tokens[1:] if tokens[0].is_sign("-", "+", "±") else tokens
    is_bracket = bool(rest) and nesting(rest[0]) == 1 and not rest[0].is_sign("{")  # which begins an argument
    kinds = ("number", "function", "vulgar") if is_number else ("number", "function", "vulgar", "letter")
    return bool(rest) and (rest[0].kind in kinds or (is_bracket and not is_number))
