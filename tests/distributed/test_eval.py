"""`reasoner eval` as several ranks: the files of one process, whatever ends a rank."""

import signal
import subprocess
import sys
import time
from importlib.util import find_spec

import pytest

from tests.distributed import programs
from tests.distributed.runs import finish, start_ranks
from tests.fixtures.forkserver import ROOT
from tests.fixtures.ranks import run_ranks
from tests.fixtures.tiny import save_tiny

EVAL = ["eval", "--engine", "transformers", "--name", "x"]
SMALL = [*EVAL, "--max-tokens", "3", "--problems", "34", "--pass@1", "--cons@16", "--greedy"]  # two calls, and one
LARGE = [*EVAL, "--max-tokens", "5", "--problems", "96", "--pass@1", "--cons@32"]  # six calls


def written(out):
    """Every file of the evaluation but that of time and machine, and of the cache."""
    paths = [path for path in out.rglob("*") if path.is_file() and path.name != "run.json"]
    return {str(path.relative_to(out)): path.read_bytes() for path in paths}


def num_batches(out):
    return sum(path.read_bytes().count(b"\n") for path in (out / "cache").rglob("*.jsonl"))


def test_ranks_write_the_files_of_one_process(tmp_path):
    model = save_tiny(tmp_path / "tiny")
    for size in (1, 2):
        said = finish(start_ranks(size, *SMALL, "--model", model, "--out", tmp_path / str(size)))
    assert said.count("0 of 544 responses are cached") == 1  # by the first rank alone
    assert written(tmp_path / "1") == written(tmp_path / "2")


def test_refusal_is_one_line_of_the_first_rank(tmp_path):
    commands = start_ranks(2, *SMALL, "--model", tmp_path, "--out", tmp_path / "evals")
    assert [command.wait(timeout=100) for command in commands] == [2, 1]
    assert commands[0].errors().startswith("reasoner: error: ") and commands[0].errors().count("\n") == 1
    assert commands[1].errors() == ""


def test_error_of_one_rank_names_it():
    waiting, faulty = run_ranks(2, programs.evaluation_with_fault)
    assert faulty == "RankError: rank 1 of 2, 3 problems from p/0 on: ZeroDivisionError: a fault of the engine"
    assert waiting.startswith("RankError: rank 0 of 2, 3 problems from p/0 on: LostRankError: waited for the responses")
    assert "another rank has ended" in waiting


@pytest.mark.slow
@pytest.mark.parametrize("victim", [0, 1])
def test_evaluation_with_a_killed_rank_is_finished_by_any_number(tmp_path, victim):
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    finish(start_ranks(1, *LARGE, "--out", whole))
    commands = start_ranks(2, *LARGE, "--out", killed)
    while num_batches(killed) == 0 and all(command.poll() is None for command in commands):
        time.sleep(0.01)
    commands[victim].send_signal(signal.SIGKILL)
    assert commands[1 - victim].wait(timeout=100) == 1
    assert f"rank {1 - victim} of 2, " in commands[1 - victim].errors()
    assert 0 < num_batches(killed) < 6
    finish(start_ranks(3, *LARGE, "--out", killed))
    assert written(killed) == written(whole)


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_processes_flag_writes_the_files_of_one_process(tmp_path, engine):
    if find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed")
    for size in ("1", "2"):
        command = [sys.executable, "-m", "reasoner", *SMALL, "--engine", engine, "--processes", size]
        done = subprocess.run([*command, "--out", tmp_path / size], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr[-3000:]
    assert written(tmp_path / "1") == written(tmp_path / "2")
