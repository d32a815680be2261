"""Preference pairs of stored rollouts: of a group's completions, a right one before a wrong one, of two the shorter."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

from reasoner.preferences.dataset import SIDES
from reasoner.preferences.dataset import Row as PairRow
from reasoner.rollouts.prompts import opened_thinking
from reasoner.runs.row_files import write_rows
from reasoner.sft.sources import prefill_of
from verifiers.score import UNJUDGED

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]  # of a shard of rollouts (reasoner.runs.rollouts.SCHEMA)


@dataclass(slots=True)
class PairCounts:
    """Pairs that were written, and why others were not."""

    groups: int = 0
    pairs: int = 0
    same_text: int = 0
    undecided: int = 0  # both right or both wrong, and of the same length; or the answer of one was not judged

    def summary(self) -> str:
        return (
            f"{self.pairs:,} pairs of {self.groups:,} groups; left out {self.same_text:,} of identical texts and "
            f"{self.undecided:,} that the rule does not decide"
        )


def preference_rows(rollouts: Iterable[Row], counts: PairCounts, prefill: str = "") -> Iterator[PairRow]:
    """Yield the pairs of every group, with the columns of schema(). `rollouts` come group by group.

    Adds to `counts`. `prefill`, that of the template, ends every prompt and begins every completion; the pair has it in
    the prompt alone, and so a <think> that the prompt opens.
    """
    for _, own in groupby(rollouts, key=lambda row: (row["step"], row["group"])):
        counts.groups += 1
        for one, other in combinations(own, 2):
            if one["completion"] == other["completion"]:
                counts.same_text += 1
            elif _rank(one) == _rank(other) or {one["verdict"], other["verdict"]} & {*UNJUDGED}:
                counts.undecided += 1
            else:
                counts.pairs += 1
                yield _pair_row(sorted((one, other), key=_rank), prefill)


def _rank(row: Row) -> tuple[bool, int]:
    """What orders completions, the best first. Imported rollouts may have no token ids."""
    return not _is_correct(row), len(row["token_ids"] or row["completion"])


def _is_correct(row: Row) -> bool:
    return str(row["verdict"]) == "correct"


def _pair_row(sides: Sequence[Row], prefill: str) -> PairRow:
    """A row of the file: the columns of both sides, the chosen one first."""
    first = sides[0]
    prefill = opened_thinking(first["prompt"].removesuffix(prefill)) + prefill
    has_ids = all(own["prompt_token_ids"] and own["token_ids"] for own in sides)
    row: PairRow = {
        "prompt": first["prompt"],
        "prompt_ids": list(first["prompt_token_ids"]) if has_ids else None,
        "problem_id": first["problem_id"],
        "group": f"{first['step']}.{first['group']}",
    }
    for side, own in zip(SIDES, sides, strict=True):
        row |= {
            side: own["completion"].removeprefix(prefill),
            f"{side}_ids": [*own["prompt_token_ids"], *own["token_ids"]] if has_ids else None,
            f"correct_{side}": _is_correct(own),
            f"finish_{side}": own["finish"],
        }
    return row


def schema() -> pa.Schema:
    """The schema of a parquet file of pairs: all columns but the margin, which the rule does not know."""
    import pyarrow as pa

    kinds = {"": pa.string(), "_ids": pa.list_(pa.int32())}
    texts = [(f"{part}{end}", kind) for end, kind in kinds.items() for part in ("prompt", *SIDES)]
    about = [("correct", pa.bool_()), ("finish", pa.string())]
    sides = [(f"{name}_{side}", kind) for name, kind in about for side in SIDES]
    return pa.schema([*texts, ("problem_id", pa.string()), ("group", pa.string()), *sides])


def write_preferences(path: Path, run_dir: Path, rollouts: Iterable[Row]) -> PairCounts:
    """Write the pairs of a run's rollouts to a .jsonl or .parquet file, whole or not at all."""
    counts = PairCounts()
    write_rows(path, preference_rows(rollouts, counts, prefill_of(run_dir)), schema=schema())
    return counts
