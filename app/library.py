"""The runs and evaluations that the dashboard shows, and the thread that keeps their indexes up to date."""

from __future__ import annotations

import fcntl
import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from reasoner.analysis.reflection import study
from reasoner.runs.index import RolloutIndex
from reasoner.runs.json_files import is_file
from reasoner.runs.run_dir import check_inside

_PATIENCE = 1.5  # seconds that a question waits for an index that is being made
_ASKED = 30.0  # seconds after the last question in which a run's index is kept up to date
_PAUSE = 1.0


class Library:
    """Folders of runs and of evaluations. A name is looked up among what is there; it is never a path."""

    def __init__(self, runs: Path, evals: Path) -> None:
        self.runs_dir = runs
        self.evals_dir = evals
        self._inside: dict[Path, frozenset[tuple[str, int]]] = {}  # checked runs, and when their folders had changed
        self._keeper = _Keeper()

    def runs(self) -> list[Path]:
        """The folders of runs, damaged ones among them, the newest first."""
        names = ("config.json", "metrics.jsonl")
        found = [path for path in self.runs_dir.glob("*") if any(_is_there(path / name) for name in names)]
        return sorted(found, key=lambda path: (_changed(path / "config.json"), path.name), reverse=True)

    def run(self, name: str) -> Path:
        """ValueError for a name that is no run's, and for a run with links that lead outside it."""
        found = _named(name, self.runs(), "run", self.runs_dir)
        folders = frozenset((path.name, _changed(path)) for path in (found, *found.iterdir()) if path.is_dir())
        if self._inside.get(found) != folders:
            check_inside(found)
            self._inside[found] = folders
        return found

    def evals(self) -> dict[str, Path]:
        """The evaluations by name: those of the folder, and each run's held-out ones as RUN/before and RUN/after."""
        found = {path.name: path for path in self.evals_dir.glob("*")}
        found |= {f"{path.parents[1].name}/{path.name}": path for path in self.runs_dir.glob("*/heldout/*")}
        there = [(name, path) for name, path in found.items() if _is_there(path / "evaluation.json")]
        return dict(sorted(there, key=lambda item: -_changed(item[1])))

    def evaluation(self, name: str) -> Path:
        """ValueError for a name that is no evaluation's, and for an evaluation with links that lead outside it."""
        evals = self.evals()
        if name not in evals:
            raise ValueError(f"no evaluation {name!r} in {self.evals_dir} or under a run in {self.runs_dir}")
        if "/" in name:
            self.run(name.partition("/")[0])
        check_inside(evals[name], "evaluation")
        return evals[name]

    @contextmanager
    def index(self, name: str, *, studied: bool = False) -> Iterator[RolloutIndex]:
        """The run's index as far as it is made; a background thread brings it up to date while it is asked for.

        `studied`: its second thoughts as well. ValueError for a run that has no rollouts.
        """
        run_dir = self.run(name)
        self._keeper.wake(run_dir, studied=studied, patience=_PAUSE if studied else _PATIENCE)
        found = RolloutIndex(run_dir)
        try:
            yield found
        finally:
            found.close()

    def close(self) -> None:
        self._keeper.close()


def _is_there(path: Path) -> bool:
    """Whether something has the name, be it a link to nothing."""
    return path.exists() or path.is_symlink()


def _changed(path: Path) -> int:
    """When the file or the link was last changed, in nanoseconds; 0 where there is none."""
    try:
        return path.lstat().st_mtime_ns
    except FileNotFoundError:
        return 0


def _named(name: str, folders: list[Path], kind: str, where: Path) -> Path:
    for folder in folders:
        if folder.name == name:
            return folder
    raise ValueError(f"no {kind} {name!r} in {where}" + ("" if folders else f": there is no {kind} at all"))


class _Keeper:
    """One thread for all indexes. It sleeps while nobody asks."""

    def __init__(self) -> None:
        self._asked: dict[Path, tuple[float, bool]] = {}  # when last, and whether studies are wanted
        self._kept: dict[Path, tuple[float, bool]] = {}  # what was there then is indexed, and studied
        self._open: dict[Path, tuple[int, RolloutIndex]] = {}  # with the number of its file
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_hurried = self._is_closed = False

    def wake(self, run_dir: Path, *, studied: bool, patience: float) -> None:
        """Have the run's index kept up to date; where it was not, wait until it is."""
        with self._changed:
            now = time.monotonic()
            last, was_studied = self._asked.get(run_dir, (-_ASKED, False))
            is_kept = now - last < _ASKED and (was_studied or not studied)
            self._asked[run_dir] = (now, studied or (was_studied and now - last < _ASKED))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="indexes", daemon=True)
                self._thread.start()
            if not is_kept:
                self._is_hurried = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._is_kept(run_dir, now, studied), timeout=patience)

    def _is_kept(self, run_dir: Path, since: float, studied: bool) -> bool:
        began, was_studied = self._kept.get(run_dir, (0.0, False))
        return began >= since and was_studied >= studied

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._is_closed:
            with self._changed:
                now = time.monotonic()
                self._is_hurried = False
                wanted = {path: studied for path, (at, studied) in self._asked.items() if now - at < _ASKED}
            for path, studied in wanted.items():
                self._refresh(path, studied)
                with self._changed:
                    self._kept[path] = (now, studied)
                    self._changed.notify_all()
            with self._changed:
                timeout = _PAUSE if wanted else None
                self._changed.wait_for(lambda: self._is_hurried or self._is_closed, timeout)
        for _, index in self._open.values():
            index.close()

    def _refresh(self, run_dir: Path, studied: bool) -> None:
        try:
            index = self._index(run_dir)
            index.refresh()
            if studied:
                study(index)
            self._open[run_dir] = index.path.stat().st_ino, index
        except (ValueError, OSError, sqlite3.Error) as error:  # a run that is being deleted, a full disk
            self._forget(run_dir)
            print(f"reasoner: the index of {run_dir} could not be brought up to date: {error}", file=sys.stderr)

    def _index(self, run_dir: Path) -> RolloutIndex:
        """The open one, unless its file was deleted, or begun anew by another process."""
        if run_dir in self._open:
            inode, index = self._open[run_dir]
            if index.path.is_file() and index.path.stat().st_ino == inode:
                return index
            self._forget(run_dir)
        index = RolloutIndex(run_dir)
        self._open[run_dir] = index.path.stat().st_ino, index
        return index

    def _forget(self, run_dir: Path) -> None:
        if run_dir in self._open:
            self._open.pop(run_dir)[1].close()


def is_live(run_dir: Path) -> bool:
    """A process holds the run (reasoner.runs.rollouts.held). ValueError for a lock that is no file."""
    path = run_dir / "lock"
    if not is_file(path):
        return False
    try:
        with path.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            fcntl.flock(file, fcntl.LOCK_UN)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False
