"""The options of a spec of problems, NAME?KEY=VALUE&KEY=VALUE, and the two that divide a set: `?sample=N` and the rest,
`?without_sample=N`.

A set without a split for validation is divided by these two options. The problems of the sample are those whose
questions have the smallest hashes, so they are spread over a file that is sorted by subject or level, and do not depend
on its order.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from urllib.parse import parse_qsl

from data.problem import Problem

_OPTIONS = ("sample", "without_sample")


def split_options(spec: str) -> tuple[str, list[str]]:
    """(the spec without its options, each option as it is written)."""
    name, _, query = spec.partition("?")
    return name, query.split("&") if query else []


def join_options(name: str, options: Iterable[str]) -> str:
    """The spec with these options: the opposite of split_options."""
    return "?".join(filter(None, (name, "&".join(options))))


def read_options(spec: str) -> dict[str, str]:
    """The decoded options by key. ValueError where one is not KEY=VALUE."""
    name, _, query = spec.partition("?")
    pairs = parse_qsl(query, keep_blank_values=True)
    if query and (not pairs or not all(value for _, value in pairs)):
        raise ValueError(f"cannot read the options of {spec!r}; write {name}?NAME=VALUE&NAME=VALUE")
    return dict(pairs)


@dataclass(frozen=True, slots=True)
class Subset:
    """One side of the division of a problem set."""

    size: int  # of the sample
    is_rest: bool = False  # the problems outside the sample

    def of(self, problems: Sequence[Problem], spec: str) -> list[Problem]:
        """The sample in the order of the hashes, each question once, or the rest in the order of the set: all problems
        whose question does not stand in the sample. ValueError, naming `spec`, where the rest would be empty.
        """
        by_question = {problem.question: problem for problem in reversed(problems)}
        if self.size >= (number := len(by_question)):
            raise ValueError(f"{spec!r}: the sample must be smaller than the set, which has {number:,} questions")
        sample = sorted(by_question.values(), key=_hash)[: self.size]
        if not self.is_rest:
            return sample
        questions = {problem.question for problem in sample}
        return [problem for problem in problems if problem.question not in questions]


def split_subset(spec: str) -> tuple[str, Subset | None]:
    """The spec without its option of a subset, and the subset; None without such an option.

    ValueError for both options at once and for a number that is not a whole one above 0.
    """
    name, options = split_options(spec)
    own = [option for option in options if option.partition("=")[0] in _OPTIONS]
    if not own:
        return spec, None
    if len(own) > 1:
        raise ValueError(f"{spec!r} has several of {', '.join(_OPTIONS)}; a set is divided once")
    key, _, number = own[0].partition("=")
    if not (number.isascii() and number.isdecimal() and int(number)):
        raise ValueError(f"{spec!r} has {own[0]}; write a whole number above 0")
    return join_options(name, (each for each in options if each not in own)), Subset(int(number), key == _OPTIONS[1])


def _hash(problem: Problem) -> bytes:
    return hashlib.sha256(problem.question.encode(errors="surrogatepass")).digest()
