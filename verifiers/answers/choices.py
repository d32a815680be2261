"""Letters of choices: `C`, "(c)", "option C", "the correct answer is C", and a choice with its value, "(C) 24"."""

from __future__ import annotations

from verifiers.answers.results import Equality, Result
from verifiers.answers.sentences import is_doubt
from verifiers.answers.slices import Tokens
from verifiers.answers.symbols import NUMBER_SETS
from verifiers.answers.tree import Node
from verifiers.answers.values import Choice, Expression, Sequence, Value

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


def bracketed_letter(tokens: Tokens) -> str:
    """The letter of a choice, as a capital, that tokens are in brackets: "(b)"; "" for none."""
    is_bracketed = len(tokens) == 3 and tokens[0].is_sign("(") and tokens[2].is_sign(")")
    return letter_in(tokens) if is_bracketed and tokens[1].kind == "letter" else ""


def letter_with_text(tokens: Tokens) -> str:
    """The letter of a choice, as a capital, with its text behind it: "(b) Beta", "B (6)"; "" for none or several."""
    letter = bracketed_letter(tokens[:3])
    is_plain = len(tokens) > 3 and tokens[0].kind == "letter" and tokens[1].is_sign("(") and tokens[-1].is_sign(")")
    rest = tokens[3:] if letter else tokens[2:-1] if is_plain else []
    others = any(bracketed_letter(rest[place : place + 3]) for place in range(len(rest)))
    if (
        not rest
        or others
        or any(token.kind == "word" and (token.text == "or" or is_doubt(token.text)) for token in rest)
    ):
        return ""
    return letter or letter_in(tokens[:1])


def letters_of(value: Value | None) -> frozenset[str]:
    """The letters of several choices, ACD or the list A, C, D; empty for another value."""
    nodes: list[Node] = []
    if isinstance(value, Expression) and value.node.op == "mul":
        nodes = list(value.node.args)
    elif isinstance(value, Sequence) and value.kind in ("list", "set"):
        nodes = [item.node for item in value.items if isinstance(item, Expression)]
        nodes = nodes if len(nodes) == len(value.items) else []
    letters = [letter_of(Expression(node)) for node in nodes]
    return frozenset(letters) if all(letters) and letters == sorted({*letters}) else frozenset()


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
