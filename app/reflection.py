"""Pages of reflection over a run: the metrics of `reasoner aha`, and counts of any words."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from app.run_library import Library
from reasoner.analysis import reflection as study
from reasoner.runs.filters import ROWS, match
from reasoner.runs.index import RolloutIndex
from verifiers.reflection.cues import LEXICON
from verifiers.reflection.outcomes import LABELS, OUTCOMES

_EXCERPT = 420  # characters around a span


def aha(library: Library, run: str, label: str = "", offset: int = 0, limit: int = 12) -> dict[str, Any]:
    """Reflection in a run: timeline, totals, uplift within groups, and a page of the gallery of spans.

    `label`: show only spans with this label.
    """
    with library.index(run, studied=True) as index:
        lines = study.timeline(index)
        uplift = study.uplift(index)
        counts = study.totals(lines)
        cards = study.gallery(index, limit=limit, offset=offset, label=label or None)
        return {
            "run": run,
            "studied": len(lines),
            "steps": len(index.rows("SELECT step FROM steps")),
            "timeline": lines,
            "totals": {name: dict(counter) for name, counter in counts.items()},
            "uplift": {"groups": uplift.groups, "difference": asdict(uplift.found) if uplift.found else None},
            "first_correction": _first(index),
            "kinds": list(LEXICON),
            "outcomes": OUTCOMES,
            "labels": list(LABELS),
            "gallery": [card | _excerpt(index, card) for card in cards],
        }


def _first(index: RolloutIndex) -> str | None:
    """The name of the first rollout with a self-correction whose answer is correct."""
    rows = index.rows("SELECT id FROM spans WHERE label <> 'cue' AND correct ORDER BY id LIMIT 1")
    return index.name(rows[0]["id"]) if rows else None


def _excerpt(index: RolloutIndex, card: dict[str, Any]) -> dict[str, Any]:
    row = index.rollout(card["id"])
    text: str = row["completion"]
    start = max(0, card["start"] - _EXCERPT // 2)
    end = min(len(text), card["end"] + _EXCERPT // 2)
    return {
        "question": row["question"],
        "gold": row["gold"],
        "excerpt": [text[start : card["start"]], text[card["start"] : card["end"]], text[card["end"] : end]],
        "cut": [start > 0, end < len(text)],
    }


def words(library: Library, run: str, text: str) -> dict[str, Any]:
    """The share of each step's completions that contain the words. ValueError for a text that cannot be searched."""
    with library.index(run) as index:
        counts = index.rows(
            f"SELECT rowid / {ROWS} AS step, COUNT(*) AS n FROM words WHERE words MATCH ? GROUP BY 1", [match(text)]
        )
        by_step = {row["step"]: row["n"] for row in counts}
        sizes = index.rows("SELECT step, rollouts FROM steps ORDER BY step")
        return {
            "text": text,
            "points": [{"step": row["step"], "share": by_step.get(row["step"], 0) / row["rollouts"]} for row in sizes],
            "total": sum(by_step.values()),
        }
