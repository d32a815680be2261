"""How fast rollouts are written, indexed and asked for: `python bench/store.py --rollouts 1000000 --folder big`.

Rollouts of about 2,000 characters, 1,024 a step, of sentences drawn anew for each; tables in Markdown. The folder
is made once and used again; `--folder` of an earlier call skips the writing.
"""

from __future__ import annotations

import argparse
import random
import statistics
import time
from collections.abc import Callable
from pathlib import Path

from reasoner.runs import rollouts as store
from reasoner.runs.index import Filter, RolloutIndex

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


def rows_of(step: int, *, count: int = STEP) -> list[dict[str, object]]:
    draw = random.Random(step)
    rows: list[dict[str, object]] = []
    for number in range(count):
        group, sample = divmod(number, GROUP)
        problem = (step * (STEP // GROUP) + group) % 8_000
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
    store.open_run(folder, {"model": "bench", "steps": rollouts // STEP}, {}, resuming=False)
    spent = 0.0
    for step in range(-(-rollouts // STEP)):
        rows = rows_of(step, count=min(STEP, rollouts - step * STEP))
        began = time.perf_counter()
        store.write_shard(store.shard_path(folder, step), rows)
        spent += time.perf_counter() - began
    return rollouts / spent


def questions(index: RolloutIndex, draw: random.Random) -> dict[str, Callable[[], object]]:
    """What the dashboard asks, each with other values every time."""
    last = index.count() // STEP

    def low() -> int:
        return draw.randrange(max(1, last - 50))

    def detail() -> object:
        return index.rollout(index.page(offset=draw.randrange(index.count()), limit=1)[0].id)

    def filtered() -> object:
        first = low()
        return index.page(Filter(first_step=first, last_step=first + 50, correct=False, least_tokens=500), limit=50)

    return {
        "first page": lambda: index.page(limit=50),
        "page: 50 steps, wrong, 500 tokens or more": filtered,
        "page: a subject, a level, cut off, anywhere": lambda: index.page(
            Filter(subject=draw.choice(_SUBJECTS), level=draw.randint(1, 3), finish="length"), limit=50
        ),
        "page: longest first": lambda: index.page(order="-tokens", offset=draw.randrange(1000), limit=50),
        'phrase "aha moment", page': lambda: index.page(Filter(text='"aha moment"'), limit=50),
        'phrase "aha moment", count': lambda: index.count(Filter(text='"aha moment"')),
        "two words and a step range, page": lambda: index.page(
            Filter(text="mistake carry", first_step=low()), limit=50
        ),
        "jump to a row": lambda: index.page(offset=draw.randrange(index.count()), limit=50),
        "one rollout with its text": detail,
        "a problem across steps": lambda: index.page(Filter(problem=f"bench/{draw.randrange(8_000)}"), limit=200),
        "figures of all steps": lambda: index.rows("SELECT * FROM steps ORDER BY step"),
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
    args = parser.parse_args()

    print("| what | value |\n|---|---:|")
    if not args.folder.exists():
        print(f"| written | {write(args.folder, args.rollouts):,.0f} rollouts/s |")
    with_index = args.folder / "index.sqlite"
    with_index.unlink(missing_ok=True)
    index = RolloutIndex(args.folder)
    began = time.perf_counter()
    added = index.refresh()
    print(f"| indexed, {added:,} rollouts | {added / (time.perf_counter() - began):,.0f} rollouts/s |")
    size = sum(path.stat().st_size for path in (args.folder / "rollouts").iterdir())
    print(f"| shards, index | {size / 1e6:,.0f} MB, {with_index.stat().st_size / 1e6:,.0f} MB |")
    print(f"\n| asked {args.times} times | median ms | largest ms |\n|---|---:|---:|")
    for name, ask in questions(index, random.Random(0)).items():
        spent = timed(ask, times=args.times)
        print(f"| {name} | {statistics.median(spent):.1f} | {max(spent):.1f} |")


if __name__ == "__main__":
    main()
