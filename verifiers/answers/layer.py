"""The decision of the grammar: both texts read and compared; what is left to algebra, and what is wrong without it."""

from __future__ import annotations

from verifiers.answers.choices import bracketed_letter, letter_in, letter_of, letter_with_text, letters_of
from verifiers.answers.equivalence import equal
from verifiers.answers.evaluation import start_budget
from verifiers.answers.scalars import is_undone_for
from verifiers.answers.statements import choice_in_words, read, read_sentence, read_tokens, read_with_units, tokens_of
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tokens import tokenize
from verifiers.answers.tree import names
from verifiers.answers.values import (
    Amount,
    Assignments,
    Choice,
    Clock,
    Date,
    Expression,
    Family,
    Function,
    Matrix,
    Nothing,
    Numeral,
    Piecewise,
    Primes,
    Ratio,
    RealFamily,
    Reals,
    Relation,
    Sequence,
    Value,
    Words,
)
from verifiers.answers.winners import equal_outcomes, outcomes
from verifiers.answers.wording import core, says, wording, yes_or_no_with

_LAYERS: dict[type, str] = {
    Piecewise: "structure",
    Choice: "choice",
    Amount: "unit",
    Words: "text",
    Primes: "set",
    Numeral: "base",
    Clock: "time",
    Date: "time",
    Expression: "numeric",
    Reals: "set",
    Nothing: "set",
    Sequence: "structure",
    Matrix: "structure",
    Assignments: "structure",
    Function: "numeric",
    Relation: "relation",
    Family: "family",
    RealFamily: "family",
    Ratio: "ratio",
}
_FOR_ALGEBRA = (Expression, Function, Relation, Assignments)  # other kinds are never left to math-verify
MAX_CHARACTERS = 1_000
UNREAD = "unread"  # the layer of an answer that the grammar cannot read where the gold leaves nothing to algebra


def compare(gold: str, answer: str) -> tuple[bool, str] | None:
    """(whether they are equal, the kind of value that decided); None where algebra must decide."""
    if max(len(gold), len(answer)) > MAX_CHARACTERS:
        return False, UNREAD
    start_budget()
    gold_value, answer_value = read(gold), read(answer)
    finding = _in_words(gold, answer, gold_value) or _by_value(gold, answer, gold_value, answer_value)
    return finding or _without_algebra(gold, answer, gold_value, answer_value)


def _by_value(gold: str, answer: str, gold_value: Value | None, answer_value: Value | None) -> tuple[bool, str] | None:
    """The finding on two values; None where one is not read, and where their equality is not decided."""
    if gold_value is None:
        return None
    if answer_value is None:
        sentence = read_sentence(answer)
        return (True, layer_of(gold_value)) if sentence is not None and equal(gold_value, sentence) else None
    is_plain = isinstance(gold_value, Expression) and not names(gold_value.node)
    if is_plain or isinstance(gold_value, Amount) or isinstance(answer_value, Amount):
        gold_value, answer_value = read_with_units(gold, gold_value), read_with_units(answer, answer_value)
    result = equal(gold_value, answer_value)
    if result is None:
        return None
    return result, "undone" if not result and is_undone_for(gold_value, answer_value) else layer_of(gold_value)


def _without_algebra(
    gold: str, answer: str, gold_value: Value | None, answer_value: Value | None
) -> tuple[bool, str] | None:
    """Wrong, where no algebra could make the answer right: words, a structure, no reading for a number as gold."""
    if _has_words(gold) or _has_words(answer):
        return False, "text"
    if _has_index(gold) or _has_index(answer):
        return _texts(gold) == _texts(answer), "text"
    kinds = [value for value in (gold_value, answer_value) if value is not None]
    if not all(isinstance(value, _FOR_ALGEBRA) for value in kinds):
        return False, "structure"
    if isinstance(gold_value, Assignments) and len(gold_value.items) == 1:
        gold_value = gold_value.items[0]
    if answer_value is None and isinstance(gold_value, Expression) and not names(gold_value.node):
        return False, UNREAD
    return None


def _has_words(text: str) -> bool:
    return any(token.kind == "word" for token in _tokens(text))


def _tokens(text: str) -> tuple[Token, ...]:
    try:
        return tokenize(text)
    except UnreadableError:
        return ()


def _has_index(text: str) -> bool:
    """Whether a number has an index that is no base, `12_c`, or a letter one, `A1`: algebra drops them."""
    tokens = [Token("sign", ""), *_tokens(text)]
    return any(
        (token.kind == "number" and after.is_sign("_"))
        or (token.kind == "letter" and after.kind == "number" and not after.gap and before.kind != "function")
        for before, token, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
    )


def _texts(text: str) -> list[str]:
    return [token.text for token in _tokens(text) if not token.is_sign("{", "}")]


def _in_words(gold: str, answer: str, gold_value: Value | None) -> tuple[bool, str] | None:
    """The finding on a gold that is the letter of a choice or words; None for another gold."""
    if isinstance(gold_value, Choice) and (other := letter_in(tokens_of(answer))):
        return other == gold_value.letter, "choice"
    if letters := letters_of(gold_value):
        if "or" in _words(answer) and "or" not in _words(gold):
            return False, "choice"
        if letters == letters_of(read(answer)):
            return True, "choice"
    if letter := letter_of(gold_value) or bracketed_letter(tokens_of(gold)):
        other = letter_in(tokens_of(answer)) or letter_with_text(tokens_of(answer))
        return (other == letter, "choice") if other else None
    if gold_value is None and (other := choice_in_words(gold)[0]) and letter_in(tokens_of(answer)) == other:
        return True, "choice"
    if expected := outcomes(tokens_of(gold), read_tokens):
        return equal_outcomes(expected, outcomes(tokens_of(answer), read_tokens), equal), "text"
    if (words := core(tokens_of(gold))) and (says(words, tokens_of(answer)) or core(tokens_of(answer)) == words):
        return True, "text"
    if gold_value is None and (words := wording(tokens_of(gold))):
        return _says(gold, answer, words), "text"
    if gold_value is None and (finding := _yes_or_no(gold, answer)):
        return finding
    if wording(tokens_of(gold)) in (("even",), ("odd",)) and says(wording(tokens_of(gold)), tokens_of(answer)):
        return True, "text"
    return None


def _yes_or_no(gold: str, answer: str) -> tuple[bool, str] | None:
    """The finding on "Yes, n = 5", whose value the answer must have; None for another gold."""
    (word, rest), (other, behind) = (yes_or_no_with(tokens_of(text)) for text in (gold, answer))
    values = read_tokens(rest), read_tokens(behind)
    if not word or values[0] is None:
        return None
    return word == other and values[1] is not None and equal(values[0], values[1]) is True, "text"


def _words(text: str) -> set[str]:
    return {token.text for token in tokens_of(text) if token.kind == "word"}


def _says(gold: str, answer: str, words: tuple[str, ...]) -> bool:
    """Whether an answer says a gold in words; the letter in front of "(E) none of these" says it as well."""
    (letter, rest), (other, behind) = choice_in_words(gold), choice_in_words(answer)
    if not letter:
        return says(words, tokens_of(answer))
    return other in ("", letter) and says(wording(rest), tuple(behind))


def layer_of(value: Value) -> str:
    if isinstance(value, Assignments) and len(value.names) == 1:
        return layer_of(value.items[0])
    return _LAYERS[type(value)]
