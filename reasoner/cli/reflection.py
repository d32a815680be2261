"""`reasoner reflection`: self-checks, self-corrections and "aha" moments over a run."""

from __future__ import annotations

import argparse
from dataclasses import asdict
from typing import Any

from reasoner.cli.arguments import Parser, add_json, add_option, add_run, write_result
from reasoner.cli.rollouts import open_table

_EXCERPT = 70  # characters of a completion before the reflection; three times as many are shown in all


def add_arguments(command: Parser) -> None:
    command.set_defaults(handler=show_reflection)
    add_run(command)
    add_option(command, "--limit", "print the N highest-ranked examples, at least 1", 5)
    add_json(command, "all rates and examples")


def show_reflection(args: argparse.Namespace) -> None:
    """Print rates by step, outcomes, the difference in correctness, and the highest-ranked examples."""
    from reasoner.analysis import reflection
    from reasoner.console import print_result, shorten
    from reasoner.progress import shown_progress
    from verifiers.reflection.outcomes import OUTCOMES

    table = open_table(args)
    with shown_progress() as progress:
        reflection.study(table, progress=lambda done, steps: progress.count("steps analysed", done, steps))
    lines, uplift = reflection.timeline(table), reflection.uplift(table)
    cards = reflection.gallery(table, limit=args.limit)
    counts = reflection.totals(lines)
    texts = [table.rollout(card["id"])["completion"] for card in cards]
    if not lines:
        raise ValueError(f"run {args.name} has no rollouts yet")
    print_result("per 1,000 tokens (step 0 is the untrained model where the run began there)\n")
    _print_timeline(lines)
    print_result("\noutcomes: " + ", ".join(f"{name} {counts['outcomes'][name]:,}" for name in OUTCOMES))
    if uplift.difference is None:
        result = f"only {uplift.groups} groups have both, too few for an estimate"
    else:
        result = f"{uplift.difference} points over {uplift.groups} groups that have both"
    print_result(f"correct with reflection minus without: {result}")
    for card, text in zip(cards, texts, strict=True):
        start = max(0, card["start"] - _EXCERPT)
        title = f"{card['name']}  {card['label']} ({card['kind']}, {card['outcome']})"
        print_result(f"\n{title}\n  …{shorten(text[start:], 3 * _EXCERPT)}")
    if args.json is not None:
        difference = {"groups": uplift.groups, "difference": asdict(uplift.difference) if uplift.difference else None}
        totals = {name: dict(counter) for name, counter in counts.items()}
        write_result(args, {"timeline": lines, "totals": totals, "uplift": difference, "gallery": cards})


def _print_timeline(lines: list[dict[str, Any]]) -> None:
    """Print at most twelve of the steps, the first and the last among them."""
    from reasoner.console import print_result
    from reasoner.evals.tables import align_rows

    indices = sorted({round(i * (len(lines) - 1) / 11) for i in range(12)})
    rows = [["step", "reflecting", "cues", "self-corrections", "aha"]]
    for line in (lines[i] for i in indices):
        labels = line["labels"]
        corrections = labels["self-correction"] + labels["aha"]
        cues = f"{sum(labels.values()):.2f}"
        rows.append(
            [str(line["step"]), f"{line['reflecting']:.1%}", cues, f"{corrections:.2f}", f"{labels['aha']:.2f}"]
        )
    print_result("\n".join(align_rows(rows)))
