"""A run that is killed and gone on with ends with the same bytes as one that was not."""

import json
import os
import pty
import random
import select
import shutil
import signal
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path

import pytest

from reasoner.api.training import Run
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.checkpoint import list_checkpoints
from tests.fixtures.forkserver import ROOT, TRAINING, ForkedCommand, forkserver
from tests.fixtures.tiny import save_tiny
from tests.fixtures.trainings import contents, differing, flags

SMALL = {
    "steps": 5, "data.prompts_per_step": 3, "algo.group_size": 4, "sampling.max_tokens": 24, "validation.interval": 2,
    "validation.problems": 2, "validation.samples": 2, "eval.heldout_problems": 2, "eval.samples": 2,
    "run.save_interval": 2, "threads": 1, "run.name": "a", "data.train": ROOT / "tests" / "fixtures" / "sums.jsonl",
}  # fmt: skip
SFT = {
    "sft.data": ROOT / "tests" / "fixtures" / "solutions.jsonl", "sft.rows": 4, "sft.epochs": 1,
    "sft.validation_share": 0.2, "sampling.max_tokens": 24, "validation.interval": 2, "validation.problems": 2,
    "validation.samples": 2, "eval.heldout_problems": 2, "eval.samples": 2, "run.save_interval": 2, "threads": 1,
    "run.name": "a", "optim.lr": 1e-3,
}  # fmt: skip
SETTINGS = {"train": SMALL, "sft": SFT}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> tuple[object, ...]:
    """Flags of a tiny model, of which the penalty on long responses gives a gradient."""
    model = save_tiny(tmp_path_factory.mktemp("tiny"))
    return ("--engine.name", "transformers", "--preset", "base", "--model", model)


@pytest.fixture(scope="module")
def by_pass_rates(tiny) -> tuple[object, ...]:
    """The flags of a run that chooses its problems by their pass rates so far."""
    more = ("--reward.overlong", 1, "--data.selection", "learnability", "--eval.heldout", SMALL["data.train"])
    return (*tiny, *more)


def command_of(runs: Path, more: tuple[object, ...], *, resume: bool, name: str = "train") -> list[str]:
    """Arguments of a training in `runs`; with `resume`, of one that goes on with run `a` if that has begun."""
    settings = flags(SETTINGS[name])
    if resume and (runs / "a" / "config.json").is_file():
        return [name, "--resume", str(runs / "a")]
    return [name, *("--model", "base") * ("--model" not in more), "--run.dir", str(runs), *settings, *map(str, more)]


def start(runs: Path, *more: object, resume: bool = False, name: str = "train", terminal: str = "") -> ForkedCommand:
    return forkserver(TRAINING).start(*command_of(runs, more, resume=resume, name=name), terminal=terminal)


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


def kill(runs: Path, moment: str, more: tuple[object, ...], name: str = "train") -> None:
    """Start or go on with the run, and end it with SIGKILL at the moment, if that comes before its end."""
    process, root, began = start(runs, *more, resume=True, name=name), runs / "a", time.monotonic()
    kind, _, number = moment.partition(" ")
    while process.poll() is None and time.monotonic() - began < 200:
        if kind == "seconds" and time.monotonic() - began > float(number):
            break
        if kind == "step" and (root / "rollouts" / f"step-{int(number):06d}.parquet.partial").exists():
            break
        if kind == "checkpoint" and (root / "checkpoints" / f"step-{int(number):06d}.partial").exists():
            break
        if kind == "best" and (root / "checkpoints" / "best.partial").exists():
            break
        if kind == "look" and (root / "evals.jsonl").exists() and len((root / "evals.jsonl").read_text()) > int(number):
            break
        if kind == "evaluation" and (root / "checkpoints" / "step-000005").exists():
            break
        if kind == "report" and (root / "heldout" / "after").exists():
            break
        time.sleep(0.001)
    process.kill()
    process.wait(timeout=20)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory, by_pass_rates) -> Path:
    runs: Path = tmp_path_factory.mktemp("straight")
    finish_from_nothing(runs, *by_pass_rates)
    state = json.loads((runs / "a" / "checkpoints" / "step-000004" / "trainer" / "state.json").read_text())
    assert sum(counts[0] for counts in state["pass_rates"].values()) == pytest.approx(12 * (1 + 0.9 + 0.81 + 0.729))
    assert max(line["grad_norm"] for line in read_metrics(runs / "a")) > 0
    return runs


def test_run_killed_three_times_ends_with_equal_bytes(tmp_path, uninterrupted, by_pass_rates):
    for moment in ("step 1", "checkpoint 4", "evaluation"):
        kill(tmp_path, moment, by_pass_rates)
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
    kill(killed, "checkpoint 2", tiny, name="sft")
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
    for moment in ("step 1", "checkpoint 4"):
        kill(killed, moment, more)
        assert (killed / "a" / "rollouts").is_dir()
    finish(killed, resume=True)
    found = content(killed)
    assert "checkpoints/step-000005/adapter_model.safetensors" in found
    assert not [name for name in found if name.endswith("/model.safetensors")]
    assert differing(found, content(straight)) == []


def test_signalled_run_saves_and_resumes_to_equal_bytes(tmp_path, uninterrupted, by_pass_rates):
    for number, status, step in ((signal.SIGINT, 130, 2), (signal.SIGTERM, 143, 3)):
        process = start(tmp_path, *by_pass_rates, resume=True)
        while process.poll() is None and not (tmp_path / "a" / "rollouts" / f"step-{step:06d}.parquet").exists():
            time.sleep(0.001)
        process.send_signal(number)
        assert process.wait(timeout=100) == status, process.errors()[-2000:]
        errors = process.errors()
        assert f"stopped by {number.name}; resume with: reasoner train --resume {tmp_path / 'a'}" in errors
        assert (
            list_checkpoints(tmp_path / "a")[-1].name == f"step-{step + 1:06d}"
            and len(read_metrics(tmp_path / "a")) == step + 1
        )
    finish(tmp_path, resume=True)
    assert differing(content(tmp_path), content(uninterrupted)) == []


@pytest.mark.slow  # SIGINT and SIGTERM are asked above
def test_run_whose_terminal_is_closed_saves_and_resumes_to_equal_bytes(tmp_path, uninterrupted, by_pass_rates):
    """A terminal that is closed while it is read, and one that has taken no more output for a while."""
    steps_done = 0
    for is_full in (False, True):
        shard = tmp_path / "a" / "rollouts" / f"step-{steps_done:06d}.parquet"
        master, device = pty.openpty()
        process = start(tmp_path, *by_pass_rates, resume=True, terminal=os.ttyname(device))
        while process.poll() is None and not shard.exists():
            if select.select([master], [], [], 0.001)[0]:
                os.read(master, 65536)
        if is_full:
            os.set_blocking(device, False)
            with suppress(BlockingIOError):
                while os.write(device, b"x" * 100):
                    pass
            time.sleep(0.3)
        os.close(device)
        os.close(master)
        assert process.wait(timeout=100) == 128 + signal.SIGHUP, process.errors()
        steps_before, steps_done = steps_done, len(read_metrics(tmp_path / "a"))
        assert steps_before < steps_done < SMALL["steps"]
        assert list_checkpoints(tmp_path / "a")[-1].name == f"step-{steps_done:06d}"
    finish(tmp_path, resume=True)
    assert differing(content(tmp_path), content(uninterrupted)) == []


def test_a_second_signal_ends_the_run_at_once(tmp_path, tiny):
    process = start(tmp_path, *tiny, "--steps", 500, "--validation.interval", 1000)
    while process.poll() is None and not (tmp_path / "a" / "rollouts" / "step-000001.parquet").exists():
        time.sleep(0.001)
    process.send_signal(signal.SIGTERM)
    process.send_signal(signal.SIGTERM)
    assert process.wait(timeout=20) in (-signal.SIGTERM, 143)
    assert not list((tmp_path / "a").rglob("*.partial")) or process.returncode == -signal.SIGTERM


def test_damaged_checkpoint_is_reported_and_rewritten_on_resume(tmp_path, uninterrupted):
    shutil.copytree(uninterrupted / "a", tmp_path / "a")
    weights = tmp_path / "a" / "checkpoints" / "step-000005" / "model.safetensors"
    weights.write_bytes(weights.read_bytes()[:-100])
    errors = finish(tmp_path, resume=True)
    assert "checkpoint step-000005 is damaged: model.safetensors not as written" in errors
    found, config = content(tmp_path), "config.json"
    found[config] = found[config].replace(str(uninterrupted).encode(), b"PLACE")
    assert differing(found, content(uninterrupted)) == []


@pytest.mark.slow
@pytest.mark.skipif(find_spec("vllm") is None, reason="no vLLM")
def test_run_killed_twenty_times_at_random_ends_with_equal_bytes(tmp_path):
    vllm = ("--engine.name", "vllm", "--steps", 12)
    finish(tmp_path / "straight", *vllm)
    draw = random.Random(7)
    places = [f"step {draw.randrange(12)}" for _ in range(5)] + [
        f"checkpoint {2 * draw.randint(1, 6)}" for _ in range(5)
    ]
    places += ["best", "look 1", "look 9000", "report"] + [f"seconds {draw.uniform(4, 30):.2f}" for _ in range(6)]
    draw.shuffle(places)
    for moment in places:
        kill(tmp_path / "killed", moment, vllm)
    finish(tmp_path / "killed", *vllm, resume=True)
    assert differing(content(tmp_path / "killed"), content(tmp_path / "straight")) == []
