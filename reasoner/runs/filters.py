"""Filters and orders of rollouts, and their translation into SQL for the index."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from functools import partial
from typing import Any, get_args

from reasoner.types import Finish
from verifiers import Verdict
from verifiers.reflection.outcomes import LABELS

ROWS = 2**24  # rollouts of a step, at most
MOST_STEP = 999_999_999  # the name of a shard has nine digits at most
MOST_NUMBER = 2**63 - 1  # of SQLite


def ids_of_step(step: int) -> tuple[int, int]:
    """The smallest and the largest id that a rollout of the step can have. The index is ordered by id, and not by step:
    a condition on the step alone reads all rollouts of the run.
    """
    return step * ROWS, (step + 1) * ROWS - 1


ORDERS = {
    "step": "id",
    "tokens": "tokens, id",
    "-tokens": "tokens DESC, id",
    "reward": "reward, id",
    "-reward": "reward DESC, id",
    "-step": "id DESC",
}


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions on rollouts; None is any value. Bounds are inclusive."""

    first_step: int | None = None
    last_step: int | None = None
    problem: str | None = None
    subject: str | None = None
    level: int | None = None
    verdict: str | None = None
    correct: bool | None = None
    well_formed: bool | None = None
    finish: str | None = None
    least_reward: float | None = None
    most_reward: float | None = None
    least_tokens: int | None = None
    most_tokens: int | None = None
    text: str | None = None  # words; "a phrase"; begin*; -without
    regex: str | None = None  # a regular expression (reasoner.runs.regex_search), which sql() leaves out
    label: str | None = None  # of a reflection span (verifiers.reflection): cue, self-correction, aha
    failure: str | None = None  # a cause of CAUSES


ALL = Filter()
# The causes of failures (reasoner.analysis.failures), with their meanings, in the order in which they are tried.
CAUSES = {
    "repeated": "the response repeats itself",
    "truncated": "the response was cut off at the limit of tokens",
    "not graded": "the grader refused the response, ran out of time, or crashed",
    "right in another form": "the right answer is in the response, but not in the form that is asked for",
    "no answer": "there is no answer",
    "malformed": "the response is not in the form that is asked for, and holds no right answer",
    "unparsable": "the answer cannot be parsed",
    "arithmetic slip": "a stated calculation is wrong and is not stated again correctly",
    "near the gold answer": "the answer differs by its sign, a power of ten, one, one digit, or at most 10 %",
    "other wrong answer": "none of these",
}
FIELDS = {
    "step": "a step (the first is 0), or LOW:HIGH",
    "problem": "the id of a problem",
    "subject": "a family",
    "level": "a level",
    "verdict": ", ".join(Verdict),
    "correct": "yes, no",
    "finish": ", ".join(get_args(Finish)),
    "reward": "a reward, or LOW:HIGH",
    "tokens": "a number of tokens, or LOW:HIGH",
    "failure": f"{', '.join(CAUSES)} (found when the dashboard shows the page Failures)",
    "label": "with a reflection span of this label: cue, self-correction, aha (needs `reasoner reflection RUN` first)",
    "text": 'words of the completion, "a phrase", begin*, -without',
    "regex": "a regular expression in RE2's syntax that a part of the completion matches; (?i) ignores case",
}


def read_filter(texts: Mapping[str, str | None]) -> Filter:
    """Parse a user's filter: texts by the names of FIELDS; an empty or missing one is any value.

    ValueError that names the field, its value and the allowed ones.
    """
    if unknown := texts.keys() - FIELDS.keys():
        raise ValueError(f"unknown filter {sorted(unknown)[0]!r}; known are {', '.join(FIELDS)}")
    wanted = {name: value for name, value in texts.items() if value}
    first_step, last_step = _bounds("step", wanted, partial(_int_up_to, MOST_STEP))
    least_reward, most_reward = _bounds("reward", wanted, float)
    least_tokens, most_tokens = _bounds("tokens", wanted, partial(_int_up_to, MOST_NUMBER))
    return Filter(
        first_step=first_step,
        last_step=last_step,
        level=_whole("level", wanted),
        correct=_yes("correct", wanted),
        least_reward=least_reward,
        most_reward=most_reward,
        least_tokens=least_tokens,
        most_tokens=most_tokens,
        problem=wanted.get("problem"),
        subject=wanted.get("subject"),
        verdict=_one_of("verdict", wanted, [str(verdict) for verdict in Verdict]),
        finish=_one_of("finish", wanted, get_args(Finish)),
        label=_one_of("label", wanted, LABELS),
        failure=_one_of("failure", wanted, list(CAUSES)),
        text=wanted.get("text"),
        regex=wanted.get("regex"),
    )


def _bounds(name: str, texts: Mapping[str, str], kind: Callable[[str], Any]) -> tuple[Any, Any]:
    """Parse "3", "3:8", "3:" or ":8" as (low, high)."""
    if name not in texts:
        return None, None
    low, colon, high = texts[name].partition(":")
    try:
        least, most = (kind(low) if low else None), (kind(high) if high else None)
    except ValueError as error:
        limit = f" ({error})" if isinstance(error, _TooLargeError) else ""
        raise ValueError(
            f"{name} is {texts[name]!r}; it must be a number, or LOW:HIGH with either left out{limit}"
        ) from error
    if least is not None and most is not None and least > most:
        raise ValueError(f"{name} is {texts[name]!r}; the lower bound comes first")
    return (least, most) if colon else (least, least)


def _whole(name: str, texts: Mapping[str, str]) -> int | None:
    try:
        return _int_up_to(MOST_NUMBER, texts[name]) if name in texts else None
    except ValueError as error:
        limit = f" ({error})" if isinstance(error, _TooLargeError) else ""
        raise ValueError(f"{name} is {texts[name]!r}; it must be a whole number{limit}") from error


class _TooLargeError(ValueError):
    """A number that the index cannot hold."""


def _int_up_to(most: int, text: str) -> int:
    if not text.isascii():
        raise ValueError(text)
    value = int(text)
    if abs(value) > most:
        raise _TooLargeError(f"at most {most:,}")
    return value


def _one_of(name: str, texts: Mapping[str, str], known: Sequence[str]) -> str | None:
    value = texts.get(name)
    if value is not None and value not in known:
        hint = "".join(f"; did you mean {close!r}?" for close in get_close_matches(value, known, 1))
        raise ValueError(f"{name} is {value!r}; it must be one of {', '.join(known)}{hint}")
    return value


def _yes(name: str, texts: Mapping[str, str]) -> bool | None:
    if name not in texts:
        return None
    if texts[name] not in ("yes", "no"):
        raise ValueError(f"{name} is {texts[name]!r}; it must be yes or no")
    return texts[name] == "yes"


@dataclass(frozen=True, slots=True)
class RolloutRow:
    """The index's row of a rollout, as lists show it."""

    id: int
    step: int
    group: int
    sample: int
    problem: str
    subject: str | None
    level: int | None
    verdict: str
    well_formed: bool
    finish: str
    reward: float
    advantage: float
    tokens: int | None  # None where the shard has no tokens
    answer: str
    head: str  # the beginning of the completion

    @property
    def name(self) -> str:
        return f"{self.step}.{self.group}.{self.sample}"


def sql(where: Filter) -> tuple[str, list[Any]]:
    """Translate the filter, but for its regular expression, into a WHERE clause and its values."""
    conditions: dict[str, object | None] = {
        "id >= ?": None if where.first_step is None else where.first_step * ROWS,
        "id < ?": None if where.last_step is None else (where.last_step + 1) * ROWS,
        "problem = ?": where.problem,
        "subject = ?": where.subject,
        "level = ?": where.level,
        "verdict = ?": where.verdict,
        "(verdict = 'correct') = ?": where.correct,
        "well_formed = ?": where.well_formed,
        "finish = ?": where.finish,
        "reward >= ?": where.least_reward,
        "reward <= ?": where.most_reward,
        "tokens >= ?": where.least_tokens,
        "tokens <= ?": where.most_tokens,
        "id IN (SELECT id FROM spans WHERE label = ?)": where.label,
        "id IN (SELECT id FROM failures WHERE cause = ?)": where.failure,
        "id IN (SELECT rowid FROM words WHERE words MATCH ?)": None if where.text is None else match(where.text),
    }
    if where.first_step is not None or where.last_step is not None:
        # A range of steps is a range of row ids, which is faster to scan than any index. A plus sign before a column
        # keeps SQLite from using that column's index.
        conditions = {c if c.startswith(("id", "(")) else f"+{c}": value for c, value in conditions.items()}
    active = {condition: value for condition, value in conditions.items() if value is not None}
    return " AND ".join(["1", *active]), list(active.values())


_TERM = re.compile(r'(-?)(?:"([^"]*)"|([^\s"]+))')


@dataclass(frozen=True, slots=True)
class Term:
    """Consecutive words to search for; with `is_prefix` the last one matches every word that begins with it."""

    words: tuple[str, ...]
    is_prefix: bool

    def fts5(self) -> str:
        return f'"{" ".join(self.words)}"' + "*" * self.is_prefix


def terms(text: str) -> tuple[list[Term], list[Term]]:
    """Parse a user's search into (wanted, unwanted) terms: words, "phrases", begin*, -without; there is no other
    syntax.
    """
    wanted: list[Term] = []
    unwanted: list[Term] = []
    for minus, phrase, word in _TERM.findall(text):
        words = tuple(re.findall(r"\w+", phrase or word))
        if words:
            (unwanted if minus else wanted).append(Term(words, is_prefix=word.endswith("*")))
    return wanted, unwanted


def match(text: str) -> str:
    """Translate a user's search into an FTS5 query. ValueError when it has no wanted term."""
    wanted, unwanted = terms(text)
    if not wanted:
        raise ValueError(f'nothing to search for in {text!r}: write words, "a phrase", begin*, or -without beside one')
    return " ".join([" AND ".join(term.fts5() for term in wanted), *(f"NOT {term.fts5()}" for term in unwanted)])
