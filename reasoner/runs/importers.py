"""Import rollouts of other trainers as a run folder, for the dashboard and `reasoner rollouts`.

docs/DASHBOARD.md lists the columns of a rollout that is imported, a record here, and says what decides where a record
has no verdict. Failing that the verdict is "refused", the one that implies neither an answer, nor a timeout, nor a
crash. `rows` reads files with these columns; `trl` makes them from what TRL logs.
"""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean
from typing import Any

import pyarrow as pa

from data.files import read_files
from reasoner.console import first_line
from reasoner.runs import rollouts as store
from reasoner.runs.filters import MOST_STEP
from reasoner.runs.io import named_errors
from reasoner.runs.json_files import checked_line, write_json
from reasoner.runs.parquet_files import write_table
from reasoner.runs.rollout_row import RolloutRow
from reasoner.runs.run_dir import FORMAT
from reasoner.types import REWARD_TOLERANCE
from verifiers import Verdict

Record = Mapping[str, Any]  # a rollout in the columns of docs/DASHBOARD.md
Row = dict[str, Any]  # columns of RolloutRow; `rewards` is empty where nothing scored the rollout
Steps = Iterator[tuple[int, list[Row]]]
Records = Iterator[tuple[str, Record]]  # (place for messages, record)

_ACCURACY = re.compile(r"accuracy|(?<!in)correct|^acc$", re.IGNORECASE)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")


def import_run(system: str, source: Path, run_dir: Path) -> int:
    """Create a run folder from a dump, completely or not at all; returns the number of rollouts.

    A group is the rollouts of one step with the same prompt. An advantage that the dump lacks is the reward minus its
    group's mean. A rollout without a score has the reward 0 and is left out of every mean. ValueError for an unknown
    system, a dump that cannot be read, and a run folder that is not empty.
    """
    if system not in READERS:
        raise ValueError(f"unknown system {system!r}; known are {', '.join(READERS)}")
    if not source.exists():
        raise ValueError(f"{source}: there is no such file or folder")
    if run_dir.exists() and (not run_dir.is_dir() or any(run_dir.iterdir())):
        raise ValueError(f"{run_dir} is in use; choose another name for the run")
    run_dir.parent.mkdir(parents=True, exist_ok=True)
    with named_errors(run_dir), _new_folder(run_dir.with_name(f".{run_dir.name}.partial")) as folder:
        partial = folder / "run"
        num_rollouts = _write(_steps(system, source), partial)
        if not num_rollouts:
            raise ValueError(f"{source} has no rollouts that {system} dumped")
        config = {"model": "?", "imported": system, "source": _readable(source.resolve().name)}
        write_json(partial / "config.json", {"format": FORMAT, "config": config, "origin": {}})
        write_json(partial / "versions.json", {"imported_from": system})
        partial.replace(run_dir)
    return num_rollouts


@contextmanager
def _new_folder(path: Path) -> Iterator[Path]:
    """A folder that is removed after the block, and before it where an import that was killed has left it."""
    shutil.rmtree(path, ignore_errors=True)
    path.mkdir()
    try:
        yield path
    finally:
        shutil.rmtree(path)


def _steps(system: str, source: Path) -> Steps:
    """The rows of the dump by step, in order. ValueError for records that are not in the order of their steps."""
    step, rows = -1, list[Row]()
    for where, record in READERS[system](source):
        with _blaming(where):
            row, own = _row(record, system), record["step"]
            if not isinstance(own, int) or not 0 <= own <= MOST_STEP:
                raise ValueError(f"step is {own!r}; it must be a whole number from 0 to {MOST_STEP:,}")
            if own < step:
                raise ValueError(f"step {own} comes after step {step}; the steps must be in order")
        if own > step and rows:
            yield step, rows
            rows = []
        step = own
        rows.append(row)
    if rows:
        yield step, rows


def _write(steps: Steps, run_dir: Path) -> int:
    """Write the shards and metrics.jsonl; returns the number of rollouts."""
    (run_dir / "rollouts").mkdir(parents=True)
    num_rollouts = 0
    with (run_dir / "metrics.jsonl").open("wb") as metrics:
        for step, rows in steps:
            groups = _groups(step, rows)
            written = [store.stored_row(row) for group in groups for row in group]
            with _blaming(f"step {step}"):
                table = pa.Table.from_pylist(written, store.schema_of(written))
            write_table(store.shard_path(run_dir, step), table)
            metrics.write(checked_line(_metrics(step, groups)))
            num_rollouts += len(rows)
    return num_rollouts


def _groups(step: int, rows: Sequence[Row]) -> list[list[RolloutRow]]:
    """The step's rows by prompt, in order of first appearance, complete."""
    by_prompt: dict[str, list[Row]] = {}
    for row in rows:
        by_prompt.setdefault(row["prompt"], []).append(row)
    groups = []
    for number, group in enumerate(by_prompt.values()):
        mean = fmean([row["reward"] for row in group if row["rewards"]] or [0.0])
        own = []
        for sample, row in enumerate(group):
            judged = {"verdict": str(row["verdict"] or Verdict.REFUSED)}
            is_scored = bool(row["rewards"])
            advantage = {"advantage": (row["reward"] - mean) * is_scored} if row["advantage"] is None else {}
            own.append(RolloutRow(**row | {"step": step, "group": number, "sample": sample} | judged | advantage))
        groups.append(own)
    return groups


def _metrics(step: int, groups: Sequence[Sequence[RolloutRow]]) -> dict[str, float]:
    """The metrics that follow from the rows; `correct` is a share of the rollouts with a verdict."""
    rows = [row for group in groups for row in group]
    rewards = [[row.reward for row in group if row.rewards] for group in groups]
    metrics: dict[str, float] = {"step": step, "well_formed": fmean(row.well_formed for row in rows)}
    if any(rewards):
        metrics["reward/mean"] = fmean(reward for group in rewards for reward in group)
        metrics["frac_reward_zero_std"] = fmean(
            max(group) - min(group) < REWARD_TOLERANCE for group in rewards if group
        )
    if judged := [row.verdict for row in rows if row.verdict != Verdict.REFUSED]:
        metrics["correct"] = judged.count(Verdict.CORRECT) / len(judged)
    if all(row.tokens for row in rows):
        metrics["completions/mean_length"] = fmean(row.tokens or 0 for row in rows)
    return metrics


# ------------------------------------------------------------------------------------------------ readers


def read_trl(source: Path) -> Records:
    """Read what GRPOTrainer's log_completions wrote, as of TRL 1.16.0: a file per step, a column per reward function.

    The functions' weights are not in it, so the reward is the plain sum. A function may have logged columns of its own
    (TRL's accuracy_reward logs the two that are read here); a number among those is taken for a reward.
    """
    for folder in (source / "completions", source):
        ends = [
            (re.fullmatch(r"completions_(\d{1,9})", path.stem, re.ASCII), path) for path in folder.glob("*.parquet")
        ]
        if files := sorted((int(end[1]), path) for end, path in ends if end):
            break
    for step, path in files:
        for where, record in read_files(path):
            with _blaming(where):
                rewards = _numbers({name: value for name, value in record.items() if name not in ("step", "advantage")})
                own = {name: record[name] for name in ("prompt", "completion")}
                own |= {"gold": record.get("solution"), "extracted": record.get("answer_parsed")}
                own |= {"step": step, "rewards": rewards, "advantage": _number(record.get("advantage"))}
                yield where, own | {"reward": sum(rewards.values()) if rewards else None}


READERS: dict[str, Callable[[Path], Records]] = {"trl": read_trl, "rows": read_files}


# ------------------------------------------------------------------------------------------------ records


def _row(record: Record, system: str) -> Row:
    """A record as a row without its group. A <think> that ends the prompt is moved to the completion."""
    prompt, completion = _text(record["prompt"]), _text(record["completion"])
    if prompt.rstrip().endswith("<think>") and not completion.lstrip().startswith("<think>"):
        completion = "<think>" + completion
    thought, end, rest = completion.partition("</think>")
    is_answered = "\\boxed{" in rest or "</answer>" in rest.partition("<answer>")[2]
    total = _number(record["reward"])
    rewards = record.get("rewards") or {"reward": total}
    parts = _numbers(rewards if isinstance(rewards, dict) else {part["name"]: part["value"] for part in rewards})
    names = sorted(filter(_ACCURACY.search, parts), key=len)  # of the parts that measure accuracy: the shortest
    layer, accuracy = (names[0], parts[names[0]]) if names else ("", None)
    computed = {
        "problem_id": hashlib.sha256(prompt.encode()).hexdigest()[:16],
        "question": _question(record["prompt"], prompt),
        "source": system,
        "tokens": len(record.get("token_ids") or ()) or None,
        "verdict": None if accuracy is None else (Verdict.CORRECT if accuracy > 0.5 else Verdict.WRONG),
        "layer": "" if record.get("verdict") else layer,
        "well_formed": "<think>" in thought and bool(end) and is_answered,
        "advantage": None,
    }
    columns = {name: value for name, value in record.items() if name in store.COLUMNS.names and value is not None}
    if "verdict" in columns:
        Verdict(columns["verdict"])
    texts = {name: _text(columns[name]) for name in ("gold", "extracted") if name in columns}
    own = {"prompt": prompt, "completion": completion, "gold": "", "reward": total or 0.0}
    return computed | columns | own | texts | {"rewards": [] if total is None else list(parts.items())}


def _question(prompt: object, text: str) -> str:
    """The user's last message of a conversation or of Qwen's template; without one the whole prompt."""
    if isinstance(prompt, list):
        return next((_text(message) for message in reversed(prompt) if message.get("role") == "user"), text)
    plain = "\n" + text.replace("<|im_start|>", "").replace("<|im_end|>", "")
    _, _, turn = plain.rpartition("\nuser\n")
    return turn.rpartition("\nassistant")[0].strip() or text


def _text(value: object) -> str:
    """Render a text, a message, a conversation, or any other value as one text."""
    if isinstance(value, list) and len(value) == 1:
        return _text(value[0])
    if value is None or value == []:
        return ""
    if isinstance(value, list) and all(isinstance(part, dict) and "role" in part for part in value):
        return _readable("\n\n".join(f"{part['role']}:\n{_text(part)}" for part in value))
    if isinstance(value, dict) and "role" in value:
        content = value.get("content") or ""
        if not isinstance(content, str):
            content = "\n".join(part.get("text") or f"[{part['type']}]" for part in content)
        thought = f"<think>\n{value['reasoning_content']}\n</think>\n" if value.get("reasoning_content") else ""
        calls = "".join(f"\n{json.dumps(call)}" for call in value.get("tool_calls") or [])
        return _readable(thought + content + calls)
    return _readable(value if isinstance(value, str) else json.dumps(value, ensure_ascii=False))


def _readable(text: str) -> str:
    """Replace lone surrogates, which JSON may hold and UTF-8 may not, by U+FFFD."""
    return _LONE_SURROGATE.sub("\ufffd", text)


def _numbers(record: Record) -> dict[str, float]:
    """The numbers of a record by name, without pandas' index columns (named __...)."""
    named = {_readable(name): _number(value) for name, value in record.items()}
    return {name: number for name, number in named.items() if number is not None and not name.startswith("__")}


def _number(value: object) -> float | None:
    """The value as a float; None where it is not a number or too large for 32-bit floats."""
    return float(value) if isinstance(value, int | float) and abs(value) < 1e38 else None


@contextmanager
def _blaming(place: object) -> Iterator[None]:
    """Turn the errors of a malformed dump into a ValueError of one line that begins with `place`."""
    try:
        yield
    except KeyError as error:
        raise ValueError(f"{place}: no {error}") from error
    except (AttributeError, IndexError, OSError, OverflowError, RecursionError, TypeError, ValueError) as error:
        raise ValueError(f"{place}: {first_line(error)}") from error
