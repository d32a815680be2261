"""The decision of the grammar: both texts read and compared; what is left to algebra, and what is wrong without it."""

from __future__ import annotations

from verifiers.answers.amounts import amount
from verifiers.answers.equality import equal
from verifiers.answers.evaluation import start_budget
from verifiers.answers.reading import read, words_of
from verifiers.answers.scalars import is_undone_for
from verifiers.answers.syntax import Tokens, at_signs, cut
from verifiers.answers.text import (
    bracketed_letter,
    choice_in_words,
    letter_in,
    letter_of,
    letter_with_text,
    letters_of,
    says,
    wording,
)
from verifiers.answers.token import Token, UnreadableError
from verifiers.answers.tokens import tokenize
from verifiers.answers.tree import names
from verifiers.answers.values import (
    Amount,
    Choice,
    Collection,
    Expression,
    Family,
    Literal,
    Named,
    Reals,
    Relation,
    Value,
    bare,
)

_LAYERS: dict[type, str] = {
    Expression: "numeric",
    Reals: "set",
    Collection: "structure",
    Named: "structure",
    Relation: "relation",
    Family: "family",
    Amount: "unit",
    Choice: "choice",
}
_LAYERS_OF_KINDS = {"date": "time"}  # of literals; others have their own name
_FOR_ALGEBRA = (Expression, Relation, Named)  # other kinds are never left to math-verify
_STRUCTURES = (",", ";", "∈", "∉", "∪", "∩", "∖", "≡", "≢", "…", "ℤ", "ℕ", "ℝ", "\\\\")
MAX_CHARACTERS = 1_000
UNREAD = "unread"  # the layer of an answer that the grammar cannot read where the gold leaves nothing to algebra
Finding = tuple[bool, str]  # whether they are equal, and the kind of value that decided


def compare(gold: str, answer: str) -> Finding | None:
    """The finding on two texts; None where algebra must decide."""
    if max(len(gold), len(answer)) > MAX_CHARACTERS:
        return False, UNREAD
    start_budget()
    values = read(gold), read(answer)
    return (
        _in_words(gold, answer, *values) or _by_value(gold, answer, *values) or _without_algebra(gold, answer, *values)
    )


def _by_value(gold: str, answer: str, gold_value: Value | None, answer_value: Value | None) -> Finding | None:
    """The finding on two values; None where one is not read, and where their equality is not decided."""
    if gold_value is None or answer_value is None:
        return None
    is_plain = isinstance(gold_value, Expression) and not names(gold_value.node)
    if is_plain or isinstance(gold_value, Amount) or isinstance(answer_value, Amount):
        gold_value, answer_value = read_with_units(gold, gold_value), read_with_units(answer, answer_value)
    result = equal(gold_value, answer_value)
    if result is None:
        return None
    return result, "undone" if not result and is_undone_for(gold_value, answer_value) else layer_of(gold_value)


def read_with_units(text: str, value: Value) -> Value:
    """The value of a text beside an amount: where its letters can be units, `5m`, an amount as well."""
    inner = bare(value)
    if not isinstance(inner, Expression) or not names(inner.node):
        return value
    try:
        return amount(cut(tokenize(text), at_signs("="))[0][-1]) or value  # v = 15 m/s
    except UnreadableError:
        return value


def _without_algebra(gold: str, answer: str, gold_value: Value | None, answer_value: Value | None) -> Finding | None:
    """Wrong, where no algebra could make the answer right: words, a structure, no reading for a number as gold."""
    sides = _tokens(gold), _tokens(answer)
    if any(token.kind == "word" for side in sides for token in side):
        return False, "text"
    is_structure = None in (gold_value, answer_value) and any(map(_is_structure, sides))
    is_text = is_structure or any(map(_has_index, sides))
    texts = [[token.text for token in side if not token.is_sign("{", "}")] for side in sides]
    if is_text and texts[0] == texts[1]:
        return True, "text"
    values = [bare(value) for value in (gold_value, answer_value) if value is not None]
    if not all(isinstance(value, _FOR_ALGEBRA) for value in values):
        return False, "structure"
    gold_item = None if gold_value is None else bare(gold_value)
    if answer_value is None and isinstance(gold_item, Expression) and not names(gold_item.node):
        return False, UNREAD
    return (False, "text") if is_text else None


def _tokens(text: str) -> tuple[Token, ...]:
    try:
        return tokenize(text)
    except UnreadableError:
        return ()


def _is_structure(tokens: tuple[Token, ...]) -> bool:
    """Whether tokens are of a kind of value that algebra does not compare: a list, a set, a chain of equations."""
    is_chain = sum(token.is_sign("=") for token in tokens) > 1
    return is_chain or any(token.is_sign(*_STRUCTURES) or token.text.startswith("begin ") for token in tokens)


def _has_index(tokens: tuple[Token, ...]) -> bool:
    """Whether a number has an index that is no base, `12_c`, or a letter one, `A1`: algebra drops them."""
    return any(
        (token.kind == "number" and after.is_sign("_"))
        or (token.kind == "letter" and after.kind == "number" and not after.gap and before.kind != "function")
        for before, token, after in zip((Token("sign", ""), *tokens), tokens, tokens[1:], strict=False)
    )


def _in_words(gold: str, answer: str, gold_value: Value | None, answer_value: Value | None) -> Finding | None:
    """The finding on a gold that is the letter of a choice or words; None for another gold."""
    expected, words = words_of(gold), words_of(answer)
    if isinstance(gold_value, Choice) and (other := letter_in(words)):
        return other == gold_value.letter, "choice"
    if letters := letters_of(gold_value):
        if any(t.is_word("or") for t in words) and not any(t.is_word("or") for t in expected):
            return False, "choice"
        if letters == letters_of(answer_value):
            return True, "choice"
    if letter := letter_of(gold_value) or bracketed_letter(expected):
        other = letter_in(words) or letter_with_text(words)
        return (other == letter, "choice") if other else None
    has_words = any(token.kind == "word" for token in expected)
    if gold_value is None and (other := choice_in_words(expected)[0]) and letter_in(words) == other:
        return True, "choice"
    if (gold_value is None or has_words) and (texts := wording(expected)):
        is_said = says(texts, words) or _says(expected, words)
        return (True, "text") if is_said else None if gold_value else (False, "text")
    return None


def _says(expected: Tokens, words: Tokens) -> bool:
    """Whether an answer says a gold in words, "(E) none of these", without its letter or with it."""
    (letter, rest), (other, behind) = choice_in_words(expected), choice_in_words(words)
    return bool(letter) and other in ("", letter) and says(wording(rest), behind)


def layer_of(value: Value) -> str:
    value = bare(value)
    if isinstance(value, Literal) or (isinstance(value, Collection) and value.kind == "ratio"):
        return _LAYERS_OF_KINDS.get(value.kind, value.kind)
    return _LAYERS[type(value)]
