"""Evaluation problems that also stand in the training set: the same question, or nearly, compared as words.

docs/DATA.md says what is exact and what is near, and how both were measured. A run of 13 words in common, the usual
test for texts of the web, marks stock phrases and misses short questions.
"""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from data.problem import Problem

RUN = 5  # words
THRESHOLD = 0.5  # share of an evaluation question's runs in one training question

_LAYOUT = re.compile(r"\\(?:left|right|displaystyle|quad|qquad|[,;:! ])|(?<=\d),(?=\d{3})|(?<=\\)[dt](?=frac)")
_WORD = re.compile(r"[^\W\d_]+|\d+|[+*/=<>^]|-(?![^\W\d_])")  # a hyphen before a letter is no minus


@dataclass(frozen=True, slots=True)
class Overlap:
    """An evaluation problem and the training problem that is most like it."""

    evaluation: Problem
    training: Problem
    share: float  # of the evaluation question's runs of words that stand in the training question; 1 if exact
    is_exact: bool


def without_layout(question: str) -> str:
    """The question without white space and what only sets it otherwise, such as \\left, \\dfrac and 1,000."""
    return "".join(_LAYOUT.sub("", question).split())


def words_of(question: str) -> tuple[str, ...]:
    """The words of a question: runs of letters, numbers, operators."""
    return tuple(_WORD.findall(_LAYOUT.sub("", question.casefold())))


def find_overlaps(training: Iterable[Problem], evaluation: Sequence[Problem]) -> list[Overlap]:
    """The evaluation problems that a training problem repeats, in their order, each with the one most like it.

    A question of fewer than RUN words is compared exactly. The memory is that of the evaluation set.
    """
    questions = [words_of(problem.question) for problem in evaluation]
    runs = [_runs(words) for words in questions]
    numbers = [_numbers(words) for words in questions]
    exact: dict[tuple[str, ...], list[int]] = defaultdict(list)
    holders: dict[tuple[str, ...], list[int]] = defaultdict(list)  # of a run: the evaluation questions that have it
    for place, words in enumerate(questions):
        exact[words].append(place)
        for run in runs[place]:
            holders[run].append(place)
    best: dict[int, Overlap] = {}
    for problem in training:
        words = words_of(problem.question)
        counts = Counter(place for run in _runs(words) for place in holders.get(run, ()))
        shares = {place: count / len(runs[place]) for place, count in counts.items()}
        own = _numbers(words)
        near = {place: share for place, share in shares.items() if share >= THRESHOLD and numbers[place] <= own}
        for place, share in (near | dict.fromkeys(exact.get(words, ()), 1.0)).items():
            overlap = Overlap(evaluation[place], problem, share, questions[place] == words)
            rank = overlap.is_exact, share
            if place not in best or rank > (best[place].is_exact, best[place].share):
                best[place] = overlap
    return [best[place] for place in sorted(best)]


def describe_overlaps(overlaps: Sequence[Overlap], num_problems: int) -> str:
    """The counts as a clause of text."""
    if not overlaps:
        return f"none of {num_problems:,} is a training problem"
    kinds = Counter("exact" if overlap.is_exact else "near" for overlap in overlaps)
    counts = ", ".join(f"{kinds[kind]:,} {kind}" for kind in ("exact", "near") if kinds[kind])
    return f"{len(overlaps):,} of {num_problems:,} stand in the training set ({counts})"


def _runs(words: Sequence[str]) -> set[tuple[str, ...]]:
    return {tuple(words[start : start + RUN]) for start in range(len(words) - RUN + 1)}


def _numbers(words: Iterable[str]) -> Counter[str]:
    return Counter(word for word in words if word[0].isdecimal())
