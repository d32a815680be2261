"""Parts of a sentence that say nothing of its value: openings, closings, the division that left a remainder."""

from __future__ import annotations

from verifiers.answers.phrase_table import LEADS
from verifiers.answers.sentence_words import (
    ASSERTIONS,
    ASSUMPTIONS,
    BOUNDS,
    CLOSINGS,
    CONCLUDING,
    DENIALS,
    EQUATING,
    INTRODUCING,
    JOINED_CLAUSES,
    OPENINGS,
    PRINCIPLES,
    PROPERTIES,
    RANGED,
    RANGES,
    STATING,
)
from verifiers.answers.syntax import at_signs, bracket_content, cut
from verifiers.answers.token import Token


def without_closing(tokens: list[Token]) -> list[Token]:
    """The tokens without ", so we are done" and the like behind them."""
    end = len(tokens)
    while end and tokens[end - 1].is_sign("."):
        end -= 1
    words = [token.text for token in tokens[:end]]
    size = next((len(each) for each in CLOSINGS if words[-len(each) :] == each), 0)
    comma = next((place for place in range(end - 1, 0, -1) if tokens[place].is_sign(",")), end)
    is_reason = words[comma + 1 : comma + 2] == ["by"] and words[-1] in PRINCIPLES
    if is_reason and all(token.kind == "word" for token in tokens[comma + 1 : end]):  # by the pigeonhole principle
        return tokens[:comma]
    if not size or size == end:
        return tokens
    if words[-size - 1] == ",":
        return tokens[: end - size - 1]
    return tokens[: end - size] if words[-size] == "by" else tokens


def behind_opening(tokens: list[Token]) -> list[Token]:
    """The tokens behind "As a result," and the like, which say nothing about the value."""
    place = next((place for place, token in enumerate(tokens) if token.is_sign(",")), 0)
    is_opening = tuple(token.text for token in tokens[:place]) in OPENINGS
    if is_opening:
        return tokens[place + 1 :]
    start = place + 1 if place and all(token.is_word(*LEADS) for token in tokens[:place]) else 0  # so, including ...
    end = next((k for k in range(start, len(tokens)) if tokens[k].is_sign(",")), 0)
    rest = tokens[end + 1 :]
    is_clause = end > start + 1 and tokens[start].is_word(*INTRODUCING) and rest and rest[0].kind in ("word", "letter")
    return rest if is_clause and any(token.is_word(*STATING) or token.is_sign("=") for token in rest) else tokens


def behind_conclusion(tokens: list[Token]) -> list[Token]:
    """The tokens behind the last ", so", ", hence" or ", giving", and behind "it can be checked that" in front."""
    size = next((len(words) for words in ASSERTIONS if _begins(tokens, words)), 0)
    if any(token.is_word(*ASSUMPTIONS) for token in tokens):
        return tokens
    place = next((k for k in range(len(tokens) - 2, 0, -1) if _is_conclusion(tokens[k - 1], tokens[k])), 0)
    if not place and (which := _which_is(tokens)):
        return tokens[which:]
    return tokens[place + 1 if place else size :]


def _which_is(tokens: list[Token]) -> int:
    """The place behind ", which is" where no number is in front of it; 0 for none."""
    place = next((k for k in range(1, len(tokens) - 2) if tokens[k - 1].is_sign(",") and tokens[k].is_word("which")), 0)
    has_verb = bool(place) and tokens[place + 1].is_word("is", "equals")
    return place + 2 if has_verb and not any(token.kind == "number" for token in tokens[:place]) else 0


def _is_conclusion(before: Token, token: Token) -> bool:
    is_formula = before.kind in ("number", "letter") or before.is_sign(")", "}")  # 2n = 20 ⇒ n = 10
    return token.is_word(*CONCLUDING if before.is_sign(",", ";", ".") else ["therefore"] if is_formula else [])


def without_division(tokens: list[Token]) -> list[Token]:
    """ "The remainder is 7" of "The remainder is 7 when divided by 11"; other tokens as they are."""
    place = next((place for place, token in enumerate(tokens) if token.is_word("when", "upon", "on", "after")), 0)
    behind = [token.text for token in tokens[place + 1 :] if not token.is_sign(".")]
    if behind[1:2] == ["is"] and tokens[place + 1].kind in ("letter", "word", "number"):  # when N is divided by 1000
        behind = behind[2:]
    is_division = len(behind) == 3 and behind[:2] in (["divided", "by"], ["division", "by"])
    return tokens[:place] if is_division and any(token.is_word("remainder") for token in tokens[:place]) else tokens


def without_remark(tokens: list[Token]) -> list[Token]:
    """The tokens without "and it is attained at x = 3" behind a number, and without (a, b, c) behind "triples"."""
    for place in range(1, len(tokens) - 2):
        is_clause = any(_begins(tokens[place:], words) for words in JOINED_CLAUSES)
        if is_clause and tokens[place - 1].kind == "number":
            is_plain = DENIALS.isdisjoint(token.text for token in tokens[place:])
            return tokens[:place] if is_plain else tokens
    end = len(tokens) - (tokens[-1:] != [] and tokens[-1].is_sign("."))
    place = next((place for place in range(end - 1, 0, -1) if tokens[place].is_sign("(")), 0)
    is_counted = place > 1 and tokens[place - 1].kind == "word" and tokens[place - 1].text.endswith("s")
    inside = bracket_content(tokens[place:end]) if is_counted else None
    letters, commas = cut(inside[1], at_signs(",")) if inside is not None else ([], [])
    is_tuple = bool(commas) and all(len(part) == 1 and part[0].kind == "letter" for part in letters)
    return tokens[:place] if is_tuple else tokens


def without_range(tokens: list[Token]) -> list[Token]:
    """ "45 integers" of "45 integers less than 1000", which says of which integers there are so many."""
    while tokens and tokens[-1].is_sign("."):
        tokens = tokens[:-1]
    size = next((len(each) for each in PROPERTIES if tuple(token.text for token in tokens[-len(each) :]) == each), 0)
    tokens = tokens[: len(tokens) - size]
    place = next((place for place, token in enumerate(tokens) if token.is_word(*RANGED)), 0)
    behind = tokens[place + 1 :]
    while behind and behind[-1].is_sign("."):
        behind = behind[:-1]
    if not any(token.kind == "number" for token in tokens[:place]) or len(behind) < 2:  # all integers less than 1000
        return tokens
    is_range = behind[0].is_word(*RANGES) and (not behind[0].is_word("not") or behind[1].is_word("exceeding"))
    is_plain = all(token.kind == "number" or token.is_word(*BOUNDS) for token in behind[1:])
    return tokens[: place + 1] if is_range and is_plain else tokens


def with_plain_verbs(tokens: list[Token]) -> list[Token]:
    """The tokens with "comes out to", "evaluates to" and the like as "equals"."""
    result: list[Token] = []
    place = 0
    while place < len(tokens):
        size = next((len(each) for each in EQUATING if _begins(tokens[place:], each)), 0)
        result.append(Token("word", "equals", gap=True) if size and place else tokens[place])
        place += size if size and place else 1
    return result


def _begins(tokens: list[Token], words: tuple[str, ...]) -> bool:
    return tuple(token.text for token in tokens[: len(words)] if token.kind == "word") == words
