"""Where runs are."""

from __future__ import annotations

from pathlib import Path


def find_run(name: str, runs: Path) -> Path:
    """The run of that folder or name. ValueError saying where it was looked for."""
    found = [path for path in (Path(name), runs / name) if (path / "config.json").is_file()]
    if not found:
        raise ValueError(f"no run {name!r}: neither {name} nor {runs / name} has a config.json")
    return found[0]


def check_free(run_dir: Path) -> None:
    """ValueError where the folder of a new run holds something."""
    if run_dir.exists() and any(path.name != "lock" for path in run_dir.iterdir()):
        raise ValueError(f"{run_dir} is in use; choose another --run.name, or continue it with --resume {run_dir.name}")
