"""Letters of choices: `C`, "(c)", "option C", "the correct answer is C", and a choice with its value, "(C) 24"."""

from __future__ import annotations

from verifiers.answers.results import Equality, Result
from verifiers.answers.slices import Tokens
from verifiers.answers.symbols import NUMBER_SETS
from verifiers.answers.values import Choice, Expression, Value

CHOICES = "ABCDEFGHJ"
_AROUND = frozenset(["the", "correct", "final", "answer", "choice", "option", "statement", "player", "is", "true"])
_SIGNS = ("(", ")", "{", "}", ".", ":")
_BOLD = {sign: letter for letter, sign in NUMBER_SETS.items()}  # \mathbf{C} is read as the set of complex numbers


def letter_of(value: Value | None) -> str:
    """The letter of a value that is only a capital letter; "" for another."""
    if not isinstance(value, Expression) or value.node.op != "symbol":
        return ""
    return value.node.name if value.node.name in tuple(CHOICES) else ""


def letter_in(tokens: Tokens) -> str:
    """The letter of a choice, as a capital, that tokens name with nothing else beside it; "" for none."""
    rest = [token for token in tokens if not (token.is_word(*_AROUND) or token.is_sign(*_SIGNS))]
    if len(rest) != 1 or rest[0].kind not in ("letter", "word", "sign"):
        return ""
    letter = _BOLD.get(rest[0].text, rest[0].text).upper()
    is_small = rest[0].text.islower() and letter not in tuple("ABCDE")  # a letter of another kind
    return letter if letter in tuple(CHOICES) and not is_small else ""


def equal_choices(gold: Value, answer: Value, equal: Equality) -> Result:
    """A choice with its value is either of them; where both sides have both, both count."""
    if isinstance(gold, Choice) and isinstance(answer, Choice):
        return gold.letter == answer.letter and equal(gold.value, answer.value)
    if isinstance(gold, Choice):
        letter = letter_of(answer)
        return letter == gold.letter if letter else equal(gold.value, answer)
    assert isinstance(answer, Choice)
    letter = letter_of(gold)
    return letter == answer.letter if letter else equal(gold, answer.value)
