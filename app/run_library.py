"""The runs and evaluations that the dashboard shows, and the thread that analyses the rollouts of the runs."""

from __future__ import annotations

import sys
import threading
import time
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

from reasoner.analysis.failures import classify
from reasoner.analysis.reflection import study
from reasoner.runs.rollout_table import ANALYSES, RolloutTable
from reasoner.runs.run_dir import check_inside, holds_model
from reasoner.runs.run_state import changed_at

_PATIENCE = 1.0  # seconds that a query waits for an analysis
_ACTIVE = 30.0  # seconds after its last query during which a run is analysed
_TABLES = 4  # runs whose rollouts are kept in memory


class RunLibrary:
    """The folders of runs and of evaluations. A name is looked up among their entries and never used as a path."""

    def __init__(self, runs: Path, evals: Path) -> None:
        self.runs_dir = runs
        self.evals_dir = evals
        # Runs whose links were checked, with their folders and the modification times of these at that time.
        self._inside: dict[Path, dict[Path, int]] = {}
        self._tables: dict[Path, RolloutTable] = {}  # by run, that of the latest query last
        self._lock = threading.Lock()
        # By run, while its rollouts are read: those of a large one take seconds, for which no other run waits.
        self._reading: dict[Path, threading.Lock] = defaultdict(threading.Lock)
        self._analyst = _Analyst(self._table)

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

    def rollouts(self, name: str, *, with_analysis: bool = False) -> RolloutTable:
        """The rollouts of a run as they are now. ValueError for a run without rollouts.

        `with_analysis`: have a thread find reflection spans and causes of failures too, as long as there are queries.
        """
        run_dir = self.run(name)
        table = self._table(run_dir)
        if with_analysis:
            self._analyst.wake(run_dir, table)
        return table

    def _table(self, run_dir: Path) -> RolloutTable:
        with self._lock:
            reading = self._reading[run_dir]
        with reading:
            table = self._tables.get(run_dir)
            table = RolloutTable(run_dir) if table is None else table.renewed()
            with self._lock:
                self._tables.pop(run_dir, None)
                self._tables[run_dir] = table
                if len(self._tables) > _TABLES:
                    self._tables.pop(next(iter(self._tables)))
            return table

    def close(self) -> None:
        self._analyst.close()


def _is_run(folder: Path) -> bool:
    """Whether the folder is that of a run, which may be damaged."""
    names = ("config.json", "metrics.jsonl")
    return any(_exists(folder / name) for name in names) and not holds_model(folder)


def _exists(path: Path) -> bool:
    """Whether there is anything at the path, including a link to nothing."""
    return path.exists() or path.is_symlink()


class _Analyst:
    """A thread that analyses the runs that are looked at, a step of each in turn. It sleeps where none is new."""

    def __init__(self, table_of: Callable[[Path], RolloutTable]) -> None:
        self._table_of = table_of
        self._requests: dict[Path, float] = {}  # by run that is not analysed: time of the last query
        self._faults: dict[Path, str] = {}  # by run: of the last analysis
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None
        self._is_closed = False

    def wake(self, run_dir: Path, table: RolloutTable) -> None:
        """Request the analysis of a run if a step lacks it, and wait a little for it to be complete."""

        def is_complete() -> bool:
            return not any(map(table.lacking, ANALYSES))

        if is_complete():
            return
        with self._changed:
            self._requests[run_dir] = time.monotonic()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="analysis", daemon=True)
                self._thread.start()
            self._changed.notify_all()
            self._changed.wait_for(lambda: run_dir not in self._requests or is_complete(), _PATIENCE)

    def close(self) -> None:
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        if self._thread is not None:
            self._thread.join(timeout=5)

    def _run(self) -> None:
        while not self._is_closed:
            for run_dir, requested_at in list(self._requests.items()):
                has_more = self._analyse_step(run_dir) and time.monotonic() - requested_at < _ACTIVE
                with self._changed:
                    if not has_more and self._requests[run_dir] == requested_at:
                        del self._requests[run_dir]
                    self._changed.notify_all()
            with self._changed:
                self._changed.wait_for(lambda: self._requests or self._is_closed)

    def _analyse_step(self, run_dir: Path) -> bool:
        """Analyse the first shard that is not yet; returns whether there was one."""
        try:
            table, fault = self._table_of(run_dir), ""
            is_new = study(table, limit=1) + classify(table, limit=1) > 0
        except Exception as error:  # one run's content must not end the thread that serves all runs
            is_new, fault = False, f"{type(error).__name__}: {error}"
            if self._faults.get(run_dir) != fault:
                print(f"reasoner: {run_dir} could not be analysed: {fault}", file=sys.stderr)
        self._faults[run_dir] = fault
        return is_new
