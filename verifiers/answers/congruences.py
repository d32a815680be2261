r"""Congruences in their other spellings: `n ≡ 0 or n ≡ 1 (mod 3)`, `n mod 4 = 0 or 1`, `4 | n - 1`."""

from __future__ import annotations

from verifiers.answers.slices import Tokens, cut, nesting
from verifiers.answers.token import Token


def spread_modulus(tokens: Tokens) -> Tokens:
    """`n ≡ 0 or n ≡ 1 (mod 3)` with the modulus at both residues."""
    pieces, cuts = cut(tokens, _is_separator)
    sizes = [next((k for k, token in enumerate(piece) if token.is_sign("≡")), None) for piece in pieces]
    has_modulus = [
        any(token.is_word("mod") for token in piece) or any(nesting(token) == 1 for token in piece) for piece in pieces
    ]
    sides = {"".join(token.text for token in piece[:size]) for piece, size in zip(pieces, sizes, strict=True)}
    if len(pieces) < 2 or None in sizes or len(sides) > 1 or has_modulus != [False] * (len(pieces) - 1) + [True]:
        return tokens
    last = pieces[-1]
    start = next((k for k, token in enumerate(last) if token.is_word("mod")), None)
    start = next(k for k, token in enumerate(last) if nesting(token) == 1) if start is None else start
    result = [*pieces[0], *last[start:]]
    for piece, separator in zip(pieces[1:], cuts, strict=True):
        result += [separator, *piece, *([] if piece is last else last[start:])]
    return result


def with_congruences(tokens: Tokens) -> Tokens:
    """`n mod 4 = 0 or 1` as `n ≡ 0 mod 4 or n ≡ 1 mod 4`; tokens without a remainder of a letter as they are."""
    if not any(token.is_word("mod") for token in tokens):
        return tokens
    pieces, cuts = cut(tokens, _is_separator)
    if pieces and len(pieces[0]) > 2 and pieces[0][1].is_sign("such") and pieces[0][0].text == pieces[0][2].text:
        pieces[0] = pieces[0][2:]  # n such that n mod 4 = 1
    left: list[Token] = []
    right: list[Token] = []
    result: list[Token] = []
    for piece, separator in zip(pieces, [None, *cuts], strict=True):
        is_remainder = len(piece) > 4 and piece[0].kind == "letter" and piece[1].is_word("mod")
        is_remainder = is_remainder and piece[2].kind == "number" and piece[3].is_sign("=")
        if is_remainder:
            left, right, piece = [piece[0], Token("sign", "≡")], piece[1:3], piece[4:]
        if not left or len(piece) != 1 or piece[0].kind != "number":
            return tokens
        result += [*([separator] if separator else []), *left, *piece, *right]
    return result


def divisibility(tokens: Tokens) -> list[Token] | None:
    """`4 | n` and `4 | n - 1` as `0 mod 4` and `1 mod 4`; None for anything else."""
    kinds = [token.kind for token in tokens]
    if (
        kinds[:3] != ["number", "sign", "letter"]
        or not tokens[1].is_sign("|")
        or kinds[3:] not in ([], ["sign", "number"])
    ):
        return None
    if not kinds[3:]:
        return [Token("number", "0"), Token("word", "mod"), tokens[0]]
    if not tokens[3].is_sign("+", "-"):
        return None
    minus = [Token("sign", "-")] if tokens[3].is_sign("+") else []
    return [*minus, tokens[4], Token("word", "mod"), tokens[0]]


def _is_separator(token: Token) -> bool:
    return token.is_sign(",", ";") or token.is_word("and", "or")
