"""Fuzzed pairs through the grader's layers without algebra: `python -m bench.fuzz --pairs 1000000 --processes 2`.

A pair is a function of --seed and its number. Three in five are mutations of the pairs of tests/verifiers/tables, the
others strings of a random grammar of answers, the same value in two spellings, and random pieces of LaTeX. Counted and
printed with the offending pair: exceptions, pairs of over half a second of processor time, and pairs that are correct
in one order and wrong in the other though both sides are values of one type. `--first N` continues at pair N. The exit
status is 1 where there was an exception or a slow pair.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import signal
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, partial
from pathlib import Path
from random import Random
from time import process_time

from tests.verifiers.test_fuzz import mutated, soup
from verifiers.answers.layer import read
from verifiers.equivalence import judge
from verifiers.maths import UndecidedError, answer_part, without_algebra
from verifiers.score import Verdict

TABLES = Path(__file__).parents[1] / "tests" / "verifiers" / "tables"
SLOW_SECONDS = 0.5  # of processor time for a pair
HANG_SECONDS = 5.0  # after which a pair is given up
CHUNK = 1_000  # pairs of a task

Pair = tuple[str, str]  # gold, answer


class HangError(BaseException):
    """A pair took over HANG_SECONDS of processor time. No Exception: nothing in the grader may catch it."""


@dataclass
class Findings:
    """What a task, or all of them, found. Offenders are (number of the pair, gold, answer, what happened)."""

    num_pairs: int = 0
    verdicts: Counter[str] = field(default_factory=Counter)
    offenders: dict[str, list[tuple[int, str, str, str]]] = field(default_factory=dict)
    slowest: float = 0.0

    def add(self, kind: str, number: int, pair: Pair, what: str) -> None:
        self.offenders.setdefault(kind, []).append((number, *pair, what))


# ---------------------------------------------------------------------------------------------- pairs


@cache
def rows(hostile: bool) -> list[Pair]:
    paths = [path for path in sorted(TABLES.glob("*.jsonl")) if (path.stem == "hostile") is hostile]
    table = [json.loads(line) for path in paths for line in path.read_text("utf-8").splitlines()]
    return [(row["gold"], row["answer"]) for row in table]


def mutated_row(rng: Random, *, hostile: bool = False) -> Pair:
    gold, answer = rng.choice(rows(hostile))
    if rng.random() < 0.1:
        answer = rng.choice(rows(hostile))[1]
    return (mutated(gold, rng) if rng.random() < 0.3 else gold), mutated(answer[:1500], rng)


def number(rng: Random) -> str:
    forms = (
        lambda: str(rng.randint(-20, 200)), lambda: f"{rng.randint(0, 99)}.{rng.randint(0, 999)}",
        lambda: rf"\frac{{{rng.randint(-9, 9)}}}{{{rng.randint(0, 12)}}}",
        lambda: f"{rng.randint(1, 9)}/{rng.randint(0, 9)}",
        lambda: f"{rng.randint(0, 9)}e{rng.randint(-9, 9)}", lambda: f"0.{rng.randint(0, 9)}({rng.randint(0, 99)})",
        lambda: f"{rng.randint(1, 9)},{rng.randint(100, 999)}",
        lambda: str(10 ** rng.randint(10, 60) + rng.randint(-1, 1)),
    )  # fmt: skip
    return rng.choice(forms[:1] * 6 + forms)()


def expression(rng: Random, depth: int = 3) -> str:
    """A random expression with letters x, n, k and a, nested `depth` deep at most."""
    if depth == 0 or rng.random() < 0.25:
        return rng.choice((number(rng), number(rng), number(rng), r"\pi", "e", "i", "x", "n", "k", "a", r"\infty"))
    a, b = (partial(expression, rng, depth - 1) for _ in range(2))
    forms: tuple[Callable[[], str], ...] = (
        lambda: f"{a()} + {b()}", lambda: f"{a()} - {b()}", lambda: rf"{a()} \cdot {b()}", lambda: f"({a()})({b()})",
        lambda: rf"\frac{{{a()}}}{{{b()}}}", lambda: rf"\sqrt{{{a()}}}",
        lambda: rf"\sqrt[{rng.randint(2, 7)}]{{{a()}}}",
        lambda: f"({a()})^{{{rng.randint(-9, 40)}}}", lambda: f"{rng.randint(2, 9)}^{{{b()}}}", lambda: f"-{a()}",
        lambda: rf"\{rng.choice(('sin', 'cos', 'tan', 'arctan', 'ln', 'log', 'exp', 'arcsin', 'cosh'))}({a()})",
        lambda: rf"|{a()}|", lambda: f"{rng.randint(0, 60)}!",
        lambda: rf"\binom{{{rng.randint(0, 40)}}}{{{rng.randint(0, 20)}}}",
        lambda: rf"{rng.randint(0, 720)}^\circ", lambda: rf"\pm {a()}", lambda: rf"\log_{{{rng.randint(1, 9)}}} {a()}",
        lambda: rf"\lfloor {a()} \rfloor", lambda: rf"\sum_{{k=1}}^{{{rng.choice(('n', '10', '99'))}}} {b()}",
    )  # fmt: skip
    return rng.choice(forms)()


def statement(rng: Random) -> str:
    """A random answer: sets, families, lists, structures, relations, amounts, and expressions."""
    e = partial(expression, rng, 2)
    ends = partial(rng.choice, "([")
    forms: tuple[Callable[[], str], ...] = (
        e, partial(expression, rng, 4), lambda: ", ".join(e() for _ in range(rng.randint(2, 5))),
        lambda: rf"{ends()}{e()}, {e()}{rng.choice(')]')}", lambda: rf"({e()}, {e()}) \cup [{e()}, \infty)",
        lambda: rf"\{{{e()}, {e()}, {e()}\}}", lambda: rf"\{{x : {e()} < x \le {e()}\}}", lambda: f"{e()} < x < {e()}",
        lambda: rf"x = {e()} + {e()}k, k \in \mathbb{{Z}}", lambda: rf"x \ne {e()}",
        lambda: f"|x - {number(rng)}| < {e()}",
        lambda: rf"x \equiv {number(rng)} \pmod{{{number(rng)}}}", lambda: f"x = {e()}, y = {e()}",
        lambda: f"f(x) = {e()}",
        lambda: f"{expression(rng, 3)} = {e()}", lambda: f"{number(rng)}:{number(rng)}", lambda: rf"{e()} \text{{ cm}}",
        lambda: rf"{number(rng)} {rng.choice(('km/h', 'hours', 'm^2', 'dollars', '%', 'degrees', 'apples'))}",
        lambda: rf"\begin{{pmatrix}} {e()} & {e()} \\ {e()} & {e()} \end{{pmatrix}}", lambda: f"({e()}, {e()}, {e()})",
        lambda: rf"\begin{{cases}} {e()} & x < {number(rng)} \\ {e()} & x \ge {number(rng)} \end{{cases}}",
        lambda: rf"\mathbb{{R}} \setminus \{{{e()}, {e()}\}}", lambda: f"all real numbers except {e()}",
        lambda: f"({rng.choice('ABCDE')}) {e()}", lambda: f"{rng.randint(0, 200)}_{rng.randint(2, 16)}",
        lambda: rf"({e()}, {e()}) + t({e()}, {e()}), t \in \mathbb{{R}}",
        lambda: f"{e()} if n is even, {e()} if n is odd",
        lambda: f"{e()} or {e()}", lambda: f"multiples of {number(rng)}", lambda: f"So we get a total of {e()} ways",
    )  # fmt: skip
    return rng.choice(forms)()


SPELLINGS = (
    (r"\frac", r"\dfrac"), (" ", ""), (" ", r"\ "), (r"\cdot", r"\times"), ("(", r"\left("), (")", r"\right)"),
    (r"\pi", "π"), (r"\infty", "∞"), ("-", "−"), (r"\le", "≤"), (r"\cup", "∪"), (r"\sqrt", "√"), (r"\cdot", "*"),
)  # fmt: skip


def respelled(text: str, rng: Random) -> str:
    """The text with one to three of its signs spelled in another way, sometimes in a sentence or delimiters."""
    for old, new in rng.sample(SPELLINGS, rng.randint(1, 3)):
        text = text.replace(old, new)
    return rng.choice(("{}", "{}", "${}$", r"\boxed{{{}}}", "The answer is {}.", r"\[ {} \]")).format(text)


def pair_of(rng: Random) -> Pair:
    """A pair of one of the kinds; two short texts at most times."""
    kind = rng.random()
    if kind < 0.55:
        return mutated_row(rng)
    if kind < 0.60:
        return mutated_row(rng, hostile=True)
    if kind < 0.70:
        return rng.choice(rows(False))[0], soup(rng)
    text = statement(rng)
    if kind < 0.80:
        return text, respelled(text, rng)
    return text, (statement(rng) if kind < 0.90 else mutated(text, rng))


# -------------------------------------------------------------------------------------------- grading


@contextmanager
def processor_limit(seconds: float) -> Iterator[None]:
    """Raise HangError in this block after so many seconds of processor time."""
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)


def _on_hang(*_: object) -> None:
    raise HangError


def verdict_of(gold: str, answer: str) -> str:
    """The verdict without algebra; "algebra" for what would go to a worker of the pool."""
    try:
        with without_algebra(10 * HANG_SECONDS):
            return str(judge(answer, gold).verdict)
    except UndecidedError:
        return "algebra"


def is_asymmetric(gold: str, answer: str) -> bool:
    """Whether a pair that is correct is wrong in the other order, though both are values of one type."""
    sides = [read(answer_part(text)) for text in (gold, answer)]
    return sides[0] is not None and type(sides[0]) is type(sides[1]) and verdict_of(answer, gold) == Verdict.WRONG


def grade_pair(number: int, pair: Pair, findings: Findings) -> None:
    begin, verdict = process_time(), ""
    try:
        with processor_limit(HANG_SECONDS):
            verdict = verdict_of(*pair)
            seconds = process_time() - begin
            if verdict == Verdict.CORRECT and is_asymmetric(*pair):
                findings.add("asymmetry", number, pair, "correct, and wrong in the other order")
    except HangError:
        seconds = process_time() - begin
    except Exception as error:
        seconds, verdict = process_time() - begin, "exception"
        findings.add("exception", number, pair, repr(error)[:200])
    findings.verdicts[verdict or "hang"] += 1
    findings.slowest = max(findings.slowest, seconds)
    if seconds > SLOW_SECONDS:
        findings.add("slow", number, pair, f"{seconds:.2f} s of processor time")


def grade_chunk(first: int, seed: int, last: int) -> Findings:
    """Grade the pairs first, first + 1, ... of a task."""
    signal.signal(signal.SIGVTALRM, _on_hang)
    findings = Findings()
    for number in range(first, min(first + CHUNK, last)):
        grade_pair(number, pair_of(Random(f"{seed}/{number}")), findings)
        findings.num_pairs += 1
    return findings


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, default=1_000_000, help="number of pairs [1000000]")
    parser.add_argument("--first", type=int, default=0, help="number of the first pair [0]")
    parser.add_argument("--seed", type=int, default=0, help="seed of all pairs [0]")
    parser.add_argument("--processes", type=int, default=1, help="worker processes [1]")
    args = parser.parse_args(arguments)
    last = args.first + args.pairs
    total = Findings()
    task = partial(grade_chunk, seed=args.seed, last=last)
    with multiprocessing.get_context("spawn").Pool(args.processes) as pool:
        for done, part in enumerate(pool.imap_unordered(task, range(args.first, last, CHUNK)), 1):
            total.num_pairs += part.num_pairs
            total.verdicts += part.verdicts
            total.slowest = max(total.slowest, part.slowest)
            for kind, offenders in part.offenders.items():
                total.offenders.setdefault(kind, []).extend(offenders)
                for at, gold, answer, what in offenders:
                    print(f"{kind} {at}: gold {gold!a}, answer {answer!a}: {what}", flush=True)
            if done % 10 == 0:
                print(f"{total.num_pairs:,} of {args.pairs:,} pairs", file=sys.stderr, flush=True)
    print(f"{total.num_pairs:,} pairs; slowest {total.slowest:.2f} s of processor time")
    print(", ".join(f"{count:,} {name}" for name, count in total.verdicts.most_common()))
    print(*(f"{kind}: {len(total.offenders.get(kind, [])):,}" for kind in ("exception", "slow", "asymmetry")), sep="\n")
    return int(bool(total.offenders.keys() & {"exception", "slow"}))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
