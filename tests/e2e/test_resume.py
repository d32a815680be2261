"""A run that is killed and gone on with ends with the same bytes as one that was not."""

import os
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from reasoner.api.training import Run
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.checkpoint import list_checkpoints
from tests.fixtures.forkserver import ROOT, TRAINING, ForkedCommand, forkserver
from tests.fixtures.tiny import save_tiny
from tests.fixtures.trainings import contents, differing, flags

FIXTURES = ROOT / "tests" / "fixtures"
COMMON = {
    "sampling.max_tokens": 12, "validation.interval": 2, "validation.problems": 2, "validation.samples": 2,
    "eval.heldout_problems": 2, "eval.samples": 2, "run.save_interval": 2, "threads": 1, "run.name": "a",
}  # fmt: skip
SMALL = {"steps": 5, "data.prompts_per_step": 3, "algo.group_size": 4, "data.train": FIXTURES / "sums.jsonl"} | COMMON
SFT = {"sft.data": FIXTURES / "solutions.jsonl", "sft.rows": 4, "sft.epochs": 1, "sft.validation_share": 0.2} | COMMON
SFT |= {"optim.lr": 1e-3}
SETTINGS = {"train": SMALL, "sft": SFT}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> tuple[object, ...]:
    """Flags of a tiny model, of which the penalty on long responses gives a gradient."""
    folder = save_tiny(tmp_path_factory.mktemp("tiny"), layers=1)
    return ("--engine.name", "transformers", "--preset", "base", "--model", folder)


@pytest.fixture(scope="module")
def penalised(tiny) -> tuple[object, ...]:
    """The flags of a run with a gradient, that of the penalty on long responses."""
    return (*tiny, "--reward.overlong", 1, "--eval.heldout", "one-step:heldout")


def command_of(runs: Path, more: tuple[object, ...], *, resume: bool, name: str = "train") -> list[str]:
    """Arguments of a training in `runs`; with `resume`, of one that goes on with run `a` if that has begun."""
    settings = flags(SETTINGS[name])
    if resume and (runs / "a" / "config.json").is_file():
        return [name, "--resume", str(runs / "a")]
    return [name, *("--model", "base") * ("--model" not in more), "--run.dir", str(runs), *settings, *map(str, more)]


def start(
    runs: Path, *more: object, resume: bool = False, name: str = "train", signal_at: tuple[int, Path] | None = None
) -> ForkedCommand:
    return forkserver(TRAINING).start(*command_of(runs, more, resume=resume, name=name), signal_at=signal_at)


def finish(runs: Path, *more: object, resume: bool = False, name: str = "train") -> str:
    command = start(runs, *more, resume=resume, name=name)
    assert command.wait(timeout=300) == 0, command.errors()[-3000:]
    return command.errors()


def finish_from_nothing(runs: Path, *more: object) -> None:
    """Train in a process that starts from nothing: no import and no hash seed is shared with the forked ones."""
    command = [sys.executable, "-m", "reasoner", *command_of(runs, more, resume=False)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, env=environment, check=False)
    assert done.returncode == 0, done.stderr[-3000:]


def content(runs: Path) -> dict[str, bytes]:
    """Every file of the run but what a clock says, with the name of its folder taken out."""
    return contents(runs / "a", runs)


def kill(runs: Path, path: str, more: tuple[object, ...], name: str = "train") -> None:
    """Start or go on with the run, and end it with SIGKILL when this path is there in its folder."""
    process = start(runs, *more, resume=True, name=name, signal_at=(signal.SIGKILL, runs / "a" / path))
    assert process.wait(timeout=300) == -signal.SIGKILL, process.errors()[-3000:]


# A step that is being written, and the last checkpoint, which the final evaluation follows. While a checkpoint is
# written: test_faults.py.
MOMENTS = ("rollouts/step-000001.parquet.partial", "checkpoints/step-000005")


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, penalised) -> Path:
    runs: Path = tmp_path_factory.mktemp("straight")
    finish_from_nothing(runs, *penalised)
    assert max(line["grad_norm"] for line in read_metrics(runs / "a")) > 0
    return runs


def test_run_killed_twice_ends_with_equal_bytes(tmp_path, uninterrupted, penalised):
    for path in MOMENTS:
        kill(tmp_path, path, penalised)
    assert Run(tmp_path / "a").state == "trained"
    finish(tmp_path, resume=True)
    found = content(tmp_path)
    records = {"metrics.jsonl", "evals.jsonl", "config.json", "report.json", "rollouts/step-000004.parquet"}
    weights = {"model.safetensors", "trainer/optimizer.safetensors"}
    assert records | {f"checkpoints/step-000005/{name}" for name in weights} <= found.keys()
    assert differing(found, content(uninterrupted)) == []


def test_supervised_run_that_is_killed_ends_with_equal_bytes(tmp_path, tiny):
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    finish(straight, *tiny, name="sft")
    kill(killed, "checkpoints/step-000002.partial", tiny, name="sft")
    finish(killed, resume=True, name="sft")
    files = content(killed)
    assert {"metrics.jsonl", "data.json", "checkpoints/step-000004/trainer/optimizer.safetensors"} <= files.keys()
    assert differing(files, content(straight)) == []


@pytest.mark.skipif(find_spec("peft") is None, reason="peft is not installed")
@pytest.mark.slow
@pytest.mark.parametrize("engine", ["transformers", "vllm"])
def test_lora_run_killed_twice_ends_with_equal_bytes(tmp_path, engine):
    if find_spec(engine) is None:
        pytest.skip(f"{engine} is not installed")
    more = ("--engine.name", engine, "--lora.rank", "4", "--optim.lr", "1e-3")
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    finish_from_nothing(straight, *more)
    for path in (MOMENTS[0], "checkpoints/step-000004.partial"):
        kill(killed, path, more)
        assert (killed / "a" / "rollouts").is_dir()
    finish(killed, resume=True)
    found = content(killed)
    assert "checkpoints/step-000005/adapter_model.safetensors" in found
    assert not [name for name in found if name.endswith("/model.safetensors")]
    assert differing(found, content(straight)) == []


@pytest.mark.slow  # SIGINT: tests/test_api.py; SIGTERM: of two processes, tests/distributed/test_train.py
def test_signalled_run_saves_and_resumes_to_equal_bytes(tmp_path, uninterrupted, penalised):
    for number, status, step in ((signal.SIGINT, 130, 2), (signal.SIGTERM, 143, 3)):
        shard = tmp_path / "a" / "rollouts" / f"step-{step:06d}.parquet"
        process = start(tmp_path, *penalised, resume=True, signal_at=(number, shard))
        assert process.wait(timeout=100) == status, process.errors()[-2000:]
        errors = process.errors()
        assert f"stopped by {number.name}; resume with: reasoner train --resume {tmp_path / 'a'}" in errors
        assert list_checkpoints(tmp_path / "a")[-1].name == f"step-{step + 1:06d}"
        assert len(read_metrics(tmp_path / "a")) == step + 1
    finish(tmp_path, resume=True)
    assert differing(content(tmp_path), content(uninterrupted)) == []
