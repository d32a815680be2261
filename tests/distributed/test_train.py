"""`reasoner train` as several real processes: the numbers of one; what a signal, a kill and a fault leave behind."""

import os
import signal
import sys
import time
from contextlib import contextmanager
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from subprocess import PIPE, Popen

import numpy as np
import pytest
import torch

import reasoner
from reasoner.distributed.world import ALONE
from reasoner.runs.metrics import read_metrics
from reasoner.runs.rollouts import read
from reasoner.trainer.checkpoint import list_checkpoints
from tests.distributed import programs
from tests.distributed.runs import SMALL, arguments, content, finish, start
from tests.fixtures.forkserver import ROOT
from tests.fixtures.forkserver import finish as run_command
from tests.fixtures.ranks import run_ranks
from tests.fixtures.reward_models import save_reward_model
from tests.fixtures.switched_off import without
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.trainings import differing


def test_two_processes_have_the_numbers_of_one(unbroken):
    one, two = (read(unbroken[size] / "a", 0) for size in (1, 2))
    for name in ("problem_id", "token_ids", "verdict", "rewards", "advantage", "finish"):
        assert [row[name] for row in one] == [row[name] for row in two]
    lines = [read_metrics(unbroken[size] / "a") for size in (1, 2)]
    for alone, shared in zip(*lines, strict=True):
        metrics = {key: own for key, own in alone.items() if not key.startswith("time") and "per_second" not in key}
        assert {name: shared[name] for name in metrics} == pytest.approx(metrics, rel=1e-2, abs=2e-3)
    assert set(content(unbroken[1])) == set(content(unbroken[2]))
    untrained = [name for name in content(unbroken[1]) if name.startswith("heldout/before/")]
    assert untrained and not set(untrained) & set(differing(content(unbroken[1]), content(unbroken[2])))


@pytest.mark.timeout(900)
def test_two_processes_that_are_signalled_and_killed_end_with_equal_bytes(tmp_path, unbroken):
    commands = start(tmp_path, 2, signal_at=(signal.SIGTERM, "rollouts/step-000000.parquet"))
    assert [command.wait(timeout=200) for command in commands] == [143, 143], commands[0].errors()[-3000:]
    assert "stopped by SIGTERM; resume with" in commands[0].errors()
    assert len(read_metrics(tmp_path / "a")) == int(list_checkpoints(tmp_path / "a")[-1].name[-6:])
    commands = start(tmp_path, 2, signal_at=(signal.SIGKILL, "rollouts/step-000002.parquet"))
    assert commands[0].wait(timeout=200) not in (0, None)
    assert "rank 0 of 2, step " in commands[0].errors() and "another rank has ended" in commands[0].errors()
    finish(start(tmp_path, 2))
    assert differing(content(tmp_path), content(unbroken[2])) == []


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("weights", ["gathered", "sharded"])
def test_shards_have_the_numbers_of_one_and_the_same_bytes_after_signal_and_kill(tmp_path, unbroken, weights):
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    finish(start(straight, 2, optim__sharding=weights))
    one, two = (read(run / "a", 0) for run in (unbroken[1], straight))
    for name in ("problem_id", "token_ids", "verdict", "rewards", "advantage", "finish"):
        assert [row[name] for row in one] == [row[name] for row in two]
    for alone, shared in zip(read_metrics(unbroken[1] / "a"), read_metrics(straight / "a"), strict=True):
        assert shared["grad_norm"] == pytest.approx(alone["grad_norm"], rel=1e-2, abs=1e-4)
        assert shared["parity/logprob_diff_max"] < 1e-3
    first = (signal.SIGTERM, "rollouts/step-000000.parquet")
    commands = start(broken, 2, signal_at=first, optim__sharding=weights)
    assert [command.wait(timeout=200) for command in commands] == [143, 143], commands[0].errors()[-3000:]
    commands = start(broken, 2, signal_at=(signal.SIGKILL, "rollouts/step-000002.parquet"))
    assert commands[0].wait(timeout=200) not in (0, None)
    finish(start(broken, 2))
    assert differing(content(broken), content(straight)) == []
    more = run_command("train", "--resume", broken / "a", "--processes", "1", "--steps", "5").errors()
    assert "the run had 2 processes so far and goes on with 1" in more


def test_fault_of_one_rank_ends_all_with_its_rank_and_step(tmp_path):
    values = {"model": "base", "run.dir": str(tmp_path), **without("eval", without("validation", SMALL))}
    values |= {"processes": 2, "steps": 3}
    waiting, faulty = run_ranks(2, programs.train_with_fault, values, 1, 1)
    assert faulty.startswith("RankError: rank 1 of 2, step 1: RuntimeError: sampling of step 1 failed: ")
    assert "ZeroDivisionError: a fault of the reward" in faulty
    assert waiting.startswith("RankError: rank 0 of 2, step 1: ") and "another rank has ended" in waiting
    assert [path.name for path in list_checkpoints(tmp_path / "a")] == ["step-000001"]  # by the first rank alone


def test_fault_in_rollouts_that_a_rank_samples_ahead_is_told_to_the_others():
    assert run_ranks(2, programs.fault_ahead, seconds=5) == [
        "LostRankError: waited for the rollouts of the other ranks, and rank 1 has failed",
        "ZeroDivisionError: a fault of the engine",
    ]


def test_python_api_refuses_several_processes(tmp_path):
    with pytest.raises(ValueError, match="reasoner train --processes 2"):
        reasoner.train("base", runs=tmp_path, settings={"processes": 2})
    assert list(tmp_path.iterdir()) == []


def test_three_ranks_sample_validate_and_score_as_one_does(tmp_path):
    alone, three = tmp_path / "1", tmp_path / "3"
    alone.mkdir()
    three.mkdir()
    model = tiny_model(vocabulary=60, width=32, layers=2)
    head = torch.linspace(-1, 1, 32)
    folder = save_reward_model(tmp_path / "rm", model, tiny_tokenizer(), head=head, mean=0.3)
    calls = [partial(programs.refills, steps=3), partial(programs.refills, steps=2, num_problems=3)]
    calls.append(partial(programs.model_scores, folder=folder))
    (refills, again, scores), _ = programs.in_turn(ALONE, *calls), programs.validations(ALONE, alone)
    assert any(replaced for _, replaced, _ in refills)
    groups = [tuple(own) for _, _, tokens in again for own in tokens]
    assert len(groups) == 10 and len(set(groups)) > 7  # of five prompts a step on three problems
    assert len({value for own in scores for value in own}) > 10
    for own in run_ranks(3, programs.in_turn, *calls, partial(programs.validations, folder=three)):
        assert own[:2] == [refills, again]
        assert np.array(own[2]) == pytest.approx(np.array(scores), abs=1e-5)
    assert (three / "evals.jsonl").read_bytes() == (alone / "evals.jsonl").read_bytes()


@contextmanager
def launched(runs: Path, *more: str):
    """`reasoner train --processes 2` as a user starts it."""
    command = [sys.executable, "-m", "reasoner", *arguments(runs), *more]
    process = Popen(command, cwd=ROOT, stderr=PIPE, stdout=PIPE, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"})
    try:
        yield process
    finally:
        process.kill()
        process.communicate()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_processes_flag_starts_ranks_whose_first_rollouts_are_those_of_one(tmp_path, engine):
    if find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed")
    rows = {}
    for size in (1, 2):
        more = ("--processes", str(size), "--engine.name", engine, "--steps", "2")
        with launched(tmp_path / str(size), *more) as process:
            _, errors = process.communicate(timeout=280)
            assert process.returncode == 0, errors[-3000:]
        rows[size] = read(tmp_path / str(size) / "a", 0)
    assert [row["token_ids"] for row in rows[1]] == [row["token_ids"] for row in rows[2]]
    assert [row["advantage"] for row in rows[1]] == [row["advantage"] for row in rows[2]]


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_signal_to_the_launcher_ends_all_with_a_checkpoint(tmp_path, number):
    with launched(tmp_path, "--processes", "2", "--steps", "200", "--validation.interval", "1000") as process:
        while not (tmp_path / "a" / "rollouts" / "step-000001.parquet").exists() and process.poll() is None:
            time.sleep(0.01)
        process.send_signal(number)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 128 + number
    assert f"stopped by {number.name}; resume with" in errors and "Traceback" not in errors
    assert len(read_metrics(tmp_path / "a")) == int(list_checkpoints(tmp_path / "a")[-1].name[-6:])


@pytest.mark.slow
def test_error_of_one_rank_is_the_last_that_the_launcher_prints(tmp_path):
    function = "def fails(completions, **columns):\n    return [1 / (os.environ['RANK'] < '1') for _ in completions]\n"
    (tmp_path / "rewards.py").write_text(f"import os\n{function}")
    with launched(tmp_path, "--processes", "2", "--reward.functions", f"{tmp_path}/rewards.py:fails") as process:
        _, errors = process.communicate(timeout=200)
    *_, cause, hint = errors.splitlines()
    assert process.returncode == 1 and "resume with: reasoner train" in hint
    assert cause.startswith("reasoner: error: rank 1 of 2, step 0: ") and "ZeroDivisionError" in cause
    assert "elastic" not in errors and "exitcode" not in errors
