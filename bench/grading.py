"""Our grader beside math-verify, one process each, the same pairs: `python bench/grading.py [FILE.jsonl ...]`.

Without files: answers like GSM8K's and AIME's, made here. A file holds JSON lines with `answer` (the gold), as the
problem sets do; each gold is graded against itself in another spelling and against the gold of its neighbour. The last
line compares two worker processes with one.

`python bench/grading.py --tables [KIND ...]` grades the tables of tests/verifiers/tables instead: for each kind, how
many pairs each grader decides as the table does, and how many wrong answers it accepts. math-verify has both sides
boxed, which is its best configuration there, and is asked in its documented order (gold, answer) and in the other.
`--every N` takes every N-th pair of each table only.

`python bench/grading.py --last-lines [FOLDER]` grades the last line of the graded solutions in ../shared/graded_outputs
against the solution's own final answer ("A: 12" or the last box): how many are accepted, how many have it as their last
number, and the lines of which the rule of prose states another value.
"""

from __future__ import annotations

import json
import logging
import re
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

from math_verify import parse, verify
from math_verify.errors import TimeoutException

from data import Problem
from data.boxes import final_boxes
from data.gold_answers import final_answer
from verifiers import VerifierPool
from verifiers.answer_text import texts_of
from verifiers.answers.evaluation import is_zero
from verifiers.answers.last_number import last_number
from verifiers.answers.rationals import rational
from verifiers.answers.reading import read
from verifiers.answers.tree import names
from verifiers.equivalence import judge
from verifiers.normalise import canonical
from verifiers.numbers import numeral
from verifiers.peer import in_box
from verifiers.questions import read_question
from verifiers.symbolic import expression

Pairs = list[tuple[str, str]]  # prediction, gold
ROUNDS = 3
TABLES = Path(__file__).parents[1] / "tests" / "verifiers" / "tables"
GRADED = Path(__file__).parents[2] / "shared" / "graded_outputs"
TABLE_SECONDS = 5  # math-verify's own limit for a parse and for a comparison; ours has it for a pair
CACHES = (canonical, numeral, expression, read, rational, is_zero, names)


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
    return sum(
        verify(
            parse(in_box(gold), parsing_timeout=None),
            parse(in_box(prediction), parsing_timeout=None),
            timeout_seconds=None,
        )
        for prediction, gold in pairs
    )


def rate(run: Callable[[Pairs], int], pairs: Pairs) -> tuple[float, int]:
    """Pairs a second of processor time, the best of some rounds (3,000 pairs at least) after one to warm up; how many
    it calls right.
    """
    right = run(pairs)
    best = 0.0
    for _ in range(max(ROUNDS, 3000 // len(pairs))):
        for cached in CACHES:
            cached.cache_clear()  # every answer is new to us
        began = time.process_time()
        run(pairs)
        best = max(best, len(pairs) / (time.process_time() - began))
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


def both_orders(prediction: str, gold: str) -> tuple[bool, bool]:
    """math-verify's verdicts with (gold, answer) and with (answer, gold); what raises is a refusal."""

    def compare(first: list, second: list) -> bool:
        try:
            return verify(first, second, timeout_seconds=TABLE_SECONDS)
        except (TimeoutException, Exception):  # its time limit is no Exception
            return False

    try:
        of_gold, of_answer = (parse(in_box(text), parsing_timeout=TABLE_SECONDS) for text in (gold, prediction))
    except (TimeoutException, Exception):
        return False, False
    return compare(of_gold, of_answer), compare(of_answer, of_gold)


def tables(kinds: list[str], *, every: int = 1) -> None:
    """Print for each kind of answer, and for all: pairs decided as the table does (wrong answers accepted)."""
    logging.disable(logging.CRITICAL)  # math-verify logs each refusal
    names = kinds or sorted(path.stem for path in TABLES.glob("*.jsonl"))
    total = [0] * 7
    print("| kind | pairs | ours | math-verify (gold, answer) | math-verify (answer, gold) |")
    print("|---|---:|---:|---:|---:|")
    with VerifierPool(workers=1, seconds=TABLE_SECONDS, preload=True) as pool:
        for name in names:
            lines = (TABLES / f"{name}.jsonl").read_text("utf-8").splitlines()[::every]
            rows = [json.loads(line) for line in lines]
            pairs = [(row["answer"], row["gold"]) for row in rows]
            peer = [both_orders(*pair) for pair in pairs]
            questions = [read_question(row.get("question", "")) for row in rows]
            verdicts_of_ours = [bool(judgement) for judgement in pool.judge(pairs, questions=questions)]
            columns = [verdicts_of_ours, *map(list, zip(*peer, strict=True))]
            counts = [len(rows)]
            for column in columns:
                verdicts = list(zip(column, (row["correct"] for row in rows), strict=True))
                counts += [sum(said == right for said, right in verdicts), sum(s and not r for s, r in verdicts)]
            total = [a + b for a, b in zip(total, counts, strict=True)]
            _print_kind(name, counts)
    _print_kind("all", total)


def _print_kind(name: str, counts: list[int]) -> None:
    number, *rest = counts
    cells = [f"{right / number:.1%} ({accepted})" for right, accepted in zip(rest[::2], rest[1::2], strict=True)]
    print(f"| {name} | {number} | {' | '.join(cells)} |", flush=True)


def last_lines(folder: Path) -> Pairs:
    """The last line before "A: 12", or with the last box, and the final answer of each solution."""
    pairs: Pairs = []
    for line in (folder / "gsm8k_gpt3_solutions.jsonl").read_text("utf-8").splitlines():
        response = re.sub(r"<<.*?>>", "", json.loads(line)["response"])  # the calculator's notes
        *lines, final = [part for part in response.split("\n") if part.strip()] or [""]
        if lines and final.startswith("A: "):
            pairs.append((lines[-1], final.removeprefix("A: ")))
    for line in (folder / "qwen25math_math100x8.jsonl").read_text("utf-8").splitlines():
        for response in json.loads(line)["responses"]:
            lines = [part for part in response.split("\n") if part.strip()]
            pairs.append((lines[-1], final_boxes(response) or ""))
    return pairs


def sentences(folder: Path) -> None:
    """Print how many last lines are accepted, and those whose stated value is not the final answer."""
    pairs = last_lines(folder)
    accepted = [bool(judge(line, final)) for line, final in pairs]
    last = sum(bool(judge(last_number(line) or "", final)) for line, final in pairs)
    refused = [pair for pair, is_right in zip(pairs, accepted, strict=True) if not is_right]
    others = [(value, line, final) for line, final in refused if (value := texts_of(line)[1]) != line]
    print(f"{len(pairs)} last lines: {sum(accepted)} accepted, {last} by their last number")
    print(f"{len(others)} state another value:")
    for value, line, final in others:
        print(f"{value!r}, not {final!r}: {line!r}")


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
    if "--last-lines" in sys.argv:
        folder = Path(sys.argv[2]) if len(sys.argv) > 2 else GRADED
        sentences(folder) if folder.is_dir() else print(f"{folder} is not there")
    elif "--tables" in sys.argv:
        arguments = [argument for argument in sys.argv[1:] if argument != "--tables"]
        place = arguments.index("--every") if "--every" in arguments else len(arguments)
        tables(arguments[:place] + arguments[place + 2 :], every=int((arguments[place + 1 :] or ["1"])[0]))
    else:
        main([Path(argument) for argument in sys.argv[1:]])
