"""`reasoner aha`: reflection over a run (self-checks, self-corrections, "aha" moments), as the dashboard shows it."""

from __future__ import annotations

import argparse
import sys
from dataclasses import asdict
from typing import Any

from reasoner.cli.arguments import Parser, add_json, add_run
from reasoner.cli.rollouts import open_index

_EXCERPT = 70  # characters of a completion before the reflection; three times as many are shown in all


def add_arguments(command: Parser) -> None:
    """Add the arguments of the command."""
    command.set_defaults(handler=show_reflection)
    add_run(command)
    command.add_argument(
        "--limit", type=int, default=5, metavar="N", help="print the N highest-ranked examples, at least 1 [5]"
    )
    add_json(command, "the figures")


def show_reflection(args: argparse.Namespace) -> None:
    """Print rates by step, outcomes, the difference in correctness, and the highest-ranked examples."""
    from reasoner.analysis import reflection
    from reasoner.console import shortened
    from reasoner.runs.rollouts import write_json
    from verifiers.reflection.outcomes import OUTCOMES

    with open_index(args) as index:
        reflection.study(index, progress=_print_progress if sys.stderr.isatty() else None)
        lines, uplift = reflection.timeline(index), reflection.uplift(index)
        cards = reflection.gallery(index, limit=args.limit)
        counts = reflection.totals(lines)
        texts = [index.rollout(card["id"])["completion"] for card in cards]
    if not lines:
        raise ValueError(f"run {args.name} has no rollouts yet")
    print("per 1,000 tokens (step 0 is the untrained model where the run began there)\n")
    _print_timeline(lines)
    print("\nwhat came of them: " + ", ".join(f"{name} {counts['outcomes'][name]:,}" for name in OUTCOMES))
    if uplift.found is None:
        print(f"correct with reflection minus without: only {uplift.groups} groups have both, too few for an estimate")
    else:
        print(
            f"correct with reflection minus without: {uplift.found} points over {uplift.groups} groups that have both"
        )
    for card, text in zip(cards, texts, strict=True):
        start = max(0, card["start"] - _EXCERPT)
        about = f"{card['name']}  {card['label']} ({card['kind']}, {card['outcome']})"
        print(f"\n{about}\n  …{shortened(text[start:], 3 * _EXCERPT)}")
    if args.json is not None:
        difference = {"groups": uplift.groups, "difference": asdict(uplift.found) if uplift.found else None}
        totals = {name: dict(counter) for name, counter in counts.items()}
        write_json(args.json, {"timeline": lines, "totals": totals, "uplift": difference, "gallery": cards})


def _print_timeline(lines: list[dict[str, Any]]) -> None:
    """Print at most twelve of the steps, the first and the last among them."""
    from reasoner.evals.tables import aligned

    chosen = sorted({round(i * (len(lines) - 1) / 11) for i in range(12)})
    rows = [["step", "reflecting", "cues", "self-corrections", "aha"]]
    for line in (lines[i] for i in chosen):
        labels = line["labels"]
        corrections = labels["self-correction"] + labels["aha"]
        cues = f"{sum(labels.values()):.2f}"
        rows.append(
            [str(line["step"]), f"{line['reflecting']:.1%}", cues, f"{corrections:.2f}", f"{labels['aha']:.2f}"]
        )
    print("\n".join(aligned(rows)))


def _print_progress(done: int, steps: int) -> None:
    print(f"\rreading reflections: {done} of {steps} steps", end="\n" if done == steps else "", file=sys.stderr)
