"""Runs that change while they are shown, and indexes that several processes use at once."""

import os
import signal
import subprocess
import sys
import threading
from itertools import pairwise
from pathlib import Path

import pytest

from reasoner.analysis.failures import classify
from reasoner.analysis.reflection import study
from reasoner.runs.index import RolloutIndex
from reasoner.runs.run_start import lock_run_dir
from reasoner.runs.run_state import is_live
from tests.app.library_of import until, write_run, write_step

ROOT = Path(__file__).parents[2]


HOLD = """
import sys, time
from pathlib import Path
from reasoner.runs.run_start import lock_run_dir
with lock_run_dir(Path(sys.argv[1])):
    print("held", flush=True)
    time.sleep(120)
"""


def test_run_is_live_while_another_process_holds_its_lock(fresh):
    runs, call = fresh
    run = write_run(runs / "a", steps=10, written=2, indexed=False)
    assert not is_live(run)
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(run)], stdout=subprocess.PIPE, text=True, cwd=ROOT)
    try:
        assert process.stdout.readline() == "held\n"
        assert [is_live(run) for _ in range(3)] == [True] * 3  # looking does not take the lock away
        assert call("runs")["runs"][0]["status"] == "live"
        with pytest.raises(ValueError, match="another process"), lock_run_dir(run):
            pass
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
    assert not is_live(run) and call("runs")["runs"][0]["status"] == "stopped"


def test_first_query_waits_for_index_and_later_shards_appear(fresh):
    runs, call = fresh
    run = write_run(runs / "a", steps=10, written=3, indexed=False)
    assert call("rollouts", run="a")["total"] == 36
    assert until(lambda: call("reflection", run="a")["num_analyzed"] == 3)
    write_step(run, 3)
    assert until(lambda: call("rollouts", run="a")["total"] == 48)
    assert until(lambda: call("reflection", run="a")["num_analyzed"] == 4)


def test_an_index_deleted_while_open_is_rebuilt(fresh):
    runs, call = fresh
    run = write_run(runs / "a", steps=10, written=3, indexed=False)
    assert call("rollouts", run="a")["total"] == 36
    for path in run.glob("index.sqlite*"):
        path.unlink()
    assert call("rollouts", run="a")["total"] == 36, "a query waits for the new index, also soon after the last query"
    write_step(run, 3)
    assert until(lambda: call("rollouts", run="a")["total"] == 48)


def test_only_the_folders_that_changed_are_checked_again_for_links(fresh, monkeypatch):
    runs, call = fresh
    run = write_run(runs / "a", steps=10, written=2)
    for step in range(50):
        (run / "checkpoints" / f"step-{step:06d}").mkdir(parents=True)
    call("overview", run="a")
    listed = []
    scan = os.scandir
    monkeypatch.setattr(os, "scandir", lambda path: listed.append(Path(path).name) or scan(path))
    write_step(run, 2)
    call("overview", run="a")
    assert "rollouts" in listed
    assert not {"checkpoints", "step-000000"} & set(listed)
    (run / "rollouts" / "step-000003.parquet").symlink_to(runs)
    with pytest.raises(ValueError, match="is a link that leads outside it"):
        call("overview", run="a")


def test_an_unexpected_error_in_a_run_is_named_once_and_other_runs_go_on(fresh, monkeypatch, capsys):
    runs, call = fresh
    for name in ("a", "b"):
        write_run(runs / name, steps=10, written=2, indexed=False)
    calls = []

    def failing(index, **_):
        calls.append(index.run_dir.name)
        raise AttributeError("no strip")

    monkeypatch.setattr("app.run_library.study", failing)
    monkeypatch.setattr("app.run_library._ANALYSIS_PATIENCE", 0.1)
    assert call("reflection", run="a")["num_analyzed"] == 0
    assert until(lambda: len(calls) > 2)
    assert call("rollouts", run="b")["total"] == 24
    write_step(runs / "a", 2)
    assert until(lambda: call("rollouts", run="a")["total"] == 36)
    assert capsys.readouterr().err.count("could not be updated: AttributeError: no strip") == 1


def test_indexes_are_refreshed_between_two_steps_that_are_analysed(fresh, monkeypatch):
    runs, call = fresh
    for name in ("a", "b"):
        write_run(runs / name, steps=10, written=4, indexed=False)
    events = []

    def spied_on(name, function):
        def spy(index, **limit):
            number = function(index, **limit)
            events.append((name, index.run_dir.name, number))
            return number

        return spy

    for name, function in (("study", study), ("classify", classify)):
        monkeypatch.setattr(f"app.run_library.{name}", spied_on(name, function))
    monkeypatch.setattr(RolloutIndex, "refresh", spied_on("refresh", RolloutIndex.refresh))
    call("rollouts", run="b")
    assert until(lambda: call("reflection", run="a")["num_analyzed"] == 4)
    names = [(name, run) for name, run, number in events if name == "refresh" or number]
    assert all(number <= 1 for name, _, number in events if name != "refresh")
    places = [place for place, event in enumerate(names) if event == ("study", "a")]
    assert len(places) == 4
    for start, end in pairwise(places):
        assert {("refresh", "a"), ("refresh", "b")} <= set(names[start:end])


def test_readers_and_a_writer_at_once_do_not_disturb_each_other(tmp_path):
    run = write_run(tmp_path / "a", steps=40, written=1)
    is_over = threading.Event()
    faults, counts = [], [[], []]

    def read(mine):
        index = RolloutIndex(run)
        try:
            while not is_over.is_set() or len(mine) < 100:
                mine.append(index.count())
                page = index.page(limit=500)
                assert len(page) % 12 == 0 and len(page) >= mine[-1]  # whole shards alone
                assert index.rows("SELECT COUNT(*) AS n FROM groups")[0]["n"] * 4 >= len(page)
                index.rollout(page[-1].id)
        except Exception as error:
            faults.append(error)
        finally:
            index.close()

    readers = [threading.Thread(target=read, args=(mine,)) for mine in counts]
    for reader in readers:
        reader.start()
    writer = RolloutIndex(run)
    for step in range(1, 25):
        write_step(run, step)
        writer.refresh()
    is_over.set()
    for reader in readers:
        reader.join(timeout=60)
    assert faults == [] and writer.count() == 12 * 25
    writer.close()
    for mine in counts:
        assert len(mine) >= 100 and mine == sorted(mine) and all(n % 12 == 0 for n in mine)


def test_an_index_may_be_opened_by_several_at_once_before_it_is_there(tmp_path):
    run = write_run(tmp_path / "a", steps=2, written=1, indexed=False)
    for _ in range(10):
        for path in run.glob("index.sqlite*"):
            path.unlink()
        start, faults = threading.Barrier(4), []

        def open_it(start=start, faults=faults):
            start.wait()
            try:
                index = RolloutIndex(run)
                index.refresh()
                index.close()
            except Exception as error:
                faults.append(error)

        threads = [threading.Thread(target=open_it) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert faults == []
        index = RolloutIndex(run)
        index.refresh()
        assert index.count() == 12
        index.close()
