"""Reflection over a run: how often it occurs, of which kind, with which outcome, and its association with correctness.

The reflection spans of every rollout (verifiers.reflection) are detected once and stored in the run's index
(reasoner.runs.index). When the index is deleted they are detected again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import groupby
from typing import Any

from reasoner.evals.paired import Difference, paired_difference
from reasoner.runs.index import RolloutIndex
from reasoner.runs.index_queries import group_ids
from reasoner.runs.rollout_row import own_text
from verifiers.reflection.cues import LEXICON
from verifiers.reflection.outcomes import LABELS, OUTCOMES, Member, Span, assign_labels, score, spans

_SHUFFLED = "id % 1000003 * 7919 % 1000003"  # breaks ties in an order that favours no step


@dataclass(frozen=True, slots=True)
class Uplift:
    """P(correct | reflects) - P(correct | does not) within groups, over the groups that have both kinds of completion.

    Comparing within a group cancels the problem's difficulty. It is an association, not a cause.
    """

    difference: Difference | None  # None for fewer than two such groups
    groups: int


def study(index: RolloutIndex, progress: Callable[[int, int], None] | None = None, *, limit: int | None = None) -> int:
    """Detect the reflection spans of the indexed steps that lack them; returns the number of steps added.

    `progress` is called with (done, all) steps. `limit`: of the first so many steps; None: of all.
    """
    new_steps = index.steps_without("reflection_steps", limit)
    for done, step in enumerate(new_steps, 1):
        _study_step(index, step)
        if progress is not None:
            progress(done, len(new_steps))
    return len(new_steps)


def _study_step(index: RolloutIndex, step: int) -> None:
    """Detect the spans of a step's completions and store them, with the counts of its groups, in the index."""
    columns = ("group", "completion", "question", "gold", "verifier", "verdict", "tokens", "observation_text")
    rows = list(index.shard_rows(step, columns))
    labelled_members: list[tuple[int, Member, float]] = []  # id, member, share of other members that are correct
    groups = []
    for grp, own in groupby(rows, key=lambda item: item[1]["group"]):
        group_rows = list(own)
        members = assign_labels([_member(row) for _, row in group_rows])
        groups.append((step, grp, *_split(members)))
        others = [member.is_correct for member in members if not member.has_self_correction]
        share = sum(others) / len(others) if others else 1.0
        labelled_members += [(number, member, share) for (number, _), member in zip(group_rows, members, strict=True)]
    all_spans = [span for _, member, _ in labelled_members for span in member.spans]
    tokens = sum(row["tokens"] or len(row["completion"].split()) for _, row in rows)
    index.store(
        {
            "spans": [
                (n, *asdict(span).values(), others, member.is_correct, score(span, others_correct=others))
                for n, member, others in labelled_members
                for span in member.spans
            ],
            "reflection_groups": groups,
            "reflection_steps": [
                (
                    step,
                    len(rows),
                    tokens,
                    sum(bool(member.spans) for _, member, _ in labelled_members),
                    *(
                        json.dumps(Counter(getattr(s, name) for s in all_spans))
                        for name in ("kind", "outcome", "label")
                    ),
                )
            ],
        }
    )


def _member(row: dict[str, Any]) -> Member:
    own_spans = spans(own_text(row), row["question"], row["gold"], row.get("verifier") or "maths")
    return Member(row["verdict"] == "correct", tuple(own_spans))


def _split(members: list[Member]) -> tuple[int, int, int, int]:
    """(reflecting, correct ones of them, not reflecting, correct ones of them), numbers of completions."""
    reflecting = [member.is_correct for member in members if member.spans]
    others = [member.is_correct for member in members if not member.spans]
    return len(reflecting), sum(reflecting), len(others), sum(others)


# ------------------------------------------------------------------------------------------------ queries


def timeline(index: RolloutIndex) -> list[dict[str, Any]]:
    """For each studied step: rollouts, the share that reflects, and spans per 1,000 tokens by kind, outcome and label.

    The baseline is the line of step 0, whose completions are the untrained model's. Words are counted in place of
    tokens where the shard has none.
    """
    lines = []
    for row in index.rows("SELECT * FROM reflection_steps ORDER BY step"):
        per = 1000 / max(1, row["tokens"])
        line = {"step": row["step"], "rollouts": row["rollouts"], "reflecting": row["reflecting"] / row["rollouts"]}
        for name, keys in (("kinds", LEXICON), ("outcomes", OUTCOMES), ("labels", LABELS)):
            counts = json.loads(row[name])
            line[name] = {key: counts.get(key, 0) * per for key in keys}
        lines.append(line | {"counts": {name: json.loads(row[name]) for name in ("kinds", "outcomes", "labels")}})
    return lines


def uplift(index: RolloutIndex, *, first_step: int = 0, last_step: int = 2**31) -> Uplift:
    """Estimate the Uplift over the studied steps from `first_step` to `last_step`, inclusive."""
    groups = index.rows(
        "SELECT 1.0 * reflecting_right / reflecting AS a, 1.0 * plain_right / plain AS b FROM reflection_groups "
        "WHERE reflecting > 0 AND plain > 0 AND step BETWEEN ? AND ?",
        [first_step, last_step],
    )
    pairs = [row["a"] for row in groups], [row["b"] for row in groups]
    return Uplift(paired_difference(*pairs) if len(groups) > 1 else None, len(groups))


def gallery(index: RolloutIndex, *, limit: int = 20, offset: int = 0, label: str | None = None) -> list[dict[str, Any]]:
    """The spans with the highest scores, one per rollout. ValueError for an unknown label."""
    if label is not None and label not in LABELS:
        raise ValueError(f"unknown label {label!r}; known are {', '.join(LABELS)}")
    rows = index.rows(
        "SELECT *, MAX(score) AS score FROM spans WHERE ? IS NULL OR label = ? "
        f"GROUP BY id ORDER BY score DESC, {_SHUFFLED}, id LIMIT ? OFFSET ?",
        [label, label, limit, offset],
    )
    return [row | {"name": index.name(row["id"])} for row in rows]


def totals(lines: list[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Sum the counts of all lines of a timeline."""
    counters = {name: Counter[str]() for name in ("kinds", "outcomes", "labels")}
    for line in lines:
        for name, counter in counters.items():
            counter.update(line["counts"][name])
    return counters


def spans_of(index: RolloutIndex, step: int, group: int) -> dict[int, list[Span]]:
    """The reflection spans of a group's completions by rollout id. They are detected now and need no `study`."""
    numbers = group_ids(index, step, group)
    members = assign_labels([_member(index.rollout(number)) for number in numbers])
    return {number: list(member.spans) for number, member in zip(numbers, members, strict=True)}
