"""The value that one ordinary sentence states: "So we get a total of 144 arrangements", "n = 13 works"."""

from __future__ import annotations

from collections.abc import Iterator

from verifiers.answers.number_words import changes_value, in_words, is_part_of_amount
from verifiers.answers.phrase_table import LEADS
from verifiers.answers.slices import Tokens, at_signs, bracket_content, cut
from verifiers.answers.token import Token
from verifiers.answers.units import unit_of_word

VERBS = frozenset(["is", "are", "equals", "equal", "be", "was", "get", "gets", "have", "has", "obtain", "gives"])
_SAFE = frozenset(["exactly", "precisely", "only", "just", "simply", "total", "namely", "final", "answer", "the", "so"])
# In any part of the sentence.
_HEDGE_WORDS = (
    "not neither nor maybe perhaps possibly probably either guess unsure unknown think could might cannot can't isn't "
    "unless depends wrong incorrect around about approximately roughly but false never untrue"
)
_HEDGES = frozenset(_HEDGE_WORDS.split())
# In the part of a sentence that states the value.
_DOUBT_WORDS = (
    "or if whether instead rather than assume assuming suppose doesn't no none nobody nothing except impossible fails "
    "fail"
)
_DOUBT = (_HEDGES | frozenset(_DOUBT_WORDS.split())) - {"about", "approximately"}
# Between the verb and the value, or behind the value: what is stated is something else.
_RELATIVE_WORDS = (
    "plus minus times over divided less more least most fewer greater smaller larger after before between beyond "
    "above below under up until within exceeds exceed twice half halved double doubled triple tripled squared square "
    "cubed cube root roots factorial power powers opposite negation negative inverse reciprocal sum difference "
    "product quotient anything divides divide divisible divisor divisors equation lemma step numerator denominator "
    "prime composite too bound bounds bounded digit digits something option options candidate candidates ignore "
    "accept close near nearly almost next previous multiple multiples factor factors about approximately even odd mod "
    "modulo remainder base"
)
_RELATIVE = frozenset(_RELATIVE_WORDS.split())
_CONDITIONS = ("where", "such", "provided", "given")  # behind a value: it holds for a part of what is asked
_ASSUMPTIONS = ("suppose", "assume", "assuming", "whether")
# Beside the only number of a sentence, which is then one of several things or a name.
_AMONG = frozenset(["or", "and", "up", "out", "infinitely", "them", "these", "those", "one"])
_PLAIN_SIGNS = (".", ",", ":", "%", "$", "-")
# Behind a comma: a clause that says something about the value.
_CLAUSES = ("which", "attained", "achieved", "reached", "obtained", "occurring", "when", "as", "since")
_OBJECT_WORDS = (
    "solution answer number integer value pair triple function polynomial root prime point sequence set triangle "
    "quadruple tuple real positive natural rational"
)
_OBJECTS = frozenset(word + ending for word in _OBJECT_WORDS.split() for ending in ("", "s"))
_REMARKS = ("rounded", "exact", "exactly", "the", "answer")
_NOTHING = _OBJECTS | {
    "such",
    "exist",
    "exists",
    "possible",
    "satisfy",
    "satisfies",
    "the",
    "of",
    "in",
    "this",
    "equation",
    "can",
    "be",
}
_BEFORE_NOTHING = frozenset(
    ["there", "is", "are", "exist", "exists", "so", "hence", "thus", "therefore", "the", "equation", "system", "has"]
)
_DENIALS = frozenset(["not", "wrong", "incorrect", "false", "but", "or", "except", "impossible", "never", "unless"])


def is_doubt(word: str) -> bool:
    """Whether a word denies or doubts what it stands beside."""
    return word in _DOUBT


def is_relative(word: str) -> bool:
    """Whether a word beside a number may change what is stated: "less", "factor"."""
    return word in _RELATIVE


def bare(tokens: list[Token]) -> list[Token]:
    """The tokens of an answer without a clause behind its value, and without its repetition in words."""
    return _without_repetition(_without_clause(tokens, ("which", "attained", "achieved", "reached", "obtained")))


def stated_values(tokens: Tokens) -> Iterator[list[Token]]:
    """The tokens that may be the value that a sentence states, likeliest first; none where it does not state one."""
    tokens = _without_repetition(_without_clause(list(tokens), _CLAUSES))
    while tokens and tokens[-1].is_sign("."):
        tokens = tokens[:-1]
    if any(_says_again(*three) for three in zip(tokens, tokens[1:], tokens[2:], strict=False)):
        return
    for reading in (_between_words, _behind_verb, _only_number):
        if value := reading(tokens):
            yield value


def _says_again(before: Token, token: Token, after: Token) -> bool:
    """Whether ", that is" or "i.e." joins two spellings of a value, which the grammar compares."""
    return token.is_word("ie") or (before.is_sign(",") and token.is_word("that") and after.is_word("is"))


def _between_words(tokens: list[Token]) -> list[Token] | None:
    """The value with words alone around it: "n = 13 works"."""
    first = next((place for place, token in enumerate(tokens) if not _is_prose(token)), len(tokens))
    end = next((place for place in range(len(tokens), 0, -1) if not _is_prose(tokens[place - 1])), 0)
    if first >= end:
        return _number_at_end(tokens)
    lead, core, rest = tokens[:first], tokens[first:end], tokens[end:]
    is_call = bool(lead) and core[0].is_sign("(", "[") and not core[0].gap
    if [token.text for token in tokens[end - 1 :]] in (["in", "total"], ["in", "all"]):  # not 12 inches
        core, rest = tokens[first : end - 1], []
    if len(core) > 2 and core[-2].is_word("of") and core[-1].is_word("them"):
        core = core[:-2]
    is_counted = bool(lead) and [token.text for token in rest[:2]] == ["of", "them"]  # there are 12 of them
    is_rest = _is_rest(rest[2:] if is_counted else rest)
    if rest and any(token.is_word("where") for token in core):
        return None
    if is_call or not _is_lead(lead) or not is_rest or (not lead and not rest):
        return None
    return core


def _behind_verb(tokens: list[Token]) -> list[Token] | None:
    """The value behind the last verb: "The 4th prime is 7", "The volume of $ABCD$ is 120"."""
    verb = next((place for place in range(len(tokens), 0, -1) if tokens[place - 1].is_word(*VERBS)), 0)
    words = [token.text for token in tokens if token.kind == "word"]
    if not verb or any(word in _HEDGES or word in _ASSUMPTIONS for word in words):
        return None
    return _between_words(tokens[verb - 1 :])


def _only_number(tokens: list[Token]) -> list[Token] | None:
    """The only number among two or more words: "The total comes to 12", "Jane started growing it 3 hours ago"."""
    words = [token.text for token in tokens if token.kind == "word"]
    places = [place for place, token in enumerate(tokens) if token.kind == "number"]
    is_plain = all(token.kind in ("word", "number", "letter") or token.is_sign(*_PLAIN_SIGNS) for token in tokens)
    if len(places) != 1 or len(words) < 2 or not is_plain:
        return None
    if any(word in _HEDGES or word in _DOUBT or word in _RELATIVE or word in _AMONG for word in words):
        return None
    if any(
        token.kind == "word" and in_words(token.text) is not None for token in tokens[: places[0]]
    ):  # three of the 7
        return None
    first, end = places[0], places[0] + 1
    while end < len(tokens) and tokens[end].is_sign("%"):
        end += 1
    while first and tokens[first - 1].is_sign("-", "$"):
        first -= 1
    behind = [token.text for token in tokens[end : end + 3]]
    is_joined = end < len(tokens) and not tokens[end].gap and tokens[end].kind in ("word", "letter")  # 7th
    is_first = first == 0 and changes_value(behind)
    return None if is_joined or is_first or is_part_of_amount(behind[:1]) else tokens[first:end]


def _is_prose(token: Token) -> bool:
    if token.is_word("percent", "percentage", "pct"):
        return False
    return (token.kind == "word" and in_words(token.text) is None and unit_of_word(token) is None) or token.is_sign(".")


def _without_clause(tokens: list[Token], words: tuple[str, ...]) -> list[Token]:
    """The sentence without ", attained at x = 2" or ", which is about 3.46"."""
    if not any(token.is_word(*words) for token in tokens):
        return tokens
    pieces, _ = cut(tokens, at_signs(","))
    for place, piece in enumerate(pieces[1:], 1):
        if piece and piece[0].is_word(*words):
            behind = [token for each in pieces[place:] for token in each]
            if any(token.text in _DENIALS for token in behind):
                return []
            return [token for number, each in enumerate(pieces[:place]) for token in
                    ([Token("sign", ",")] * (number > 0) + each)]  # fmt: skip
    return tokens


def _without_repetition(tokens: list[Token]) -> list[Token]:
    """7 (seven) as 7, and 3.46 (rounded) as 3.46."""
    place = next((place for place, token in enumerate(tokens) if place and token.is_sign("(")), 0)
    inside = bracket_content(tokens[place:]) if place else None
    if inside is None or not all(token.kind == "word" for token in inside[1]):
        return tokens
    if inside[1] and all(token.text in _REMARKS for token in inside[1]):
        return tokens[:place]
    value = in_words(" ".join(token.text for token in inside[1]))
    return tokens[:place] if value is not None and tokens[place - 1].text == str(value) else tokens


def _number_at_end(tokens: list[Token]) -> list[Token] | None:
    """The number in words behind a lead: "exactly one"."""
    for place in range(1, len(tokens)):
        if in_words(" ".join(token.text for token in tokens[place:])) is not None:
            return tokens[place:] if _is_lead(tokens[:place]) else None
    return None


def _is_lead(tokens: list[Token]) -> bool:
    """Whether the words before a value only lead to it: a verb, and behind the verb nothing that changes the value."""
    words = [token.text for token in tokens]
    if not words:
        return True
    if any(word in _DOUBT for word in words):
        return False
    verb = next((place for place in range(len(words), 0, -1) if words[place - 1] in VERBS), None)
    behind = words if verb is None else words[verb:]
    is_stated = verb is not None or all(word in _SAFE or word in LEADS for word in words)
    return is_stated and not any(word in _RELATIVE for word in behind)


def _is_rest(tokens: list[Token]) -> bool:
    """Whether the words behind a value are a noun or say that it is the answer."""
    words = [token.text for token in tokens if token.kind == "word"]
    is_condition = any(word in _CONDITIONS for word in words)
    if is_condition or any(word in _DOUBT or word in _RELATIVE for word in words) or words[:1] == ["of"]:
        return False
    long_words = [word for word in words if len(word) > 2]
    return not long_words or not changes_value(long_words)


def states_nothing(tokens: Tokens) -> bool:
    """Whether a sentence of words says that there is nothing: "There are no such integers", "no such pair exists"."""
    words = [token.text for token in tokens if not token.is_sign(".")]
    if not words or any(token.kind not in ("word", "letter") for token in tokens if not token.is_sign(".")):
        return False
    while words and words[0] in _BEFORE_NOTHING:
        words = words[1:]
    if words[:1] == ["none"]:
        return all(word in ("exist", "exists") for word in words[1:])
    if words[:1] != ["no"] or len(words) < 2:
        return False
    rest = [word for word in words[1:] if len(word) > 1 or word == "a"]
    letters = [word for word in words[1:] if len(word) == 1]
    if letters and len(letters) == 1 and "such" in rest:
        return all(word in _NOTHING for word in rest)
    return all(word in _NOTHING for word in rest) and any(word in _OBJECTS for word in rest)
