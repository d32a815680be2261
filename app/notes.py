"""Stars and notes on rollouts, in runs/NAME/notes.jsonl: one line per change; a rollout's last line counts."""

from __future__ import annotations

import re
import time
from collections import Counter
from pathlib import Path
from typing import Any

from app.run_library import RunLibrary
from reasoner.runs.json_files import FLAG, NUMBER, TEXT, append_line, is_file, read_lines

_LONGEST = 10_000
_TAG = re.compile(r"(?<![\w#&/])#(\w[\w-]*)")


_NOTE = {"rollout": TEXT, "star": FLAG, "note": TEXT, "time": NUMBER}


def notes_of(run_dir: Path) -> dict[str, dict[str, Any]]:
    """The latest star and note of each rollout, by the rollout's name; lines that were torn in writing are left out.
    ValueError for a damaged file.
    """
    changes = read_lines(run_dir / "notes.jsonl", _NOTE, torn="any")
    latest = {change["rollout"]: change for change in changes}
    return {name: change for name, change in latest.items() if change["star"] or change["note"]}


def notes(library: RunLibrary, run: str) -> dict[str, Any]:
    """List the starred and noted rollouts of a run, the latest first. Words with # before them are tags of a note."""
    notes_by_name = notes_of(library.run(run))
    table = library.rollouts(run)
    rows = []
    for name, change in notes_by_name.items():
        try:
            one = table.find(name)
        except ValueError:
            rows.append({"name": name, "is_missing": True, **change})
        else:
            rows.append({"name": name, "verdict": one.verdict, "problem": one.problem, "head": one.head, **change})
    rows = [row | {"tags": tags_of(row["note"])} for row in rows]
    tags = Counter(tag for row in rows for tag in row["tags"])
    return {"rows": sorted(rows, key=lambda row: -row["time"]), "tags": dict(sorted(tags.items()))}


def tags_of(note: str) -> list[str]:
    """The different tags of a note in order, in lower case: words with # before them."""
    return list(dict.fromkeys(tag.lower() for tag in _TAG.findall(note)))


def annotate(library: RunLibrary, run: str, name: str, star: bool = False, note: str = "") -> dict[str, Any]:
    """Star a rollout, or write a note on it. ValueError for a rollout that does not exist, and for a note too long."""
    if len(note) > _LONGEST:
        raise ValueError(f"the note has {len(note):,} characters; the limit is {_LONGEST:,}")
    run_dir = library.run(run)
    table = library.rollouts(run)
    table.find(name)
    readable = note.encode("utf-8", "replace").decode()  # without lone surrogates, which UTF-8 cannot encode
    change = {"rollout": name, "star": star, "note": readable, "time": time.time()}
    path = run_dir / "notes.jsonl"
    is_file(path)  # ValueError for a named pipe or a link to nothing
    append_line(path, change)
    return change
