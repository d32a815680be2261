"""Pages of reflection over a run: the numbers of `reasoner reflection`, and counts of any words."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.arguments import Count
from app.failures import excerpt_of
from app.run_library import RunLibrary
from reasoner.analysis.reflection import gallery, timeline, totals, uplift
from reasoner.runs.index import RolloutIndex
from reasoner.runs.index_queries import first_self_correction, step_rows, word_counts
from verifiers.reflection.cues import LEXICON
from verifiers.reflection.outcomes import LABELS, OUTCOMES


def reflection(library: RunLibrary, run: str, label: str = "", offset: Count = 0, limit: Count = 12) -> dict[str, Any]:
    """Reflection in a run: timeline, totals, uplift within groups, and a page of the gallery of spans.

    `label`: show only spans with this label.
    """
    with library.index(run, with_analysis=True) as index:
        lines = timeline(index)
        association = uplift(index)
        cards = gallery(index, limit=limit, offset=offset, label=label or None)
        return {
            "num_analyzed": len(lines),
            "num_steps": len(step_rows(index)),
            "timeline": lines,
            "totals": {name: dict(counter) for name, counter in totals(lines).items()},
            "uplift": {
                "groups": association.groups,
                "difference": asdict(association.difference) if association.difference else None,
            },
            "first_correction": first_self_correction(index, LABELS[1:]),
            "kinds": list(LEXICON),
            "outcomes": OUTCOMES,
            "labels": list(LABELS),
            "gallery": [card | _excerpt(index, card) for card in cards],
        }


def _excerpt(index: RolloutIndex, card: dict[str, Any]) -> dict[str, Any]:
    row = index.rollout(card["id"])
    around = excerpt_of(row["completion"], card["start"], card["end"])
    return {"question": row["question"], "gold": row["gold"], **around}


def words(library: RunLibrary, run: str, text: str) -> dict[str, Any]:
    """The share of each step's completions that contain the words. ValueError for a text that cannot be searched."""
    with library.index(run) as index:
        counts = word_counts(index, text)
        steps = step_rows(index)
    return {
        "text": text,
        "points": [{"step": row["step"], "share": counts.get(row["step"], 0) / row["rollouts"]} for row in steps],
        "total": sum(counts.values()),
    }
