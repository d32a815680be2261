"""Pages of reflection over a run: rates, outcomes, association with correctness, and counts of any text."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.arguments import Count
from app.failures import excerpt_of
from app.run_library import RunLibrary
from reasoner.analysis.reflection import first_self_correction, gallery, timeline, totals, uplift
from reasoner.runs.filters import Filter
from reasoner.runs.rollout_table import RolloutTable
from verifiers.reflection.cues import LEXICON
from verifiers.reflection.outcomes import LABELS, OUTCOMES


def reflection(library: RunLibrary, run: str, label: str = "", offset: Count = 0, limit: Count = 12) -> dict[str, Any]:
    """Reflection in a run: timeline, totals, uplift within groups, and a page of the gallery of spans.

    `label`: show only spans with this label. With `limit` 0, with which an open page asks whether there is something
    new, the numbers of steps alone.
    """
    table = library.rollouts(run, with_analysis=True)
    progress = {"num_analyzed": len(list(table.analysed("reflection"))), "num_steps": len(table.steps)}
    if not limit:
        return progress
    lines = timeline(table)
    difference, problems = uplift(table)
    cards = gallery(table, limit=limit, offset=offset, label=label or None)
    return {
        **progress,
        "timeline": lines,
        "totals": {name: dict(counter) for name, counter in totals(lines).items()},
        "uplift": {"problems": problems, "difference": asdict(difference) if difference else None},
        "first_correction": first_self_correction(table),
        "kinds": list(LEXICON),
        "outcomes": OUTCOMES,
        "labels": list(LABELS),
        "gallery": [card | _excerpt(table, card) for card in cards],
    }


def _excerpt(table: RolloutTable, card: dict[str, Any]) -> dict[str, Any]:
    row = table.rollout(card["id"], with_tokens=False)
    around = excerpt_of(row["completion"], card["start"], card["end"])
    return {"question": row["question"], "gold": row["gold"], **around}


def words(library: RunLibrary, run: str, text: str) -> dict[str, Any]:
    """The share of each step's completions that hold a text, in capital or small letters."""
    table = library.rollouts(run)
    counts = table.counts_by_step(Filter(text=text))
    return {
        "text": text,
        "points": [{"step": row["step"], "share": counts.get(row["step"], 0) / row["rollouts"]} for row in table.steps],
        "total": sum(counts.values()),
    }
