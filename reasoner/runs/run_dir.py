"""Where runs are."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any


def find_run(name: str, runs: Path) -> Path:
    """The run of that folder or name. ValueError saying where it was looked for."""
    found = [path for path in (Path(name), runs / name) if (path / "config.json").is_file()]
    if not found:
        begun = next((path for path in (Path(name), runs / name) if (path / "lock").is_file()), None)
        hint = f"; {way_out(begun)}" if begun is not None else ""
        raise ValueError(f"no run {name!r}: neither {name} nor {runs / name} has a config.json{hint}")
    check_inside(found[0])
    return found[0]


def check_inside(folder: Path, kind: str = "run") -> None:
    """ValueError where a link in the folder of a run, or of an evaluation, leads outside it or in a circle.

    Folders come from elsewhere too, and what is read, rewritten and pruned in one must not be somebody's other files.
    """
    root = folder.resolve()
    for path in root.rglob("*"):
        if path.is_symlink():
            try:
                is_inside = path.resolve().is_relative_to(root)
            except RuntimeError as error:  # Python 3.11 and 3.12 raise it for a circle of links
                raise ValueError(f"{path.relative_to(root)} in {kind} {folder} is a circle of links") from error
            if not is_inside:
                raise ValueError(f"{path.relative_to(root)} in {kind} {folder} is a link that leads outside it")


def read_settings(run_dir: Path) -> dict[str, Any]:
    """config.json of a run: `config`, `origin` and, in runs since there are some, `fingerprints`. ValueError naming
    the file where it is damaged.
    """
    path = run_dir / "config.json"
    try:
        found = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error
    if not isinstance(found, dict):
        raise ValueError(f"{path} is damaged: it holds no object")
    for name in ("config", "origin", "fingerprints"):
        if not isinstance(found.get(name, None if name == "config" else {}), dict):
            raise ValueError(f"{path} is damaged: its {name!r} is no object")
    return found


def way_out(run_dir: Path) -> str:
    """What to do with a run that cannot be resumed as its folder stands."""
    if is_unused(run_dir):
        return f"nothing was recorded in {run_dir} yet: start the run again with --run.name {run_dir.name}"
    checkpoints = sorted((run_dir / "checkpoints").glob("step-??????"))
    if not checkpoints:
        return "put the file back from a copy, or start a new run under another --run.name"
    return (
        "put the file back from a copy, or start a new run from its newest checkpoint: "
        f"reasoner train --model {checkpoints[-1]}"
    )


_BEFORE_STEPS = ("lock", "config.json", "versions.json", "tokenizer.json")  # what a run writes before its first step


def is_unused(run_dir: Path) -> bool:
    """Nothing was recorded in the folder, and its settings cannot be read, as where a run was killed while it began."""
    files = (path for path in run_dir.rglob("*") if path.is_symlink() or path.is_file())
    for path in files:
        is_ours = path.name.removesuffix(".partial") in _BEFORE_STEPS or path.name.startswith("index.sqlite")
        if not (is_ours and path.parent == run_dir) and (path.is_symlink() or path.stat().st_size):
            return False
    if not (run_dir / "config.json").is_file():
        return True
    try:
        read_settings(run_dir)
    except ValueError:
        return True
    return False


def check_free(run_dir: Path) -> None:
    """ValueError where the folder of a new run holds something."""
    if run_dir.exists() and not is_unused(run_dir):
        raise ValueError(f"{run_dir} is in use; choose another --run.name, or continue it with --resume {run_dir.name}")


def check_writable(folder: Path) -> None:
    """OSError where the folder cannot be made, or nothing can be written into it."""
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
    if not os.access(place, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
