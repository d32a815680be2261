"""Does training reach problems that no sample of the base solves? `python bench/past_base.py --out DIR`.

Trains the embedded base with GRPO on levels 1 to 3 alone, on all levels, and on levels 1 to 3 before 4 and 5, with as
many steps each, and samples every model 1,024 times for each problem of levels 4 and 5, 256 times for those of 1 to 3.
Writes past_base.md: pass@k for k from 1 to all samples with intervals over problems (Chen et al. 2021), and the share
of problems that no sample of the base solves and the trained model solves (Yue et al. 2025 find none; ProRL finds
some).
What is there already is kept, so it can be stopped and called again.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import pyarrow.parquet as pq

from reasoner.evals.estimators import estimate, pass_at_k

EASY, HARD = "generated", "generated-hard"
STEPS = 72
MAX_TOKENS = 384  # a product at level 5 takes about 250
# Training of each model: (problems, steps) of consecutive runs.
ARMS: dict[str, tuple[tuple[str, int], ...]] = {
    "base": (),
    "levels 1 to 3": ((EASY, STEPS),),
    "all levels": ((f"{EASY},{HARD}", STEPS),),
    "1 to 3, then 4 and 5": ((EASY, STEPS // 2), (HARD, STEPS // 2)),
}
SAMPLES = {EASY: 256, HARD: 1024}
KS = (1, 4, 16, 64, 256, 1024)

Counts = Mapping[str, tuple[int, int]]  # by problem: samples, and correct ones


@dataclass(frozen=True, slots=True)
class Sizes:
    """The problems of each set, and the seed and the number of threads of all runs."""

    out: Path
    problems: Mapping[str, int]
    seed: int
    threads: int


def model_of(arm: str, sizes: Sizes) -> str:
    """Train the model of an arm, unless it is there; its name or folder."""
    model = "base"
    for number, (problems, steps) in enumerate(ARMS[arm], 1):
        run = sizes.out / f"{arm.replace(' ', '-').replace(',', '')}-{number}"
        if not (run / "report.json").is_file():
            flags = {
                "data.train": problems, "steps": steps, "seed": sizes.seed, "threads": sizes.threads,
                "sampling.max_tokens": MAX_TOKENS, "validation.interval": 0, "eval.samples": 4,
                "run.dir": sizes.out, "run.name": run.name, "run.keep_last": 1,
            }  # fmt: skip
            resume = ["--resume", run.name] if run.exists() else ["--model", model]
            _call("train", *resume, *(text for key, value in flags.items() for text in (f"--{key}", str(value))))
        model = str(run)
    return model


def counts_of(arm: str, problems: str, sizes: Sizes) -> Counts:
    """Evaluate the model of an arm on a set, unless it is done: samples and correct samples of each problem."""
    name = f"{arm}-{problems}".replace(" ", "-").replace(",", "")
    samples = sizes.out / "evals" / name / "samples.parquet"
    if not samples.is_file():
        _call(
            "eval", "--model", model_of(arm, sizes), "--data", f"{problems}:heldout", "--name", name, "--pass@1",
            "--problems", str(sizes.problems[problems]), "--n", str(SAMPLES[problems]), "--max-tokens", str(MAX_TOKENS),
            "--temperature", "1", "--seed", str(sizes.seed), "--out", str(sizes.out / "evals"),
        )  # fmt: skip
    verdicts: dict[str, list[bool]] = defaultdict(list)
    for row in pq.read_table(samples, columns=["problem_id", "correct"]).to_pylist():
        verdicts[row["problem_id"]].append(row["correct"])
    return {problem: (len(own), sum(own)) for problem, own in verdicts.items()}


def _call(*arguments: str) -> None:
    print("reasoner", *arguments, file=sys.stderr, flush=True)
    subprocess.run([sys.executable, "-m", "reasoner", *arguments], check=True, stdout=subprocess.DEVNULL)


def level_of(problem: str) -> int:
    """The level that a problem's id holds: generated/heldout/sums-4-17."""
    return int(problem.rsplit("-", 2)[1])


def markdown(counts: Mapping[str, Counts]) -> str:
    """A table of pass@k by level and arm, and one of what is new to the base."""
    levels = sorted({level_of(problem) for own in counts.values() for problem in own})
    largest = {
        level: min(n for own in counts.values() for problem, (n, _) in own.items() if level_of(problem) == level)
        for level in levels
    }
    lines = [f"| level | model | {' | '.join(f'pass@{k}, %' for k in KS)} |", f"|---|---|{'---:|' * len(KS)}"]
    for level in levels:
        for arm, own in counts.items():
            row = [pair for problem, pair in own.items() if level_of(problem) == level]
            cells = [_share([float(pass_at_k(n, c, k)) for n, c in row]) if k <= largest[level] else "" for k in KS]
            lines.append(f"| {level} | {arm} | {' | '.join(cells)} |")
    lines += [
        "",
        "| level | model | solved by no sample of the base | of these, solved by the model |",
        "|---|---|---:|---:|",
    ]
    for level in levels:
        unsolved = [p for p, (_, c) in counts["base"].items() if level_of(p) == level and c == 0]
        total = sum(level_of(problem) == level for problem in counts["base"])
        for arm, own in counts.items():
            if arm != "base":
                solved = [own[problem][1] > 0 for problem in unsolved]
                share = f"{sum(solved)}: {_share([float(one) for one in solved])}" if unsolved else "-"
                lines.append(f"| {level} | {arm} | {len(unsolved)} of {total} | {share} |")
    return "\n".join(lines) + "\n"


def _share(scores: list[float]) -> str:
    own = estimate(scores)
    return f"{100 * own.value:.1f} [{100 * own.low:.0f}, {100 * own.high:.0f}]"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--easy", type=int, default=60, help="problems of levels 1 to 3 [60]")
    parser.add_argument("--hard", type=int, default=60, help="problems of levels 4 and 5 [60]")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 1)
    args = parser.parse_args()
    sizes = Sizes(args.out, {EASY: args.easy, HARD: args.hard}, args.seed, args.threads)
    args.out.mkdir(parents=True, exist_ok=True)
    arms = list(dict.fromkeys(["base", *args.arms]))
    counts = {arm: {**counts_of(arm, EASY, sizes), **counts_of(arm, HARD, sizes)} for arm in arms}
    text = markdown(counts)
    (args.out / "past_base.md").write_text(text)
    print(text, end="")


if __name__ == "__main__":
    main()
