"""Preference pairs of stored rollouts: all pairs of a group's completions, labelled by a judge."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from typing import TYPE_CHECKING

from reasoner.preferences.dataset import COLUMNS, SIDES
from reasoner.preferences.dataset import Row as PairRow
from reasoner.preferences.judges import Judge, Row, is_correct, is_preferred, preference_probability
from reasoner.rollouts.prompts import load_template
from reasoner.runs.row_files import write_rows
from reasoner.runs.run_dir import read_settings

if TYPE_CHECKING:
    import pyarrow as pa


@dataclass(slots=True)
class ExportCounts:
    """Pairs that were written, and why others were not."""

    groups: int = 0
    pairs: int = 0
    same_text: int = 0
    same_utility: int = 0
    won_by_better: int = 0  # pairs whose completion of higher utility was preferred
    expected_by_better: float = 0.0  # their number in expectation

    def summary(self) -> str:
        total = max(1, self.pairs)
        return (
            f"{self.pairs:,} pairs of {self.groups:,} groups; left out {self.same_text:,} of identical texts and "
            f"{self.same_utility:,} of equal utility; the better one won {self.won_by_better / total:.1%} of the pairs "
            f"(expected {self.expected_by_better / total:.1%})"
        )


def preference_rows(
    rollouts: Iterable[Row], judge: Judge, *, seed: int, counts: ExportCounts, prefill: str = ""
) -> Iterator[PairRow]:
    """Yield the pairs of every group, with reasoner.preferences.dataset.COLUMNS. `rollouts` come group by group.

    Pairs of identical texts and of equal utilities are left out: nobody can tell them apart. Adds to `counts`.
    `prefill` ends every prompt and begins every completion; the pair has it in the prompt alone.
    """
    for (step, group), own in groupby(rollouts, key=lambda row: (row["step"], row["group"])):
        rows = list(own)
        utilities = judge.utilities(rows)
        counts.groups += 1
        for i, j in combinations(range(len(rows)), 2):
            if rows[i]["completion"] == rows[j]["completion"]:
                counts.same_text += 1
            elif utilities[i] == utilities[j]:
                counts.same_utility += 1
            else:
                p = preference_probability(utilities[i] - utilities[j], judge.noise)
                names = (step, group, rows[i]["sample"], rows[j]["sample"])
                order, probability = ((i, j), p) if is_preferred(p, seed, names) else ((j, i), 1 - p)
                counts.pairs += 1
                counts.won_by_better += utilities[order[0]] > utilities[order[1]]
                counts.expected_by_better += max(p, 1 - p)
                known = utilities if judge.is_known else None
                yield _pair_row([rows[k] for k in order], known and [known[k] for k in order], probability, prefill)


def _pair_row(sides: Sequence[Row], utilities: Sequence[float] | None, probability: float, prefill: str) -> PairRow:
    """A row of the file: the columns of both sides, the chosen one first."""
    first = sides[0]
    has_ids = all(own["prompt_token_ids"] and own["token_ids"] for own in sides)  # imported rollouts may have none
    row: PairRow = {
        "prompt": first["prompt"],
        "prompt_ids": list(first["prompt_token_ids"]) if has_ids else None,
        "problem_id": first["problem_id"],
        "group": f"{first['step']}.{first['group']}",
        "p": probability,
    }
    for side, own, utility in zip(SIDES, sides, utilities or (None, None), strict=True):
        row |= {
            side: own["completion"].removeprefix(prefill),
            f"{side}_ids": [*own["prompt_token_ids"], *own["token_ids"]] if has_ids else None,
            f"u_{side}": utility,
            f"correct_{side}": is_correct(own),
            f"finish_{side}": own["finish"],
        }
    return row


def schema_of(_: Sequence[PairRow]) -> pa.Schema:
    """The schema of a parquet file of pairs: all columns but the margin, which a judge does not know."""
    import pyarrow as pa

    ids, columns = pa.list_(pa.int32()), {"p": pa.float64()}
    columns |= dict.fromkeys(("prompt_ids", *(f"{side}_ids" for side in SIDES)), ids)
    columns |= {f"u_{side}": pa.float64() for side in SIDES} | {f"correct_{side}": pa.bool_() for side in SIDES}
    return pa.schema([(name, columns.get(name, pa.string())) for name in COLUMNS if name != "margin"])


def write_preferences(
    path: Path, run_dir: Path, rollouts: Iterable[Row], judge: Judge, *, seed: int = 0
) -> ExportCounts:
    """Write the pairs of a run's rollouts to a .jsonl or .parquet file, whole or not at all."""
    style, counts = read_settings(run_dir)["config"].get("prompt.style"), ExportCounts()
    prefill = load_template(style).prefill if style else ""
    write_rows(path, preference_rows(rollouts, judge, seed=seed, counts=counts, prefill=prefill), schema_of=schema_of)
    return counts
