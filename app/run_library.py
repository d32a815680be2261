"""The runs and evaluations that the dashboard shows, and the thread that updates the indexes of the runs."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from reasoner.analysis.failures import classify
from reasoner.analysis.reflection import study
from reasoner.runs.index import RolloutIndex
from reasoner.runs.index_file import index_path
from reasoner.runs.run_dir import check_inside, holds_model
from reasoner.runs.run_state import changed_at

_PATIENCE = 1.5  # seconds that a query waits for an index that is being built
_ANALYSIS_PATIENCE = 1.0  # the same for a query that needs the analysis
_ACTIVE = 30.0  # seconds after its last query during which a run's index is updated
_PAUSE = 1.0  # seconds between two updates


class RunLibrary:
    """The folders of runs and of evaluations. A name is looked up among their entries and never used as a path."""

    def __init__(self, runs: Path, evals: Path) -> None:
        self.runs_dir = runs
        self.evals_dir = evals
        # Runs whose links were checked, with their folders and the modification times of these at that time.
        self._inside: dict[Path, dict[Path, int]] = {}
        self._updater = _Updater()

    def runs(self) -> list[Path]:
        """The folders of runs, including damaged ones, the newest first."""
        folders = [path for path in self.runs_dir.glob("*") if _is_run(path)]
        return sorted(folders, key=lambda path: (changed_at(path / "config.json"), path.name), reverse=True)

    def run(self, name: str) -> Path:
        """The folder of a run. ValueError for an unknown name, and for a run with links that lead outside it."""
        runs = {path.name: path for path in self.runs()}
        if name not in runs:
            raise ValueError(f"no run {name!r} in {self.runs_dir}" + ("" if runs else ": there is no run at all"))
        self.check_links(runs[name])
        return runs[name]

    def check_links(self, run_dir: Path) -> None:
        """Raise ValueError for a run with links that lead outside its folder. A folder in it is checked again when it
        changes.
        """
        folders = {path: changed_at(path) for path in (run_dir, *run_dir.iterdir()) if path.is_dir()}
        known = self._inside.get(run_dir, {})
        if known != folders:
            check_inside(run_dir, parts=[path for path, changed in folders.items() if known.get(path) != changed])
            self._inside[run_dir] = folders

    def evals(self) -> dict[str, Path]:
        """The evaluations by name: those in the folder, and each run's held-out ones as RUN/before and RUN/after."""
        folders = {path.name: path for path in self.evals_dir.glob("*")}
        folders |= {f"{path.parents[1].name}/{path.name}": path for path in self.runs_dir.glob("*/heldout/*")}
        evaluations = [(name, path) for name, path in folders.items() if _exists(path / "evaluation.json")]
        return dict(sorted(evaluations, key=lambda item: -changed_at(item[1])))

    def evaluation(self, name: str) -> Path:
        """The folder of an evaluation. ValueError for an unknown name, and for one with links that lead outside it."""
        evals = self.evals()
        if name not in evals:
            raise ValueError(f"no evaluation {name!r} in {self.evals_dir} or under a run in {self.runs_dir}")
        if "/" in name:
            self.run(name.partition("/")[0])
        check_inside(evals[name], "evaluation")
        return evals[name]

    @contextmanager
    def index(self, name: str, *, with_analysis: bool = False) -> Iterator[RolloutIndex]:
        """Open a run's index as far as it is built; a background thread updates it while there are queries.

        `with_analysis`: have reflection spans and causes of failures found too. ValueError for a run without rollouts.
        """
        run_dir = self.run(name)
        patience = _ANALYSIS_PATIENCE if with_analysis else _PATIENCE
        self._updater.wake(run_dir, with_analysis=with_analysis, patience=patience)
        index = RolloutIndex(run_dir)
        try:
            yield index
        finally:
            index.close()

    def close(self) -> None:
        self._updater.close()


def _is_run(folder: Path) -> bool:
    """Whether the folder is that of a run, which may be damaged."""
    names = ("config.json", "metrics.jsonl")
    return any(_exists(folder / name) for name in names) and not holds_model(folder)


def _exists(path: Path) -> bool:
    """Whether there is anything at the path, including a link to nothing."""
    return path.exists() or path.is_symlink()


@dataclass(frozen=True, slots=True)
class _Update:
    """The last update of a run's index."""

    started_at: float  # by time.monotonic
    is_analysed: bool  # all steps, for a query that needs the analysis
    inode: int | None  # of the index file after the update; None when the update failed
    has_more: bool = False  # steps to analyse


class _Updater:
    """One thread that updates all indexes. It sleeps while there are no queries."""

    def __init__(self) -> None:
        self._requests: dict[Path, tuple[float, bool]] = {}  # time of the last query, and whether it needs the analysis
        self._updates: dict[Path, _Update] = {}
        self._open: dict[Path, tuple[int, RolloutIndex]] = {}  # with the inode of its file
        self._faults: dict[Path, str] = {}  # of the runs whose last update failed
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_hurried = self._is_closed = False

    def wake(self, run_dir: Path, *, with_analysis: bool, patience: float) -> None:
        """Request updates of the run's index. Wait up to `patience` seconds for one if the index was not being updated,
        or if its file was deleted or replaced since the last update.
        """
        with self._changed:
            now = time.monotonic()
            requested_at, had_analysis = self._requests.get(run_dir, (-_ACTIVE, False))
            is_active = now - requested_at < _ACTIVE
            self._requests[run_dir] = (now, with_analysis or (had_analysis and is_active))
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="indexes", daemon=True)
                self._thread.start()
            is_kept_up = is_active and (had_analysis or not with_analysis) and self._is_same_file(run_dir)
            if not is_kept_up:
                self._is_hurried = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: self._is_updated(run_dir, now, with_analysis), timeout=patience)

    def _is_same_file(self, run_dir: Path) -> bool:
        """Whether the run's index file is the one of the last update. True while the first update is not finished."""
        update = self._updates.get(run_dir)
        return update is None or update.inode == _inode(index_path(run_dir))

    def _is_updated(self, run_dir: Path, since: float, with_analysis: bool) -> bool:
        update = self._updates.get(run_dir)
        return update is not None and update.started_at >= since and update.is_analysed >= with_analysis

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
                runs = {path: analysis for path, (at, analysis) in self._requests.items() if now - at < _ACTIVE}
            has_more = False
            for path, with_analysis in runs.items():
                update = self._update(path, with_analysis=with_analysis, now=now)
                has_more |= update.has_more
                with self._changed:
                    self._updates[path] = update
                    self._changed.notify_all()
            with self._changed:
                timeout = 0 if has_more else _PAUSE if runs else None
                self._changed.wait_for(lambda: self._is_hurried or self._is_closed, timeout)
        for _, index in self._open.values():
            index.close()

    def _update(self, run_dir: Path, *, with_analysis: bool, now: float) -> _Update:
        """Update a run's index, and analyse the first step that is not. One step alone: the indexes of other runs, and
        of this one, are updated before the next.
        """
        inode = None
        try:
            index = self._index(run_dir)
            index.refresh()
            inode = index.path.stat().st_ino
            self._open[run_dir] = inode, index
            has_more = with_analysis and study(index, limit=1) + classify(index, limit=1) > 0
        except (ValueError, OSError, sqlite3.Error) as error:  # a run that is being deleted, a full disk
            self._give_up(run_dir, str(error))
        except Exception as error:  # one run's content must not end the thread that serves all runs
            self._give_up(run_dir, f"{type(error).__name__}: {error}")
        else:
            self._faults.pop(run_dir, None)
            return _Update(now, with_analysis and not has_more, inode, has_more)
        return _Update(now, False, inode)

    def _give_up(self, run_dir: Path, fault: str) -> None:
        """Close the index until the next update, and print the fault unless it is that of the last one."""
        self._forget(run_dir)
        if self._faults.get(run_dir) != fault:
            self._faults[run_dir] = fault
            print(f"reasoner: the index of {run_dir} could not be updated: {fault}", file=sys.stderr)

    def _index(self, run_dir: Path) -> RolloutIndex:
        """The open index of the run; it is opened again if its file was deleted or replaced by another process."""
        if run_dir in self._open:
            inode, index = self._open[run_dir]
            if _inode(index.path) == inode:
                return index
            self._forget(run_dir)
        index = RolloutIndex(run_dir)
        self._open[run_dir] = index.path.stat().st_ino, index
        return index

    def _forget(self, run_dir: Path) -> None:
        if run_dir in self._open:
            self._open.pop(run_dir)[1].close()


def _inode(path: Path) -> int | None:
    """The inode of a file; None when there is none."""
    return path.stat().st_ino if path.is_file() else None
