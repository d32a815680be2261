"""Reading an answer, and the decision on two: what is left to algebra, and what is wrong without it."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from verifiers.answers.amounts import amount, clock, has_unit, number_of_things, numeral
from verifiers.answers.equality import equal
from verifiers.answers.evaluation import start_budget
from verifiers.answers.phrases import drop_leads, join_words, rewrite
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.relations import with_approximation
from verifiers.answers.scalars import is_undone_for
from verifiers.answers.statements import statement
from verifiers.answers.syntax import AND_OR, NUMBER_SETS, Token, Tokens, UnreadableError, at_signs, bracket_content, cut
from verifiers.answers.tokens import tokenize
from verifiers.answers.values import (
    EMPTY,
    Amount,
    Choice,
    Clock,
    Collection,
    Expression,
    Family,
    Integers,
    Named,
    Node,
    Numeral,
    Reals,
    Relation,
    Space,
    Value,
    bare,
    names,
    nodes_of,
)
from verifiers.answers.words import has_doubt, has_noun, number_in_front

CHOICES = "ABCDEFGHJ"


@lru_cache(maxsize=4096)
def read(text: str) -> Value | None:
    """The typed value of an answer as written; None if the grammar does not know its form."""
    tokens = words_of(text)
    return read_tokens(tokens) if tokens else None


@lru_cache(maxsize=4096)
def words_of(text: str) -> tuple[Token, ...]:
    """The tokens of an answer without the words that lead to it; empty where it is not read."""
    try:
        return tuple(drop_leads(join_words(tokenize(text))))
    except UnreadableError:
        return ()


def read_tokens(tokens: Tokens) -> Value | None:
    """The typed value of tokens without the words that lead to them; None where the grammar does not read them."""
    for reading in (_without_aside, _value, numeral, clock, lambda each: number_of_things(number_in_front(each))):
        try:
            if (value := reading(tokens)) is not None:
                return value
        except UnreadableError:
            continue
        except (NoValueError, TooLargeError, RecursionError):
            return None
    return None


def _value(tokens: Tokens) -> Value:
    letter, tokens = _choice(tokens)
    if letter:
        if names_choice(tokens) or letter_in([token for token in tokens if not AND_OR(token)]):
            raise UnreadableError("two letters")
        return Choice(letter, statement(rewrite(tokens)))
    parts = amount(tokens) or amount(rewrite(tokens)) if has_unit(tokens) else None
    return parts or statement(rewrite(tokens))


_NOTHING_WORDS = (
    "no such real integer positive solution solutions value values number numbers root roots of exist exists"
)
_NOTHING = frozenset(_NOTHING_WORDS.split())


def _without_aside(tokens: Tokens) -> Value | None:
    """ "no such x", and a value without what stands in brackets behind it: the value again, its noun, or a reason."""
    words = [token.text for token in tokens if token.kind == "word"]
    if words[:1] == ["no"] and tokens[0].kind == "word" and _NOTHING.issuperset(words) and len(tokens) > 1:
        return EMPTY if len(words) >= len(tokens) - 1 and tokens[-1].kind in ("word", "letter") else None
    place = max((k for k, token in enumerate(tokens) if token.is_sign("(") and token.gap), default=0)
    inside = bracket_content(tokens[place:]) if place else None
    if inside is None or not (words or any(token.kind == "number" for token in inside[1])):
        return None
    head, aside = read_tokens(tokens[:place]), read_tokens(drop_leads(inside[1]))
    if head is None or inside[1][0].is_word("since", "because"):
        return head
    if isinstance(aside, Expression):
        is_again = (words or not names(aside.node)) and equal(head, aside) is True  # not (2x+1) (2x+1)
        return head if is_again else with_approximation(head, aside.node) if aside.is_rounded else None
    is_noun = all(token.kind == "word" for token in inside[1]) and has_noun([token.text for token in inside[1]])
    return read_tokens([*tokens[:place], *inside[1]]) if is_noun else None


def _choice(tokens: Tokens) -> tuple[str, Tokens]:
    """The letter of a choice beside its value, `(B) 24`, `B: 24` or `24 (B)`, and the rest; "" for none."""
    is_behind = len(tokens) > 3 and _is_bracketed_choice(tokens[-3:]) and tokens[-3].gap
    if is_behind and (tokens[-4].kind in ("number", "word") or tokens[-4].is_sign("}")) and not AND_OR(tokens[-4]):
        return tokens[-2].text, tokens[:-3]
    if len(tokens) > 3 and _is_bracketed_choice(tokens[:3]):
        is_value = tokens[3].kind in ("number", "function", "letter") or tokens[3].is_sign("-", "$", "|")
        return (tokens[1].text, tokens[3:]) if is_value else ("", tokens)
    is_one_of_several = any(
        before.is_sign(",", ";") and token.kind == "letter" and after.is_sign(":")
        for before, token, after in zip(tokens[2:], tokens[3:], tokens[4:], strict=False)
    )
    is_letter = len(tokens) > 2 and tokens[0].kind == "letter" and tokens[0].text in tuple(CHOICES)
    if is_letter and tokens[1].is_sign(")", ":", ".") and not is_one_of_several:
        return tokens[0].text, tokens[2:]
    return "", tokens


def _is_bracketed_choice(tokens: Tokens) -> bool:
    is_bracketed = tokens[0].is_sign("(") and tokens[2].is_sign(")")
    return is_bracketed and tokens[1].kind == "letter" and tokens[1].text in tuple(CHOICES)


_JOINING = ("and", "or", "also", "too", "same", "alternatively", "answer")  # one choice to another
_LISTING = (",", ";", "=", "/", "(", ")")
_AROUND = frozenset(["the", "correct", "final", "answer", "choice", "option", "statement", "player", "is", "true"])
_SIGNS = ("(", ")", "{", "}", ".", ":")
_ARTICLES = ("the", "a", "an", "on", "in", "solutions")
_STOPS = (".", ",", ";", ":", "!", "(", ")")
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_TURN_WORDS = "but unless except or maybe if only provided sometimes depends probably perhaps possibly likely guess"
_TURNS = tuple(_TURN_WORDS.split())
_DENIALS = ("false", "wrong", "incorrect")
_PAUSES = (",", ".", ";", ":", "!", "(", "-")
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
    Amount: "unit",
    Numeral: "base",
    Clock: "time",
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
    """Whether tokens are of a kind that algebra does not compare: a list, a set, a chain of equations, a sum."""
    is_chain = sum(token.is_sign("=") for token in tokens) > 1
    is_sum = any(token.kind == "operator" and token.text in ("sum", "prod") for token in tokens)
    return is_chain or is_sum or any(token.is_sign(*_STRUCTURES) or token.text.startswith("begin ") for token in tokens)


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
    letter, rest = split_letter(tokens)
    is_list = all(t.text in tuple(CHOICES) or t.is_sign(*_LISTING) for t in rest)
    is_doubted = any(t.kind == "word" and (t.text == "or" or has_doubt(t.text)) for t in rest)
    return "" if is_list or is_doubted or names_choice(rest) else letter


def split_letter(tokens: Tokens) -> tuple[str, Tokens]:
    """The letter of a choice, as a capital, and the tokens behind it, or in front of it: "Beta (b)"; "" for none."""
    if len(tokens) > 2 and tokens[0].kind == "letter" and tokens[1].is_sign(".", ")", ":"):
        tokens = (Token("sign", "("), tokens[0], Token("sign", ")"), *tokens[2:])
    if letter := bracketed_letter(tokens[:3]):
        return letter, tokens[3:]
    if letter := bracketed_letter(tokens[-3:]):
        return letter, tokens[:-3]
    is_plain = len(tokens) > 3 and tokens[0].kind == "letter" and tokens[1].is_sign("(") and tokens[-1].is_sign(")")
    return (letter_in(tokens[:1]), tokens[2:-1]) if is_plain else ("", ())


def names_choice(tokens: Tokens) -> bool:
    """Whether tokens beside a letter name another choice: "(C)", "C) 5", "also C"; not "P(A)" or "vitamin C"."""
    is_joined = any(token.is_word(*_JOINING) for token in tokens)
    end = Token("sign", "")
    padded = (end, end, *tokens, end, end)
    for first, before, token, after, last in zip(*(padded[k:] for k in range(5)), strict=False):
        is_alone = (token.gap or before.kind != "letter") and (after.gap or after.kind != "letter")
        if token.kind != "letter" or token.text.upper() not in tuple(CHOICES) or not is_alone:
            continue
        if before.is_sign("("):
            is_named = after.is_sign(")") and (before.gap or first.kind not in ("letter", "function"))
        else:
            is_named = after.is_sign(")", ":", ".") and last is not end
        if is_named or (is_joined and token.text.isupper()):
            return True
    return False


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
        if (token.kind not in ("word", "letter") and not token.is_sign(*_STOPS)) or (token.text == "!" and not words):
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
        turns = (*_TURNS, _OPPOSITES[gold[0]], *(_DENIALS if gold[0] in ("yes", "true") else ()))
        is_turned = any(token.text.casefold() in turns for token in tokens)
        return len(gold) == 1 and tokens[1].is_sign(*_PAUSES) and not is_turned  # yes, by induction
    is_labelled = [token.is_sign(":") and before.is_word("answer", "winner") for before, token in pairwise(tokens)]
    labels = [place for place, is_label in enumerate(is_labelled, 2) if is_label]
    equals = [place for place, token in enumerate(tokens, 1) if token.is_sign("=")]
    verbs = [place for place, token in enumerate(tokens, 1) if token.is_word(*_VERBS)]
    end = max((*labels, *equals, *verbs), default=0)
    texts = [token.text.casefold() for token in tokens[:end]]
    if len(labels) > 1 or len(equals) > 1 or "or" in texts or _OPPOSITES.get(gold[0]) in texts:
        return False
    return end > 0 and not has_doubt(" ".join(texts)) and wording(tokens[end:]) == gold


def layer_of(value: Value) -> str:
    value = bare(value)
    return "ratio" if isinstance(value, Collection) and value.kind == "ratio" else _LAYERS[type(value)]
