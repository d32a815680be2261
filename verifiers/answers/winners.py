"""Who wins under which condition: "Alice wins if n is even, otherwise Bob"."""

from __future__ import annotations

from collections.abc import Callable

from verifiers.answers.results import Equality
from verifiers.answers.syntax import Tokens, cut
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.values import Value
from verifiers.answers.wording import winner

_IF = ("if", "when", "whenever", "iff", "for", "where")
_BEFORE_CONDITIONS = (*_IF, "and", "only", "all", "exactly", "precisely", "any", "every", "just", "in", "case")
Outcome = tuple[tuple[str, ...], Value | None]  # the winner, and the condition; None for "otherwise"


def outcomes(tokens: Tokens, read: Callable[[Tokens], Value | None]) -> list[Outcome]:
    """Each winner with the condition on which they win; empty where the answer does not say this."""
    if not any(token.is_word(*_IF) for token in tokens):
        return []
    try:
        clauses = _clauses([token for token in tokens if not token.is_sign(".")])
    except UnreadableError:  # brackets that do not match
        return []
    result: list[Outcome] = []
    for clause in clauses:
        outcome = _outcome(clause, read)
        if outcome is None:
            return []
        result.append(outcome)
    return result if any(condition for _, condition in result) else []


def _clauses(tokens: Tokens) -> list[list[Token]]:
    """The tokens between commas and joining words; a condition in front stays with its winner."""
    pieces = cut(tokens, lambda token: token.is_sign(",", ";") or token.is_word("and", "while", "but", "whereas"))[0]
    result: list[list[Token]] = []
    for piece in pieces:
        is_rest = bool(result) and bool(piece) and (piece[0].is_word("only") or not winner(result[-1], is_part=True))
        if is_rest:
            result[-1] += piece
        elif piece:
            result.append(list(piece))
    return result


def _outcome(clause: list[Token], read: Callable[[Tokens], Value | None]) -> Outcome | None:
    """The winner and the condition of one clause; None for another clause."""
    if clause[0].is_word("otherwise", "else") or clause[-1].is_word("otherwise"):
        name = winner([token for token in clause if not token.is_word("otherwise", "else")])
        return (name, None) if name else None
    start = 1 if clause[0].is_word(*_IF) else 0
    place = next((place for place in range(start, len(clause)) if clause[place].is_word(*_IF)), len(clause))
    if start:  # if n is even Alice wins
        place = next((k for k in range(2, len(clause)) if winner(clause[k:]) and read(clause[1:k]) is not None), 0)
        said, condition = clause[place:], clause[1:place]
    else:
        said, condition = clause[:place], clause[place:]
    while said and said[-1].is_word(*_BEFORE_CONDITIONS):
        said = said[:-1]
    while condition and condition[0].is_word(*_BEFORE_CONDITIONS):
        condition = condition[1:]
    name, value = winner(said), read(condition) if condition else None
    return (name, value) if name and value is not None else None


def equal_outcomes(gold: list[Outcome], answer: list[Outcome], equal: Equality) -> bool:
    """Whether two answers name the same winner on each condition; "otherwise" is the condition that is left."""
    rest = list(answer)
    open_winners = []
    for name, condition in gold:
        same = [
            other
            for other in rest
            if other[0] == name and condition and other[1] and equal(condition, other[1]) is True
        ]
        if same:
            rest.remove(same[0])
        else:
            open_winners.append((name, condition))
    if not open_winners and not rest:
        return True
    is_one = len(open_winners) == len(rest) == 1 and len(gold) > 1
    return is_one and open_winners[0][0] == rest[0][0] and None in (open_winners[0][1], rest[0][1])
