"""Reflection over a run: how often it occurs, of which kind, with which outcome, and its association with correctness.

The reflection spans of every rollout (verifiers.reflection) are detected once and stored beside the shards
(reasoner.runs.shard). When these files are deleted they are detected again.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, fields
from functools import lru_cache
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reasoner.evals.paired import Difference, paired_difference
from reasoner.runs.rollout_row import own_text
from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.shard import ROWS, Shard, value_counts
from verifiers.reflection.cues import LEXICON
from verifiers.reflection.outcomes import LABELS, OUTCOMES, Member, Span, assign_labels, score, spans

_FOUND = pa.schema(
    [
        ("id", pa.int64()),
        *((one.name, pa.string() if one.type == "str" else pa.int32()) for one in fields(Span)),
        *(("others_correct", pa.float64()), ("correct", pa.bool_()), ("score", pa.float64())),
    ]
)


def study(table: RolloutTable, *, limit: int | None = None) -> int:
    """Detect the reflection spans of the steps that lack them; returns the number of steps added.

    `limit`: of the first so many steps; None: of all.
    """
    return table.analyse("reflection", _study, limit=limit)


def _study(shard: Shard) -> tuple[pa.Table, dict[str, int]]:
    """The spans of a step's completions, and the number of their tokens (of words where the shard has no tokens)."""
    columns = ("group", "completion", "question", "gold", "verifier", "verdict", "tokens", "observation_text")
    rows = shard.read(columns)
    found: list[dict[str, Any]] = []
    for _, own in groupby(rows, key=lambda item: item[1]["group"]):
        group_rows = list(own)
        members = assign_labels([_member(row) for _, row in group_rows])
        others = [member.is_correct for member in members if not member.has_self_correction]
        share = sum(others) / len(others) if others else 1.0
        for (number, _), member in zip(group_rows, members, strict=True):
            about = {"id": number, "others_correct": share, "correct": member.is_correct}
            found += [about | asdict(span) | {"score": score(span, others_correct=share)} for span in member.spans]
    tokens = sum(row["tokens"] or len(row["completion"].split()) for _, row in rows)
    return pa.Table.from_pylist(found, _FOUND), {"tokens": tokens}


def _member(row: dict[str, Any]) -> Member:
    own_spans = spans(own_text(row), row["question"], row["gold"], row.get("verifier") or "maths")
    return Member(row["verdict"] == "correct", tuple(own_spans))


# ------------------------------------------------------------------------------------------------ queries


def timeline(table: RolloutTable) -> list[dict[str, Any]]:
    """For each studied step: rollouts, the share that reflects, and spans per 1,000 tokens by kind, outcome and label.

    The baseline is the line of step 0, whose completions are the untrained model's. Words are counted in place of
    tokens where the shard has none.
    """
    lines = []
    for shard, found in table.analysed("reflection"):
        per = 1000 / max(1, int(found.schema.metadata[b"tokens"]))
        num = len(shard.rows)
        line = {"step": shard.step, "rollouts": num, "reflecting": pc.count_distinct(found["id"]).as_py() / num}
        counts = {f"{name}s": value_counts(found[name]) for name in ("kind", "outcome", "label")}
        for name, keys in (("kinds", LEXICON), ("outcomes", OUTCOMES), ("labels", LABELS)):
            line[name] = {key: counts[name].get(key, 0) * per for key in keys}
        lines.append(line | {"counts": counts})
    return lines


def uplift(table: RolloutTable) -> tuple[Difference | None, int]:
    """(P(correct | reflects) - P(correct | does not), None for fewer than two problems; the number of problems) over
    the problems of which a studied step has a group with both kinds of completion.

    Comparing within a group cancels the problem's difficulty. A problem counts by the mean of its groups, which are no
    independent observations. It is an association, not a cause.
    """
    of_problem: dict[str, list[tuple[float, float]]] = {}
    for shard, found in table.analysed("reflection"):
        for problem, *shares in _shares(shard, found):
            of_problem.setdefault(problem, []).append((shares[0], shares[1]))
    means = [np.mean(own, axis=0).tolist() for own in of_problem.values()]
    return paired_difference(*zip(*means, strict=True)) if len(means) > 1 else None, len(means)


def _shares(shard: Shard, found: pa.Table) -> Iterator[tuple[str, float, float]]:
    """The problem, and the shares of correct completions with and without reflection, of each group that has both."""
    reflects = np.isin(shard.rows["id"].to_numpy(), found["id"].to_numpy())
    is_right = np.asarray(pc.equal(shard.rows["verdict"], "correct"))
    _, firsts, groups = np.unique(shard.rows["group"].to_numpy(), return_index=True, return_inverse=True)
    sides = [(np.bincount(groups, side & is_right), np.bincount(groups, side)) for side in (reflects, ~reflects)]
    has_both = np.minimum(*(sizes for _, sizes in sides)) > 0
    rates = [(right[has_both] / sizes[has_both]).tolist() for right, sizes in sides]
    return zip(shard.rows["problem_id"].take(firsts[has_both]).to_pylist(), *rates, strict=True)


def gallery(table: RolloutTable, *, limit: int = 20, offset: int = 0, label: str | None = None) -> list[dict[str, Any]]:
    """The spans with the highest scores, one per rollout. ValueError for an unknown label."""
    if label is not None and label not in LABELS:
        raise ValueError(f"unknown label {label!r}; known are {', '.join(LABELS)}")
    found = table.findings("reflection", _FOUND)
    if label is not None:
        found = found.filter(pc.field("label") == label)
    ids = found["id"].to_numpy()
    shuffled = ids % 1000003 * 7919 % 1000003  # breaks ties in an order that favours no step
    order = np.lexsort((ids, shuffled, -found["score"].to_numpy()))
    _, firsts = np.unique(ids[order], return_index=True)  # the best span of each rollout
    rows = found.take(order[np.sort(firsts)][offset : offset + limit]).to_pylist()
    return [row | {"name": table.name(row["id"])} for row in rows]


def first_self_correction(table: RolloutTable) -> str | None:
    """The name of the first rollout with a correct answer and a span that corrects itself (no mere cue)."""
    found = table.findings("reflection", _FOUND)
    ids = found.filter(pc.field("correct") & (pc.field("label") != LABELS[0]))["id"]
    return table.name(ids[0].as_py()) if len(ids) else None


def totals(lines: list[dict[str, Any]]) -> dict[str, Counter[str]]:
    """Sum the counts of all lines of a timeline."""
    counters = {name: Counter[str]() for name in ("kinds", "outcomes", "labels")}
    for line in lines:
        for name, counter in counters.items():
            counter.update(line["counts"][name])
    return counters


def spans_of(table: RolloutTable, step: int, group: int) -> dict[int, list[Span]]:
    """The reflection spans of a group's completions by rollout id. They are detected now and need no `study`."""
    numbers = tuple(row["id"] for row in table.group_rows(step, group))
    return _spans_of(table.shard(step), numbers) if numbers else {}


@lru_cache(maxsize=16)  # a group's rollouts are looked at one after the other, and all of them are needed for each
def _spans_of(shard: Shard, numbers: tuple[int, ...]) -> dict[int, list[Span]]:
    members = assign_labels([_member(shard.row(number % ROWS, with_tokens=False)) for number in numbers])
    return {number: list(member.spans) for number, member in zip(numbers, members, strict=True)}
