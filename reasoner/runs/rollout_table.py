"""The rollouts of a run, filtered, sorted and counted in memory by the narrow columns of their shards.

Of a run of 200,000 rollouts these take 30 MB and half a second to read; a search reads all completions. A rollout is
named STEP.GROUP.SAMPLE, as in 12.3.7. Its id is STEP * 2**24 + its row in the step's shard.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields
from functools import cached_property
from itertools import chain, groupby
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reasoner.console import first_line
from reasoner.runs.filters import ALL, ORDERS, Filter
from reasoner.runs.rollout_row import ListedRollout
from reasoner.runs.rollouts import schema_of, shard_path, shard_steps
from reasoner.runs.row_files import write_rows
from reasoner.runs.shard import NO_ROWS, ROWS, Row, Shard, file_state

_DIGITS = 10  # of a number in the name of a rollout: those of shards have at most as many
_ANSWER = 60  # characters of an answer in a list
_READERS = min(8, os.cpu_count() or 1)  # threads; each has the texts of one shard
_LISTED = [one.name for one in fields(ListedRollout) if one.name not in ("problem", "answer", "head")]
# Conditions on findings: the analysis, and the column of what it found.
_FOUND = {"label": ("reflection", "label"), "failure": ("failures", "cause")}
ANALYSES = [name for name, _ in _FOUND.values()]
_T = TypeVar("_T")


class RolloutTable:
    """The rollouts of one run as they are when this is made; shards that are written later need another one."""

    def __init__(self, run_dir: Path, earlier: RolloutTable | None = None) -> None:
        """Read the narrow columns of all shards, except of those that are unchanged since an `earlier` table."""
        if not (run_dir / "rollouts").is_dir():
            raise ValueError(f"{run_dir} has no rollouts")
        self.run_dir = run_dir
        known = {} if earlier is None else {shard.step: shard for shard in earlier.shards}
        self.shards: list[Shard] = []
        for step in shard_steps(run_dir):
            path = shard_path(run_dir, step)
            state = file_state(path)
            is_known = step in known and known[step].state == state
            self.shards.append(known[step] if is_known else Shard(path, step, state))

    def renewed(self) -> RolloutTable:
        """This table if all shards are as they were, or a new one."""
        table = RolloutTable(self.run_dir, self)
        return self if table.shards == self.shards else table

    # -------------------------------------------------------------------------------------------- rollouts

    def page(
        self, where: Filter = ALL, *, offset: int = 0, limit: int | None = None, order: str = "step"
    ) -> list[ListedRollout]:
        """The rollouts of the filter in this order, `limit` of them from `offset` on. ValueError for another order."""
        if order not in ORDERS:
            raise ValueError(f"unknown order {order!r}; known are {', '.join(ORDERS)}")
        return self._listed(self._rows.take(self._sorted(self._places(where), order)[offset:][:limit]).to_pylist())

    def count(self, where: Filter = ALL) -> int:
        return len(self._places(where))

    def counts_by_step(self, where: Filter) -> Counter[int]:
        return Counter((self._ids[self._places(where)] // ROWS).tolist())

    def ids(self, where: Filter = ALL) -> list[int]:
        """The ids of the rollouts of the filter, in order."""
        ids: list[int] = self._ids[self._places(where)].tolist()
        return ids

    def rank(self, number: int, where: Filter = ALL) -> int:
        """The number of rollouts of the filter whose ids are below this one."""
        return int(np.searchsorted(self._ids[self._places(where)], number))

    def find(self, name: str) -> ListedRollout:
        """Look up a rollout by its name STEP.GROUP.SAMPLE. ValueError for a malformed and for an unknown name."""
        parts = name.split(".")
        if len(parts) != 3 or not all(part.isascii() and part.isdecimal() and len(part) <= _DIGITS for part in parts):
            raise ValueError(f"{name!r} is not the name of a rollout; write STEP.GROUP.SAMPLE, as in 12.3.7")
        step, group, sample = map(int, parts)
        rows = [row for row in self.group_rows(step, group) if row["sample"] == sample]
        if not rows:
            raise ValueError(f"{self.run_dir} has no rollout {name}")
        return self._listed(rows)[0]

    def name(self, number: int) -> str:
        """The name STEP.GROUP.SAMPLE of the rollout with this id."""
        step, row = divmod(number, ROWS)
        (values,) = self._by_step[step].rows.select(["step", "group", "sample"]).slice(row, 1).to_pylist()
        return ".".join(map(str, values.values()))

    def group_rows(self, step: int, group: int) -> list[Row]:
        """The narrow columns of the rollouts of a group, in order."""
        if step not in self._by_step:
            return []
        rows: list[Row] = self._by_step[step].rows.filter(pc.field("group") == group).to_pylist()
        return rows

    def rows(self, where: Filter) -> pa.Table:
        """The narrow columns of the rollouts of the filter, in order."""
        return self._rows.take(self._places(where))

    def rollout(self, number: int, *, with_tokens: bool = True) -> Row:
        """All columns of the rollout with this id, or those of Shard.row without tokens."""
        step, row = divmod(number, ROWS)
        return self._by_step[step].row(row, with_tokens=with_tokens)

    def matching(self, where: Filter) -> Iterator[Row]:
        """All columns of the rollouts of the filter, in order."""
        return map(self.rollout, self.ids(where))

    def export(self, path: Path, where: Filter) -> int:
        """Write the rollouts of the filter to a .jsonl or .parquet file; returns their number."""
        rows = self.matching(where)
        if path.suffix == ".jsonl":
            rows = (row | {"rewards": dict(row["rewards"])} for row in rows)
        # A shard without a call of a tool lacks the columns of calls, which others have.
        columns = [pq.read_schema(shard.path).names for shard in self.shards if not shard.fault]
        return write_rows(path, rows, schema=schema_of(columns))

    def shard(self, step: int) -> Shard:
        return self._by_step[step]

    def completions(self, numbers: Sequence[int]) -> list[str | None]:
        """The completions of the rollouts with these ids; None where the shard can no longer be read."""
        return self._of_rows(numbers, Shard.texts)

    def _of_rows(self, numbers: Sequence[int], read: Callable[[Shard, Sequence[int]], list[_T]]) -> list[_T]:
        """What `read` gives for the rollouts with these ids. The rows of a page may come from a hundred shards, whose
        texts are not in memory together.
        """
        steps = {step: [number % ROWS for number in own] for step, own in groupby(sorted(numbers), lambda n: n // ROWS)}
        with ThreadPoolExecutor(_READERS) as pool:
            parts = pool.map(lambda step: read(self._by_step[step], steps[step]), steps)
            value_of = dict(zip(sorted(numbers), chain.from_iterable(parts), strict=True))
        return [value_of[number] for number in numbers]

    def values(self, column: str) -> list[Any]:
        """The different values of a narrow column, in order."""
        return sorted(pc.unique(self._rows[column].drop_null()).to_pylist())

    def faults(self) -> dict[int, str]:
        """By step: the reason why its shard, or its completions, could not be read."""
        return {shard.step: shard.fault for shard in self.shards if shard.fault}

    # -------------------------------------------------------------------------------------------- analyses

    def analyse(
        self,
        name: str,
        analysis: Callable[[Shard], tuple[pa.Table, dict[str, int]]],
        *,
        limit: int | None = None,
    ) -> int:
        """Store what an analysis finds in the shards that it has not seen; returns their number.

        `limit`: the first so many of them; None: all.
        """
        new = self.lacking(name)[:limit]
        for shard in new:
            try:
                findings, about = analysis(shard)
                shard.keep(name, findings, **about)
            except ValueError as error:
                shard.fault = first_line(error)
        return len(new)

    def lacking(self, name: str) -> list[Shard]:
        """The readable shards that an analysis has not seen."""
        return [shard for shard in self.shards if not shard.fault and shard.findings(name) is None]

    def analysed(self, name: str) -> Iterator[tuple[Shard, pa.Table]]:
        """The readable shards that an analysis has seen, in order, with what it found in them."""
        for shard in self.shards:
            if not shard.fault and (findings := shard.findings(name)) is not None:
                yield shard, findings

    def findings(self, name: str, schema: pa.Schema) -> pa.Table:
        """What an analysis found in all shards."""
        tables = [findings.replace_schema_metadata() for _, findings in self.analysed(name)]
        return pa.concat_tables([schema.empty_table(), *tables])

    # -------------------------------------------------------------------------------------------- sums

    @cached_property
    def groups(self) -> list[Row]:
        """The groups of all shards in order. `flip`: whether the problem was solved (by more than half of the group)
        where its group before was not, or the reverse. `is_first`: whether no earlier step sampled the problem.
        """
        solved: dict[str, tuple[int, bool]] = {}  # by problem: the first step, and whether its last group solved it
        groups = []
        for group in (group for shard in self.shards for group in shard.groups):
            is_solved = 2 * group["correct"] > group["size"]
            first, was_solved = solved.get(group["problem"], (group["step"], is_solved))
            solved[group["problem"]] = first, is_solved
            groups.append(group | {"flip": int(is_solved != was_solved), "is_first": first == group["step"]})
        return groups

    @cached_property
    def steps(self) -> list[Row]:
        """Shard.summary of each step, in order."""
        return [shard.summary for shard in self.shards if len(shard.rows)]

    # -------------------------------------------------------------------------------------------- selection

    @cached_property
    def _by_step(self) -> dict[int, Shard]:
        return {shard.step: shard for shard in self.shards}

    @cached_property
    def _rows(self) -> pa.Table:
        return pa.concat_tables([NO_ROWS, *(shard.rows for shard in self.shards)]).combine_chunks()

    @cached_property
    def _ids(self) -> np.ndarray:
        ids: np.ndarray = self._rows["id"].to_numpy()
        return ids

    def _places(self, where: Filter) -> np.ndarray:
        """The places in the table of the rollouts of the filter, in order."""
        keep = np.ones(len(self._rows), bool)
        for one in fields(where):
            value = getattr(where, one.name)
            if value is not None and one.name != "text":
                keep &= self._mask(one.name, value)
        if where.text is not None:
            keep &= self._matches(where.text, keep)
        return np.flatnonzero(keep)

    def _mask(self, name: str, value: Any) -> np.ndarray:
        """Whether a condition of a filter, other than on the text, holds for each rollout."""
        if name in _FOUND:
            analysis, column_name = _FOUND[name]
            tables = [found.filter(pc.field(column_name) == value) for _, found in self.analysed(analysis)]
            return np.isin(self._ids, np.concatenate([[], *(own["id"].to_numpy() for own in tables)]))
        column = self._rows[{"problem": "problem_id", "correct": "verdict"}.get(name, name)]
        if name == "correct":
            mask = (pc.equal if value else pc.not_equal)(column, "correct")
        elif isinstance(value, tuple):
            kind = pa.float32() if pa.types.is_floating(column.type) else column.type  # a shard has 1.10000002 for 1.1
            column, mask = column.cast(kind, safe=False), pc.is_valid(column)
            for holds, bound in zip((pc.greater_equal, pc.less_equal), value, strict=True):
                if bound is not None:
                    mask = pc.and_(mask, holds(column, pa.scalar(bound).cast(kind, safe=False)))
        else:
            mask = pc.equal(column, value)
        return np.asarray(pc.fill_null(mask, False))

    def _matches(self, query: str, keep: np.ndarray) -> np.ndarray:
        """Whether the completion holds the text, for the rollouts of shards with one to `keep`."""
        ends = np.cumsum([len(shard.rows) for shard in self.shards])
        parts = list(zip(self.shards, np.split(keep, ends), strict=False))  # behind the last end is nothing
        with ThreadPoolExecutor(_READERS) as pool:
            found = pool.map(lambda part: np.asarray(part[0].matches(query)) if part[1].any() else part[1], parts)
            return np.concatenate([np.zeros(0, bool), *found])

    def _sorted(self, places: np.ndarray, order: str) -> np.ndarray:
        name, is_down = order.removeprefix("-"), order.startswith("-")
        if name == "step":
            return places[::-1] if is_down else places
        keys = np.asarray(pc.fill_null(self._rows[name].take(places), -1))  # tokens may be unknown
        return places[np.argsort(-keys if is_down else keys, kind="stable")]

    def _listed(self, rows: Sequence[Row]) -> list[ListedRollout]:
        """The rollouts of these narrow columns, with the beginnings of their completions."""
        heads = self._of_rows([row["id"] for row in rows], Shard.heads)
        return [
            ListedRollout(
                **{name: row[name] for name in _LISTED},
                problem=row["problem_id"],
                answer=short_answer(row),
                head=head,
            )
            for row, head in zip(rows, heads, strict=True)
        ]


def short_answer(row: Row) -> str:
    """The beginning of a rollout's answer."""
    return (row["extracted"] or "")[:_ANSWER]
