"""Golds that are no mathematics: letters of choices, and words."""

from __future__ import annotations

from itertools import pairwise

from verifiers.answers.prose import has_doubt
from verifiers.answers.reading import CHOICES
from verifiers.answers.symbols import NUMBER_SETS
from verifiers.answers.syntax import Tokens
from verifiers.answers.token import Token
from verifiers.answers.tree import Node
from verifiers.answers.values import Collection, Expression, Value, nodes_of

_AROUND = frozenset(["the", "correct", "final", "answer", "choice", "option", "statement", "player", "is", "true"])
_SIGNS = ("(", ")", "{", "}", ".", ":")
_ARTICLES = ("the", "a", "an", "on", "in")
_STOPS = (".", ",", ";", ":", "!", "(", ")")
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_TURNS = ("but", "unless", "except", "or", "maybe", "if", "only", "provided", "sometimes", "depends")
_VERBS = ("is", "are", "was", "were", "be", "equals")
_BOLD = {sign: letter for letter, sign in NUMBER_SETS.items()}  # \mathbf{C} is read as the set of complex numbers


def letter_of(value: Value | None) -> str:
    """The letter of a value that is only a capital letter; "" for another."""
    return _letter(value.node) if isinstance(value, Expression) else ""


def _letter(node: Node) -> str:
    return node.name if node.op == "symbol" and node.name in tuple(CHOICES) else ""


def letters_of(value: Value | None) -> frozenset[str]:
    """The letters of several choices, ACD or the list A, C, D; empty for another value."""
    nodes: list[Node] = []
    if isinstance(value, Expression) and value.node.op == "mul":
        nodes = list(value.node.args)
    elif isinstance(value, Collection) and value.is_bare:
        nodes = nodes_of(value.items) or []
    letters = [_letter(node) for node in nodes]
    is_run = isinstance(value, Collection) or letters == sorted(letters)  # BAD is a word
    return frozenset(letters) if all(letters) and is_run and len({*letters}) == len(letters) else frozenset()


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
    """The letter of a choice, as a capital, with its text behind it: "(b) Beta", "b. Beta", "B (6)"; "" for others."""
    if len(tokens) > 2 and tokens[0].kind == "letter" and tokens[1].is_sign(".", ")", ":"):
        tokens = (Token("sign", "("), tokens[0], Token("sign", ")"), *tokens[2:])
    letter = bracketed_letter(tokens[:3])
    is_plain = len(tokens) > 3 and tokens[0].kind == "letter" and tokens[1].is_sign("(") and tokens[-1].is_sign(")")
    rest = tokens[3:] if letter else tokens[2:-1] if is_plain else []
    others = any(bracketed_letter(rest[place : place + 3]) for place in range(len(rest)))
    others = others or (len(rest) == 1 and bool(letter_in(rest)))  # A: C
    if not rest or others or any(t.kind == "word" and (t.text == "or" or has_doubt(t.text)) for t in rest):
        return ""
    return letter or letter_in(tokens[:1])


def choice_in_words(tokens: Tokens) -> tuple[str, Tokens]:
    """The letter of a choice and the words behind it, "(E) none of these"; "" for none."""
    letter = bracketed_letter(tokens[:3]) if len(tokens) > 3 and tokens[1].text.isupper() else ""
    return (letter, tokens[3:]) if letter else ("", tokens)


def wording(tokens: Tokens) -> tuple[str, ...]:
    """The words of an answer in words, casefolded and without articles and stops; empty for anything else.

    Letters that stand together are a word; a single letter is none.
    """
    words: list[str] = []
    is_open = False  # a word of single letters that may go on
    for token in tokens:
        if token.kind not in ("word", "letter") and not token.is_sign(*_STOPS):
            return ()
        if token.kind == "letter" and is_open and not token.gap:
            words[-1] += token.text.casefold()
        elif token.kind in ("word", "letter"):
            words.append(token.text.casefold())
        is_open = token.kind == "letter"
    is_name = any(len(word) > 1 for word in words)
    return tuple(word for word in words if word not in _ARTICLES) if is_name else ()


def says(gold: tuple[str, ...], tokens: Tokens) -> bool:
    """Whether an answer says the gold's words: alone, or behind the last verb of being, or "=" of a sentence."""
    if wording(tokens) == gold:
        return True
    if gold[0] in _OPPOSITES and len(tokens) > 1 and tokens[0].text.casefold() == gold[0] and tokens[1].kind == "sign":
        turns = (*_TURNS, _OPPOSITES[gold[0]])
        return len(gold) == 1 and not any(token.text.casefold() in turns for token in tokens)  # yes, by induction
    is_labelled = [token.is_sign(":") and before.is_word("answer", "winner") for before, token in pairwise(tokens)]
    ends = [place for place, token in enumerate(tokens, 1) if token.is_sign("=") or token.is_word(*_VERBS)]
    ends += [place for place, is_label in enumerate(is_labelled, 2) if is_label]
    if [token.text for token in tokens[:3]] == ["it", "'", "s"]:
        ends = [3, *ends]
    end = max(ends, default=0)
    return end > 0 and not has_doubt(" ".join(token.text for token in tokens[:end])) and wording(tokens[end:]) == gold
