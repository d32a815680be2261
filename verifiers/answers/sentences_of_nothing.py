"""Sentences that say that there is nothing: "There are no such integers", "The limit does not exist"."""

from __future__ import annotations

from verifiers.answers.sentence_words import BEFORE_NOTHING, HAVING_NOTHING, LIMITS, NOTHING, OBJECTS
from verifiers.answers.syntax import Tokens


def states_nothing(tokens: Tokens) -> bool:
    """Whether a sentence of words says that there is nothing: "There are no such integers", "no such pair exists"."""
    words = [token.text for token in tokens if not token.is_sign(".")]
    if not words or any(token.kind not in ("word", "letter") for token in tokens if not token.is_sign(".")):
        return False
    if words[-3:] in (["does", "not", "exist"], ["do", "not", "exist"]) and len(words) > 3:
        return all(word in NOTHING or word in LIMITS for word in words[:-3])  # the limit does not exist
    have = next((words[: k + 1] for k in range(len(words)) if words[k - 3 : k + 1] in HAVING_NOTHING), [])
    words = ["no", *words[len(have) :]] if have else words  # the equation does not have any solutions
    while words and words[0] in BEFORE_NOTHING:
        words = words[1:]
    if words[:1] == ["none"]:
        return all(word in ("exist", "exists") for word in words[1:])
    if words[:1] != ["no"] or len(words) < 2:
        return False
    rest = [word for word in words[1:] if len(word) > 1 or word == "a"]
    letters = [word for word in words[1:] if len(word) == 1]
    if len(letters) == 1 and "such" in rest:
        return all(word in NOTHING for word in rest)
    return all(word in NOTHING for word in rest) and any(word in OBJECTS for word in rest)
