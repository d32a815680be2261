"""The typed layer of the ladder: parse both texts and compare their values."""

from __future__ import annotations

from verifiers.answers.choices import letter_in, letter_of
from verifiers.answers.equivalence import equal
from verifiers.answers.evaluation import start_budget
from verifiers.answers.scalars import is_undone_for
from verifiers.answers.statements import read, read_sentence, read_with_units, tokens_of
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
from verifiers.answers.wording import says, wording

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
MAX_CHARACTERS = 1_000


def compare(gold: str, answer: str) -> tuple[bool, str] | None:
    """(whether they are equal, the kind of value that decided); None where the grammar cannot read or decide."""
    if max(len(gold), len(answer)) > MAX_CHARACTERS:
        return None
    start_budget()
    gold_value, answer_value = read(gold), read(answer)
    if (finding := _in_words(gold, answer, gold_value)) is not None:
        return finding
    if gold_value is None:
        return None
    if answer_value is None:
        sentence = read_sentence(answer)
        return (True, layer_of(gold_value)) if sentence is not None and equal(gold_value, sentence) else None
    is_plain = isinstance(gold_value, Expression) and not names(gold_value.node)
    if is_plain or isinstance(gold_value, Amount) or isinstance(answer_value, Amount):
        gold_value, answer_value = read_with_units(gold, gold_value), read_with_units(answer, answer_value)
    assert gold_value is not None and answer_value is not None
    result = equal(gold_value, answer_value)
    if result is None:
        return None
    return result, "undone" if not result and is_undone_for(gold_value, answer_value) else layer_of(gold_value)


def _in_words(gold: str, answer: str, gold_value: Value | None) -> tuple[bool, str] | None:
    """The finding on a gold that is the letter of a choice or words; None for another gold."""
    if letter := letter_of(gold_value):
        other = letter_in(tokens_of(answer))
        return (other == letter, "choice") if other else None
    if gold_value is None and (words := wording(tokens_of(gold))):
        return says(words, tokens_of(answer)), "text"
    return None


def layer_of(value: Value) -> str:
    if isinstance(value, Assignments) and len(value.names) == 1:
        return layer_of(value.items[0])
    return _LAYERS[type(value)]
