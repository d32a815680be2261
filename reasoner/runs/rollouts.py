"""Shards of rollouts: one parquet file a step, runs/NAME/rollouts/step-000012.parquet, with a row a completion."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from itertools import accumulate
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa

from reasoner.runs.parquet_files import read_table, write_table
from reasoner.runs.rollout_row import RolloutRow
from reasoner.types import Completion, RolloutGroup

_ARROW = {
    "int": pa.int32(),
    "float": pa.float32(),
    "str": pa.string(),
    "bool": pa.bool_(),
    "Sequence[int]": pa.list_(pa.int32()),
    "Sequence[float]": pa.list_(pa.float32()),
    # not a map, which `datasets` cannot read
    "Sequence[tuple[str, float]]": pa.list_(pa.struct([("name", pa.string()), ("value", pa.float32())])),
}
COLUMNS = pa.schema([(one.name, _ARROW[str(one.type).removesuffix(" | None")]) for one in fields(RolloutRow)])
# The columns that a shard has only where a row does, and those of every shard.
_OPTIONAL = ("observation_tokens", "observation_text", "tool_errors")
OPTIONAL = pa.schema([COLUMNS.field(name) for name in _OPTIONAL])
SCHEMA = pa.schema([column for column in COLUMNS if column not in OPTIONAL])
_NAME = re.compile(r"step-(\d{6,9})\.parquet", re.ASCII)


def shard_path(run_dir: Path, step: int) -> Path:
    """The path of a step's shard of rollouts."""
    return run_dir / "rollouts" / f"step-{step:06d}.parquet"


def write_step(
    run_dir: Path,
    step: int,
    groups: Sequence[RolloutGroup],
    advantages: Sequence[float],
    tokens: Mapping[int, Mapping[str, Any]] | None = None,
) -> list[dict[str, object]]:
    """Write the step's rollouts as one shard, atomically; returns its rows.

    `advantages`: one per completion. `tokens`: the trainer's statistics of every token by number of the completion
    (reasoner.rl.token_stats); completions without them have null columns.
    """
    rows: list[RolloutRow] = []
    tokens = tokens or {}
    for number, group in enumerate(groups):
        problem = group.prompt.problem
        for sample, (completion, score) in enumerate(zip(group.completions, group.scores, strict=True)):
            row = RolloutRow(
                step=step,
                group=number,
                sample=sample,
                problem_id=problem.id,
                question=problem.question,
                gold=problem.answer,
                source=problem.source,
                verifier=problem.verifier,
                subject=problem.subject,
                level=problem.level,
                prompt=group.prompt.text,
                completion=group.prompt.prefill + completion.text,
                prompt_token_ids=group.prompt.token_ids,
                token_ids=completion.token_ids,
                logprobs=completion.logprobs,
                tokens=completion.num_tokens,
                finish=completion.finish,
                policy_version=completion.policy_version,
                verdict=str(score.verdict),
                layer=score.layer,
                extracted=score.extracted,
                well_formed=score.well_formed,
                reward=score.reward,
                rewards=list(score.parts.items()),
                advantage=advantages[len(rows)],
                **_observations(completion, len(group.prompt.prefill)),
                **tokens.get(len(rows), {}),
            )
            rows.append(row)
    written = [stored_row(row) for row in rows]
    write_shard(shard_path(run_dir, step), written)
    return written


def _observations(completion: Completion, prefill: int) -> dict[str, Any]:
    """The columns of what tools returned; none without a call. `prefill`: characters before the completion."""
    if not (parts := completion.observations):
        return {}
    return {
        "observation_tokens": [place for part in parts for place in (part.start, part.end)],
        "observation_text": [prefill + place for part in parts for place in (part.text_start, part.text_end)],
        "tool_errors": sum(part.is_error for part in parts),
    }


def stored_row(row: RolloutRow) -> dict[str, object]:
    """The row as `write_shard` takes it: without a column of OPTIONAL that it has no value for."""
    return {name: value for name, value in vars(row).items() if value is not None or name not in OPTIONAL.names}


def schema_of(rows: Iterable[Iterable[str]]) -> pa.Schema:
    """SCHEMA, and the columns of OPTIONAL that a row (or another list of names) has."""
    names = set().union(*rows)
    return pa.schema([*SCHEMA, *(field for field in OPTIONAL if field.name in names)])


def write_shard(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows of SCHEMA and OPTIONAL atomically; a column that a row leaves out is null."""
    schema = schema_of(rows)
    columns = [_column([row.get(one.name) for row in rows], one.type) for one in schema]
    write_table(path, pa.table(columns, schema=schema))


def _column(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    """A column of these values. Arrays of numbers, one a token, are copied as a whole."""
    if not (pa.types.is_list(kind) and pa.types.is_primitive(kind.value_type)):
        return pa.array(values, kind)
    dtype = np.int32 if kind.value_type == pa.int32() else np.float32
    numbers = [np.asarray(() if one is None else one, dtype) for one in values]
    starts = [0, *accumulate(map(len, numbers))]
    is_null = pa.array([one is None for one in values])
    return pa.ListArray.from_arrays(pa.array(starts, pa.int32()), np.concatenate(numbers), kind, mask=is_null)


def shard_steps(run_dir: Path) -> list[int]:
    """The step of each shard, readable or not, in order."""
    names = (_NAME.fullmatch(path.name) for path in (run_dir / "rollouts").glob("step-*"))
    return sorted(int(name[1]) for name in names if name and name[0] == shard_path(run_dir, int(name[1])).name)


def delete_from(run_dir: Path, start: int) -> None:
    """Delete the shards of step `start` and later, and partial files that a crash left behind."""
    for step in shard_steps(run_dir):
        if step >= start:
            shard_path(run_dir, step).unlink()
    for path in (run_dir / "rollouts").glob("step-*.parquet.partial"):
        path.unlink()


def readable(path: Path) -> bool:
    """Whether the shard exists and is not damaged."""
    try:
        read_table(path)
    except ValueError:
        return False
    return True


def read(run_dir: Path, step: int) -> list[dict[str, Any]]:
    """Read the rows of a step. ValueError when there is no shard of it."""
    path = shard_path(run_dir, step)
    if not path.is_file():
        raise ValueError(f"{run_dir} has no rollouts of step {step}")
    return rows_of(read_table(path))


def rows_of(table: pa.Table) -> list[dict[str, Any]]:
    """The rows of a shard's table as `write_shard` takes them: `rewards` as (name, value) pairs."""
    rows: list[dict[str, Any]] = table.to_pylist()
    for row in rows:
        if row.get("rewards"):
            row["rewards"] = [tuple(part.values()) for part in row["rewards"]]
    return rows
