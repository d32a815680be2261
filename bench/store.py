"""How fast rollouts are read and asked for: `python bench/store.py --rollouts 1000000 --folder runs/big`.

Rollouts of about 2,000 characters, 1,024 a step: every step has those of the first one under its own number and
problems. Tables in Markdown. The folder is made once; `--folder` of an earlier call skips the writing.
"""

from __future__ import annotations

import argparse
import random
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pyarrow as pa

from reasoner.runs import rollouts as store
from reasoner.runs.filters import Filter
from reasoner.runs.json_files import append_line
from reasoner.runs.metric_names import METRICS, TIMES
from reasoner.runs.parquet_files import write_table
from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.run_start import open_run

STEP = 1024
GROUP = 8
_SUBJECTS = ("sums", "products", "words", "equations", "countdown")
_WORDS = (  # noqa: SIM905
    "we add the first number and then carry one over so that is what was asked check again because half of them were "
    "sold before noon each box holds twelve pencils therefore total cost becomes answer multiply both sides by seven"
).split()
_CUES = ("Wait, let me check that again. ", "That's an aha moment I can flag here. ", "I made a mistake. ")


def completion(draw: random.Random) -> str:
    """About 2,000 characters; one in twenty has a phrase worth looking for."""
    sentences = []
    length = 0
    while length < 1900:
        words = " ".join(draw.choices(_WORDS, k=draw.randint(6, 14)))
        sentence = f"{words} {draw.randint(1, 99_999)} + {draw.randint(1, 99_999)} = {draw.randint(1, 199_998)}. "
        sentences.append(sentence)
        length += len(sentence)
    if draw.random() < 0.05:
        sentences.insert(draw.randrange(len(sentences)), draw.choice(_CUES))
    return f"<think>{''.join(sentences)}</think> <answer> {draw.randint(0, 999)} </answer>"


def problem_of(step: int, group: int) -> int:
    """The number of a group's problem; each of 8,000 comes again after 62 steps."""
    return (step * (STEP // GROUP) + group) % 8_000


def first_rows() -> list[dict[str, object]]:
    """The rollouts of the first step."""
    draw = random.Random(0)
    rows: list[dict[str, object]] = []
    for number in range(STEP):
        group, sample = divmod(number, GROUP)
        num_tokens, right = draw.randint(200, 700), draw.random() < 0.1
        rows.append({
            "step": 0, "group": group, "sample": sample, "problem_id": f"bench/{group}",
            "question": f"What is {group} + {group}?", "gold": str(2 * group), "source": "bench",
            "subject": _SUBJECTS[group % len(_SUBJECTS)], "level": group % 3 + 1, "completion": completion(draw),
            "token_ids": list(range(num_tokens)), "tokens": num_tokens,
            "finish": "stop" if draw.random() < 0.97 else "length", "verdict": "correct" if right else "wrong",
            "well_formed": True, "extracted": "12", "reward": 1.0 * right, "rewards": [("correct", 1.0 * right)],
            "advantage": 0.5 if right else -0.5,
        })  # fmt: skip
    return rows


def write(folder: Path, rollouts: int) -> None:
    """A run with so many rollouts."""
    steps = -(-rollouts // STEP)
    open_run(folder, {"model": "bench", "steps": steps}, {}, resuming=False)
    table = pa.Table.from_pylist(first_rows(), store.SCHEMA)
    for step in range(steps):
        columns = {
            "step": pa.array([step] * STEP, pa.int32()),
            "problem_id": pa.array([f"bench/{problem_of(step, number // GROUP)}" for number in range(STEP)]),
        }
        for name, column in columns.items():
            table = table.set_column(table.schema.get_field_index(name), store.SCHEMA.field(name), column)
        rows = table.slice(0, min(STEP, rollouts - step * STEP))
        write_table(store.shard_path(folder, step), rows)
        append_line(folder / "metrics.jsonl", dict.fromkeys(METRICS, 0.1234567890123456) | {"step": step})
        append_line(folder / "times.jsonl", dict.fromkeys(TIMES, 60.123456789) | {"step": step})


def questions(table: RolloutTable, draw: random.Random) -> dict[str, Callable[[], object]]:
    """What the dashboard asks, each with other values every time."""
    last = table.count() // STEP

    def detail() -> object:
        return table.rollout(table.page(offset=draw.randrange(table.count()), limit=1)[0].id)

    def filtered() -> object:
        first = draw.randrange(max(1, last - 50))
        return table.page(Filter(step=(first, first + 50), correct=False, tokens=(500, None)), limit=50)

    return {
        "first page": lambda: table.page(limit=50),
        "page: 50 steps, wrong, 500 tokens or more": filtered,
        "page: a subject, a level, cut off, anywhere": lambda: table.page(
            Filter(subject=draw.choice(_SUBJECTS), level=draw.randint(1, 3), finish="length"), limit=50
        ),
        "page: longest first": lambda: table.page(order="-tokens", offset=draw.randrange(1000), limit=50),
        'phrase "aha moment", page, again': lambda: table.page(Filter(text='"aha moment"'), limit=50),
        "a number that was not searched before": lambda: table.count(Filter(text=f"{draw.randrange(10**6)}")),
        "one rollout with its text": detail,
        "a problem across steps": lambda: table.page(Filter(problem=f"bench/{draw.randrange(8_000)}"), limit=200),
        "figures of all steps": lambda: table.steps,
    }


def timed(ask: Callable[[], object], *, times: int) -> list[float]:
    """Milliseconds of each call."""
    spent = []
    for _ in range(times):
        began = time.perf_counter()
        ask()
        spent.append(1000 * (time.perf_counter() - began))
    return spent


def main() -> None:
    from tables import table  # beside this script; a test imports it as a module of bench

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rollouts", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--times", type=int, default=21)
    args = parser.parse_args()
    if not args.folder.exists():
        write(args.folder, args.rollouts)
    began = time.perf_counter()
    rollouts = RolloutTable(args.folder)
    reading = time.perf_counter() - began
    size = sum(path.stat().st_size for path in (args.folder / "rollouts").iterdir())
    calls = {name: timed(ask, times=args.times) for name, ask in questions(rollouts, random.Random(0)).items()}
    rows = [
        [f"narrow columns of {rollouts.count():,} rollouts read", f"{reading:.2f} s"],
        ["shards", f"{size / 1e6:,.0f} MB"],
        ["largest memory of the process", f"{peak_mib():,.0f} MiB"],
    ]
    print(table(["what", "value"], rows))
    rows = [[name, f"{statistics.median(spent):.1f}", f"{max(spent):.1f}"] for name, spent in calls.items()]
    print(table([f"asked {args.times} times", "median ms", "largest ms"], rows), end="")


def peak_mib() -> float:
    """The largest memory that this process has had, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB; bytes on macOS
    return peak / 2**10 if sys.platform == "linux" else peak / 2**20


if __name__ == "__main__":
    main()
