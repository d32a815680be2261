"""The pipelines of the folder of runs, each as a row of stages."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from app.run_library import RunLibrary
from reasoner.recipes.stages import FILE, Stage, read_state
from reasoner.runs.run_state import changed_at


def pipelines(library: RunLibrary) -> list[dict[str, Any]]:
    """The pipelines, the last changed first. One that cannot be read has the reason and no stages."""
    paths = sorted(library.runs_dir.glob(f"*/{FILE}"), key=changed_at, reverse=True)
    return [_pipeline(library, path.parent) for path in paths]


def _pipeline(library: RunLibrary, folder: Path) -> dict[str, Any]:
    try:
        library.check_links(folder)
        return {"name": folder.name, "stages": list(map(_stage, read_state(folder).stages)), "fault": None}
    except (ValueError, OSError) as error:
        return {"name": folder.name, "stages": [], "fault": str(error)}


def _stage(stage: Stage) -> dict[str, Any]:
    """A stage and its results. The state of its run is in the list of runs."""
    results = stage.results or {}
    figures = {name: results.get(name) for name in ("minutes", "pass@1", "accuracy", "sampled_tokens")}
    return {"name": stage.name, "run": stage.run, "call": stage.call, "is_done": stage.results is not None, **figures}
