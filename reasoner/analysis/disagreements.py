"""Answers on which graders disagree: ours, math-verify, and the majority of a group's completions.

A majority says nothing about an answer by itself; where most completions of a prompt agree on an answer that is graded
wrong, the gold answer or the grader may be.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from verifiers import Verdict, VerifierPool
from verifiers.normalise import canonical

Pair = tuple[str, str]  # answer and gold answer
_LEAST_VOTES = 3  # of a majority


@dataclass(frozen=True, slots=True)
class Disagreement:
    """An answer to a problem that graders judge differently."""

    question: str
    gold: str
    answer: str
    verifier: str
    is_correct: bool  # by our grader
    math_verify: bool | None  # None: it cannot decide, or was not asked
    majority: float | None  # share of a group's completions with this answer, which most of them have
    rollouts: tuple[str, ...]  # their names, STEP.GROUP.SAMPLE


def disagreements(
    rows: Iterable[Mapping[str, Any]], math_verify: Callable[[Sequence[Pair]], Sequence[bool | None]]
) -> list[Disagreement]:
    """Find them among the rollouts (rows of shards with `name`), those with the most rollouts first.

    `math_verify` judges pairs of the verifier "maths"; each pair is asked once. Pairs of the same text are not asked.
    """
    rows = list(rows)
    majorities = _majorities(rows)
    by_answer: dict[tuple[str, str, str], list[Mapping[str, Any]]] = {}
    for row in filter(_is_graded, rows):
        by_answer.setdefault((row["question"], row["gold"], row["extracted"]), []).append(row)
    pairs = [
        (answer, gold)
        for (_, gold, answer), own in by_answer.items()
        if own[0]["verifier"] == "maths" and answer.strip() != gold.strip()
    ]
    verdicts = dict(zip(pairs, math_verify(pairs), strict=True)) if pairs else {}
    items = []
    for (question, gold, answer), own in by_answer.items():
        is_correct, other = own[0]["verdict"] == "correct", verdicts.get((answer, gold))
        share = max((majorities[name] for row in own if (name := row["name"]) in majorities), default=None)
        is_doubted = share is not None and not is_correct
        if is_doubted or (other is not None and other != is_correct):
            names = tuple(row["name"] for row in own)
            verifier = own[0]["verifier"]
            items.append(
                Disagreement(question, gold, answer, verifier, is_correct, other, share if is_doubted else None, names)
            )
    return sorted(items, key=lambda one: -len(one.rollouts))


def math_verify(pairs: Sequence[Pair]) -> list[bool | None]:
    """math-verify's verdict on each (answer, gold), in a worker process with limits; None where it has none."""
    with VerifierPool() as pool:
        verdicts = [judgement.verdict for judgement in pool.judge_by_peer(pairs)]
    return [verdict is Verdict.CORRECT if verdict in (Verdict.CORRECT, Verdict.WRONG) else None for verdict in verdicts]


def _is_graded(row: Mapping[str, Any]) -> bool:
    return bool(row["verdict"] in ("correct", "wrong") and row["extracted"] and row["gold"])


def _majorities(rows: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    """By name, for rollouts with the answer of more than half of their group, in which those without an answer count:
    the share of it. Answers are the same if their normalised texts are. `rows`: those of a group are consecutive.
    """
    shares: dict[str, float] = {}
    for _, own in groupby(rows, key=lambda row: (row["step"], row["group"])):
        members = list(own)
        votes = {row["name"]: canonical(row["extracted"]) for row in members if _is_graded(row)}
        for answer, number in Counter(votes.values()).most_common(1):
            if number >= _LEAST_VOTES and 2 * number > len(members):
                shares |= {name: number / len(members) for name, own_answer in votes.items() if own_answer == answer}
    return shares
