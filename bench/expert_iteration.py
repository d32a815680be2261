"""Expert iteration beside GRPO: `python bench/expert_iteration.py --out DIR --seeds 0 1 2`.

On the embedded base, or on another model with its preset. For each seed three rounds of expert iteration, then GRPO
that samples as many tokens. No validation during training, so that minutes are those of the method, and the last model
counts. Runs one after the other. Writes expert_iteration.md: the figures, and the differences on the same problems.
Stop it and call it again: what is complete is kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from runs import Settings, arguments, keep_settings, options, run_reasoner, train_all
from tables import mean_and_range, over_seeds, table

from reasoner.evals.compare import compare_metrics, samples_by_problem
from reasoner.runs.metrics import read_metrics
from reasoner.runs.run_dir import read_settings

Figures = Mapping[str, float]  # tokens, minutes, pass@1, greedy
SCORES = ("pass@1", "greedy")
COLUMNS = {"tokens": ",.0f", "minutes": ".1f", "pass@1": ".1f", "greedy": ".1f"}


def _last_round(seed: int, settings: Settings) -> str:
    """The run of the last round."""
    return f"expert-iteration-{seed}-sft-{settings['rounds']}"


def expert_iteration(out: Path, seed: int, settings: Settings, threads: int) -> list[Figures]:
    """The figures of the first model and of each round."""
    name = f"expert-iteration-{seed}"
    values = {**settings, "seed": seed, "threads": threads, "run.dir": out, "run.name": name}
    out.mkdir(parents=True, exist_ok=True)
    run_reasoner("expert-iteration", *options(values), log=out / f"{name}.log", threads=threads)
    rows = json.loads((out / _last_round(seed, settings) / "rounds.json").read_text())
    return [
        {name: row[name] for name in ("tokens", "minutes")}
        | {name: 100 * row[name]["value"] for name in ("pass@1", "greedy")}
        for row in rows
    ]


def grpo(out: Path, name: str, settings: Settings, seed: int, tokens: float, threads: int) -> Figures:
    """The figures of a run of GRPO that samples so many tokens, whatever the preset's length."""
    own = {**settings, "seed": seed, "max_train_tokens": int(tokens), "steps": 10_000}
    train_all(out, {name: own}, jobs=1, threads=threads)
    report, last = json.loads((out / name / "report.json").read_text()), read_metrics(out / name)[-1]
    return {"tokens": last["num_tokens"], "minutes": last["time/run"] / 60} | accuracies(report["after"])


def accuracies(evaluation: Mapping[str, Any]) -> dict[str, float]:
    """pass@1 and greedy accuracy of an evaluation or a validation, in per cent."""
    ways = {"pass@1": "sampled", "greedy": "greedy"}
    return {name: 100 * evaluation[way]["metrics"]["pass@1"]["value"] for name, way in ways.items()}


def of_seed(out: Path, seed: int, rounds: Settings, gradients: Settings, threads: int) -> dict[str, Figures]:
    """The figures of a seed by method."""
    base, *rows = expert_iteration(out, seed, rounds, threads)
    of_rounds = {f"expert iteration, round {number}": row for number, row in enumerate(rows, 1)}
    gained = grpo(out, f"grpo-tokens-{seed}", gradients, seed, rows[-1]["tokens"], threads)
    return {"base": base, **of_rounds, "GRPO, as many tokens": gained}


def markdown(seeds: list[dict[str, Figures]]) -> str:
    """Means over the seeds, with the range."""
    rows = [
        [method, *(mean_and_range([own[method][column] for own in seeds], form) for column, form in COLUMNS.items())]
        for method in seeds[0]
    ]
    return table(["method", *COLUMNS], rows)


def comparison(out: Path, seeds: Sequence[int], rounds: Settings) -> str:
    """GRPO minus the last round of expert iteration: for each seed with intervals over problems, and for all with an
    interval over seeds.
    """
    table_rows, gains = [], []
    for seed in seeds:
        folders = [out / name / "heldout" / "after" for name in (f"grpo-tokens-{seed}", _last_round(seed, rounds))]
        held_out = read_settings(out / f"grpo-tokens-{seed}")["config"]["eval.heldout"]
        sides = [samples_by_problem(folder, held_out) for folder in folders]
        differences = {one.metric: one.difference for one in compare_metrics({"": sides})}
        cells = [differences[column] for column in SCORES]
        table_rows.append([str(seed), *map(str, cells)])
        gains.append([100 * one.mean for one in cells])
    table_rows.append(["over seeds", *map(over_seeds, zip(*gains, strict=True))])
    return table([f"GRPO minus round {rounds['rounds']}, points; seed", *SCORES], table_rows)


def main() -> None:
    parser = arguments(__doc__, jobs=1)
    parser.add_argument("--model", default="base", help="the embedded base, or a model's folder [base]")
    parser.add_argument("--preset", default="base", help="its settings [base]")
    pair = {"nargs": "+", "default": [], "metavar": "KEY=VALUE", "type": lambda text: text.split("=", 1)}
    parser.add_argument("--settings", help="more settings, of both methods", **pair)
    parser.add_argument("--expert-iteration", help="more settings, of expert iteration", **pair)
    parser.add_argument("--grpo", help="more settings, of GRPO", **pair)
    args = parser.parse_args()
    args.threads = args.threads or os.cpu_count() or 1
    both = {"model": args.model, "preset": args.preset, "validation.interval": 0, **dict(args.settings)}
    rounds = {**both, "rounds": 3, **dict(args.expert_iteration)}
    gradients = {**both, **dict(args.grpo)}
    keep_settings(args.out / "settings.json", {"rounds": rounds, "gradients": gradients})
    seeds = [of_seed(args.out, seed, rounds, gradients, args.threads) for seed in args.seeds]
    text = f"{markdown(seeds)}\n{comparison(args.out, args.seeds, rounds)}"
    (args.out / "expert_iteration.md").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
