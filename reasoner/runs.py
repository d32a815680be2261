"""Where runs are."""

from __future__ import annotations

from pathlib import Path


def find_run(name: str, runs: Path) -> Path:
    """The run of that folder or name. ValueError saying where it was looked for."""
    found = [path for path in (Path(name), runs / name) if (path / "config.json").is_file()]
    if not found:
        raise ValueError(f"no run {name!r}: neither {name} nor {runs / name} has a config.json")
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


def check_free(run_dir: Path) -> None:
    """ValueError where the folder of a new run holds something."""
    if run_dir.exists() and any(path.name != "lock" for path in run_dir.iterdir()):
        raise ValueError(f"{run_dir} is in use; choose another --run.name, or continue it with --resume {run_dir.name}")
