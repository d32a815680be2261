"""What must be in the base for checking to appear? `python bench/base_behaviours.py --out DIR` (Gandhi et al. 2025).

Builds bases whose corpus differs in the share of solutions that check their steps, and one whose checks never find an
error; trains each with GRPO over several seeds, with the same budget of sampled tokens; writes base_behaviours.md and
base_behaviours.png: accuracy, and the steps until half of the responses check their own working. With --steps a base
is a reduced one; build.json in its folder has its losses. Stop it and call it again: what is there is kept.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from entries import Metrics, arguments, compare

# Share of checked solutions in the R1-Zero template; in textbook form four times as many, as in the embedded base.
SHARES = {"checks-0": 0.0, "checks-1": 0.01, "checks-3": 0.03, "checks-14": 0.14, "checks-40": 0.4}
MOST_IN_TEXTBOOKS = 0.8


def flags(share: float) -> list[str]:
    """What `reasoner base build` is told of the checks in the corpus."""
    return ["--checks", str(share), "--textbook-checks", str(round(min(4 * share, MOST_IN_TEXTBOOKS), 2))]


BASES: Mapping[str, list[str]] = {
    **{name: flags(share) for name, share in SHARES.items()},
    "no-corrections": [*flags(0.14), "--no-corrections"],
}


def base(out: Path, name: str, args: argparse.Namespace) -> Path:
    """Build a base, unless it is there; its folder."""
    folder = out / "bases" / name
    if not (folder / "build.json").is_file():
        flags = ["--mixture", args.mixture, "--steps", str(args.steps), "--layers", str(args.layers)]
        command = [sys.executable, "-m", "reasoner", "base", "build", "--out", str(folder), *flags, *BASES[name]]
        subprocess.run([*command, "--dtype", args.dtype], check=True)
    return folder


def steps_to_half(metrics: Metrics) -> float:
    """Steps until half of a step's completions check their own working; all steps where they never do."""
    half = (line["step"] for line in metrics if line["reflection/self_check_rate"] >= 0.5)
    return float(next(half, len(metrics)))


def self_checks(metrics: Metrics) -> float:
    """Completions of the last step that check their own working, in percent."""
    return 100 * float(metrics[-1]["reflection/self_check_rate"])


def main() -> None:
    parser = arguments(__doc__, tokens=600_000)
    parser.add_argument("--mixture", default="places", help="as of reasoner base build [places]")
    parser.add_argument("--steps", type=int, default=2400, help="of each base's pretraining [2400]")
    parser.add_argument("--layers", type=int, default=4, help="of each base [4]")
    parser.add_argument("--dtype", default="float32", help="as of reasoner base build [float32]")
    args = parser.parse_args()
    chosen = args.only.split(",") if args.only else list(BASES)
    entries = {name: {"model": base(args.out, name, args), "preset": "base"} for name in chosen}
    columns = (("steps to half checking", steps_to_half, 0), ("check themselves, %", self_checks, 1))
    compare(args, "base_behaviours", entries, columns)


if __name__ == "__main__":
    main()
