"""The value that one ordinary sentence states: "So we get a total of 144 arrangements", "n = 13 works"."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from verifiers.answers.number_words import PARTS, changes_value, has_noun, in_words, is_part_of_amount
from verifiers.answers.phrase_table import LEADS, LEADS_BEHIND
from verifiers.answers.sentence_trimming import (
    behind_conclusion,
    behind_opening,
    with_plain_verbs,
    without_closing,
    without_division,
    without_range,
    without_remark,
)
from verifiers.answers.sentence_words import (
    ADVERBS,
    AFFIRMING,
    AMONG,
    ANSWERS,
    APPROXIMATELY,
    ASSUMPTIONS,
    CHANGING,
    CLAUSES,
    CONDITIONS,
    COUNTING,
    DENIALS,
    DOUBT,
    HAVING,
    HEDGES,
    JOINING,
    MODALS,
    NEEDED,
    ONE_OF,
    OTHERS,
    PARTICIPLES,
    PASSIVES,
    PLACES,
    PLACING,
    PLAIN_SIGNS,
    PREDICATES,
    PRONOUNS,
    QUANTITIES,
    QUANTITY_NOUNS,
    REASONS,
    REJECTED,
    REJECTING,
    RELATIVE,
    REMARKS,
    SAFE,
    STATING,
    STATING_BEHIND_TO,
    STATING_PHRASES,
    VERBS,
)
from verifiers.answers.syntax import Tokens, at_signs, bracket_content, cut
from verifiers.answers.token import Token
from verifiers.answers.units import unit_of_word


def is_doubt(word: str) -> bool:
    """Whether a word denies or doubts what it stands beside."""
    return word in DOUBT


def is_relative(word: str) -> bool:
    """Whether a word beside a number may change what is stated: "less", "factor"."""
    return word in RELATIVE


def is_predicate(word: str) -> bool:
    """Whether a word is a verb that says something of the number in front of it: "48 students were late"."""
    return word in PREDICATES


def bare(tokens: list[Token]) -> list[Token]:
    """The tokens of an answer without a clause behind its value, and without its repetition in words."""
    return _without_repetition(_without_clause(tokens, ("which", "attained", "achieved", "reached", "obtained")))


def stated_values(tokens: Tokens) -> Iterator[list[Token]]:
    """The tokens that may be the value that a sentence states, likeliest first; none where it does not state one."""
    runs = zip(tokens, tokens[1:], tokens[2:], strict=False)
    if any(one.kind == "word" and mark.is_sign("'") and end.text == "t" for one, mark, end in runs):  # it can't be 45
        return
    whole = with_plain_verbs(list(tokens))
    sentence = without_closing(whole)
    conclusion = behind_conclusion(sentence)
    if len(conclusion) < len(sentence):
        yield conclusion
        whole = conclusion
    tokens = without_range(without_division(without_remark(conclusion)))
    tokens = _without_repetition(_without_clause(tokens, CLAUSES))
    if tokens and len(tokens) < len(whole):
        yield list(tokens)
    while tokens and tokens[-1].is_sign("."):
        tokens = tokens[:-1]
    if (rest := behind_opening(tokens)) is not tokens:
        tokens = rest
        yield rest
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
    if tokens[end - 1].kind == "letter" and end > first + 2 and tokens[end - 2].is_word("of", "for"):
        end = next((place for place in range(end - 2, 0, -1) if not _is_prose(tokens[place - 1])), 0)  # values of n
    lead, core, rest = tokens[:first], tokens[first:end], tokens[end:]
    while lead and core and core[0].is_sign(",", ":"):
        core = core[1:]
    if not core:
        return None
    is_bare = not lead and not rest and end == len(tokens)
    is_call = bool(lead) and core[0].is_sign("(", "[") and (not core[0].gap or lead[-1].is_word("equation"))
    if [token.text for token in tokens[end - 1 :]] in (["in", "total"], ["in", "all"]):  # not 12 inches
        core, rest = tokens[first : end - 1], []
    if len(core) > 2 and core[-2].is_word("of") and core[-1].is_word("them"):
        core = core[:-2]
    is_counted = (
        bool(lead) and len(rest) > 1 and rest[0].is_word("of") and rest[1].is_word("them", "these", "those")
    )  # there are 12 of them
    is_rest = _is_rest(rest[2:] if is_counted else rest)
    if rest and any(token.is_word("where") for token in core):
        return None
    if is_call or not _is_lead(lead) or not is_rest or (is_bare and core == tokens):
        return None
    return core


def _behind_verb(tokens: list[Token]) -> list[Token] | None:
    """The value behind the last verb: "The 4th prime is 7", "The volume of $ABCD$ is 120"."""
    verb = next((place for place in range(len(tokens), 0, -1) if tokens[place - 1].is_word(*VERBS)), 0)
    words = [token.text for token in tokens if token.kind == "word"]
    subject = tokens[: max(0, verb - 1)]
    letters = {token.text for token in subject if token.kind == "letter"}
    is_equation = len(letters) == 1 and any(token.is_sign("+", "-", "*", "/", "^") for token in subject)  # x + 2 is 7
    if _is_about_another([token.text for token in subject]) or (is_equation and "of" not in words):
        return None
    if not verb or not OTHERS.isdisjoint(words) or any(word in HEDGES or word in ASSUMPTIONS for word in words):
        return None
    return _between_words(tokens[verb - 1 :])


def _only_number(tokens: list[Token]) -> list[Token] | None:
    """The only number among two or more words: "The total comes to 12", "Jane started growing it 3 hours ago"."""
    words = [token.text for token in tokens if token.kind == "word"]
    places = [place for place, token in enumerate(tokens) if token.kind == "number"]
    is_plain = all(token.kind in ("word", "number", "letter") or token.is_sign(*PLAIN_SIGNS) for token in tokens)
    if len(places) != 1 or len(words) < 2 or not is_plain:
        return None
    is_more = tokens[places[0] + 1 : places[0] + 2] == [Token("word", "more", gap=True)] and "than" not in words
    if is_more:  # she needs 5 more cards
        words.remove("more")
    in_front = [token.text for token in tokens[: places[0]] if token.kind == "word"]
    if _is_about_another(in_front) or any(word in HEDGES or word in DOUBT for word in words):
        return None
    behind_it = [token.text for token in tokens[places[0] + 1 :] if not token.is_sign(".")]
    end = len(in_front)
    words[end - _num_stating(in_front, behind_it) : end] = []
    if (
        in_front[2:3] != []
        and in_front[2] in HAVING
        and in_front[0] in ("the", "each", "every")
        and in_front[1] in words
    ):
        words.remove(in_front[1])  # the cube has
    if in_front[1:3] == ["of", "them"] and in_front[0] in ("each", "all", "both"):
        words.remove("them")
    if any(word in RELATIVE or word in AMONG for word in words):
        return None
    has_numbers = any(in_words(word) is not None for word in in_front)  # three of the 7, but: one can choose
    if has_numbers and in_front[:2] != ["one", "can"]:
        return None
    first, end = places[0], places[0] + 1
    while end < len(tokens) and tokens[end].is_sign("%"):
        end += 1
    while first and tokens[first - 1].is_sign("-", "$"):
        first -= 1
    if not _is_stated(tokens[:first], tokens[first + 1 :]):
        return None
    behind = [token.text for token in tokens[end : end + 3]]
    is_joined = end < len(tokens) and not tokens[end].gap and tokens[end].kind in ("word", "letter")  # 7th
    is_first = first == 0 and changes_value(behind)
    return None if is_joined or is_first or is_part_of_amount(behind[:1]) else tokens[first:end]


def _is_stated(tokens: list[Token], behind: list[Token]) -> bool:
    """Whether the last words in front of a number state it, "has", "comes to", or a time, "ago", is behind it."""
    if len(behind) > 1 and behind[1].is_word("ago", "later") and unit_of_word(behind[0]) is not None:
        return True
    words = [token.text for token in tokens if not token.is_sign(":")]
    if not OTHERS.isdisjoint(words):
        return False
    if _num_stating(words, [token.text for token in behind if not token.is_sign(".")]):
        return True
    while words and words[-1] in (*ADVERBS, *PRONOUNS):
        words.pop()
        if not words:
            is_counted = any(token.is_word(*PREDICATES) for token in behind)  # only 28 cases were checked
            return len(tokens) == 1 and tokens[0].is_word(*ADVERBS) and not is_counted  # exactly 15 values of x work
    return False


def _num_stating(words: list[str], behind: list[str]) -> int:
    """How many of the last words in front of a number state it: "comes out to", "takes them exactly"; 0 for none."""
    end = len(words)
    while end and words[end - 1] in (*ADVERBS, *PRONOUNS):
        end -= 1
    if end and words[end - 1] in STATING:
        return len(words) - end + 1
    if end > 1 and words[end - 1] in STATING_BEHIND_TO and words[end - 2] in MODALS:  # needs to play 45 games
        return len(words) - end + 2
    has_verb = any(word in HAVING for word in words[max(0, end - 3) : end - 1])
    if end > 1 and words[end - 1] in QUANTITY_NOUNS and has_verb:  # has degree 36
        return len(words) - end + 2
    if end and words[end - 1] == "in" and behind[-1:] == ["ways"] and len(behind) < 4:  # can be done in 54 ways
        return len(words)
    if words in (["in"], ["after"]):  # in 28 ways
        is_noun = len(behind) == 1 and has_noun(behind) and behind[0] not in RELATIVE
        return int(is_noun)
    is_place = not behind and (tuple(words) in PLACES or any(word in VERBS or word in PLACING for word in words))
    for phrase in (*STATING_PHRASES, *(PLACES if is_place else ())):
        if tuple(words[max(0, end - len(phrase)) : end]) == phrase:
            return len(words) - end + len(phrase)
    return 0


def _is_prose(token: Token) -> bool:
    if token.is_word("percent", "percentage", "pct"):
        return False
    if token.is_word(*VERBS):  # "has" is no plural of the unit ha
        return True
    return (token.kind == "word" and in_words(token.text) is None and unit_of_word(token) is None) or token.is_sign(".")


def _without_clause(tokens: list[Token], words: tuple[str, ...]) -> list[Token]:
    """The sentence without ", attained at x = 2" or ", which is about 3.46"."""
    if tokens and tokens[-1].is_word(*APPROXIMATELY):  # 2.72 approximately
        return _with_approximation(tokens[:-1], tokens[-1:])
    if not any(token.is_word(*words, *APPROXIMATELY) for token in tokens):
        return tokens
    halves, _ = cut(tokens, lambda token: token.is_word("or"))
    if len(halves) == 2 and len(halves[0]) > 1 and len(halves[1]) > 1 and halves[1][0].is_word(*APPROXIMATELY):
        return _with_approximation(*halves)  # 5/9 or about 0.56
    pieces, _ = cut(tokens, at_signs(","))
    if len(pieces) == 2 and len(pieces[1]) > 1 and pieces[1][0].is_word(*APPROXIMATELY):  # 22/7, about 3.14
        return _with_approximation(*pieces)
    for place, piece in enumerate(pieces[1:], 1):
        if piece and piece[0].is_word(*words):
            behind = [token for each in pieces[place:] for token in each]
            if any(token.text in DENIALS for token in behind):
                return []
            return [token for number, each in enumerate(pieces[:place]) for token in
                    ([Token("sign", ",")] * (number > 0) + each)]  # fmt: skip
    return tokens


def _without_repetition(tokens: list[Token]) -> list[Token]:
    """7 (seven) as 7, 3.46 (to two decimal places) as 3.46, and 3.46 (approximately) as ≈ 3.46."""
    place = next((place for place in range(len(tokens) - 1, 0, -1) if tokens[place].is_sign("(")), 0)
    inside = bracket_content(tokens[place:]) if place else None
    if inside is None or not inside[1]:
        return tokens
    if inside[1][0].is_word("or"):  # 3/4 (or 0.75)
        return [*tokens[:place], *inside[1]]
    if inside[1][0].is_word(*APPROXIMATELY) or inside[1][0].is_sign("≈"):
        return _with_approximation(tokens[:place], inside[1])
    if inside[1][0].is_word(*REASONS) and DENIALS.isdisjoint(token.text for token in inside[1]):
        return tokens[:place]
    if {token.text for token in inside[1] if token.kind != "number"} in ({"d", "p", "."}, {"s", "f", "."}):  # 2 d.p.
        return tokens[:place]
    if inside[1][0].kind == "word" and all(_is_remark(token) for token in inside[1]):
        return tokens[:place]
    texts = [token.text for token in inside[1]]
    is_rejected = texts[-2:-1] == ["is"] and texts[-1] in REJECTED
    if texts[:2] == ["the", "other"] and texts[2:3] != [] and is_rejected:
        return tokens[:place]  # (the other root is extraneous)
    if (is_rejected or texts[0] in REJECTING) and tokens[place - 1].text not in texts:  # 5 (rejecting x = -1)
        return tokens[:place]
    before = in_words(" ".join(token.text for token in tokens[:place]))
    if before is not None and [token.text for token in inside[1]] == [str(before)]:  # seven (7)
        return inside[1]
    if not all(token.kind == "word" for token in inside[1]):
        return tokens
    value = in_words(" ".join(token.text for token in inside[1]))
    return tokens[:place] if value is not None and tokens[place - 1].text == str(value) else tokens


def _is_remark(token: Token) -> bool:
    return token.text in REMARKS or token.kind == "number" or in_words(token.text) is not None


def _with_approximation(value: list[Token], remark: list[Token]) -> list[Token]:
    """The value with what its remark says of it: `√2 (≈ 1.41)` as `√2 ≈ 1.41`, `1.41 (approximately)` as `≈ 1.41`."""
    rest = [token for token in remark[1:] if not token.is_sign(".")]
    approximately = Token("sign", "≈", gap=True)
    return [*value, approximately, *rest] if rest else [approximately, *value]


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
    if any(word in DOUBT for word in words):
        return False
    verb = next((place for place in range(len(words), 0, -1) if words[place - 1] in VERBS), None)
    subject, behind = ([], words) if verb is None else (words[:verb], words[verb:])
    if behind[:2] == ["those", "with"]:  # the values are those with 1 < m < 3
        behind = behind[2:]
    pairs = pairwise(["", *behind])
    if any(word in words and subject not in words for word, subject in LEADS_BEHIND.items()):
        return False
    if any(word == "of" and before not in QUANTITIES for before, word in pairs):
        return False
    is_safe = all(word in SAFE or word in LEADS for word in behind) and (words[0] != "given" or words[1:2] == ["by"])
    return is_safe and OTHERS.isdisjoint(subject) and not _is_about_another(subject)


def _is_about_another(words: list[str]) -> bool:
    """Whether a subject is one of several answers, or made of the answer: "one solution is 7", "its square is 49"."""
    is_one = any(one in ONE_OF and other in ANSWERS for one, other in pairwise(words))
    is_changed = any(word in CHANGING or word in PARTS for word in words)
    is_answer = "answer" in words or "result" in words or words[:1] == ["its"] or ("of", "it") in pairwise(words)
    return is_one or (is_changed and is_answer) or ("it" in words and not PARTICIPLES.isdisjoint(words))


def _is_rest(tokens: list[Token]) -> bool:
    """Whether the words behind a value are a noun or say that it is the answer."""
    words = [token.text for token in tokens if token.kind == "word"]
    if words[:2] == ["is", "the"] and AFFIRMING.issuperset(words):  # is the least possible value
        return True
    if words[:1] == ["such"] and words[1:2] != ["that"]:  # seven such primes
        words = words[1:]
    is_condition = any(word in CONDITIONS for word in words)
    is_on_it = words[-1:] != [] and words[-1] in PRONOUNS and words[-2:-1] != ["of"]  # 45 beats it
    if "answer" in words and not AFFIRMING.issuperset(words):  # 54 differs from the answer
        return False
    size = 3 if words[-3:-1] == ["can", "be"] else 2 if words[-2:-1] == ["were"] else 0
    if size and words[-1] in PASSIVES and len(words) < size + 3 and has_noun(words[:-size]):  # tickets were sold
        return True
    if (
        is_condition
        or is_on_it
        or any(word in DOUBT or word in RELATIVE for word in words)
        or (words and words[0] in JOINING)
    ):
        return False
    if not PREDICATES.isdisjoint(words):
        verb = next(place for place, word in enumerate(words) if word in PREDICATES)
        if (counted := _counted(words)) is not None:  # is the largest number of regions
            return PREDICATES.isdisjoint(counted) and OTHERS.isdisjoint(counted) and not changes_value(counted)
        is_needed = words[verb] in ("is", "are") and verb > 0 and not NEEDED.isdisjoint(words[verb:])
        return (AFFIRMING | NEEDED).issuperset(words[verb:] if is_needed else words)
    long_words = [word for word in words if len(word) > 2]
    return not long_words or not changes_value(long_words)


def _counted(words: list[str]) -> list[str] | None:
    """ "regions in the plane" of "is the largest number of regions in the plane"; None for other words."""
    place = next((place for place, word in enumerate(words) if word in COUNTING and words[place + 1 :]), None)
    if place is None or words[0] != "is" or words[place + 1] != "of" or not AFFIRMING.issuperset(words[:place]):
        return None
    return words[place + 2 :]
