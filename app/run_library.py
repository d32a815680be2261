"""The runs and evaluations that the dashboard shows, and the thread that updates the indexes of the runs."""

from __future__ import annotations

import sqlite3
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
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


class _LiveIndex:
    """A run's index as the thread knows it that updates all. Times are those of time.monotonic."""

    def __init__(self, run_dir: Path) -> None:
        self._run_dir = run_dir
        self.requested_at = -_ACTIVE  # time of the last query
        self.with_analysis = False  # whether a query needs the analysis
        self.updated_at = -inf  # start of the last update
        self.is_analysed = False  # all steps, by the last update
        self.has_more = False  # steps to analyse
        self._index: RolloutIndex | None = None  # open, unless the last update failed
        self._inode: int | None = None  # of the index file after the last update; None when that failed
        self._fault = ""  # of the last update

    def is_active(self, now: float) -> bool:
        return now - self.requested_at < _ACTIVE

    def is_kept_up(self, now: float, *, with_analysis: bool) -> bool:
        """Whether updates come without another request, into the index file that is there."""
        is_same_file = self.updated_at == -inf or self._inode == _inode(index_path(self._run_dir))
        return self.is_active(now) and self.with_analysis >= with_analysis and is_same_file

    def update(self, now: float) -> None:
        """Update the index, and analyse the first step that is not. One step alone: the indexes of other runs, and
        this one, are updated before the next.
        """
        inode, has_more, is_analysed = None, False, False
        try:
            index = self._opened()
            index.refresh()
            inode = index.path.stat().st_ino
            if self.with_analysis:
                has_more = study(index, limit=1) + classify(index, limit=1) > 0
                is_analysed = not has_more
            self._fault = ""
        except (ValueError, OSError, sqlite3.Error) as error:  # a run that is being deleted, a full disk
            self._give_up(str(error))
        except Exception as error:  # one run's content must not end the thread that serves all runs
            self._give_up(f"{type(error).__name__}: {error}")
        self._inode, self.has_more, self.is_analysed = inode, has_more, is_analysed
        self.updated_at = now  # last: who waits for it reads the others after it

    def _opened(self) -> RolloutIndex:
        """The open index; it is opened again if its file was deleted or replaced by another process."""
        if self._index is None or _inode(self._index.path) != self._inode:
            self.close()
            self._index = RolloutIndex(self._run_dir)
        return self._index

    def _give_up(self, fault: str) -> None:
        """Close the index until the next update, and print the fault unless it is that of the last one."""
        self.close()
        if self._fault != fault:
            self._fault = fault
            print(f"reasoner: the index of {self._run_dir} could not be updated: {fault}", file=sys.stderr)

    def close(self) -> None:
        if self._index is not None:
            self._index.close()
        self._index = None


def _inode(path: Path) -> int | None:
    """The inode of a file; None when there is none."""
    return path.stat().st_ino if path.is_file() else None


class _Updater:
    """One thread that updates all indexes. It sleeps while there are no queries."""

    def __init__(self) -> None:
        self._runs: dict[Path, _LiveIndex] = {}
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_hurried = self._is_closed = False

    def wake(self, run_dir: Path, *, with_analysis: bool, patience: float) -> None:
        """Request updates of the run's index. Wait up to `patience` seconds for one if the index was not being updated,
        or if its file was deleted or replaced since the last update.
        """
        with self._changed:
            now, run = time.monotonic(), self._runs.setdefault(run_dir, _LiveIndex(run_dir))
            is_kept_up = run.is_kept_up(now, with_analysis=with_analysis)
            run.with_analysis = with_analysis or (run.with_analysis and run.is_active(now))
            run.requested_at = now
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="indexes", daemon=True)
                self._thread.start()
            if not is_kept_up:
                self._is_hurried = True
                self._changed.notify_all()
                self._changed.wait_for(lambda: run.updated_at >= now and run.is_analysed >= with_analysis, patience)

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
                runs = [run for run in self._runs.values() if run.is_active(now)]
            for run in runs:
                run.update(now)
                with self._changed:
                    self._changed.notify_all()
            with self._changed:
                timeout = 0 if any(run.has_more for run in runs) else _PAUSE if runs else None
                self._changed.wait_for(lambda: self._is_hurried or self._is_closed, timeout)
        for run in self._runs.values():
            run.close()
