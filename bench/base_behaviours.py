"""What must be in the base for checking to appear? `python bench/base_behaviours.py --out DIR` (Gandhi et al. 2025).

Builds bases whose corpus differs in the share of solutions that check their steps, and one whose checks never find an
error; trains each with GRPO over several seeds, with the same budget of sampled tokens; writes base_behaviours.md,
base_behaviours.png (accuracy), checking.png (how many responses check their own working, and how many wrong claims the
checks catch) and checking.md (the base, and what becomes of wrong claims, on the held-out problems). A base without
checks has no drills of checks and of comparisons either, in their place more of the others. Each base is pretrained
once, so what another seed of its pretraining changes is not known. The bases are smaller than the embedded one (292,080
parameters instead of 1.4M) and take 17 minutes of a core each; --width and the others make them larger. build.json in
the folder of a base has its losses. Stop it and call it again: what is there is kept.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

from entries import LAST, Metrics, arguments, compare
from runs import ONE_UPDATE, is_over
from tables import table

from reasoner.runs.metrics import read_metrics

# Share of checked solutions in the R1-Zero template; in textbook form four times as many, up to MOST_IN_TEXTBOOKS.
SHARES = {"checks-14": 0.14, "checks-0": 0.0, "checks-1": 0.01, "checks-3": 0.03, "checks-40": 0.4}
MOST_IN_TEXTBOOKS = 0.8
ENOUGH = 0.05  # of a step's completions have to check, or the share of caught claims is of a handful
SIZES = {"width": 80, "layers": 3, "feed_forward": 240, "steps": 2400}  # of each base


def flags(share: float) -> list[str]:
    """What `reasoner base build` is told of the checks in the corpus."""
    return ["--checks", str(share), "--textbook-checks", str(round(min(4 * share, MOST_IN_TEXTBOOKS), 2))]


BASES: Mapping[str, list[str]] = {
    **{name: flags(share) for name, share in SHARES.items()},
    "no-corrections": [*flags(0.14), "--no-corrections"],
}


def build(out: Path, args: argparse.Namespace, name: str) -> Path:
    """Build a base, unless it is there; its folder. ValueError where another one is there."""
    folder = out / "bases" / name
    recipe = [text for key in SIZES for text in (f"--{key.replace('_', '-')}", str(getattr(args, key)))]
    words = [*recipe, "--mixture", args.mixture, "--dtype", args.dtype, *BASES[name]]
    command_file = folder.with_name(f"{name}.json")  # beside the folder, which has to be new
    if command_file.is_file() and json.loads(command_file.read_text()) != words:
        raise ValueError(f"{folder} was built with {command_file.read_text()}; choose another --out")
    if not (folder / "build.json").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        command_file.write_text(json.dumps(words))
        command = [sys.executable, "-m", "reasoner", "base", "build", "--out", str(folder), "--threads", "1", *words]
        with (out / f"{name}-base.log").open("a") as log:
            subprocess.run(command, check=True, stdout=log, stderr=log, env=os.environ | {"OMP_NUM_THREADS": "1"})
    return folder


def tokens_to_half(metrics: Metrics) -> float | None:
    """Thousands of sampled tokens until half of a step's completions check their own working; None if they never do."""
    half = (line["num_tokens"] / 1e3 for line in metrics if line["reflection/self_check_rate"] >= 0.5)
    return next(half, None)


def self_checks(metrics: Metrics) -> float:
    """Completions of the last steps that check their own working, in percent."""
    return 100 * statistics.fmean(line["reflection/self_check_rate"] for line in metrics[-LAST:])


def caught(metrics: Metrics) -> float | None:
    """Wrong claims of the last steps that a check finds and corrects, in percent; None where no response checks."""
    _, shares = _curve(metrics[-LAST:], "reflection/errors_caught")
    return statistics.fmean(shares) if shares else None


def draw_checking(out: Path, seeds: list[int]) -> None:
    """Draw checking.png: self-checks and caught claims against sampled tokens, a colour for each base."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (checks, claims) = pyplot.subplots(1, 2, figsize=(10, 3.6), sharey=True)
    names = [*sorted(SHARES, key=lambda name: SHARES[name]), "no-corrections"]
    for place, name in enumerate(names):
        runs = [out / f"{name}-{seed}" for seed in seeds if is_over(out / f"{name}-{seed}")]
        for number, run in enumerate(runs):
            metrics = read_metrics(run)
            style: dict[str, Any] = {"color": f"C{place}", "linewidth": 1}
            checks.plot(*_curve(metrics, "reflection/self_check_rate"), label=None if number else name, **style)
            checking = [line for line in metrics if line["reflection/self_check_rate"] >= ENOUGH]
            claims.plot(*_curve(checking, "reflection/errors_caught"), **style)
    checks.set_title("completions that check, %", fontsize="medium")
    claims.set_title("wrong claims in them that are caught, %", fontsize="medium")
    for panel in (checks, claims):
        panel.set_xlabel("sampled tokens, thousands")
        panel.grid(alpha=0.3)
    checks.legend(fontsize="small")
    figure.tight_layout()
    figure.savefig(out / "checking.png", dpi=110)


def checking_table(out: Path, seeds: list[int]) -> str:
    """The held-out results of the bases (means over the seeds of the samples), and what the trained models do with
    wrong claims (counts of all seeds together).
    """
    heads = ["entry", "base: pass@1", "greedy", "checks", "wrong claims", "caught", "replaced silently"]
    rows = []
    for name in BASES:
        runs = [out / f"{name}-{seed}" for seed in seeds if is_over(out / f"{name}-{seed}")]
        reports = [json.loads((run / "report.json").read_text()) for run in runs]
        if not reports:
            continue
        before = [report["before"] for report in reports]
        shares = (
            [one["sampled"]["metrics"]["pass@1"]["value"] for one in before],
            [one["greedy"]["metrics"]["pass@1"]["value"] for one in before],
            [one["sampled"]["reflection"]["self_check_rate"] for one in before],
        )
        after = [report["after"]["sampled"]["reflection"] for report in reports]
        claims, *ends = (
            sum(one[key] for one in after) for key in ("wrong_claims", "errors_caught", "errors_replaced_silently")
        )
        cells = [f"{100 * statistics.fmean(share):.1f} %" for share in shares]
        cells += [f"{claims:,}", *(f"{100 * end / claims:.1f} %" if claims else "-" for end in ends)]
        rows.append([f"`{name}`", *cells])
    return "\n".join(table(heads, rows))


def _curve(metrics: Metrics, name: str) -> tuple[list[float], list[float]]:
    """Thousands of sampled tokens, the metric in percent; of the steps that have it."""
    lines = [line for line in metrics if line.get(name) is not None]
    return [line["num_tokens"] / 1e3 for line in lines], [100 * line[name] for line in lines]


def main() -> None:
    parser = arguments(__doc__, tokens=600_000)
    parser.add_argument("--mixture", default="places", help="as of reasoner base build [places]")
    parser.add_argument("--dtype", default="float32", help="as of reasoner base build [float32]")
    for name, default in SIZES.items():
        flag = f"--{name.replace('_', '-')}"
        parser.add_argument(flag, type=int, default=default, help=f"as of reasoner base build [{default}]")
    args = parser.parse_args()
    chosen = args.only.split(",") if args.only else list(BASES)
    with ThreadPoolExecutor(args.jobs) as pool:
        list(pool.map(partial(build, args.out, args), chosen))
    entries = {name: {"model": args.out / "bases" / name, "preset": "base"} | ONE_UPDATE for name in BASES}
    columns = (
        ("thousands of tokens to half checking", tokens_to_half, 0),
        ("check themselves, %", self_checks, 1),
        ("wrong claims caught, %", caught, 1),
    )
    compare(args, "base_behaviours", entries, columns)
    seeds = [int(seed) for seed in args.seeds.split(",")]
    draw_checking(args.out, seeds)
    (args.out / "checking.md").write_text(checking_table(args.out, seeds))


if __name__ == "__main__":
    main()
