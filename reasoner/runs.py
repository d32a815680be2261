"""Where runs are."""

from __future__ import annotations

import errno
import os
from pathlib import Path


def find_run(name: str, runs: Path) -> Path:
    """The run of that folder or name. ValueError saying where it was looked for."""
    found = [path for path in (Path(name), runs / name) if (path / "config.json").is_file()]
    if not found:
        raise ValueError(f"no run {name!r}: neither {name} nor {runs / name} has a config.json")
    check_inside(found[0])
    return found[0]


def check_inside(run_dir: Path) -> None:
    """ValueError where a link in the run's folder leads outside it. Folders come from elsewhere too, and what is read,
    rewritten and pruned in one must not be somebody's other files.
    """
    root = run_dir.resolve()
    for path in root.rglob("*"):
        if path.is_symlink() and not path.resolve().is_relative_to(root):
            raise ValueError(f"{path.relative_to(root)} in run {run_dir} is a link that leads outside it")


def check_free(run_dir: Path) -> None:
    """ValueError where the folder of a new run holds something."""
    if run_dir.exists() and any(path.name != "lock" for path in run_dir.iterdir()):
        raise ValueError(f"{run_dir} is in use; choose another --run.name, or continue it with --resume {run_dir.name}")


def check_writable(folder: Path) -> None:
    """OSError where the folder cannot be made, or nothing can be written into it."""
    place = next(place for place in (folder, *folder.absolute().parents) if place.exists())
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
    if not os.access(place, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
