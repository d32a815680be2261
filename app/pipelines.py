"""The pipelines of the folder of runs, each as a row of stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.run_library import RunLibrary
from reasoner.pipelines.state import FILE, RUNNING, STOPPED, StageRecord, read_state
from reasoner.runs.run_state import changed_at, is_live


def pipelines(library: RunLibrary) -> list[dict[str, Any]]:
    """The pipelines, the last changed first. One that cannot be read has the reason and no stages."""
    paths = sorted(library.runs_dir.glob(f"*/{FILE}"), key=changed_at, reverse=True)
    return [_pipeline(library, path.parent) for path in paths]


def _pipeline(library: RunLibrary, folder: Path) -> dict[str, Any]:
    row: dict[str, Any] = {"name": folder.name, "recipe": "", "stages": [], "fault": None}
    try:
        library.check_links(folder)
        state = read_state(folder)
        if state is None:  # deleted since it was listed
            return row
        is_running = is_live(folder)
        return row | {"recipe": state.recipe, "stages": [_stage(one, is_running=is_running) for one in state.stages]}
    except (ValueError, OSError) as error:
        return row | {"fault": str(error)}


def _stage(record: StageRecord, *, is_running: bool) -> dict[str, Any]:
    """A stage; one that was running when its pipeline was killed counts as stopped."""
    was_killed = record.state == RUNNING and not is_running
    figures = record.figures
    return {
        "name": record.name,
        "part": record.part,
        "run": record.run,
        "command": list(record.command),
        "state": STOPPED if was_killed else record.state,
        "minutes": record.minutes,
        "pass@1": figures.get("pass@1"),
        "accuracy": figures.get("accuracy"),
        "sampled_tokens": figures.get("sampled_tokens"),
    }
