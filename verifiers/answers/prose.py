r"""The value that a sentence states: behind its last "=", its last verb of being or a colon, or its only value.

A sentence with a word of doubt, denial or choice, a question or two candidates states none.
"""

from __future__ import annotations

import re
from collections.abc import Callable

_TEXT = re.compile(r"\\(?:text|mbox|textbf)\s*\{([^{}]*)\}")
_DELIMITERS = re.compile(r"(?<!\\)\$(?![\d.])|(?<=[^\s\\])\$(?=[\s.,;:!?]|$)|\\[()\[\]]")
_AFTERWORD = re.compile(r"(?<!\.)[.!]$|\s(?:because|since)\b[^,]*$")
_WORD = re.compile(r"(?<![\\\w{^_])(?:[A-Za-z][a-z'’-]*[a-z]|[aI](?=\s+[A-Za-z]{2}))(?![\w}(])(?:['’]s)?")
_CLAUSE = re.compile(
    r"[;.!]\s|\n|⇒|\\(?:Rightarrow|implies)"
    r"|(?:^|[\s,])(?:so|thus|hence|therefore|then|giving|because|since|we (?:get|have|find))\b",
    re.IGNORECASE,
)
_VERB = re.compile(
    r"(?:\b(?:is|are|was|were|be|equals?)\b|(?<!\d):(?=[\s\d$\\(-]))"
    r"(?:\s*:|\s+(?:equal to|exactly|precisely|just|only|also|now|an?|the)\b)*[\s,]*",
    re.IGNORECASE,
)
_DOUBT = re.compile(
    r"\?|≈|\\approx|~|n['’]t\b|\b[ie]\.?[eg]\b|\bthat is\b|\b(?:not?|never|none|nobody|nor|n?either|cannot|except|unless"
    r"|if|whether|where|maybe|perhaps|possibly|probably|likely|unlikely|usually|sometimes|seems?|guess\w*|think\w*"
    r"|thought|believe\w*|suppos\w+|assum\w+|claim\w*|expect\w*|estimat\w*|should|would|could|might|may|unsure|doubt\w*"
    r"|unknown|wrong|error|incorrect|false|impossible|mistake|naive|instead|rather|but|however|otherwise|without"
    r"|ignor\w+|exclud\w+|reject\w*|discard\w*|ruled?|contradict\w*|fail\w*|almost|nearly|about|around|approx\w*|circa"
    r"|roughly|near|close|let|say|try|given that|given\W*\d|hint|example|cases?|bounds?|previous|old|former|(?:an)?other"
    r"|candidates?|at (?:least|most|first)|(?:one|first|second|third) (?:possible|solution|root|of)|up to|until|then some"
    r"|or (?:so|more|less))\b",
    re.IGNORECASE,
)
_CHANGE = re.compile(  # beside a value: another one is stated
    r"\b(?:or|plus|minus|times|than|as|less|fewer|over|under|above|below|between|before|after|squared|cubed|doubled?"
    r"|halved|tripled|factorial|dozens?|hundreds?|thousands?|millions?|billions?|hal(?:f|ves)|thirds?|quarters?|fourths?"
    r"|fifths?|squares?|cubes?|powers?|roots?|multiples?|factors?|divid\w+|divisible|short|off|negative|floor|onwards?"
    r"|inverse|reciprocal|opposite|twice|raised|reversed|remains?|differs|fold|sided|too|on$|sum|difference|product"
    r"|mod|modulo)\b",
    re.IGNORECASE,
)
_LEADS = re.compile(
    r"(?:\b(?:the|an?|final|correct|answer|result|solution|total|value|in|we|get|it|my|our|and)\b|[\s,:])*",
    re.IGNORECASE,
)
_NOTHING = re.compile(r"(?:there (?:is|are)|(?:the|this) \w+ has) (no [a-z ]+)", re.IGNORECASE)
_WORKED_OUT = re.compile(r"[-+*/x×÷–]|\\(?:times|div|cdot)|^\W*$")  # in front of "=": 12 + 3
_UNKNOWN = re.compile(r"(?<![\\A-Za-z])(?!x\s+[\d$])[A-Za-z](?![a-z])")
_UNSOLVED = re.compile(r"(?:\d|[-+*/^]\s*)[a-zA-Z]\b|\b[a-zA-Z]\s*[-+*/^]")  # 2x, x^2
_OWN = re.compile(r"\b(?:its|it|answer|result|[b-hj-z])\b", re.IGNORECASE)


def has_doubt(text: str) -> bool:
    """Whether a text doubts, denies or asks."""
    return _DOUBT.search(text) is not None


def changes_answer(text: str) -> bool:
    """Whether a word beside a value makes another one of it: "less", "squared"."""
    return _CHANGE.search(text) is not None


def stated_value(text: str, is_value: Callable[[str], bool]) -> str | None:
    """The part of a text that is the value it states; None where it states none, or not one alone.

    `is_value`: whether a text is a value as it stands.
    """
    text = _AFTERWORD.sub("", _DELIMITERS.sub("", _TEXT.sub(r" \1 ", text)).strip())
    if (nothing := _NOTHING.fullmatch(text)) and is_value(nothing[1]):
        return nothing[1]
    if has_doubt(text):
        return None
    clause = _CLAUSE.split(text)[-1].strip(" ,")
    verbs = [verb for verb in _VERB.finditer(clause) if _starts_value(clause, verb.end(), is_value)]
    num_equations = sum("=" in part for part in _WORD.split(clause))
    if len(verbs) > 1 or num_equations > 1:
        return None
    if num_equations:
        start = _start_of_equation(clause, verbs[0].end() if verbs else -1)
    elif verbs:
        start = verbs[0].end() if _is_subject(clause[: verbs[0].start()], verbs[0][0]) else -1
    else:
        lead = _LEADS.match(clause)
        return clause[lead.end() :] if lead and is_value(clause[lead.end() :]) else None
    return _value_at(clause, start, is_value) if start >= 0 else None


def _starts_value(clause: str, start: int, is_value: Callable[[str], bool]) -> bool:
    return start < len(clause) and (not _WORD.match(clause, start) or is_value(clause[start:]))


def _start_of_equation(clause: str, stated: int) -> int:
    """Where the value behind the last "=" starts, or its name in front of it; -1 for an equation that states none."""
    equals = clause.rindex("=")
    start = max((word.end() for word in _WORD.finditer(clause) if word.end() <= equals), default=0)
    left, subject = clause[start:equals].strip(" ,:"), clause[:start]
    has_unknown = _UNKNOWN.search(left)
    between = subject[stated:].strip() if stated >= 0 else ""
    if between and (has_unknown or not re.search(r"\s[-+*/x×÷–]\s", clause[stated:equals])):  # 2, attained at x = 3
        return -1
    if not left and not re.search(r"\d", subject) and changes_answer(subject):  # its square = 9
        return -1
    return equals + 1 if _WORKED_OUT.search(left) and not has_unknown else start


def _is_subject(subject: str, verb: str) -> bool:
    """Whether a value behind this subject is the answer: not of "its square" or "2x", and not of any label."""
    if verb.startswith(":"):
        return _LEADS.fullmatch(subject) is not None
    is_made_of_it = _OWN.search(subject) and changes_answer(subject)
    return not is_made_of_it and (" of " in subject or not _UNSOLVED.search(subject))


def _value_at(clause: str, start: int, is_value: Callable[[str], bool]) -> str | None:
    """The value that begins here: the rest of the clause, or its first part if the words behind do not change it."""
    rest = clause[start:].strip(" ,:")
    if is_value(rest):
        return rest
    word = _WORD.search(rest)
    value, behind = (rest[: word.start()].strip(" ,"), rest[word.start() :]) if word else (rest, "")
    is_changed = re.search(r"\d|\b(?:is|are|was|were)\b|^(?:of|and|or)\b", behind) or changes_answer(behind)
    return value if value and not is_changed and is_value(value) else None
