"""How fast rollouts are written, read and asked for: `python bench/store.py --rollouts 1000000 --folder runs/big`.

Rollouts of about 2,000 characters, 1,024 a step, of sentences drawn anew for each, or with `--copies` those of the
first step under the numbers and problems of every step, which is quicker: `--rollouts 5000000 --copies`. Tables in
Markdown. The folder is made once and used again; `--folder` of an earlier call skips the writing.
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


def rows_of(step: int, *, count: int = STEP) -> list[dict[str, object]]:
    draw = random.Random(step)
    rows: list[dict[str, object]] = []
    for number in range(count):
        group, sample = divmod(number, GROUP)
        problem = problem_of(step, group)
        text = completion(draw)
        right = draw.random() < min(0.9, 0.1 + step / 1000)
        row = {
            "step": step,
            "group": group,
            "sample": sample,
            "problem_id": f"bench/{problem}",
            "question": f"What is {problem} + {problem}?",
            "gold": str(2 * problem),
            "source": "bench",
            "subject": _SUBJECTS[problem % len(_SUBJECTS)],
            "level": problem % 3 + 1,
            "completion": text,
            "token_ids": list(range(num := draw.randint(200, 700))),
            "tokens": num,
            "finish": "stop" if draw.random() < 0.97 else "length",
            "verdict": "correct" if right else "wrong",
            "well_formed": True,
            "extracted": "12",
            "reward": 1.0 * right,
            "rewards": [("correct", 1.0 * right)],
            "advantage": 0.5 if right else -0.5,
        }
        rows.append(row)
    return rows


def write(folder: Path, rollouts: int) -> float:
    """Rollouts a second, the making of the rows not counted."""
    open_run(folder, {"model": "bench", "steps": rollouts // STEP}, {}, resuming=False)
    spent = 0.0
    for step in range(-(-rollouts // STEP)):
        rows = rows_of(step, count=min(STEP, rollouts - step * STEP))
        began = time.perf_counter()
        store.write_shard(store.shard_path(folder, step), rows)
        spent += time.perf_counter() - began
        write_metrics(folder, step)
    return rollouts / spent


def write_copies(folder: Path, rollouts: int) -> float:
    """Rollouts a second; every step has the rows of the first, with its own number and problems."""
    steps = -(-rollouts // STEP)
    open_run(folder, {"model": "bench", "steps": steps}, {}, resuming=False)
    table = pa.Table.from_pylist(rows_of(0), store.SCHEMA)
    began = time.perf_counter()
    for step in range(steps):
        columns = {
            "step": pa.array([step] * STEP, pa.int32()),
            "problem_id": pa.array([f"bench/{problem_of(step, number // GROUP)}" for number in range(STEP)]),
        }
        for name, column in columns.items():
            table = table.set_column(table.schema.get_field_index(name), store.SCHEMA.field(name), column)
        rows = table.slice(0, min(STEP, rollouts - step * STEP))
        write_table(store.shard_path(folder, step), rows)
        write_metrics(folder, step)
    return rollouts / (time.perf_counter() - began)


def write_metrics(folder: Path, step: int) -> None:
    """A line of metrics.jsonl and of times.jsonl."""
    append_line(folder / "metrics.jsonl", dict.fromkeys(METRICS, 0.1234567890123456) | {"step": step})
    append_line(folder / "times.jsonl", dict.fromkeys(TIMES, 60.123456789) | {"step": step})


def questions(table: RolloutTable, draw: random.Random) -> dict[str, Callable[[], object]]:
    """What the dashboard asks, each with other values every time."""
    last = table.count() // STEP

    def low() -> int:
        return draw.randrange(max(1, last - 50))

    def detail() -> object:
        return table.rollout(table.page(offset=draw.randrange(table.count()), limit=1)[0].id)

    def filtered() -> object:
        first = low()
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
        "two words and a step range, page": lambda: table.page(
            Filter(text="mistake carry", step=(low(), None)), limit=50
        ),
        "jump to a row": lambda: table.page(offset=draw.randrange(table.count()), limit=50),
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rollouts", type=int, default=100_000)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--times", type=int, default=21)
    parser.add_argument("--copies", action="store_true", help="write copies of the first step's rollouts")
    args = parser.parse_args()

    print("| what | value |\n|---|---:|")
    if not args.folder.exists():
        written = (write_copies if args.copies else write)(args.folder, args.rollouts)
        print(f"| written | {written:,.0f} rollouts/s |")
    began = time.perf_counter()
    table = RolloutTable(args.folder)
    print(f"| narrow columns of {table.count():,} rollouts read | {time.perf_counter() - began:.2f} s |")
    size = sum(path.stat().st_size for path in (args.folder / "rollouts").iterdir())
    print(f"| shards | {size / 1e6:,.0f} MB |")
    print(f"| largest memory of the process | {peak_mib():,.0f} MiB |")
    print(f"\n| asked {args.times} times | median ms | largest ms |\n|---|---:|---:|")
    for name, ask in questions(table, random.Random(0)).items():
        report(name, timed(ask, times=args.times))
    print(f"\nlargest memory of the process: {peak_mib():,.0f} MiB")


def report(name: str, spent: list[float]) -> None:
    """Print a line of a table: median and largest of milliseconds."""
    print(f"| {name} | {statistics.median(spent):.1f} | {max(spent):.1f} |", flush=True)


def peak_mib() -> float:
    """The largest memory that this process has had, in MiB."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # KiB; bytes on macOS
    return peak / 2**10 if sys.platform == "linux" else peak / 2**20


if __name__ == "__main__":
    main()
