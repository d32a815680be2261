"""Answers in words: "Alice", "Yes, such a set exists.", "It is a circle", "Alice has a winning strategy"."""

from __future__ import annotations

from itertools import pairwise

from verifiers.answers.phrase_table import LEADS
from verifiers.answers.sentence_words import VERBS
from verifiers.answers.sentences import is_doubt
from verifiers.answers.syntax import Tokens

_ARTICLES = ("the", "a", "an")
_IN_FRONT = (*_ARTICLES, "on", "in")  # of a name, a day or a month
_DAY_WORDS = (
    "january february march april may june july august september october november december monday tuesday wednesday "
    "thursday friday saturday sunday"
)
_DAYS = {word[:3]: word for word in _DAY_WORDS.split()} | {"sept": "september", "tues": "tuesday", "thurs": "thursday"}
_NO_SUCH = (
    ("there", "is", "no", "such"),
    ("there", "are", "no", "such"),
    ("there", "exists", "no", "such"),
    ("there", "exist", "no", "such"),
    ("there", "does", "not", "exist", "such"),
    ("there", "does", "not", "exist", "any", "such"),
)
_OPPOSITES = {"yes": "no", "no": "yes", "true": "false", "false": "true"}
_POSSIBLE = {("possible",): "yes", ("not", "possible"): "no", ("impossible",): "no"}  # behind "it is"
_CONNECTING = frozenset(["and", "but", "or", "if", "unless", "except", "not", "only", "when", "for"])
# Behind "yes," and "no,".
_TURNS = frozenset(["but", "unless", "except", "or", "maybe", "if", "only", "provided", "sometimes", "depends"])
_WINNER_WORDS = "win wins won winning winner victory"
_WINNER = frozenset(_WINNER_WORDS.split())
_WINS_WORDS = (
    "the game has a strategy will always can is guaranteed guarantee guarantees to be force forces must by "
    "playing optimally correctly perfect play for all any every values of n who that"
)
_WINS = _WINNER | frozenset(_WINS_WORDS.split())  # all words of "has a winning strategy" and the like
_VERBS = VERBS | {"represents", "describes", "forms", "falls"}
# What has a property: an odd function, an isosceles triangle.
_BEARERS = ("number", "function", "integer", "value", "triangle", "quadrilateral", "polygon", "sequence", "matrix")
_NO_NAMES = _WINS | {"first", "second", "player", "and", "or", "loses", "lost", "beats"}
_APPOSITIONS = tuple((*the, which, "player") for the in ((), ("the",)) for which in ("first", "second"))
_NUMBERED: dict[tuple[str, ...], tuple[str, str]] = {
    ("player", number): (place, "player")
    for place, numbers in (("first", ("1", "one", "i")), ("second", ("2", "two", "ii")))
    for number in numbers
}
_MOVES = ("moves", "goes", "plays", "starts", "move", "go", "play", "begins")
_STRATEGIES = tuple(
    (*before, "winning", "strategy", *exists, "for")
    for before in ((), ("there", "is", "a"), ("there", "exists", "a"))
    for exists in ((), ("exists",))
)
_BREAKS = (",", ";", ":", ".", "-", "(", "!")  # between "yes" and its reason
_PRONOUNS = ("it", "he", "she", "they", "we", "there", "this", "that", "you")
_STOPS = (".", ",", ";", ":", "!", "'", "(", ")", "[", "]")


def wording(tokens: Tokens) -> tuple[str, ...]:
    """The words of an answer in words, in lower case and without an article in front; empty for anything else.

    Letters that stand together are a word; a single letter is none.
    """
    words: list[str] = []
    is_open = False  # a word of single letters that may go on
    for token in tokens:
        is_number = token.kind == "number" and bool(words)  # player 1
        if token.kind not in ("word", "letter") and not is_number and not token.is_sign(*_STOPS):
            return ()
        if token.kind == "letter" and is_open and not token.gap:
            words[-1] += token.text.casefold()
        elif token.kind in ("word", "letter") or is_number:
            words.append(token.text.casefold())
        is_open = token.kind == "letter"
    is_name = any(len(word) > 1 for word in words)
    if words[:1] == ["s"] and tokens[0].is_sign("'"):  # it's
        words = words[1:]
    while len(words) > 1 and (words[0] in _IN_FRONT or (words[0] == "player" and len(words[1]) > 1)):
        words = words[1:]
    if words[:2] in (["first", "player"], ["second", "player"]) and words[2:] and words[2] not in _NO_NAMES:
        words = words[2:]  # the first player, Alice
    words[:] = [_DAYS.get(words[0], words[0])] if len(words) == 1 else words
    return _with_player(tuple(words)) if is_name else ()


def _with_player(words: tuple[str, ...]) -> tuple[str, ...]:
    """The words with "first player" in front for "player 1" and "the player who moves first"."""
    if words[:2] in _NUMBERED:
        return (*_NUMBERED[words[:2]], *words[2:])
    who = words[1:] if words[:1] in (("player",), ("one",), ("person",)) else words
    is_mover = who[:1] in (("who",), ("that",), ("to",)) and who[2:3] in (("first",), ("second",)) and who[1] in _MOVES
    return (who[2], "player", *who[3:]) if is_mover else words


def says(gold: tuple[str, ...], tokens: Tokens) -> bool:
    """Whether an answer says the gold's words: alone, behind the verb of a sentence, or with what follows from them."""
    if len(gold) == 1 and _is_possible(wording(tokens)) == gold[0]:
        return True
    if len(gold) == 1 and gold[0] in _OPPOSITES and len(tokens) > 1 and tokens[0].is_word(gold[0]):
        words = {token.text for token in tokens[1:]}
        return (
            (tokens[1].is_sign(*_BREAKS) or tokens[1].is_word(*_PRONOUNS))
            and _TURNS.isdisjoint(words)
            and _OPPOSITES[gold[0]] not in words
        )
    place = next((place for place in range(len(tokens), 0, -1) if _is_equality(tokens[:place])), 0)
    tokens = tokens[place:]  # the winner = Alice
    answer = wording(tokens)
    if not answer:
        return False
    rest = answer[len(gold) :]
    if ("no", "matter") in pairwise(rest):  # Bob wins no matter how Alice plays
        place = rest.index("matter") - 1
        answer, rest = answer[: len(gold) + place], rest[:place]
    if answer == gold or (answer[: len(gold)] == gold and not _WINNER.isdisjoint(rest) and _WINS.issuperset(rest)):
        return True
    if answer[: len(gold)] == gold and rest in _APPOSITIONS:  # Alice (the first player)
        return True
    if gold[1:] == ("player",) and answer == gold[:1]:  # the second
        return True
    if answer[: len(gold)] == gold and rest == ("of", "them"):
        return True
    if answer[-len(gold) :] == gold and answer[: -len(gold)] in _STRATEGIES:
        return True
    if _behind_subject(gold, rest if answer[: len(gold)] == gold else ()):
        return True
    verb = next((place for place in range(len(answer), 0, -1) if answer[place - 1] in _VERBS), 0)
    behind = answer[verb:]
    while len(behind) > 1 and behind[0] in (_IN_FRONT if answer[verb - 1 : verb] == ("falls",) else _ARTICLES):
        behind = behind[1:]
    is_noun = len(behind) == len(gold) + 1 and behind[-1] in _BEARERS  # an odd function
    is_said = behind == gold or (is_noun and behind[:-1] == gold)
    is_alone = is_noun and not verb
    return is_said and (verb > 0 or is_alone) and not any(is_doubt(word) and word not in gold for word in answer)


def yes_or_no_with(tokens: Tokens) -> tuple[str, Tokens]:
    """("yes", n = 5) of "Yes, with n = 5": the word and the value behind it; "" for anything else."""
    if len(tokens) < 3 or not tokens[0].is_word(*_OPPOSITES) or not tokens[1].is_sign(*_BREAKS):
        return "", ()
    rest = tokens[2:]
    while rest and rest[0].is_word("with", "for", "when", "where", "namely", "if"):
        rest = rest[1:]
    return tokens[0].text, rest


def core(tokens: Tokens) -> tuple[str, ...]:
    """The words that a gold in a sentence comes down to: "no" of "No, there is no such set", "alice" of "Alice wins".

    Empty for a gold that is no such sentence.
    """
    words = wording(tokens)
    is_in_words = bool(words) and not any(token.kind == "number" for token in tokens)
    if is_in_words and words[0] in _OPPOSITES and len(words) > 1 and says(words[:1], tokens):
        return words[:1]
    if possible := _is_possible(words):
        return (possible,)
    return winner(tokens)


def winner(tokens: Tokens, *, is_part: bool = False) -> tuple[str, ...]:
    """The name in "Alice wins", "Bob has a winning strategy"; empty for other words.

    `is_part`: more words may follow.
    """
    words = wording(tokens)
    if is_part:
        words = tuple(token.text for token in tokens if token.kind == "word")
        return words[:1] if not _WINNER.isdisjoint(words) or "otherwise" in words else ()
    size = next((size for size in range(1, len(words)) if _WINS.issuperset(words[size:])), len(words))
    is_winner = not _WINNER.isdisjoint(words[size:]) and _WINS.isdisjoint(words[:size]) and size < 3
    return words[:size] if is_winner and not any(map(is_doubt, words)) else ()


def _is_possible(words: tuple[str, ...]) -> str:
    """ "no" for "It's not possible" and "No such polynomial exists", "yes" for "It is possible"; "" for other words."""
    is_none = words[:2] == ("no", "such") or any(words[: len(none)] == none for none in _NO_SUCH)
    if is_none and len(words) < 10 and _CONNECTING.isdisjoint(words[4:]):
        return "no" if words[0] == "there" or words[-1] in ("exist", "exists") else ""
    return _POSSIBLE.get(words[2:] if words[:2] in (("it", "is"), ("this", "is")) else words, "")


def _is_equality(tokens: Tokens) -> bool:
    """Whether tokens end with an equals sign, or with the colon of "winner:"."""
    is_colon = tokens[-1].is_sign(":") and all(token.is_word(*LEADS, *_WINNER) for token in tokens[:-1])
    return tokens[-1].is_sign("=") or is_colon


def _behind_subject(gold: tuple[str, ...], rest: tuple[str, ...]) -> bool:
    """Whether words behind a name only say what was asked of it: "is the youngest", "has the most points"."""
    if rest[:1] not in (("is",), ("was",), ("has",), ("had",)) or len(gold) > 2 or rest[1:2] != ("the",):
        return False
    is_superlative = len(rest) > 2 and (rest[2].endswith("est") or rest[2] in ("most", "least", "only", "winner"))
    is_plain = not any(is_doubt(word) or word in ("second", "third", "other", "of") for word in rest)
    return is_superlative and is_plain and len(rest) < 6
