"""One GRPO step of ours beside one of TRL's GRPOTrainer: `python bench/step.py` (needs the extra named peers).

Same model folder, prompts, lengths, rewards and threads, both in float32; a process each, stepping in
turns, the machine's matrix products measured in between. Prints tables in Markdown: medians of the seconds of each
part, the ratio, peak memory, and the share of the matrix ceiling (2 N operations for a token sampled or scored, 6 N for
one trained).
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from sides import Side
from tables import table
from workloads import PARTS, WORKLOADS, ceiling, make_model

SIDES = {"ours": "ours", "trl": "TRL"}


def measure(name: str, args: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Every step of each side, and the matrix products beside it."""
    workload = WORKLOADS[name]
    sizes = {"ours": args.micro_batch_tokens, "trl": args.rows}
    measurements: dict[str, list[dict[str, Any]]] = {side: [] for side in sizes}
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        make_model(workload, Path(folder))
        sides = {
            side: stack.enter_context(Side(side, workload, Path(folder), size=size, threads=args.threads))
            for side, size in sizes.items()
        }
        for number in range(args.steps + 1):
            for each, side in sides.items() if number % 2 else reversed(sides.items()):
                said = side.ask(number)
                print(f"{name}, step {number}, {each}: {sum(said['seconds'].values()):.2f} s", file=sys.stderr)
                if number:  # the first is for warming up
                    measurements[each].append(said | {"ceiling": ceiling()})
    return measurements


def markdown(name: str, measurements: dict[str, list[dict[str, Any]]]) -> str:
    heads = [f"**{name}**", *(SIDES[side] for side in measurements), "TRL / ours"]
    rows = []
    for part in (*PARTS, "step"):
        seconds = [_median(said, part) for said in measurements.values()]
        ratios = [f"{other / seconds[0]:.2f}" if seconds[0] > 0.005 < other else "" for other in seconds[1:]]
        rows.append([f"{part}, s", *(f"{number:.2f}" for number in seconds), *ratios])
    for key, label in (("above", "above the weights"), ("peak", "of the process")):
        most = [max(step[key] for step in said) / 2**20 for said in measurements.values()]
        ratios = [f"{other / most[0]:.2f}" for other in most[1:]]
        rows.append([f"peak memory {label}, MiB", *(f"{number:,.0f}" for number in most), *ratios])
    for label, share in (("step", _of_step), ("learning", _of_learning)):
        shares = [statistics.median(share(step) / step["ceiling"] for step in said) for said in measurements.values()]
        rows.append([f"{label}, share of the ceiling", *(f"{number:.0%}" for number in shares)])
    tops = [step["ceiling"] / 1e9 for said in measurements.values() for step in said]
    spread = f"{statistics.median(tops):.0f} GFLOP/s in matrix products ({min(tops):.0f} to {max(tops):.0f})"
    return f"{table(heads, rows)}\n{spread}; medians of {len(measurements['ours'])} steps."


def _median(said: list[dict[str, Any]], part: str) -> float:
    parts = PARTS if part == "step" else (part,)
    return statistics.median(sum(step["seconds"][name] for name in parts) for step in said)


def _of_learning(said: dict[str, Any]) -> float:
    """Operations a second."""
    return 6 * said["parameters"] * said["trained"] / said["seconds"]["learning"]


def _of_step(said: dict[str, Any]) -> float:
    operations = 6 * said["trained"] + 2 * (said["tokens"] + said["scored"])
    return said["parameters"] * operations / sum(said["seconds"].values())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=WORKLOADS, help="this workload alone")
    parser.add_argument("--steps", type=int, default=5, help="measured, after one to warm up [5]")
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--rows", type=int, default=32, help="TRL's per_device_train_batch_size [32]")
    parser.add_argument("--micro-batch-tokens", type=int, default=2048, help="ours [2048]")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(args.threads)
    measurements = {name: measure(name, args) for name in ([args.only] if args.only else WORKLOADS)}
    print("\n\n".join(markdown(name, steps) for name, steps in measurements.items()))


if __name__ == "__main__":
    main()
