"""Weak scaling from one process to two, and a model of the step's time: `python bench/scaling.py --markdown FILE`.

Steps of the embedded base with one thread a process, in turns: one process alone, two at the same time that know
nothing of each other, and two ranks. The prompts of a process are the same in each. Two by themselves show what sharing
the machine costs; the model adds to their parts what the ranks have beyond: waiting for the slower one, collective
operations and the work for all rows, both timed apart. It is compared with what the two ranks took.
The machine must be quiet.
"""

from __future__ import annotations

import argparse
import json
import socket
import statistics
import sys
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tables import table
from workers import Worker

Answer = dict[str, Any]
Points = Sequence[tuple[int, float]]  # (bytes or completions, seconds)

SCRIPT = str(Path(__file__).with_name("scaling_rank.py"))
PARTS = ("sampling", "grading", "passes", "shared", "files", "sync", "waiting", "collectives")
EXCHANGE = "the rollouts of the other ranks"  # as the collective operation is called
MEASURE = -1  # as scaling_rank


# ------------------------------------------------------------------------------------------------ the model


@dataclass(frozen=True, slots=True)
class Cost:
    """Seconds of an operation: a fixed time, and a time for each unit (byte or completion)."""

    fixed: float
    per_unit: float

    @classmethod
    def fit(cls, points: Points) -> Cost:
        """The cost through the smallest and the largest of the points."""
        (small, low), (large, high) = min(points), max(points)
        per_unit = max(0.0, (high - low) / (large - small))
        return cls(max(0.0, low - small * per_unit), per_unit)

    def seconds(self, units: float) -> float:
        return self.fixed + units * self.per_unit


@dataclass(frozen=True, slots=True)
class Costs:
    """The costs that are measured apart from the steps."""

    gather: Cost  # by bytes of a rank
    sum: Cost  # by bytes
    shared: Cost  # batch, advantages and metrics, by completions of all ranks: every rank does it
    files: Cost  # the rollouts of a step on disk, by completions of all ranks: the first rank does it
    other_collectives: int  # in a step, besides the exchange of rollouts and the sum of the gradients

    @classmethod
    def of(cls, points: Mapping[str, Points], other_collectives: int) -> Costs:
        return cls(**{name: Cost.fit(own) for name, own in points.items()}, other_collectives=other_collectives)


def parts_of(answer: Answer) -> dict[str, float]:
    """Seconds of a step by PARTS, those of collective operations and the waiting before them apart. Grading: what is
    left of generating once the last completion is sampled.
    """
    laps: Mapping[str, float] = answer["laps"]
    waiting, collectives = (sum(call[column] for call in answer["calls"]) for column in (2, 3))
    exchange = sum(wait + seconds for name, _, wait, seconds in answer["calls"] if name == EXCHANGE)
    return {
        "sampling": laps["sampling"],
        "grading": laps["generate"] - laps["sampling"] - exchange,
        "passes": laps["passes"] - (waiting + collectives - exchange),
        "shared": laps["shared"],
        "files": laps.get("files", 0.0),
        "sync": laps["sync"],
        "waiting": waiting,
        "collectives": collectives,
    }


def predicted(apart: Sequence[Answer], costs: Costs) -> dict[str, float]:
    """Seconds of a step of as many ranks as there are processes by themselves, from the parts of these.

    All wait for the last to have sampled. Passes are balanced by tokens. The work for all rows is not divided.
    """
    parts = [parts_of(answer) for answer in apart]

    def mean(name: str) -> float:
        return statistics.fmean(own[name] for own in parts)

    last = max(own["sampling"] + own["grading"] for own in parts)
    completions = sum(answer["completions"] for answer in apart)
    return {
        "sampling": mean("sampling"),
        "grading": mean("grading"),
        "waiting": last - mean("sampling") - mean("grading"),
        "exchange": costs.gather.seconds(max(answer["rollout_bytes"] for answer in apart)),
        "passes": mean("passes"),
        "gradients": costs.sum.seconds(apart[0]["gradient_bytes"]),
        "other collectives": costs.other_collectives * costs.gather.fixed,
        "shared": costs.shared.seconds(completions),
        "files": costs.files.seconds(completions),
        "sync": mean("sync"),
    }


# ------------------------------------------------------------------------------------------------ measuring


def measure(options: Mapping[str, object], turns: int) -> tuple[dict[str, list[list[Answer]]], dict[str, Points]]:
    """({arm: [the answers of its processes, for each turn]}, what Costs are fitted to)."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]

    def worker(rank: int, size: int) -> Worker:
        arguments = [json.dumps(options), str(rank), str(size), str(port)]
        return Worker(SCRIPT, arguments, tree=Path(__file__).parents[1], threads=1)

    with ExitStack() as stack, ThreadPoolExecutor(2) as pool:
        apart, ranks = ([stack.enter_context(worker(rank, size)) for rank in range(2)] for size in (1, 2))
        arms = {"alone": apart[:1], "apart": apart, "ranks": ranks}

        def ask(arm: str, number: int) -> list[Answer]:
            return list(pool.map(lambda process: process.ask(number), arms[arm]))

        answers: dict[str, list[list[Answer]]] = {arm: [] for arm in arms}
        for turn in range(turns + 1):
            for arm in arms:
                answers[arm].append(ask(arm, turn))
                total = max(answer["total"] for answer in answers[arm][-1])
                print(f"turn {turn} of {turns}: {arm} {total:.2f} s", file=sys.stderr, flush=True)
        points = ask("ranks", MEASURE)[0] | ask("alone", MEASURE)[0]
    return {arm: own[1:] for arm, own in answers.items()}, points  # the first turn warms up


def total(answers: Sequence[Answer]) -> float:
    return max(float(answer["total"]) for answer in answers)


def median(turns: Sequence[Sequence[Answer]], value: Callable[[Sequence[Answer]], float]) -> float:
    return statistics.median(value(own) for own in turns)


def calls_of(turns: Sequence[Sequence[Answer]]) -> dict[str, tuple[float, float, float, float]]:
    """{what: (operations, bytes of a rank, seconds of waiting, seconds)} of the collectives of a step, medians over
    turns of the mean over ranks.
    """
    names = {call[0] for own in turns for answer in own for call in answer["calls"]}

    def of(name: str, column: int) -> float:
        def mean(own: Sequence[Answer]) -> float:
            return statistics.fmean(
                sum(1 if column == 0 else call[column] for call in answer["calls"] if call[0] == name) for answer in own
            )

        return median(turns, mean)

    return {name: (of(name, 0), of(name, 1), of(name, 2), of(name, 3)) for name in sorted(names)}


# ------------------------------------------------------------------------------------------------ tables


def report(arms: dict[str, list[list[Answer]]], points: dict[str, Points]) -> list[str]:
    """Parts, collectives, and the model against the measurement."""
    header = ("seconds of a step, median", "one process", "two by themselves", "two ranks")

    def lap(name: str) -> Callable[[Sequence[Answer]], float]:
        return lambda own: statistics.fmean(parts_of(answer)[name] for answer in own)

    rows = [[name, *(f"{median(turns, lap(name)):.3f}" for turns in arms.values())] for name in PARTS]
    totals = {arm: median(turns, total) for arm, turns in arms.items()}
    rows.append(["total", *(f"{seconds:.3f}" for seconds in totals.values())])
    lines = table(header, rows)
    lines.append(
        f"Weak scaling: {totals['alone'] / totals['ranks']:.0%} of one process's speed on each of two ranks, "
        f"{totals['apart'] / totals['ranks']:.0%} of that of two processes by themselves on the same machine.\n"
    )
    calls = calls_of(arms["ranks"])
    header = ("collective operation of a step", "number", "bytes of a rank", "seconds waiting", "seconds")
    lines += table(
        header, [[name, f"{n:.0f}", f"{size:,.0f}", f"{w:.4f}", f"{s:.4f}"] for name, (n, size, w, s) in calls.items()]
    )
    costs = Costs.of(points, round(sum(row[0] for row in calls.values())) - 2)
    models = [predicted(own, costs) for own in arms["apart"]]
    rows = [[name, f"{statistics.median(model[name] for model in models):.3f}"] for name in models[0]]
    expected = statistics.median(sum(model.values()) for model in models)
    rows += [["model", f"{expected:.3f}"], ["measured", f"{totals['ranks']:.3f}"]]
    lines += table(("step of two ranks", "seconds"), rows)
    lines.append(f"The model is {expected / totals['ranks'] - 1:+.1%} from the measurement.\n")
    return lines


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--turns", type=int, default=8, help="measured steps of each arm, after one to warm up [8]")
    parser.add_argument("--prompts", type=int, default=8, help="prompts of a process in a step [8]")
    parser.add_argument("--group-size", type=int, default=8)
    parser.add_argument("--max-tokens", type=int, default=288)
    parser.add_argument("--engine", default="auto", help="vllm, transformers or auto [auto]")
    parser.add_argument("--markdown", type=Path, help="also write the tables to this file")
    args = parser.parse_args()
    names = ("prompts", "group_size", "max_tokens", "engine")
    arms, costs = measure({name: getattr(args, name) for name in names}, args.turns)
    text = "\n".join(report(arms, costs))
    print(text)
    if args.markdown:
        args.markdown.write_text(text)


if __name__ == "__main__":
    main()
