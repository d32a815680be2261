"""A run that goes wrong, for a real reason: a learning rate that destroys the model."""

import contextlib
import io
import json
import shutil
from pathlib import Path

import pytest

from reasoner.cli.main import main
from reasoner.runs.health import Alarm, read_alarms
from reasoner.runs.metrics import read_metrics
from reasoner.trainer import checkpoint, rollback
from reasoner.trainer.checkpoint import list_checkpoints
from reasoner.trainer.metrics_logger import MetricsLogger
from tests.fixtures.tiny import save_tiny, tiny_tokenizer
from tests.fixtures.toys import config, make_trainer, random_groups, take_step
from tests.fixtures.trainings import contents, differing, flags

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


@pytest.fixture(scope="module")
def rolled_back(tmp_path_factory, model) -> tuple[Path, Path, str]:
    """(folder of a run with rollbacks, its copy right after the first rollback's checkpoint, standard error)."""
    runs, killed = tmp_path_factory.mktemp("straight"), tmp_path_factory.mktemp("killed")
    finish = rollback.finish

    def copy_and_finish(run_dir, *rest):
        if not (killed / "a").exists():
            shutil.copytree(run_dir, killed / "a")
        finish(run_dir, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollback, "finish", copy_and_finish)
        status, errors = train(model, runs, on_alarm="rollback")
    assert status == 1
    return runs, killed, errors


def test_alarm_stops_a_run_which_can_be_resumed(tmp_path, model):
    status, errors = train(model, tmp_path, on_alarm="stop")
    alarms = read_alarms(tmp_path / "a")
    assert status == 1 and f"by the alarm {alarms[0].name!r}" in errors
    assert "resume with: reasoner train --resume" in errors and f"ALARM  {alarms[0].name}" in errors
    steps = len(read_metrics(tmp_path / "a"))
    assert steps == alarms[0].step + 1 < 12 and list_checkpoints(tmp_path / "a")[-1].name == f"step-{steps:06d}"


def test_rollback_keeps_discarded_records_halves_learning_rate_and_ends_after_three(rolled_back):
    runs, _, errors = rolled_back
    run = runs / "a"
    assert "after 3 rollbacks" in errors
    assert sorted(path.name for path in (run / "rolled-back").iterdir()) == ["1", "2", "3"]
    lines = read_metrics(run)
    assert [line["step"] for line in lines] == list(range(len(lines)))
    assert lines[-1]["rollbacks"] == 3 and lines[-1]["lr"] == pytest.approx(0.2 / 8)
    first = read_metrics(run / "rolled-back" / "1")
    assert first[0]["lr"] == pytest.approx(0.2) and "rollbacks" not in first[0]
    assert (run / "rolled-back" / "1" / "alarms.jsonl").is_file()
    states = [json.loads((path / "trainer" / "state.json").read_text()) for path in list_checkpoints(run)]
    assert states[-1]["attempt"] == 3 and states[-1]["lr_scale"] == 1 / 8


def respond(folder, trainer, since):
    """Respond to an alarm of a cause since that step with a rollback. Returns the steps done afterwards."""
    alarm = Alarm("divergence", 3, since, value=1.0, limit=0.5, when="", meaning="", help="")

    def save() -> Path:
        return checkpoint.save(folder, trainer.steps_done, trainer, tiny_tokenizer(), keep=8)

    (folder / "metrics.jsonl").write_text("".join(f"{json.dumps({'step': step})}\n" for step in range(3)))
    with MetricsLogger(folder, steps=8, start=3) as logger:
        assert rollback.respond_to_alarms([alarm], "rollback", folder, trainer, logger, save)
    return trainer.steps_done


@pytest.fixture
def three_checkpoints(tmp_path):
    """(a run's folder with checkpoints after 1, 2 and 3 steps, its trainer)."""
    trainer = make_trainer(config())
    for step in (1, 2, 3):
        take_step(trainer, random_groups(seed=step))
        checkpoint.save(tmp_path, step, trainer, tiny_tokenizer(), keep=8)
    return tmp_path, trainer


def damage(folder, *steps):
    for step in steps:
        (checkpoint.folder(folder, step) / "model.safetensors").write_bytes(b"")


@pytest.mark.parametrize(
    ("since", "damaged", "expected"), [(2, [], 2), (2, [2], 1), (0, [], 1), (0, [1], 2), (1, [1], 2)]
)
def test_rollback_returns_to_an_undamaged_checkpoint(three_checkpoints, since, damaged, expected):
    folder, trainer = three_checkpoints
    damage(folder, *damaged)
    assert respond(folder, trainer, since) == expected


def test_rollback_without_an_undamaged_checkpoint_saves_one_and_stops(three_checkpoints):
    folder, trainer = three_checkpoints
    damage(folder, 1, 2, 3)
    with pytest.raises(RuntimeError, match="3 steps done"):
        respond(folder, trainer, 2)
    assert not checkpoint.damage(checkpoint.folder(folder, 3))


def test_rollback_killed_after_its_checkpoint_ends_with_equal_bytes(rolled_back):
    straight, killed, _ = rolled_back
    assert not (killed / "a" / "rolled-back").exists()
    assert "after 3 rollbacks" in run_command("train", "--resume", killed / "a")[1]
    assert differing(*(contents(runs, straight, killed) for runs in (straight, killed))) == []
