"""Reward models of known utility on the embedded base: `python bench/reward_model.py --policy MODEL --out DIR`.

MODEL is a policy of the embedded base that answers 40 to 70 % of the problems: a run of `reasoner sft` or of
`reasoner train`. For each seed it samples 400 problems x 8 (340 to train on, 60 held out) and 30 other problems x 64,
labels all pairs by utilities of known noise (bench/utilities.py), trains the reward models of ENTRIES, and writes
reward_model.md: a table of accuracies, the curves of best of n, and whether each demand holds. Stop it and call it
again: what is finished is kept.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data import Problem, load
from reasoner.cli.main import main as reasoner
from reasoner.config.schema import EngineConfig
from reasoner.inference.model_spec import EngineFactory, ModelSpec
from reasoner.models.loading import load_tokenizer
from reasoner.rollouts.dataset import filter_prompts
from reasoner.rollouts.generate import generate_groups
from reasoner.runs import rollouts as store
from reasoner.runs.run_start import open_run
from reasoner.types import SamplingParams
from verifiers import RewardWeights, VerifierPool

UTILITIES = Path(__file__).with_name("utilities.py")
PROBLEMS_PER_STEP = 20  # of a shard of samples; pairs are selected by steps
TRAINING, HELDOUT, FEW = "0:16", "17:19", "0:1"
FOUR = ("--rm.prompts", "4")  # prompts a step: one epoch is then about 80 steps
BINS_OF = 200  # pairs that a bin of the calibration needs to be judged


@dataclass(frozen=True, slots=True)
class Entry:
    """A reward model: the utility and the noise of its labels, the steps of its pairs, and settings of its training."""

    utility: str = "quality"
    noise: float = 1.0
    steps: str = TRAINING
    settings: tuple[str, ...] = ()


ENTRIES = {
    "all pairs": Entry(settings=FOUR),
    "all pairs, 8 prompts a step": Entry(),
    "all pairs, 3 epochs": Entry(settings=("--rm.epochs", "3", *FOUR)),
    "40 prompts, 4 epochs": Entry(steps=FEW, settings=("--rm.epochs", "4", *FOUR)),
    "control: brevity": Entry("brevity", settings=("--rm.epochs", "3", *FOUR)),
    "control: shuffled labels": Entry(noise=1e9, settings=FOUR),
}


def sample(policy: str, problems: list[Problem], num: int, run_dir: Path, *, seed: int) -> None:
    """Sample and grade `num` completions of each problem, as the rollouts of a run folder."""
    spec = ModelSpec.of(policy, runs=Path("runs"))
    tokenizer = load_tokenizer(spec.folder)
    limits = {"context": spec.context, "max_tokens": spec.max_tokens}
    prompts = filter_prompts(problems, spec.template, tokenizer, **limits)
    sampling = SamplingParams(num_samples=num, max_tokens=spec.max_tokens, stop=spec.template.stop)
    open_run(run_dir, {"model": policy, "prompt.style": spec.prompt}, {}, resuming=True)
    longest = max(len(prompt.token_ids) for prompt in prompts)
    with (
        closing(EngineFactory(spec, EngineConfig(), seed=seed, longest_prompt=longest)) as engine,
        VerifierPool(1) as pool,
    ):
        for step, start in enumerate(range(0, len(prompts), PROBLEMS_PER_STEP)):
            if not store.readable(store.shard_path(run_dir, step)):
                own = prompts[start : start + PROBLEMS_PER_STEP]
                groups = generate_groups(
                    engine(), pool, own, sampling, RewardWeights(), run_seed=seed, step=f"bench {step}"
                )
                store.write_step(run_dir, step, groups, [0.0] * num * len(groups))


def run(*arguments: object) -> None:
    """Run a command of reasoner; end where it fails."""
    if status := reasoner([str(argument) for argument in arguments]):
        sys.exit(status)


def measure(folder: Path, name: str, entry: Entry, *, seed: int, threads: int) -> dict[str, Any]:
    """Train the entry's reward model in the folder unless it is there, and evaluate it."""
    slug = "-".join("".join(letter for letter in name if letter.isalnum() or letter == " ").split())
    result = folder / f"{slug}.json"
    if result.is_file():
        values: dict[str, Any] = json.loads(result.read_text())
        return values
    judge = ["--as", "preferences", "--judge", f"utility:{UTILITIES}:{entry.utility}", "--noise", entry.noise]
    pairs = {"training": entry.steps, "heldout": HELDOUT}
    for side, steps in pairs.items():
        file = folder / f"{slug}-{side}.parquet"
        run("rollouts", "export", folder / "samples", file, *judge, "--seed", seed, "--step", steps)
    flags = ["--seed", seed, "--threads", threads, "--run.dir", folder, "--run.name", slug, "--rm.heldout_share", 0]
    start = time.monotonic()
    data = folder / f"{slug}-training.parquet"
    if (folder / slug / "config.json").is_file():  # stopped during its training
        run("reward-model", "train", "--resume", folder / slug)
    else:
        run("reward-model", "train", "--model", folder / "policy", "--data", data, *flags, *entry.settings)
    minutes = (time.monotonic() - start) / 60
    selection = ["--samples", folder / "selection.parquet", "--utility", f"{UTILITIES}:{entry.utility}"]
    heldout = ["--data", folder / f"{slug}-heldout.parquet", "--json", result.with_suffix(".partial")]
    run("reward-model", "eval", slug, "--runs", folder, "--threads", threads, *heldout, *selection)
    first = json.loads((folder / slug / "metrics.jsonl").read_text().splitlines()[0])
    values = json.loads(result.with_suffix(".partial").read_text()) | {"minutes": minutes, "first_loss": first["loss"]}
    result.write_text(json.dumps(values))
    return values


def prepare(policy: str, folder: Path, *, seed: int) -> None:
    """Sample the training and the selection problems of a seed."""
    folder.mkdir(parents=True, exist_ok=True)
    if not (folder / "policy").exists():
        (folder / "policy").symlink_to(ModelSpec.of(policy, runs=Path("runs")).folder.absolute())
    training = load("generated")[400 * seed : 400 * seed + 400]
    selection = load("generated:validation")[30 * seed : 30 * seed + 30]
    sample(policy, training, 8, folder / "samples", seed=seed)
    sample(policy, selection, 64, folder / "selection", seed=seed)
    run("rollouts", "export", folder / "selection", folder / "selection.parquet")


# ------------------------------------------------------------------------------------------------ table


def gap(values: dict[str, Any]) -> float:
    """The largest distance of what was said and what was, over the bins with enough pairs."""
    bins = [abs(own["said"] - own["was"]) for own in values["calibration"] if own["pairs"] >= BINS_OF]
    return max(bins, default=0.0)


COLUMNS = {
    "labels %": lambda v: 100 * v["accuracy"]["value"],
    "expected %": lambda v: 100 * v["expected_accuracy"]["value"],
    "Bayes %": lambda v: 100 * v["bayes_accuracy"],
    "share of the way %": lambda v: 100 * (v["share_of_bayes"] or 0.0),
    "true order %": lambda v: 100 * v["true_order"]["value"],
    "NLL": lambda v: v["nll"],
    "AUC right": lambda v: v["correct_auc"],
    "shorter %": lambda v: 100 * v["shorter"]["value"],
    "rule %": lambda v: 100 * v["rule"]["value"],
    "said - was, points": lambda v: 100 * gap(v),
    "first loss": lambda v: v["first_loss"],
    "minutes": lambda v: v["minutes"],
}


def cell(numbers: list[float]) -> str:
    """Mean and range over the seeds."""
    spread = f" ({min(numbers):.3g} to {max(numbers):.3g})" if len(numbers) > 1 else ""
    return f"{statistics.fmean(numbers):.3g}{spread}"


def utilities(values: dict[str, Any], selector: str) -> list[float]:
    """True utility of the best of 1, 2, 4, ... by a selector."""
    return [point["utility"] for point in values["best_of_n"][selector]]


def demands(results: dict[str, list[dict[str, Any]]]) -> dict[str, bool]:
    """What the experiment must show, on the mean over the seeds."""

    def mean(entry: str, column: str) -> float:
        return statistics.fmean(COLUMNS[column](values) for values in results[entry])

    def curve(entry: str, selector: str) -> list[float]:
        return [statistics.fmean(at) for at in zip(*(utilities(v, selector) for v in results[entry]), strict=True)]

    alone, both = curve("all pairs", "reward model"), curve("all pairs", "rule + 0.25 reward model")
    own = curve("all pairs", "utility")
    peak = max(range(len(alone)), key=lambda place: alone[place])
    return {
        "at least 40 % of the way to the Bayes limit": mean("all pairs", "share of the way %") >= 40,
        "true order at least 66 %": mean("all pairs", "true order %") >= 66,
        "NLL at most 0.66": mean("all pairs", "NLL") <= 0.66,
        "said within 12 points of what was": mean("all pairs", "said - was, points") <= 12,
        "first loss is ln 2": all(abs(v["first_loss"] - 0.6931471805599453) < 1e-9 for v in results["all pairs"]),
        "brevity: at least 95 % of the way": mean("control: brevity", "share of the way %") >= 95,
        "shuffled labels: 48 to 52 %": 48 <= mean("control: shuffled labels", "labels %") <= 52,
        "alone: utility peaks at n = 4 to 16": 4 <= 2**peak <= 16,
        "alone: utility falls by 0.2 at 64": alone[peak] - alone[-1] >= 0.2,
        "with the rule: utility at 64 within 0.05 of its best": max(both) - both[-1] <= 0.05,
        "utility itself: monotone": own == sorted(own),
    }


def table(results: dict[str, list[dict[str, Any]]]) -> str:
    """The tables as markdown."""
    lines = ["| | " + " | ".join(COLUMNS) + " |", "|---|" + "---|" * len(COLUMNS)]
    for name, own in results.items():
        lines.append(f"| {name} | " + " | ".join(cell([read(v) for v in own]) for read in COLUMNS.values()) + " |")
    for name, own in results.items():
        points = own[0]["best_of_n"]["reward model"]
        lines += ["", f"Best of n, {name}: score / utility / right %", ""]
        lines += ["| chosen by | " + " | ".join(str(point["n"]) for point in points) + " |"]
        lines += ["|---|" + "---|" * len(points)]
        for selector in own[0]["best_of_n"]:
            by_seed = [values["best_of_n"][selector] for values in own]
            cells = []
            for at in zip(*by_seed, strict=True):
                means = (statistics.fmean(read(point) for point in at) for read in _POINT)
                cells.append(" / ".join(f"{value:.2f}" for value in means))
            lines.append(f"| {selector} | " + " | ".join(cells) + " |")
    lines += ["", "| demand | |", "|---|---|"]
    lines += [f"| {name} | {'holds' if holds else 'FAILS'} |" for name, holds in demands(results).items()]
    return "\n".join(lines) + "\n"


_POINT = (lambda p: p["score"], lambda p: p["utility"], lambda p: 100 * p["correct"]["value"])


def main() -> None:
    """Sample, train and evaluate what is not there yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--policy", required=True, help="a run or a model folder of the embedded base, trained")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", default="0,1,2")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    results: dict[str, list[dict[str, Any]]] = {name: [] for name in ENTRIES}
    for seed in map(int, args.seeds.split(",")):
        folder = args.out / f"seed-{seed}"
        prepare(args.policy, folder, seed=seed)
        for name, entry in ENTRIES.items():
            results[name].append(measure(folder, name, entry, seed=seed, threads=args.threads))
    (args.out / "reward_model.md").write_text(table(results))
    print(table(results))


if __name__ == "__main__":
    main()
