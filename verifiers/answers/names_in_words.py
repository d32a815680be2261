"""Answers in words: lists of names, names with a value ("Ben has 15"), parts with labels ("(i) 12 (ii) 20")."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.slices import Tokens, bracket_content, cut
from verifiers.answers.symbols import WORDS
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.values import Assignments, Sequence, Value, Words

_LABELS = (("i", "ii", "iii", "iv", "v", "vi"), ("a", "b", "c", "d", "e", "f"), ("1", "2", "3", "4", "5", "6"))
_HAVE = ("has", "gets", "have", "scores", "receives", "is")


def words_of(tokens: Tokens) -> Words | None:
    """Names that the grammar does not know: "Anna"; None for anything else."""
    is_name = bool(tokens) and all(token.kind == "word" and token.text not in WORDS for token in tokens)
    return Words(" ".join(token.text for token in tokens)) if is_name else None


def list_of_names(tokens: Tokens, _statement: Callable[[Tokens], Value]) -> Sequence | None:
    """Anna, Ben and Clara: names in any order; None for anything else."""
    pieces, _ = cut(tokens, lambda token: token.is_sign(",", ";") or token.is_word("and", "or"))
    names = [words_of(piece) for piece in pieces if piece]
    known = [name for name in names if name is not None]
    return Sequence("list", tuple(known)) if len(known) == len(names) > 1 else None


def values_of_names(tokens: Tokens, statement: Callable[[Tokens], Value]) -> Assignments | None:
    """`Ann: 12, Ben: 15` and "Ben has 15 and Ann has 12"; None for anything else, and for a single name."""
    pieces = [_with_name(piece) for piece in cut(tokens, _is_separator)[0] if piece]
    if len(pieces) > 1 and all(len(piece) == 2 and piece[1].kind == "number" for piece in pieces):  # Ann 3, Bea 4
        pieces = [[piece[0], Token("sign", "="), piece[1]] for piece in pieces]
    if len(pieces) < 2 or not all(_has_name(piece) for piece in pieces):
        return None
    return Assignments(tuple(piece[0].text for piece in pieces), tuple(statement(piece[2:]) for piece in pieces))


def _with_name(piece: list[Token]) -> list[Token]:
    """The piece with a name of two letters, Bo, as one word."""
    is_name = len(piece) > 2 and piece[0].kind == piece[1].kind == "letter" and not piece[1].gap
    is_title = is_name and piece[0].text.isupper() and piece[1].text.islower() and piece[2].kind != "letter"
    return [Token("word", (piece[0].text + piece[1].text).casefold()), *piece[2:]] if is_title else piece


def _is_separator(token: Token) -> bool:
    return token.is_sign(",", ";") or token.is_word("and")


def _has_name(piece: Tokens) -> bool:
    is_named = len(piece) > 2 and (piece[1].is_sign(":", "=") or piece[1].is_word(*_HAVE))
    return is_named and (words_of(piece[:1]) is not None or (piece[0].kind == "letter" and piece[1].is_sign(":")))


def labelled_parts(tokens: Tokens, statement: Callable[[Tokens], Value]) -> Assignments | None:
    """(i) 12 (ii) 20: values with the labels in front of them; None for anything else."""
    if not tokens[0].is_sign("("):
        return None
    places = [place for place, token in enumerate(tokens) if token.is_sign("(")]
    for labels in _LABELS:
        starts: list[tuple[int, int]] = []
        for place in places:
            size = next((n for n in range(3, 6) if bracket_content(tokens[place : place + n]) is not None), 0)
            if (
                size
                and len(starts) < len(labels)
                and _text(tokens[place + 1 : place + size - 1]) == labels[len(starts)]
            ):
                starts.append((place, place + size))
        if len(starts) > 1 and starts[0][0] == 0:
            ends = [place for place, _ in starts[1:]] + [len(tokens)]
            parts = [_bare(tokens[start:end]) for (_, start), end in zip(starts, ends, strict=True)]
            if not all(parts):
                raise UnreadableError("a part without a value")
            return Assignments(tuple(f"part {n}" for n in range(1, len(parts) + 1)), tuple(map(statement, parts)))
    return None


def _text(tokens: Tokens) -> str:
    return "".join(token.text for token in tokens)


def _bare(tokens: Tokens) -> list[Token]:
    rest = list(tokens)
    while rest and (rest[-1].is_sign(",", ";", ".", "\\\\") or rest[-1].is_word("and")):
        rest.pop()
    return rest
