"""A problem: a question with one verifiable answer."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with its gold answer. `verifier` names the equivalence rule (a key of verifiers.equivalence.RULES)."""

    id: str  # stable across runs: "<source>/<split>/<n>"
    question: str
    answer: str  # the gold answer, trimmed; it grades as correct against itself
    source: str
    split: str
    level: int | None = None
    subject: str | None = None  # family of a generated problem, or subject in a benchmark
    verifier: str = "maths"
