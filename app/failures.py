"""Page of failures: why responses are wrong, by step, with examples."""

from __future__ import annotations

from typing import Annotated, Any

from pydantic import Field

from app.arguments import Count
from app.run_library import RunLibrary
from reasoner.analysis.failures import examples, timeline
from reasoner.runs.filters import CAUSES
from reasoner.runs.rollout_table import RolloutTable

_EXCERPT = 420  # characters of a response


def failures(
    library: RunLibrary, run: str, cause: str = "", offset: Count = 0, limit: Annotated[int, Field(ge=0, le=100)] = 12
) -> dict[str, Any]:
    """The causes of failures in a run: counts by step, and a page of examples, the latest step first.

    `cause`: examples of this cause alone. With `limit` 0, with which an open page asks whether there is something new,
    the numbers of steps alone. ValueError for an unknown cause.
    """
    if cause and cause not in CAUSES:
        raise ValueError(f"cause is {cause!r}; it must be one of {', '.join(CAUSES)}")
    table = library.rollouts(run, with_analysis=True)
    progress = {"num_analyzed": len(list(table.analysed("failures"))), "num_steps": len(table.steps)}
    if not limit:
        return progress
    lines = timeline(table)
    return {
        "causes": CAUSES,
        "timeline": lines,
        "totals": {name: sum(line["causes"][name] for line in lines) for name in CAUSES},
        "rollouts": sum(line["rollouts"] for line in lines),
        **progress,
        "examples": [_example(table, row) for row in examples(table, cause=cause, offset=offset, limit=limit)],
    }


def _example(table: RolloutTable, failure: dict[str, Any]) -> dict[str, Any]:
    """An example with the text around the failure's place, or with the end of the response if it has none."""
    row = table.rollout(failure["id"], with_tokens=False)
    text: str = row["completion"]
    place = (failure["start"], failure["end"]) if failure["end"] else (len(text), len(text))
    return {
        **{name: failure[name] for name in ("name", "cause", "detail")},
        **{name: row[name] for name in ("question", "gold", "extracted", "verdict")},
        **excerpt_of(text, *place),
    }


def excerpt_of(text: str, first: int, last: int) -> dict[str, Any]:
    """The text around [first, last): what is before it, in it and behind it, and whether either end is cut off."""
    start, end = max(0, first - _EXCERPT // 2), min(len(text), last + _EXCERPT // 2)
    return {"excerpt": [text[start:first], text[first:last], text[last:end]], "cut": [start > 0, end < len(text)]}
