"""The decision of the grammar: both texts read and compared; what is left to algebra, and what is wrong without it."""

from __future__ import annotations

from itertools import pairwise

from verifiers.answers.amounts import amount
from verifiers.answers.equality import equal
from verifiers.answers.evaluation import start_budget
from verifiers.answers.prose import has_doubt
from verifiers.answers.reading import CHOICES, read, words_of
from verifiers.answers.scalars import is_undone_for
from verifiers.answers.symbols import NUMBER_SETS
from verifiers.answers.syntax import Token, Tokens, UnreadableError, at_signs, cut
from verifiers.answers.tokens import tokenize
from verifiers.answers.tree import Node, names
from verifiers.answers.values import (
    Amount,
    Cases,
    Choice,
    Collection,
    Expression,
    Family,
    Integers,
    Literal,
    Named,
    Reals,
    Relation,
    Space,
    Value,
    bare,
    nodes_of,
)

_AROUND = frozenset(["the", "correct", "final", "answer", "choice", "option", "statement", "player", "is", "true"])
_SIGNS = ("(", ")", "{", "}", ".", ":")
_ARTICLES = ("the", "a", "an", "on", "in", "solutions")
_STOPS = (".", ",", ";", ":", "!", "(", ")")
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_TURNS = ("but", "unless", "except", "or", "maybe", "if", "only", "provided", "sometimes", "depends")
_VERBS = ("is", "are", "was", "were", "be", "equals")
_BOLD = {sign: letter for letter, sign in NUMBER_SETS.items()}  # \mathbf{C} is read as the set of complex numbers
_LAYERS: dict[type, str] = {
    Expression: "numeric",
    Reals: "set",
    Collection: "structure",
    Named: "structure",
    Relation: "relation",
    Family: "family",
    Integers: "family",
    Space: "family",
    Cases: "structure",
    Amount: "unit",
    Choice: "choice",
}
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
    has_words = any(token.kind == "word" for side in sides for token in side)
    is_structure = None in (gold_value, answer_value) and any(map(_is_structure, sides))
    is_text = is_structure or any(map(_has_index, sides))
    texts = [[token.text for token in side if not token.is_sign("{", "}")] for side in sides]
    if has_words or (is_text and texts[0] == texts[1]):
        return texts[0] == texts[1], "text"
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


# -------------------------------------------------------------------------------------- letters and words


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


def layer_of(value: Value) -> str:
    value = bare(value)
    if isinstance(value, Literal) or (isinstance(value, Collection) and value.kind == "ratio"):
        return value.kind
    return _LAYERS[type(value)]
