"""Import rollouts that other trainers dumped as a run folder, for the dashboard and `reasoner rollouts`.

A reader is a generator of (step, rows) in the order of the steps, which keep the dump's numbers. What a dump does not
contain (TRL's and verl's have no tokens) is null or empty.

None of these systems has verdicts. Where a part of the reward (else a metric) is named accuracy, correct or acc, a
value above one half is "correct", else "wrong". Failing that, where the whole dump holds just two rewards, the higher
one is "correct". Failing that the verdict is "refused", the one verdict that implies neither an answer, nor a timeout,
nor a crash. `layer` names the part that decided.
"""

from __future__ import annotations

import shutil
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import fmean

import pyarrow as pa

from reasoner.runs import rollouts as store
from reasoner.runs.import_rows import (
    Row,
    blaming,
    inside,
    number_of,
    number_rows,
    numbers,
    pieces_of,
    readable,
    records_of,
    row_of,
)
from reasoner.runs.io import named_errors
from reasoner.runs.json_files import checked_line, write_json
from reasoner.runs.parquet_files import read_table, write_table
from reasoner.runs.run_dir import FORMAT
from verifiers import Verdict

Steps = Iterator[tuple[int, list[Row]]]


def import_run(system: str, source: Path, run_dir: Path) -> int:
    """Create a run folder from a dump, completely or not at all; returns the number of rollouts.

    A group is the rollouts of one step with the same prompt. An advantage that the dump lacks is the reward minus its
    group's mean. A rollout without a score has the reward 0 and is left out of every mean. ValueError for an unknown
    system, a dump that cannot be read, and a run folder that is not empty.
    """
    if system not in READERS:
        raise ValueError(f"unknown system {system!r}; known are {', '.join(READERS)}")
    if not source.is_dir():
        raise ValueError(f"{source}: there is no such folder")
    if run_dir.exists() and (not run_dir.is_dir() or any(run_dir.iterdir())):
        raise ValueError(f"{run_dir} is in use; choose another name for the run")
    right = _higher_of_two(READERS[system](source))
    run_dir.parent.mkdir(parents=True, exist_ok=True)
    with named_errors(run_dir), _new_folder(run_dir.with_name(f".{run_dir.name}.partial")) as folder:
        partial = folder / "run"
        num_rollouts = _write(READERS[system](source), partial, right)
        if not num_rollouts:
            raise ValueError(f"{source} has no rollouts that {system} dumped")
        config = {"model": "?", "imported": system, "source": readable(source.resolve().name)}
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


def _write(steps: Steps, run_dir: Path, right: float | None) -> int:
    """Write the shards and metrics.jsonl; returns the number of rollouts. `right`: the reward of a correct answer."""
    (run_dir / "rollouts").mkdir(parents=True)
    num_rollouts = 0
    with (run_dir / "metrics.jsonl").open("wb") as metrics:
        for step, rows in steps:
            groups = _groups(step, rows, right)
            with blaming(f"step {step}"):
                table = pa.Table.from_pylist([row for group in groups for row in group], store.SCHEMA)
            write_table(store.shard_path(run_dir, step), table)
            metrics.write(checked_line(_metrics(step, groups)))
            num_rollouts += len(rows)
    return num_rollouts


def _higher_of_two(steps: Steps) -> float | None:
    """The higher of the dump's two rewards; None where it holds fewer or more, or has an accuracy."""
    seen: set[float] = set()
    for _, rows in steps:
        seen |= {row["reward"] for row in rows if row["rewards"]}
        if len(seen) > 2 or any(row["verdict"] for row in rows):
            return None
    return max(seen) if len(seen) == 2 else None


def _groups(step: int, rows: Sequence[Row], right: float | None) -> list[list[Row]]:
    """The step's rows by prompt, in order of first appearance, with group, sample, verdict and advantage filled in."""
    by_prompt: dict[str, list[Row]] = {}
    for row in rows:
        by_prompt.setdefault(row["prompt"], []).append(row)
    groups = []
    for number, group in enumerate(by_prompt.values()):
        mean = fmean([row["reward"] for row in group if row["rewards"]] or [0.0])
        own = []
        for sample, row in enumerate(group):
            is_scored, verdict, layer = bool(row["rewards"]), row["verdict"], row["layer"]
            advantage = row["advantage"] if row["advantage"] is not None else (row["reward"] - mean) * is_scored
            if verdict is None and is_scored and right is not None:
                verdict, layer = Verdict.CORRECT if row["reward"] == right else Verdict.WRONG, "reward"
            place = {"step": step, "group": number, "sample": sample}
            judged = {"verdict": str(verdict or Verdict.REFUSED), "layer": layer}
            own.append(row | place | judged | {"advantage": advantage})
        groups.append(own)
    return groups


def _metrics(step: int, groups: Sequence[Sequence[Row]]) -> dict[str, float]:
    """The metrics (reasoner.runs.metric_names) that follow from the rows; `correct` is a share of the rollouts with
    a verdict.
    """
    rows = [row for group in groups for row in group]
    rewards = [[row["reward"] for row in group if row["rewards"]] for group in groups]
    lengths = [len(row["token_ids"]) for row in rows]
    metrics: dict[str, float] = {"step": step, "well_formed": fmean(row["well_formed"] for row in rows)}
    if any(rewards):
        metrics["reward/mean"] = fmean(reward for group in rewards for reward in group)
        metrics["frac_reward_zero_std"] = fmean(len(set(group)) == 1 for group in rewards if group)
    if judged := [row["verdict"] for row in rows if row["verdict"] != Verdict.REFUSED]:
        metrics["correct"] = judged.count(Verdict.CORRECT) / len(judged)
    if all(lengths):
        metrics["completions/mean_length"] = fmean(lengths)
    return metrics


# ------------------------------------------------------------------------------------------------ readers


def read_trl(source: Path) -> Steps:
    """Read what GRPOTrainer's log_completions wrote, as of TRL 1.16.0: a file per step, a column per reward function.

    The functions' weights are not in it, so the reward is the plain sum. A function may have logged columns of its own
    (TRL's accuracy_reward logs the two that are read here); a number among those is taken for a reward.
    """
    for step, path in number_rows(source, "completions/completions_*.parquet", "completions_*.parquet"):
        with blaming(path):
            records = read_table(path).to_pylist()
        rows = []
        for number, record in enumerate(records, 1):
            with blaming(f"{path}, row {number}"):
                rewards = numbers(record, "step", "advantage")
                answers = {"gold": record.get("solution"), "extracted": record.get("answer_parsed")}
                advantage = number_of(record.get("advantage"))
                texts = record["prompt"], record["completion"]
                rows.append(row_of("trl", *texts, rewards, sum(rewards.values()), **answers, advantage=advantage))
        if rows:
            yield step, rows


def read_verl(source: Path) -> Steps:
    """Read STEP.jsonl of trainer.rollout_data_dir, as of verl 0.9.1: the score and what else its function returned."""
    for step, path in number_rows(source, "*.jsonl"):
        rows = []
        for where, record in records_of(path):
            with blaming(where):
                answers = {"gold": record.get("gts"), "extracted": record.get("pred")}
                accuracy = {"True": True, "False": False}.get(str(record.get("acc")), record.get("acc"))  # numpy's bool
                rewards = numbers(record | {"acc": accuracy}, "step", "gts", "pred")
                rows.append(row_of("verl", record["input"], record["output"], rewards, record["score"], **answers))
        if rows:
            yield step, rows


def read_prime_rl(source: Path) -> Steps:
    """Read the rollouts that prime-rl trained on (all rollouts of a step where it does not say), in any of its layouts.

    monitors/file/traces/stream and annotations   from 0.9.1.dev29, 2026-09; in order of arrival, so held in memory
    rollouts/step_N/train/effective/traces.jsonl  from 2026-07; beside it all/traces.jsonl
    rollouts/step_N/train_rollouts.jsonl          earlier
    A line is an episode with its traces (as of verifiers 0.4.0), or a trace, or a RolloutOutput (up to 0.3.0).
    """
    for folder in (source / "monitors" / "file" / "traces", source / "traces", source):
        if stream := pieces_of(folder, "stream"):
            yield from _shipped(stream, pieces_of(folder, "annotations/orchestrator"))
            return
    for step, folder in number_rows(source, "rollouts/step_*", "run_default/rollouts/step_*", "step_*"):
        names = ("train/effective/traces.jsonl", "train/all/traces.jsonl", "train_rollouts.jsonl")
        path = next((folder / name for name in names if (folder / name).is_file()), None)
        if path is not None and (rows := [row for _, row in _traces([path], {})]):
            yield step, rows


READERS: dict[str, Callable[[Path], Steps]] = {"trl": read_trl, "verl": read_verl, "prime-rl": read_prime_rl}


def _shipped(stream: Sequence[Path], annotations: Sequence[Path]) -> Steps:
    """The rollouts by the step whose batch they were in; where that is not annotated, by the step of their arrival."""
    info_of: dict[str, Row] = {}
    for path in annotations:
        for where, record in records_of(path):
            with blaming(where):
                info_of[record["trace_id"]] = info_of.get(record["trace_id"], {}) | record.get("info", {})
    has_batches = any(info.get("effective") for info in info_of.values())
    steps: dict[int, list[Row]] = {}
    for info, row in _traces(stream, info_of):
        if info.get("effective") or not has_batches:
            steps.setdefault(info["at"], []).append(row)
    yield from sorted(steps.items())


def _traces(paths: Iterable[Path], info_of: Mapping[str, Row]) -> Iterator[tuple[Row, Row]]:
    """(annotations, row) of each rollout that may train the policy. `info_of`: annotations by the trace's id."""
    for path in paths:
        for where, record in records_of(path):
            rows = []
            with blaming(where):
                work = inside(record, "run", "work") or {}
                for trace in record.get("traces", [record]):
                    info = work | trace.get("info", {}) | info_of.get(trace.get("id"), {})
                    info["at"] = int(inside(info.get("ship") or info.get("arrival") or work, "step") or 0)
                    is_train = (info.get("kind") or work.get("type") or "train") == "train"
                    if is_train and inside(trace, "agent", "trainable") is not False:
                        rows.append((info, _trace(trace, info) if "nodes" in trace else _output(trace)))
            yield from rows


def _trace(trace: Row, info: Row) -> Row:
    """The last branch of a trace's graph of messages as a row. Its `token_ids` are the sampled tokens alone."""
    nodes = trace["nodes"]
    branch: list[Row] = nodes[-1:]
    while branch and branch[0].get("parent") is not None and len(branch) < len(nodes):
        branch.insert(0, nodes[branch[0]["parent"]])
    first = next((place for place, node in enumerate(branch) if node.get("sampled")), len(branch))
    messages = [node["message"] for node in branch]
    tokens = [pair for node in branch for pair in zip(node.get("token_ids", ()), node.get("mask", ()), strict=True)]
    start = next((place for place, (_, is_sampled) in enumerate(tokens) if is_sampled), len(tokens))
    sampled = array("i", [token for token, is_sampled in tokens if is_sampled])
    logprobs = array("f", [logprob for node in branch for logprob in node.get("logprobs", ())])
    task = inside(trace, "task", "data") or trace.get("task") or {}
    parts = {name: part if isinstance(part, dict) else {"score": part} for name, part in trace["rewards"].items()}
    scores = {name: part["score"] for name, part in parts.items() if part["score"] is not None}
    finish = next((call.get("finish_reason") for call in reversed(trace.get("calls", [])) if not call.get("error")), "")
    versions = (inside(info, "policy", "start"), info.get("policy_version"), trace.get("policy_version"))
    return row_of(
        "prime-rl",
        messages[:first] or task.get("prompt"),
        messages[first:],
        numbers(scores),
        sum(score * parts[name].get("weight", 1.0) for name, score in scores.items()),
        metrics=numbers(trace.get("metrics", {})),
        gold=task.get("answer"),
        advantage=number_of(info.get("advantage")),
        prompt_token_ids=array("i", [token for token, _ in tokens[:start]]),
        token_ids=sampled,
        logprobs=logprobs if len(logprobs) == len(sampled) else [],
        finish=finish if finish in ("stop", "length") else None,
        policy_version=next((version for version in versions if version is not None), None),
    )


def _output(record: Row) -> Row:
    """A RolloutOutput as a row: the parts of its reward are among its metrics."""
    rewards = numbers({"reward": record["reward"]} | (record.get("metrics") or {}))
    known = {"gold": record.get("answer"), "finish": "length" if record.get("is_truncated") else None}
    return row_of("prime-rl", record["prompt"], record["completion"], rewards, record["reward"], metrics=None, **known)
