"""The runner, with a function in the place of training that writes a run at once, or waits to be killed."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reasoner.recipes.pipeline import Function, Pipeline
from reasoner.recipes.stages import FILE
from reasoner.runs.run_start import lock_run_dir
from tests.fixtures.processes import wait_until_gone

ROOT = Path(__file__).parents[2]
SCRIPT = "import sys; from pathlib import Path; from tests.recipes.test_pipeline import run; run(Path(sys.argv[1]))"
CONFIG = '{"config": {}, "format": 2}'


def make_run(*, model: str, rows: int, name: str, runs: str, resume: bool = False) -> None:
    here, run_dir = Path(runs), Path(runs) / name
    with (here / "calls").open("a") as file:
        file.write(f"{name}{' resumed' * resume}\n")
    print("printed by a stage")
    run_dir.mkdir(exist_ok=True)
    (run_dir / "config.json").write_text(CONFIG)
    (run_dir / "pid").write_text(str(os.getpid()))
    while (here / f"hold-{name}").exists():
        time.sleep(0.01)
    if (here / f"fail-{name}").exists():
        raise ValueError(f"{name} fails")
    (run_dir / "data.json").write_text(json.dumps({"training_examples": rows}))


def write_file(out: str, *, text: str) -> None:
    Path(out).write_text(text)


def run(here: Path, names: str = "ab", *changes: str, rows: int = 5, function: Function = make_run) -> None:
    own = Pipeline("p", here, {}, changes)
    for name in names:
        own.run(name, function, model="base", rows=rows)
    own.start()


def start(here: Path) -> subprocess.Popen[str]:
    command, pipe = [sys.executable, "-c", SCRIPT, str(here)], subprocess.PIPE
    return subprocess.Popen(command, env=os.environ | {"PYTHONPATH": str(ROOT)}, stderr=pipe, stdout=pipe, text=True)


def until(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists() or not path.read_text():
        assert time.monotonic() < end, f"{path} was never written"
        time.sleep(0.01)


def calls(here: Path) -> list[str]:
    return (here / "calls").read_text().splitlines()


def done(here: Path) -> list[bool]:
    return [stage["results"] is not None for stage in json.loads((here / "p" / FILE).read_text())["stages"]]


def test_stages_run_in_order_once_and_only_the_table_is_on_standard_output(tmp_path, capfd):
    run(tmp_path)
    assert calls(tmp_path) == ["p-a", "p-b"] and done(tmp_path) == [True] * 2
    out, err = capfd.readouterr()
    assert out.strip() == (tmp_path / "p" / "table.txt").read_text().strip() and "5 examples" in out
    assert err.count("printed by a stage") == 2
    run(tmp_path)
    assert capfd.readouterr().out == out and len(calls(tmp_path)) == 2


@pytest.mark.parametrize("number", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)])
def test_a_pipeline_that_was_stopped_goes_on_with_its_stage(tmp_path, number):
    (tmp_path / "hold-p-b").touch()
    first = start(tmp_path)
    until(tmp_path / "p-b" / "pid")
    first.send_signal(number)
    first.communicate()
    assert wait_until_gone(int((tmp_path / "p-b" / "pid").read_text()), 60), "the stage outlived its pipeline"
    assert first.returncode != 0 and done(tmp_path) == [True, False]
    (tmp_path / "hold-p-b").unlink()
    run(tmp_path)
    assert calls(tmp_path) == ["p-a", "p-b", "p-b resumed"]


def test_stages_that_have_begun_keep_their_settings_and_others_may_change(tmp_path):
    (tmp_path / "fail-p-b").touch()
    with pytest.raises(ValueError, match="p-b fails"):
        run(tmp_path)
    assert done(tmp_path) == [True, False]
    (tmp_path / "fail-p-b").unlink()
    with pytest.raises(ValueError, match="stage a has begun with other settings"):
        run(tmp_path, rows=6)
    with pytest.raises(ValueError, match="stage b has begun, and these settings leave it out"):
        run(tmp_path, "a")
    run(tmp_path, "abc", "c:rows=7")
    assert json.loads((tmp_path / "p-c" / "data.json").read_text()) == {"training_examples": 7}


def test_a_setting_of_a_stage_that_has_begun_is_not_lost(tmp_path):
    (tmp_path / "fail-p-a").touch()
    with pytest.raises(ValueError, match="p-a fails"):
        run(tmp_path, "a", "a:optim.lr=0.1", function=with_settings)
    with pytest.raises(ValueError, match="stage a has begun with other settings"):
        run(tmp_path, "a", function=with_settings)


def with_settings(
    *, model: str, rows: int, settings: dict[str, float], name: str, runs: str, resume: bool = False
) -> None:
    make_run(model=model, rows=rows, name=name, runs=runs, resume=resume)


def test_an_old_run_is_not_taken_for_that_of_a_stage(tmp_path):
    old = tmp_path / "p-b" / "config.json"
    old.parent.mkdir()
    old.write_text(CONFIG)
    for _ in range(2):  # nor when the command is repeated
        with pytest.raises(ValueError, match=r"stage b has not begun, and \S+p-b is in use"):
            run(tmp_path)
        assert not (tmp_path / "calls").exists()


def test_a_file_is_a_stage_that_is_done_once(tmp_path):
    for _ in range(2):
        own = Pipeline("p", tmp_path, {})
        path = Path(own.file("text", write_file, out="text.txt", text="first"))
        own.start()
        assert path.read_text() in ("first", "kept")
        path.write_text("kept")
    assert path == tmp_path / "p" / "text.txt" and done(tmp_path) == [True]


def test_a_run_that_another_process_holds_is_waited_for_and_a_pipeline_that_runs_is_not_run_twice(tmp_path):
    with lock_run_dir(tmp_path / "p-a"):
        first = start(tmp_path)
        while "waiting for the process" not in (line := first.stderr.readline()):
            assert line, "it did not wait"
        assert not (tmp_path / "calls").exists()
    assert first.wait(timeout=60) == 0 and len(calls(tmp_path)) == 2
    with lock_run_dir(tmp_path / "p"), pytest.raises(ValueError, match="another process"):
        run(tmp_path)
