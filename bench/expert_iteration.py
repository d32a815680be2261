"""Expert iteration beside GRPO on the embedded base: `python bench/expert_iteration.py --out DIR --seeds 0 1 2`.

For each seed three rounds of expert iteration, then GRPO that samples as many tokens. No validation during training, so
that minutes are those of the method, and the last model counts. Runs one after the other. Writes expert_iteration.md:
the figures, and the differences on the same problems. Stop it and call it again: what is complete is kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runs import arguments, options, run_reasoner, train_all
from tables import mean_and_range, over_seeds, table

from reasoner.evals.compare import compare_metrics, samples_by_problem
from reasoner.runs.metrics import read_metrics

Figures = Mapping[str, float]  # tokens, minutes, pass@1, greedy
HELD_OUT = {"eval.heldout_problems": 150, "eval.samples": 16, "validation.interval": 0}
SCORES = ("pass@1", "greedy")
COLUMNS = {"tokens": ",.0f", "minutes": ".1f", "pass@1": ".1f", "greedy": ".1f"}


def _last_round(seed: int, rounds: int) -> str:
    """The run of the last round."""
    return f"expert-iteration-{seed}-sft-{rounds}"


def expert_iteration(out: Path, model: str, seed: int, rounds: int, threads: int) -> list[Figures]:
    """The figures of the first model and of each round."""
    name = f"expert-iteration-{seed}"
    values = {"model": model, "preset": "base", "rounds": rounds, "seed": seed, "threads": threads}
    values |= {"run.dir": out, "run.name": name, **HELD_OUT}
    out.mkdir(parents=True, exist_ok=True)
    run_reasoner("expert-iteration", *options(values), log=out / f"{name}.log", threads=threads)
    rows = json.loads((out / _last_round(seed, rounds) / "rounds.json").read_text())
    return [
        {name: row[name] for name in ("tokens", "minutes")}
        | {name: 100 * row[name]["value"] for name in ("pass@1", "greedy")}
        for row in rows
    ]


def grpo_settings(model: str, seed: int, tokens: float) -> dict[str, object]:
    """The settings of the preset but for the length: a run that samples so many tokens."""
    settings = {"model": model, "preset": "base", "seed": seed, "max_train_tokens": int(tokens), "steps": 10_000}
    return settings | HELD_OUT


def grpo(out: Path, name: str, model: str, seed: int, tokens: float, threads: int) -> Figures:
    """The figures of a run of GRPO that samples so many tokens."""
    train_all(out, {name: grpo_settings(model, seed, tokens)}, jobs=1, threads=threads)
    report, last = json.loads((out / name / "report.json").read_text()), read_metrics(out / name)[-1]
    return {"tokens": last["num_tokens"], "minutes": last["time/run"] / 60} | accuracies(report["after"])


def accuracies(evaluation: Mapping[str, Any]) -> dict[str, float]:
    """pass@1 and greedy accuracy of an evaluation or a validation, in per cent."""
    ways = {"pass@1": "sampled", "greedy": "greedy"}
    return {name: 100 * evaluation[way]["metrics"]["pass@1"]["value"] for name, way in ways.items()}


def of_seed(out: Path, model: str, seed: int, rounds: int, threads: int) -> dict[str, Figures]:
    """The figures of a seed by method."""
    base, *rows = expert_iteration(out, model, seed, rounds, threads)
    of_rounds = {f"expert iteration, round {number}": row for number, row in enumerate(rows, 1)}
    gained = grpo(out, f"grpo-tokens-{seed}", model, seed, rows[-1]["tokens"], threads)
    return {"base": base, **of_rounds, "GRPO, as many tokens": gained}


def markdown(seeds: list[dict[str, Figures]]) -> str:
    """Means over the seeds, with the range."""
    rows = [
        [method, *(mean_and_range([own[method][column] for own in seeds], form) for column, form in COLUMNS.items())]
        for method in seeds[0]
    ]
    return table(["method", *COLUMNS], rows)


def comparison(out: Path, seeds: Sequence[int], rounds: int) -> str:
    """GRPO minus the last round of expert iteration: for each seed with intervals over problems, and for all with an
    interval over seeds.
    """
    table_rows, gains = [], []
    for seed in seeds:
        folders = [out / name / "heldout" / "after" for name in (f"grpo-tokens-{seed}", _last_round(seed, rounds))]
        sides = [samples_by_problem(folder, "generated:heldout") for folder in folders]
        differences = {one.metric: one.difference for one in compare_metrics({"": sides})}
        cells = [differences[column] for column in SCORES]
        table_rows.append([str(seed), *map(str, cells)])
        gains.append([100 * one.mean for one in cells])
    table_rows.append(["over seeds", *map(over_seeds, zip(*gains, strict=True))])
    return table([f"GRPO minus round {rounds}, points; seed", *SCORES], table_rows)


def main() -> None:
    parser = arguments(__doc__, jobs=1)
    parser.add_argument("--model", default="base", help="the embedded base, or the folder of another base [base]")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    args.threads = args.threads or os.cpu_count() or 1
    seeds = [of_seed(args.out, args.model, seed, args.rounds, args.threads) for seed in args.seeds]
    text = f"{markdown(seeds)}\n{comparison(args.out, args.seeds, args.rounds)}"
    (args.out / "expert_iteration.md").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
