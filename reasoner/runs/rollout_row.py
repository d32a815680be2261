"""The row of a rollout: its fields are the columns of a shard. Imports no pyarrow.

reasoner.runs.rollouts makes the schema of Parquet from it, reasoner.runs.shard the narrow columns of a search.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reasoner.types import without_ranges


@dataclass(frozen=True, kw_only=True)
class RolloutRow:
    """A graded completion as a shard stores it, in the order of the columns. Imported rollouts lack what has a default
    of None.
    """

    step: int
    group: int
    sample: int
    problem_id: str
    question: str
    gold: str
    source: str
    verifier: str | None = None
    subject: str | None = None
    level: int | None = None
    prompt: str
    completion: str  # begins with the prompt's prefill
    prompt_token_ids: Sequence[int] = ()
    token_ids: Sequence[int] = ()
    logprobs: Sequence[float] = ()
    entropy: Sequence[float] | None = None  # this and the next three: reasoner.rl.token_stats
    kl: Sequence[float] | None = None
    loss: Sequence[float] | None = None
    advantages: Sequence[float] | None = None
    tokens: int | None = None
    finish: str | None = None
    policy_version: int | None = None
    verdict: str
    layer: str
    extracted: str | None = None
    well_formed: bool
    reward: float
    rewards: Sequence[tuple[str, float]]  # the parts of the reward
    advantage: float
    # Columns that a shard has only where a row does:
    observation_tokens: Sequence[int] | None = None  # start, end, start, ... in token_ids of what tools returned
    observation_text: Sequence[int] | None = None  # the same in the completion
    tool_errors: int | None = None  # number of calls of tools that failed


def ranges(bounds: Sequence[int] | None) -> list[tuple[int, int]]:
    """The (start, end) pairs of a column of observations."""
    return list(zip(*[iter(bounds or ())] * 2, strict=True))


def own_text(row: Mapping[str, Any]) -> str:
    """What the policy wrote of a stored completion: Completion.own_text."""
    return without_ranges(row["completion"], ranges(row.get("observation_text")))


@dataclass(frozen=True, slots=True)
class ListedRollout:
    """A rollout as lists show it (reasoner.runs.rollout_table)."""

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
    answer: str  # the beginning of the extracted answer
    head: str  # the beginning of the completion

    @property
    def name(self) -> str:
        return f"{self.step}.{self.group}.{self.sample}"
