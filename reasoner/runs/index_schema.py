"""The tables of the index of rollouts, and the conversion of checked shards into their rows."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import lru_cache
from itertools import groupby
from pathlib import Path
from statistics import fmean, pstdev
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from reasoner.console import first_line
from reasoner.runs.filters import ROWS
from reasoner.runs.json_files import is_file
from reasoner.runs.parquet_files import read_table
from reasoner.runs.rollout_row import ListedRollout
from reasoner.runs.rollouts import OPTIONAL, SCHEMA, shard_path
from reasoner.types import REWARD_TOLERANCE

_SQL = {"int": "INTEGER", "bool": "INTEGER", "float": "REAL", "str": "TEXT"}  # by annotation
LISTED = {one.name: _SQL[str(one.type).removesuffix(" | None")] for one in fields(ListedRollout)}

TABLES = f"""
CREATE TABLE rollouts ({", ".join(f'"{name}" {kind}' for name, kind in LISTED.items())}, PRIMARY KEY (id));
CREATE TABLE shards (step INTEGER PRIMARY KEY, size INTEGER, changed INTEGER, rows INTEGER, fault TEXT, digest TEXT);
CREATE INDEX by_problem ON rollouts (problem, id);
CREATE INDEX by_verdict ON rollouts (verdict, id);
CREATE INDEX by_tokens ON rollouts (tokens, id);
CREATE INDEX by_reward ON rollouts (reward, id);
CREATE TABLE groups (
    step INTEGER, grp INTEGER, problem TEXT, subject TEXT, level INTEGER, question TEXT, size INTEGER, correct INTEGER,
    reward_mean REAL, reward_std REAL, flip INTEGER, PRIMARY KEY (step, grp)
) WITHOUT ROWID;
CREATE INDEX groups_of ON groups (problem, step, grp, correct, size, flip);
-- sums over table groups, so that the map of problems reads no group but those that it shows (SUMMARISE)
CREATE TABLE problems (
    problem TEXT PRIMARY KEY, subject TEXT, level INTEGER, question TEXT, num_groups INTEGER, correct INTEGER,
    size INTEGER, first_sampled INTEGER, first_solved INTEGER, flips INTEGER
) WITHOUT ROWID;
CREATE TABLE family_steps (step INTEGER, subject TEXT, level INTEGER, correct INTEGER, size INTEGER);
CREATE INDEX family_steps_of ON family_steps (step);
CREATE TABLE solved_groups (
    step INTEGER, size INTEGER, correct INTEGER, groups INTEGER, PRIMARY KEY (step, size, correct)
) WITHOUT ROWID;
CREATE TABLE exposures (step INTEGER, subject TEXT, is_first INTEGER, groups INTEGER, sum REAL, squares REAL);
CREATE INDEX exposures_of ON exposures (step);
CREATE TABLE steps (
    step INTEGER PRIMARY KEY, rollouts INTEGER, correct INTEGER, well_formed INTEGER, clipped INTEGER, groups INTEGER,
    flat INTEGER, reward REAL, tokens REAL, tokens_correct REAL, tokens_wrong REAL, tokens_p95 REAL, verdicts TEXT
);
CREATE VIRTUAL TABLE words USING fts5 (completion, content='', tokenize='unicode61');
INSERT INTO words (words, rank) VALUES ('hashsize', 67108864);
-- the results of reasoner.analysis.reflection, step by step
CREATE TABLE spans (
    id INTEGER, start INTEGER, end INTEGER, kind TEXT, outcome TEXT, label TEXT, before TEXT, after TEXT,
    others_correct REAL, correct INTEGER, score REAL, PRIMARY KEY (id, start)
) WITHOUT ROWID;
CREATE INDEX by_score ON spans (score DESC);
CREATE INDEX by_label ON spans (label, id);
CREATE TABLE reflection_steps (
    step INTEGER PRIMARY KEY, rollouts INTEGER, tokens INTEGER, reflecting INTEGER, kinds TEXT, outcomes TEXT,
    labels TEXT
);
CREATE TABLE reflection_groups (
    step INTEGER, grp INTEGER, reflecting INTEGER, reflecting_right INTEGER, plain INTEGER, plain_right INTEGER,
    PRIMARY KEY (step, grp)
) WITHOUT ROWID;
-- the results of reasoner.analysis.failures, step by step
CREATE TABLE failures (id INTEGER PRIMARY KEY, cause TEXT, detail TEXT, start INTEGER, end INTEGER);
CREATE INDEX by_cause ON failures (cause, id);
CREATE TABLE failure_steps (step INTEGER PRIMARY KEY, rollouts INTEGER, causes TEXT);
"""
# Statements that make the sums and flips of the groups from a step on, which is their only value. The first sets
# groups.flip: whether the problem was solved (by more than half of the group) where its visit before was not, or the
# reverse; 0 at the first visit, and where a group is inserted.
SUMMARISE = (
    """
    UPDATE groups SET flip = COALESCE((2 * correct > size) <> (
        SELECT 2 * correct > size FROM groups AS before
        WHERE before.problem = groups.problem AND (before.step, before.grp) < (groups.step, groups.grp)
        ORDER BY before.step DESC, before.grp DESC LIMIT 1
    ), 0) WHERE step >= ?
    """,
    """
    INSERT OR REPLACE INTO problems
    SELECT problem, subject, level, question, num_groups, all_correct, all_size, first_sampled, first_solved, flips
    FROM (
        SELECT problem, COUNT(*) AS num_groups, SUM(correct) AS all_correct, SUM(size) AS all_size,
            MIN(step) AS first_sampled, MIN(CASE WHEN correct > 0 THEN step END) AS first_solved, SUM(flip) AS flips
        FROM groups WHERE problem IN (SELECT problem FROM groups WHERE step >= ?) GROUP BY problem
    ) JOIN groups USING (problem) WHERE step = first_sampled
    """,
    "DELETE FROM family_steps WHERE step >= ?",
    """
    INSERT INTO family_steps SELECT step, subject, level, SUM(correct), SUM(size) FROM groups WHERE step >= ?
    GROUP BY step, subject, level
    """,
    "DELETE FROM solved_groups WHERE step >= ?",
    """
    INSERT INTO solved_groups SELECT step, size, correct, COUNT(*) FROM groups WHERE step >= ?
    GROUP BY step, size, correct
    """,
    "DELETE FROM exposures WHERE step >= ?",
    """
    INSERT INTO exposures SELECT step, subject, step = first_sampled, COUNT(*), SUM(rate), SUM(rate * rate)
    FROM (SELECT step, problem, subject, 1.0 * correct / size AS rate FROM groups WHERE step >= ?)
    JOIN (SELECT problem, first_sampled FROM problems) USING (problem) GROUP BY step, subject, step = first_sampled
    """,
)
_HEAD, _ANSWER = 120, 60  # characters of a completion and an answer in a list
_STD = -2  # place of reward_std in a row of groups


def _head(completion: str) -> str:
    """The beginning of a completion on one line, for a list."""
    return " ".join(completion[: 2 * _HEAD].lstrip().removeprefix("<think>").split())[:_HEAD]


# Of columns of the list that are no columns of a shard: the one that they are made from, and how.
_MADE: dict[str, tuple[str, Callable[[Any], Any]]] = {
    "problem": ("problem_id", str),
    "answer": ("extracted", lambda answer: (answer or "")[:_ANSWER]),
    "head": ("completion", _head),
}
COLUMNS = (*(_MADE[name][0] if name in _MADE else name for name in LISTED if name not in ("id", "step")), "question")


@dataclass(frozen=True)
class Rows:
    """The rows of a shard, by the table that they belong to."""

    rollouts: list[tuple[Any, ...]]
    words: list[tuple[int, str]]
    groups: list[tuple[Any, ...]]
    steps: list[tuple[Any, ...]]


def rows_of_table(table: pa.Table, step: int) -> Rows:
    """Convert the table of a step's shard into rows of the index."""
    missing: list[Any] = [None] * table.num_rows  # for columns that the shard lacks
    columns = dict.fromkeys(COLUMNS, missing) | table.to_pydict()
    ids = range(step * ROWS, step * ROWS + table.num_rows)
    listed = columns | {
        "id": ids,
        "step": [step] * len(ids),
        **{name: list(map(make, columns[source])) for name, (source, make) in _MADE.items()},
    }
    rollouts = list(zip(*(listed[name] for name in LISTED), strict=True))
    words = list(zip(ids, columns["completion"], strict=True))
    groups = _groups(columns, step)
    return Rows(rollouts, words, groups, [_step(columns, groups, step)] if words else [])


def _groups(columns: Mapping[str, list[Any]], step: int) -> list[tuple[Any, ...]]:
    """The rows of table `groups`. In a shard the rows of a group are consecutive."""
    rows_of_groups = []
    for number, own in groupby(range(len(columns["group"])), key=columns["group"].__getitem__):
        rows = list(own)
        rewards = [columns["reward"][i] for i in rows]
        right = sum(columns["verdict"][i] == "correct" for i in rows)
        about = [columns[name][rows[0]] for name in ("problem_id", "subject", "level", "question")]
        spread = 0.0 if max(rewards) - min(rewards) < REWARD_TOLERANCE else pstdev(rewards)
        rows_of_groups.append((step, number, *about, len(rows), right, fmean(rewards), spread, 0))
    return rows_of_groups


def _step(columns: Mapping[str, list[Any]], groups: Sequence[tuple[Any, ...]], step: int) -> tuple[Any, ...]:
    lengths = columns["tokens"]
    right = [verdict == "correct" for verdict in columns["verdict"]]
    known = sorted(n for n in lengths if n is not None)
    of = {
        flag: [n for n, ok in zip(lengths, right, strict=True) if ok is flag and n is not None]
        for flag in (True, False)
    }
    return (
        step,
        len(right),
        sum(right),
        sum(map(bool, columns["well_formed"])),
        sum(finish == "length" for finish in columns["finish"]),
        len(groups),
        sum(group[_STD] == 0 for group in groups),
        fmean(columns["reward"]),
        fmean(known) if known else None,
        *(fmean(own) if own else None for own in of.values()),
        known[math.ceil(0.95 * len(known)) - 1] if known else None,
        json.dumps(Counter(columns["verdict"])),
    )


_NAME = re.compile(r"step-(\d{6,9})\.parquet", re.ASCII)
_FILLED = ("group", "sample", "problem_id", "question", "completion", "verdict", "reward", "advantage")
_FINITE = ("reward", "advantage")


def shard_steps(run_dir: Path) -> list[int]:
    """The step of each shard, readable or not."""
    matches = [match for path in (run_dir / "rollouts").iterdir() if (match := _NAME.fullmatch(path.name))]
    return [int(match[1]) for match in matches if match[0] == shard_path(run_dir, int(match[1])).name]


def shards(run_dir: Path) -> dict[int, tuple[int, int]]:
    """(bytes, modification time in nanoseconds) of each shard, readable or not, by step."""
    stats = {step: shard_path(run_dir, step).lstat() for step in shard_steps(run_dir)}
    return {step: (stat.st_size, stat.st_mtime_ns) for step, stat in stats.items()}


def shard_digest(path: Path) -> str:
    """A hash of the file's content; empty where it cannot be read."""
    try:
        return _digest(path.read_bytes()) if is_file(path) else ""
    except (OSError, ValueError):
        return ""


def _digest(content: bytes) -> str:
    return hashlib.blake2b(content, digest_size=16).hexdigest()


def read_shard(path: Path, step: int) -> tuple[Rows | str, str]:
    """(the index's rows of a shard, or the reason why it cannot be read; the digest of its content)."""
    digest = ""
    try:
        if not is_file(path):
            return "the file is missing", digest
        content = path.read_bytes()
        digest = _digest(content)
        _check_kinds(pq.read_schema(pa.BufferReader(content)))
        table = read_table(path, COLUMNS, content=content)
        _check_values(table)
        return rows_of_table(table, step), digest
    except (OSError, ValueError, OverflowError, pa.ArrowException) as error:
        return first_line(error), digest


def _check_kinds(schema: pa.Schema) -> None:
    """Raise ValueError where a column is missing or has another type than in SCHEMA or OPTIONAL."""
    for name in _FILLED:
        if name not in schema.names:
            raise ValueError(f"it has no column {name!r}")
    for column in (*SCHEMA, *OPTIONAL):
        if column.name not in schema.names:
            continue
        if column.name == "rewards":
            _check_rewards(schema.field(column.name).type)
            continue
        actual, expected = _kind(schema.field(column.name).type), _kind(column.type)
        if actual not in (expected, "nothing", *(("int",) if expected == "float" else ())):
            raise ValueError(f"column {column.name!r} holds {actual} values, not {expected}")


def _check_rewards(kind: pa.DataType) -> None:
    """Raise ValueError where the parts of the reward are not (name, value) pairs."""
    is_list = pa.types.is_list(kind) and pa.types.is_struct(kind.value_type)
    if is_list and [field.name for field in kind.value_type] == ["name", "value"]:
        return
    if not pa.types.is_null(kind):
        raise ValueError(f"column 'rewards' holds {kind} values, not list of {{name, value}}")


def _kind(kind: pa.DataType) -> str:
    for name, holds in _KINDS.items():
        if holds(kind):
            return name
    return f"list of {_kind(kind.value_type)}" if pa.types.is_list(kind) else str(kind)


_KINDS = {
    "text": lambda kind: pa.types.is_string(kind) or pa.types.is_large_string(kind),
    "int": pa.types.is_integer,
    "float": pa.types.is_floating,
    "bool": pa.types.is_boolean,
    "nothing": pa.types.is_null,  # a column without a value
}


def _check_values(table: pa.Table) -> None:
    """Raise ValueError for an empty cell in a column of _FILLED, and for a value of _FINITE that is not finite."""
    for name in _FILLED:
        if table[name].null_count:
            raise ValueError(f"column {name!r} has empty cells")
    for name in _FINITE:
        if not pc.all(pc.is_finite(table[name]), min_count=0).as_py():
            raise ValueError(f"column {name!r} holds a value that is not finite")


@lru_cache(maxsize=8)
def shard_table(path: Path, _changed: int) -> pa.Table:
    """Read a shard, once for each modification time `_changed`."""
    return read_table(path)


@lru_cache(maxsize=32)
def shard_completions(path: Path, _changed: int) -> pa.ChunkedArray:
    """Read the completions alone: most of a shard's bytes are per-token columns."""
    return read_table(path, ["completion"])["completion"]
