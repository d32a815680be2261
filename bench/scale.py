"""How a step grows: `python bench/scale.py`. Prompts per step, G, response length and parameters by 2, 4 and 8, each
alone, in a process of its own; seconds (median) and peak memory above the weights, with the exponent of each fitted
over the four points. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import math
import os
import statistics
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

from sides import Side
from workloads import Workload, make_model

SMALLEST = Workload(512, 192, 4, prompts=8, group=4, shortest=48, longest=48, flat=0.0, beta=0.04)
GROWING = {
    "prompts per step": [replace(SMALLEST, prompts=8 * k) for k in (1, 2, 4, 8)],
    "G": [replace(SMALLEST, group=4 * k) for k in (1, 2, 4, 8)],
    "response length": [replace(SMALLEST, shortest=48 * k, longest=48 * k) for k in (1, 2, 4, 8)],
    "parameters": [
        replace(SMALLEST, width=width, layers=layers) for width, layers in ((192, 4), (256, 5), (384, 4), (448, 6))
    ],
}


def measured(workload: Workload, args: argparse.Namespace) -> tuple[float, float, float]:
    """(parameters, seconds of a step, bytes above the weights)"""
    with tempfile.TemporaryDirectory() as folder:
        make_model(workload, Path(folder))
        with Side("ours", workload, Path(folder), size=args.micro_batch_tokens, threads=args.threads) as side:
            said = [side.ask(number) for number in range(args.steps + 1)][1:]
    seconds = statistics.median(sum(step["seconds"].values()) for step in said)
    return said[0]["parameters"], seconds, max(step["above"] for step in said)


def exponent(sizes: list[float], values: list[float]) -> float:
    """Slope of log(value) over log(size), by least squares."""
    x, y = ([math.log(number) for number in numbers] for numbers in (sizes, values))
    over, upon = statistics.fmean(x), statistics.fmean(y)
    products = sum((a - over) * (b - upon) for a, b in zip(x, y, strict=True))
    return products / sum((a - over) ** 2 for a in x)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=5, help="measured, after one to warm up [5]")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--micro-batch-tokens", type=int, default=2048)
    args = parser.parse_args()
    lines = ["| | size | seconds | exponent | MiB | exponent |", "|---|---|---|---:|---|---:|"]
    for name, workloads in GROWING.items():
        rows = []
        for workload in workloads:
            rows.append(measured(workload, args))
            print(f"{name}: {rows[-1]}", file=sys.stderr)
        parameters, seconds, above = (list(column) for column in zip(*rows, strict=True))
        sizes = parameters if name == "parameters" else [float(2**power) for power in range(len(rows))]
        shown = [f"{size / 1e6:.1f}M" if name == "parameters" else f"{size:.0f}x" for size in sizes]
        cells = [", ".join(shown), ", ".join(f"{s:.2f}" for s in seconds), f"{exponent(sizes, seconds):.2f}"]
        cells += [", ".join(f"{b / 2**20:,.0f}" for b in above), f"{exponent(sizes, above):.2f}"]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
