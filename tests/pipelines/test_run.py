"""The runner, with a program in the place of `reasoner` that writes runs at once, or waits to be killed."""

import json
import os
import signal
import subprocess
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reasoner.pipelines import run as module
from reasoner.pipelines.run import forward_signals, run_pipeline
from reasoner.pipelines.stages import StageTemplate, build_stages
from reasoner.pipelines.state import FILE
from reasoner.runs.run_start import lock_run_dir

ROOT = Path(__file__).parents[2]
PROGRAM = """
import json, os, sys, time
from pathlib import Path
words = sys.argv[2:]
print("printed by a stage")
value = {flag: own for flag, own in zip(words, words[1:])}
run = Path(value["--resume"]) if "--resume" in value else Path(value["--run.dir"]) / value["--run.name"]
here = Path(sys.argv[1])
with (here / "calls").open("a") as file:
    file.write(" ".join([words[0], *(["--resume"] if "--resume" in value else []), run.name]) + "\\n")
run.mkdir(exist_ok=True)
(run / "config.json").write_text("{}")
(run / "pid").write_text(str(os.getpid()))
while (here / f"hold-{run.name}").exists():
    time.sleep(0.01)
if (here / f"fail-{run.name}").exists():
    sys.exit(3)
(run / "data.json").write_text(json.dumps({"training_examples": int(value.get("--sft.rows", 0))}))
"""
PIPELINE = """
import sys
from pathlib import Path
from reasoner.pipelines.run import run_pipeline
from reasoner.pipelines.stages import StageTemplate, build_stages
here = Path(sys.argv[1])
templates = [StageTemplate(name, "part", "sft --data x --sft.rows 5") for name in ("a", "b", "c")]
stages = build_stages(templates, {}, name="p", runs=here)
program = [sys.executable, str(here / "program.py"), str(here)]
sys.exit(run_pipeline(here / "p", stages, recipe="test", settings={}, program=program))
"""


@pytest.fixture
def here(tmp_path):
    (tmp_path / "program.py").write_text(PROGRAM)
    return tmp_path


def start(here: Path, script: str = PIPELINE) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", script, str(here)]
    environment = os.environ | {"PYTHONPATH": str(ROOT)}
    return subprocess.Popen(command, env=environment, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def until(path: Path) -> None:
    end = time.monotonic() + 60
    while not path.exists() or not path.read_text():
        assert time.monotonic() < end, f"{path} was never written"
        time.sleep(0.01)


def is_alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
    except FileNotFoundError:
        return False


def calls(here: Path) -> list[str]:
    return (here / "calls").read_text().splitlines()


def states(here: Path) -> list[str]:
    return [stage["state"] for stage in json.loads((here / "p" / FILE).read_text())["stages"]]


def test_stages_run_in_order_once(here):
    first = start(here)
    out, err = first.communicate()
    assert first.returncode == 0, err
    assert calls(here) == ["sft p-a", "sft p-b", "sft p-c"] and states(here) == ["done"] * 3
    *printed, text = out.split("\n\n", 1)
    assert "".join(printed).splitlines() == ["printed by a stage"] * 3
    assert text.strip() == (here / "p" / "table.txt").read_text().strip() and "5 examples" in text
    assert "$ reasoner sft --data x --sft.rows 5" in err and "stage 2 of 3, part: b" in err
    again = start(here)
    assert again.communicate()[0].strip() == text.strip() and len(calls(here)) == 3


def test_output_of_stages_follows_that_of_the_pipeline(here):
    script = f"import contextlib, sys\nwith contextlib.redirect_stdout(sys.stderr):{textwrap.indent(PIPELINE, '    ')}"
    out, err = start(here, script).communicate()
    assert out == "" and err.count("printed by a stage") == 3 and "5 examples" in err


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_pipeline_that_was_stopped_goes_on_with_its_stage(here, number):
    (here / "hold-p-b").touch()
    first = start(here)
    until(here / "p-b" / "pid")
    first.send_signal(number)
    err = first.communicate()[1]
    pid, end = int((here / "p-b" / "pid").read_text()), time.monotonic() + 60
    while is_alive(pid):
        assert time.monotonic() < end, "the stage outlived its pipeline"
        time.sleep(0.01)
    if number == signal.SIGTERM:
        assert first.returncode == 128 + signal.SIGTERM and "stage b ended with status 143" in err
        assert states(here) == ["done", "stopped", "waiting"]
    (here / "hold-p-b").unlink()
    second = start(here)
    err = second.communicate()[1]
    assert second.returncode == 0 and "a is done" in err
    assert calls(here) == ["sft p-a", "sft p-b", "sft --resume p-b", "sft p-c"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_that_comes_before_the_process_reaches_it(number):
    with forward_signals() as forward_to:
        os.kill(os.getpid(), number)
        process = subprocess.Popen(["sleep", "60"])
        forward_to(process)
        assert process.wait(timeout=30) == -number


def test_a_stage_that_fails_ends_the_pipeline_with_its_status(here):
    (here / "fail-p-b").touch()
    first = start(here)
    err = first.communicate()[1]
    assert first.returncode == 3 and "the same command goes on with it" in err
    assert states(here) == ["done", "stopped", "waiting"]


def run_in_process(here: Path, script: str = "true") -> int:
    """Run the stages a, b and c here; the command of each is the shell script."""
    templates = [StageTemplate(name, "part", "sft --data x") for name in ("a", "b", "c")]
    stages = build_stages(templates, {}, name="p", runs=here)
    program = ("sh", "-c", f"echo $* >> {here}/calls; {script}", "sh")
    return run_pipeline(here / "p", stages, recipe="test", settings={}, program=program)


def test_an_old_run_is_not_taken_for_that_of_a_stage_that_has_not_begun(tmp_path):
    old = tmp_path / "p-b" / "config.json"
    old.parent.mkdir()
    old.write_text(text := '{"config": {}, "format": 2}')
    for _ in range(2):  # nor when the command is repeated
        with pytest.raises(ValueError, match=r"stage b has not begun, and the folder of its run, \S+p-b, is in use"):
            run_in_process(tmp_path)
        assert not (tmp_path / "calls").exists()
    old.unlink()
    with pytest.raises(ValueError, match="stage b has not begun"):  # it appears while stage a runs
        run_in_process(tmp_path, f"echo '{text}' > {old}")
    assert len(calls(tmp_path)) == 1 and states(tmp_path) == ["done", "waiting", "waiting"]


def test_a_stage_is_recorded_as_running_before_its_command_starts(tmp_path):
    assert run_in_process(tmp_path, f"grep -q running {tmp_path}/p/{FILE}") == 0


def test_records_are_read_by_the_process_that_holds_the_lock(tmp_path, monkeypatch):
    """A process that waited for another one goes on from the records of that one."""

    @contextmanager
    def lock_after_another_pipeline(folder: Path) -> Iterator[None]:
        monkeypatch.setattr(module, "lock_run_dir", lock_run_dir)
        assert run_in_process(tmp_path) == 0
        with lock_run_dir(folder):
            yield

    monkeypatch.setattr(module, "lock_run_dir", lock_after_another_pipeline)
    assert run_in_process(tmp_path) == 0
    assert len(calls(tmp_path)) == 3 and states(tmp_path) == ["done"] * 3


def test_a_run_that_another_process_holds_is_waited_for(here):
    with lock_run_dir(here / "p-a"):
        first = start(here)
        while "waiting for the process" not in (line := first.stderr.readline()):
            assert line, "it did not wait"
        assert not (here / "calls").exists()
    assert first.wait(timeout=60) == 0 and len(calls(here)) == 3
