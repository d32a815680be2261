"""Runs that change while they are shown, and are analysed meanwhile."""

import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reasoner.analysis.reflection import study
from reasoner.runs.rollout_table import RolloutTable
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
    run = write_run(runs / "a", steps=10, written=2, analysed=False)
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


def test_shards_appear_and_are_analysed(fresh):
    runs, call = fresh
    run = write_run(runs / "a", steps=10, written=3, analysed=False)
    assert call("rollouts", run="a")["total"] == 36
    assert until(lambda: call("reflection", run="a")["num_analyzed"] == 3)
    write_step(run, 3)
    assert call("rollouts", run="a")["total"] == 48
    assert until(lambda: call("reflection", run="a")["num_analyzed"] == 4)


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
        write_run(runs / name, steps=10, written=2, analysed=False)
    calls = []

    def failing(table, **_):
        calls.append(table.run_dir.name)
        raise AttributeError("no strip")

    monkeypatch.setattr("app.run_library.study", failing)
    monkeypatch.setattr("app.run_library._PATIENCE", 0.1)
    assert call("reflection", run="a")["num_analyzed"] == 0
    assert until(lambda: call("reflection", run="a") and len(calls) > 2)
    assert call("rollouts", run="b")["total"] == 24
    write_step(runs / "a", 2)
    assert call("rollouts", run="a")["total"] == 36
    assert capsys.readouterr().err.count("AttributeError: no strip") == 1


def test_runs_are_analysed_in_turn_a_step_each(fresh, monkeypatch):
    runs, call = fresh
    steps, is_open = [], threading.Event()

    def spy(table, **limit):
        assert is_open.wait(60)
        number = study(table, **limit)
        steps.extend([table.run_dir.name] * number)
        return number

    monkeypatch.setattr("app.run_library.study", spy)
    monkeypatch.setattr("app.run_library._PATIENCE", 0.01)
    for name in ("a", "b"):
        write_run(runs / name, steps=10, written=8, analysed=False)
        call("failures", run=name)
    is_open.set()
    assert until(lambda: [call("reflection", run=name)["num_analyzed"] for name in ("a", "b")] == [8, 8])
    assert steps.count("a") == steps.count("b") == 8 and steps.index("b") < 8


def test_tables_of_more_runs_than_are_kept_are_read_again(fresh, monkeypatch):
    runs, call = fresh
    monkeypatch.setattr("app.run_library._TABLES", 1)
    for name in ("a", "b"):
        write_run(runs / name, steps=2, written=1, analysed=False)
    assert [call("rollouts", run=name)["total"] for name in "abab"] == [12] * 4


def test_no_run_waits_for_the_rollouts_of_another(fresh, monkeypatch):
    runs, call = fresh
    is_begun, is_over, totals = threading.Event(), threading.Event(), []

    def read(run_dir):
        if run_dir.name == "large":
            is_begun.set()
            assert is_over.wait(60)
        return RolloutTable(run_dir)

    monkeypatch.setattr("app.run_library.RolloutTable", read)
    for name in ("large", "small"):
        write_run(runs / name, steps=2, written=1, analysed=False)
    reader = threading.Thread(target=lambda: totals.append(call("rollouts", run="large")["total"]))
    reader.start()
    assert is_begun.wait(60)
    other = threading.Thread(target=lambda: totals.append(call("rollouts", run="small")["total"]))
    other.start()
    other.join(timeout=30)
    early = [*totals]
    is_over.set()
    reader.join(timeout=60)
    other.join(timeout=60)
    assert early == [12] and totals == [12, 12]


def test_a_reader_sees_whole_steps_alone_while_they_are_written(tmp_path):
    run = write_run(tmp_path / "a", steps=40, written=1, analysed=False)
    is_over, counts = threading.Event(), []

    def read():
        table = RolloutTable(run)
        while not is_over.is_set():
            table = table.renewed()
            counts.append((table.count(), len(table.page()), sum(group["size"] for group in table.groups)))

    reader = threading.Thread(target=read)
    reader.start()
    for step in range(1, 25):
        write_step(run, step)
        assert until(lambda step=step: len(counts) > step // 8)  # a busy machine may let the reader wait
    is_over.set()
    reader.join(timeout=60)
    assert counts == sorted(counts) and RolloutTable(run).faults() == {}
    assert all(len(set(own)) == 1 and own[0] % 12 == 0 for own in counts)
