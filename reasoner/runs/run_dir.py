"""Run folders: find one by name, read its settings, and check whether a folder may be used for a new run."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from reasoner.runs.json_files import COUNT, NUMBER, OBJECT, TEXT, check, is_file, read_object

FORMAT = 2  # of the run folders that this version writes and reads
_STEP_PATTERN = "step-" + 6 * "[0-9]"  # glob pattern of a checkpoint's folder; not digits of other scripts


def holds_model(folder: Path) -> bool:
    """Whether the folder is a model's, with weights in it. Such a folder has a config.json as that of a run has."""
    return any(folder.glob("*.safetensors"))


def find_run(name: str, runs: Path) -> Path:
    """Find a run by its folder, or by its name in the folder `runs`. ValueError for the folder of a model, or of a run
    in another format.
    """
    candidates = (Path(name), runs / name)
    run_dir = next((path for path in candidates if (path / "config.json").is_file()), None)
    if run_dir is None:
        unfinished = next((path for path in candidates if (path / "lock").is_file()), None)
        hint = f"; {recovery_hint(unfinished)}" if unfinished is not None else ""
        raise ValueError(f"no run {name!r}: neither {name} nor {runs / name} has a config.json{hint}")
    if holds_model(run_dir):
        raise ValueError(f"{run_dir} is the folder of a model, and no run")
    check_inside(run_dir)
    try:
        stored = _read_config(run_dir / "config.json")
    except ValueError:  # it is damaged, which those who read it say
        return run_dir
    _check_format(stored, run_dir / "config.json")
    return run_dir


def list_checkpoints(run_dir: Path) -> list[Path]:
    """The run's checkpoints, oldest first."""
    return sorted((run_dir / "checkpoints").glob(_STEP_PATTERN))


_SETTINGS = {  # settings that readers show, with what they must be
    "steps": COUNT, "model": TEXT, "algo.name": TEXT, "imported": TEXT, "prompt.style": TEXT,
    "sampling.temperature": NUMBER, "sampling.max_tokens": NUMBER,
}  # fmt: skip


def _read_config(path: Path) -> dict[str, Any]:
    may = {"format": COUNT, "origin": OBJECT, "fingerprints": OBJECT, "reward_functions": OBJECT}
    stored = read_object(path, {"config": OBJECT}, may, allow_nan=True)
    check(stored["config"], path, {}, _SETTINGS)
    return stored


def _check_format(stored: Mapping[str, Any], path: Path) -> None:
    if (number := stored.get("format", "none")) != FORMAT:
        raise ValueError(
            f"{path} has format {number}, and this version of reasoner reads format {FORMAT}: start a new run, or "
            "export the old one with the version that made it"
        )


def check_inside(folder: Path, kind: str = "run", *, parts: Sequence[Path] | None = None) -> None:
    """Raise ValueError where a link in the folder of a run, or of an evaluation, leads outside it or in a circle.

    A folder may come from another machine, and reading, rewriting or pruning it must not touch files elsewhere.
    `parts`: check these alone: some of its subfolders, or the folder itself, then without its subfolders.
    """
    root = folder.resolve()
    for part in (folder,) if parts is None else parts:
        own = root if part == folder else root / part.name
        for path in _links(own, with_subfolders=parts is None or part != folder):
            try:
                is_inside = path.resolve().is_relative_to(root)
            except RuntimeError as error:  # Python 3.11 and 3.12 raise it for a circle of links
                raise ValueError(f"{path.relative_to(root)} in {kind} {folder} is a circle of links") from error
            if not is_inside:
                raise ValueError(f"{path.relative_to(root)} in {kind} {folder} is a link that leads outside it")


def _links(folder: Path, *, with_subfolders: bool) -> Iterator[Path]:
    """The links in a folder. Files are listed and not looked at: a run may have many thousands."""
    try:
        with os.scandir(folder) as entries:
            listed = list(entries)
    except (FileNotFoundError, NotADirectoryError, PermissionError):
        return
    for entry in listed:
        if entry.is_symlink():
            yield Path(entry.path)
        elif with_subfolders and entry.is_dir(follow_symlinks=False):
            yield from _links(Path(entry.path), with_subfolders=True)


def read_settings(run_dir: Path) -> dict[str, Any]:
    """Read config.json of a run: `format`, `config`; `stage`, `origin`, `fingerprints` and `reward_functions` if it has
    them.

    A setting may be infinite or NaN. ValueError that names the file when it is missing, damaged or of another format.
    """
    path = run_dir / "config.json"
    if not is_file(path):
        raise ValueError(f"{run_dir} has no config.json")
    stored = _read_config(path)
    _check_format(stored, path)
    return stored


def stage_of(stored: Mapping[str, Any]) -> str:
    """The stage of training (reasoner.config.stages) of a run with these settings: rl unless the file names another."""
    return str(stored.get("stage", "rl"))


def recovery_hint(run_dir: Path) -> str:
    """Advice for the user about a run that cannot be resumed from its folder as it is."""
    if is_unused(run_dir):
        return f"nothing was recorded in {run_dir} yet: start the run again with --run.name {run_dir.name}"
    checkpoints = list_checkpoints(run_dir)
    if not checkpoints:
        return "put the file back from a copy, or start a new run under another --run.name"
    return (
        "put the file back from a copy, or start a new run from its newest checkpoint: "
        f"reasoner train --model {checkpoints[-1]}"
    )


PROBLEM_FILES = ("problems.jsonl", "validation_problems.jsonl")  # problems that a run got from Python
INITIAL_MODEL = "initial_model"  # the folder of a model that came from Python
_BEFORE_STEPS = (  # files written before the first step
    "lock", "config.json", "versions.json", "tokenizer.json", "data.json", "sync.json", *PROBLEM_FILES,
)  # fmt: skip


def is_unused(run_dir: Path) -> bool:
    """Whether the folder has no records and no readable settings, as after a run was killed while it started."""
    files = (path for path in run_dir.rglob("*") if path.is_symlink() or path.is_file())
    for path in files:
        is_ours = path.name.removesuffix(".partial") in _BEFORE_STEPS
        is_ours = (is_ours and path.parent == run_dir) or path.parent == run_dir / INITIAL_MODEL
        if not is_ours and (path.is_symlink() or path.stat().st_size):
            return False
    if not (run_dir / "config.json").is_file():
        return True
    try:
        read_settings(run_dir)
    except ValueError:
        return True
    return False


def check_free(run_dir: Path) -> None:
    """Raise ValueError when the folder of a new run already holds a run or other files."""
    if run_dir.exists() and not is_unused(run_dir):
        raise ValueError(f"{run_dir} is in use; choose another --run.name, or continue it with --resume {run_dir.name}")


def nearest(folder: Path) -> Path:
    """The folder, or its nearest parent that exists."""
    return next(place for place in (folder, *folder.absolute().parents) if place.exists())


def check_writable(folder: Path) -> None:
    """Raise OSError when the folder cannot be created or written to."""
    place = nearest(folder)
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(place))
    if not os.access(place, os.W_OK | os.X_OK):
        reason = errno.EROFS if os.statvfs(place).f_flag & os.ST_RDONLY else errno.EACCES
        raise OSError(reason, os.strerror(reason), str(place))
