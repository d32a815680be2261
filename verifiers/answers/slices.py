"""Cutting sequences of tokens at signs outside brackets."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from verifiers.answers.token import Token, UnreadableError

Tokens = Sequence[Token]
_OPENING = frozenset(("(", "[", "{", "\\{", "⟨", "⌊", "⌈"))
_CLOSING = frozenset((")", "]", "}", "\\}", "⟩", "⌋", "⌉"))


def nesting(token: Token) -> int:
    """1 for an opening bracket or environment, -1 for a closing one, else 0."""
    if token.kind != "sign":
        return 0
    if token.text in _OPENING or token.text.startswith("begin "):
        return 1
    return -1 if token.text in _CLOSING or token.text.startswith("end ") else 0


def cut(tokens: Tokens, is_cut: Callable[[Token], bool]) -> tuple[list[list[Token]], list[Token]]:
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


def at_signs(*signs: str) -> Callable[[Token], bool]:
    return lambda token: token.kind == "sign" and token.text in signs


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


def brackets(tokens: Tokens) -> list[Token]:
    """The tokens with brackets in one spelling: `]1, 2[` as (1, 2), `<1, 2>` as ⟨1, 2⟩, U between intervals as ∪."""
    result = list(tokens)
    if len(result) > 4 and result[0].is_sign("<") and result[-1].is_sign(">"):
        result[0], result[-1] = Token("sign", "⟨"), Token("sign", "⟩")
    if not any(token.is_sign("\\}") for token in result):  # one large brace in front of cases
        pairs = zip(result, [*result[1:], Token("end", "")], strict=False)
        result = [one for one, other in pairs if not (one.is_sign("\\{") and other.text.startswith("begin "))]
    open_levels: list[bool] = []  # whether a comma has been seen, for each open bracket
    for place, token in enumerate(result):
        before, after = result[place - 1 : place], result[place + 1 : place + 2]
        if token.is_sign(",", ";") and open_levels:
            open_levels[-1] = True
        elif token.is_sign("]") and not open_levels:
            result[place] = Token("sign", "(", token.gap)
            open_levels.append(False)
        elif (
            token.is_sign("[")
            and open_levels
            and open_levels[-1]
            and (not after or after[0].is_sign("∪", "∩", "∖", ".", ","))
        ):
            result[place] = Token("sign", ")", token.gap)
            open_levels.pop()
        elif nesting(token) == 1:
            if (
                token.is_sign("\\{")
                and before
                and before[0].is_sign("-")
                and place > 1
                and nesting(result[place - 2]) == -1
            ):
                result[place - 1] = Token("sign", "∖")
            open_levels.append(False)
        elif nesting(token) == -1 and open_levels:
            open_levels.pop()
        elif (
            token.kind == "letter"
            and token.text == "U"
            and before
            and after
            and nesting(before[0]) == -1
            and nesting(after[0]) == 1
        ):
            result[place] = Token("sign", "∪")
    return result
