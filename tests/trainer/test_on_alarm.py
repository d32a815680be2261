"""A run that goes wrong, for a real reason: a learning rate that destroys the model."""

import contextlib
import io
from pathlib import Path

import pytest

from reasoner.cli.main import main
from reasoner.runs.health import read_alarms
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.checkpoint import list_checkpoints
from tests.fixtures.tiny import save_tiny
from tests.fixtures.trainings import flags

SETTINGS = {
    "preset": "base", "engine.name": "transformers", "steps": 12, "data.prompts_per_step": 3, "algo.group_size": 4,
    "sampling.max_tokens": 24, "reward.overlong": 1, "validation.interval": 0, "eval.heldout_problems": 0,
    "run.save_interval": 2, "threads": 1, "run.name": "a", "optim.warmup_steps": 0, "optim.lr": 0.2,
    "data.train": Path(__file__).parents[1] / "fixtures" / "sums.jsonl",
}  # fmt: skip


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny"))


def train(model: Path, runs: Path, *, on_alarm: str) -> tuple[int, str]:
    """Exit status and standard error of a run `a`."""
    settings = SETTINGS | {"model": model, "run.dir": runs, "run.on_alarm": on_alarm}
    return run_command("train", *flags(settings))


def run_command(*arguments: object) -> tuple[int, str]:
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        status = main(list(map(str, arguments)))
    return status, errors.getvalue()


def test_alarm_stops_a_run_which_can_be_resumed(tmp_path, model):
    status, errors = train(model, tmp_path, on_alarm="stop")
    alarms = read_alarms(tmp_path / "a")
    assert status == 1 and f"by the alarm {alarms[0].name!r}" in errors
    assert "resume with: reasoner train --resume" in errors and f"ALARM  {alarms[0].name}" in errors
    steps = len(read_metrics(tmp_path / "a"))
    assert steps == alarms[0].step + 1 < 12 and list_checkpoints(tmp_path / "a")[-1].name == f"step-{steps:06d}"
