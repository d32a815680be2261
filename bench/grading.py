"""Our grader beside math-verify, one process each, the same pairs: `python bench/grading.py [FILE.jsonl ...]`.

Without files: answers like GSM8K's and AIME's, made here. A file holds JSON lines with `answer` (the gold), as the
problem sets do; each gold is graded against itself in another spelling and against the gold of its neighbour. The last
line compares two worker processes with one.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from math_verify import parse, verify

from data import Problem
from data.answer_key import final_answer
from verifiers import VerifierPool
from verifiers.answers.evaluation import is_zero
from verifiers.answers.rationals import rational
from verifiers.answers.statements import read
from verifiers.answers.tree import names
from verifiers.equivalence import judge
from verifiers.normalise import canonical, key
from verifiers.numbers import numeral
from verifiers.symbolic import expression

Pairs = list[tuple[str, str]]  # prediction, gold
ROUNDS = 3
CACHES = (canonical, key, numeral, expression, read, rational, is_zero, names)


def integers(low: int, high: int, number: int, seed: int) -> Pairs:
    """Half right, half off by one; a third each plain, boxed, and with dollars or separators."""
    rng = Random(seed)
    pairs: Pairs = []
    for _ in range(number):
        gold = rng.randint(low, high)
        said = gold + rng.choice((0, 1))
        dress = rng.choice(("{}", r"\boxed{{{}}}", "${}$"))
        pairs.append((dress.format(f"{said:,}" if rng.random() < 0.3 else said), str(gold)))
    return pairs


def from_file(path: Path, limit: int = 500) -> Pairs:
    golds = [final_answer(str(json.loads(line)["answer"])) for line in path.read_text().splitlines()[:limit]]
    kept = [gold for gold in golds if gold]
    pairs: Pairs = []
    for gold, neighbour in zip(kept, kept[1:] + kept[:1], strict=True):  # a gold's answers together, as in training
        pairs += [(rf"$\boxed{{{gold}}}$".replace("frac", "dfrac"), gold), (neighbour, gold)]
    return pairs


def ours(pairs: Pairs) -> int:
    return sum(bool(judge(prediction, gold)) for prediction, gold in pairs)


def theirs(pairs: Pairs) -> int:
    def boxed(text: str) -> str:
        return text if "boxed" in text else rf"\boxed{{{text}}}"

    return sum(
        verify(
            parse(boxed(gold), parsing_timeout=None),
            parse(boxed(prediction), parsing_timeout=None),
            timeout_seconds=None,
        )
        for prediction, gold in pairs
    )


def rate(run: Callable[[Pairs], int], pairs: Pairs) -> tuple[float, int]:
    """Pairs a second, the best of some rounds (3,000 pairs at least) after one to warm up; how many it calls right."""
    right = run(pairs)
    best = 0.0
    for _ in range(max(ROUNDS, 3000 // len(pairs))):
        for cached in CACHES:
            cached.cache_clear()  # every answer is new to us
        began = time.perf_counter()
        run(pairs)
        best = max(best, len(pairs) / (time.perf_counter() - began))
    return best, right


def pooled(pairs: Pairs, workers: int) -> float:
    """Responses a second through that many worker processes: of the second half, when each has graded the first.

    (A parser of LaTeX learns: its first few hundred expressions take longer, in every process.)
    """
    items = [
        (f"<think>a</think><answer>{prediction}</answer>", Problem("", "", gold, "", "")) for prediction, gold in pairs
    ]
    first, second = items[: len(items) // 2], items[len(items) // 2 :]
    best = 0.0
    for _ in range(ROUNDS):
        with VerifierPool(workers=workers, seconds=10, preload=True) as pool:
            time.sleep(5)  # until all of them are ready
            for item in first:
                pool.score([item] * workers)
            began = time.perf_counter()
            pool.score(second)
            best = max(best, len(second) / (time.perf_counter() - began))
    return best


def main(paths: list[Path]) -> None:
    sets = {"GSM8K-like": integers(1, 5000, 1000, 0), "AIME-like": integers(0, 999, 1000, 1)}
    sets |= {path.stem: from_file(path) for path in paths}
    print("| answers | pairs | ours a second (right) | math-verify a second (right) | ratio |")
    print("|---|---:|---:|---:|---:|")
    for name, pairs in sets.items():
        (mine, my_right), (other, other_right) = rate(ours, pairs), rate(theirs, pairs)
        print(
            f"| {name} | {len(pairs)} | {mine:,.0f} ({my_right}) | {other:,.0f} ({other_right}) | {mine / other:.1f} |",
            flush=True,
        )
    hardest = list(sets.values())[-1]
    one, two = pooled(hardest, 1), pooled(hardest, 2)
    print(f"\nworkers: 1 grades {one:,.0f} responses a second, 2 grade {two:,.0f}: {two / one:.2f} times")


if __name__ == "__main__":
    main([Path(argument) for argument in sys.argv[1:]])
