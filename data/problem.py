"""A problem: a question with one checkable answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """One question. `verifier` names the rule that judges an answer to it (a key of verifiers.rules.RULES)."""

    id: str  # stable across runs: "<source>/<split>/<n>"
    question: str
    answer: str  # gold, as the source gives it after trimming; it grades as correct against itself
    source: str
    split: str
    level: int | None = None
    subject: str | None = None  # the family of a generated problem, the subject of a benchmark's
    verifier: str = "maths"
