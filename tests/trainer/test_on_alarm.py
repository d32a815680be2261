"""A run that goes wrong, for a real reason: a learning rate that destroys the model."""

from pathlib import Path

from reasoner.cli.main import main
from reasoner.runs.health import read_alarms
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.checkpoint import list_checkpoints
from tests.fixtures.trainings import flags

SETTINGS = {
    "preset": "base", "engine.name": "transformers", "steps": 12, "data.prompts_per_step": 3, "algo.group_size": 4,
    "sampling.max_tokens": 24, "reward.overlong": 1, "validation.interval": 0, "eval.heldout_problems": 0,
    "run.save_interval": 2, "threads": 1, "run.name": "a", "optim.warmup_steps": 0, "optim.lr": 0.2,
    "data.train": Path(__file__).parents[1] / "fixtures" / "sums.jsonl",
}  # fmt: skip


def test_alarm_stops_a_run_which_can_be_resumed(tmp_path, tiny_folder, capsys):
    settings = SETTINGS | {"model": tiny_folder, "run.dir": tmp_path, "run.on_alarm": "stop"}
    status, errors = main(["train", *flags(settings)]), capsys.readouterr().err
    alarms = read_alarms(tmp_path / "a")
    assert status == 1 and f"by the alarm {alarms[0].name!r}" in errors
    assert "resume with: reasoner train --resume" in errors and f"ALARM  {alarms[0].name}" in errors
    steps = len(read_metrics(tmp_path / "a"))
    assert steps == alarms[0].step + 1 < 12 and list_checkpoints(tmp_path / "a")[-1].name == f"step-{steps:06d}"
