"""Stars and notes on rollouts: runs/NAME/notes.jsonl, a line a change, the last one of a rollout holds."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

from app.library import Library
from app.run_files import read_notes
from reasoner.runs.json_files import is_file

_LONGEST = 10_000


def notes_of(run_dir: Path) -> dict[str, dict[str, Any]]:
    """By the rollout's name; a torn line is left out. ValueError for a damaged file."""
    found = {change["rollout"]: change for change in read_notes(run_dir)}
    return {name: change for name, change in found.items() if change["star"] or change["note"]}


def notes(library: Library, run: str) -> dict[str, Any]:
    """The starred and noted rollouts of a run, the latest first."""
    found = notes_of(library.run(run))
    with library.index(run) as index:
        rows = []
        for name, change in found.items():
            try:
                one = index.find(name)
            except ValueError:
                rows.append({"name": name, "is_missing": True, **change})
            else:
                rows.append({"name": name, "verdict": one.verdict, "problem": one.problem, "head": one.head, **change})
    return {"rows": sorted(rows, key=lambda row: -row["time"])}


def annotate(library: Library, run: str, name: str, star: bool = False, note: str = "") -> dict[str, Any]:
    """Star a rollout, or write a note on it; ValueError for a rollout that is not there, and for a note too long."""
    if len(note) > _LONGEST:
        raise ValueError(f"the note has {len(note):,} characters; at most {_LONGEST:,} are kept")
    run_dir = library.run(run)
    with library.index(run) as index:
        index.find(name)
    readable = note.encode("utf-8", "replace").decode()  # without half a pair of surrogates, which no reply can hold
    change = {"rollout": name, "star": star, "note": readable, "time": time.time()}
    path = run_dir / "notes.jsonl"
    is_file(path)
    with path.open("a+b") as file:
        file.seek(max(0, file.tell() - 1))
        is_torn = file.read() not in (b"", b"\n")
        file.write(b"\n" * is_torn + json.dumps(change).encode() + b"\n")
        file.flush()
        os.fsync(file.fileno())
    return change
