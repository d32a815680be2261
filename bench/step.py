"""One GRPO step of ours beside one of TRL's GRPOTrainer: `python bench/step.py` (needs the extra named peers).

Same model folder, prompts, lengths, rewards, float32 and threads; a process each, stepping in turns, the machine's
matrix products measured in between. Prints tables in Markdown: medians of the seconds of each part, the ratio, peak
memory, and the share of the matrix ceiling (2 N operations for a token sampled or scored, 6 N for one trained).
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import tempfile
from pathlib import Path
from typing import Any

from sides import Side
from workloads import PARTS, WORKLOADS, ceiling, make_model

SIDES = ("ours", "trl")


def measure(name: str, args: argparse.Namespace) -> dict[str, list[dict[str, Any]]]:
    """Every step of both sides, and the matrix products beside them."""
    workload = WORKLOADS[name]
    found: dict[str, list[dict[str, Any]]] = {side: [] for side in SIDES}
    with tempfile.TemporaryDirectory() as folder:
        make_model(workload, Path(folder))
        where = {"folder": Path(folder), "threads": args.threads}
        with (
            Side("ours", workload, size=args.micro_batch_tokens, **where) as ours,
            Side("trl", workload, size=args.rows, **where) as trl,
        ):
            turns = [("ours", ours), ("trl", trl)]
            for number in range(args.steps + 1):
                for name_of, side in turns if number % 2 else reversed(turns):
                    said = side.step(number)
                    print(f"{name}, step {number}, {name_of}: {sum(said['seconds'].values()):.2f} s", file=sys.stderr)
                    if number:  # the first is for warming up
                        found[name_of].append(said | {"ceiling": ceiling()})
    return found


def table(name: str, found: dict[str, list[dict[str, Any]]]) -> str:
    def seconds(side: str, *parts: str) -> float:
        return statistics.median(sum(said["seconds"][part] for part in parts) for said in found[side])

    lines = [f"**{name}**", "", "| | ours | TRL | ratio |", "|---|---:|---:|---:|"]
    for part in (*PARTS, "step"):
        ours, theirs = (seconds(side, *(PARTS if part == "step" else (part,))) for side in SIDES)
        ratio = f"{theirs / ours:.2f}" if ours > 0.005 < theirs else ""
        lines.append(f"| {part}, s | {ours:.2f} | {theirs:.2f} | {ratio} |")
    for key, label in (("above", "above the weights"), ("peak", "of the process")):
        ours, theirs = (max(said[key] for said in found[side]) / 2**20 for side in SIDES)
        lines.append(f"| peak memory {label}, MiB | {ours:,.0f} | {theirs:,.0f} | {theirs / ours:.2f} |")
    for label, share in (("step", _of_step), ("learning", _of_learning)):
        ours, theirs = (statistics.median(share(said) / said["ceiling"] for said in found[side]) for side in SIDES)
        lines.append(f"| {label}, share of the ceiling | {ours:.0%} | {theirs:.0%} | |")
    tops = [said["ceiling"] / 1e9 for side in SIDES for said in found[side]]
    spread = f"{statistics.median(tops):.0f} GFLOP/s in matrix products ({min(tops):.0f} to {max(tops):.0f})"
    lines += ["", f"{spread}; medians of {len(found['ours'])} steps."]
    return "\n".join(lines)


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
    parser.add_argument("--rows", type=int, default=64, help="TRL's per_device_train_batch_size [64]")
    parser.add_argument("--micro-batch-tokens", type=int, default=2048, help="ours [2048]")
    parser.add_argument("--out", type=Path, help="write every measurement here, as JSON")
    args = parser.parse_args()
    import torch

    torch.set_num_threads(args.threads)
    found = {name: measure(name, args) for name in ([args.only] if args.only else WORKLOADS)}
    if args.out:
        args.out.write_text(json.dumps(found))
    print("\n\n".join(table(name, steps) for name, steps in found.items()))


if __name__ == "__main__":
    main()
