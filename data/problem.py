"""A problem: a question with one verifiable answer."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Problem:
    """A question with its gold answer. `verifier`: a key of verifiers.equivalence.VERIFIERS, how answers compare."""

    id: str  # stable across runs: "<source>/<split>/<n>"
    question: str
    answer: str  # the gold answer, trimmed; it grades as correct against itself
    source: str = ""
    split: str = ""
    level: int | None = None
    subject: str | None = None  # family of a generated problem, or subject in a benchmark
    verifier: str = "maths"
    # all columns of its row that are not fields of a problem, for reward functions and teacher.prompt; `solution` is
    # also the worked solution that the answer was read from
    columns: Mapping[str, object] = field(default_factory=dict, compare=False, repr=False)
