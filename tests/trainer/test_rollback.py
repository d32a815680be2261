"""A run that goes wrong, for a real reason: a learning rate that destroys the model."""

import contextlib
import io
import json
import shutil
from pathlib import Path

import pytest
import torch

from reasoner.cli.main import main
from reasoner.models.resolve import BASE
from reasoner.runs.health import read_alarms
from reasoner.runs.metrics import read_metrics
from reasoner.trainer import rollback
from reasoner.trainer.checkpoint import list_checkpoints

pytestmark = pytest.mark.skipif(not (BASE / "model.safetensors").is_file(), reason="the embedded base is not built")


SETTINGS = {
    "model": "base", "engine.name": "transformers", "steps": 12, "data.prompts_per_step": 4, "algo.group_size": 4,
    "sampling.max_tokens": 32, "validation.interval": 0, "eval.heldout_problems": 0, "run.save_interval": 2,
    "threads": 1, "run.name": "a", "optim.warmup_steps": 0, "optim.lr": 0.2,
    "data.train": Path(__file__).parents[1] / "fixtures" / "sums.jsonl",
}  # fmt: skip


@pytest.fixture(scope="module", autouse=True)
def torch_settings():
    threads = torch.get_num_threads()
    yield
    torch.use_deterministic_algorithms(False)
    torch.set_num_threads(threads)


def train(runs: Path, *, on_alarm: str) -> tuple[int, str]:
    """Exit status and standard error of a run `a`."""
    settings = SETTINGS | {"run.dir": runs, "run.on_alarm": on_alarm}
    return run_command("train", *(part for key, value in settings.items() for part in (f"--{key}", value)))


def run_command(*arguments: object) -> tuple[int, str]:
    errors = io.StringIO()
    with contextlib.redirect_stderr(errors), contextlib.redirect_stdout(io.StringIO()):
        status = main(list(map(str, arguments)))
    return status, errors.getvalue()


@pytest.fixture(scope="module")
def rolled_back(tmp_path_factory) -> tuple[Path, Path, str]:
    """(folder of a run with rollbacks, its copy right after the first rollback's checkpoint, standard error)."""
    runs, killed = tmp_path_factory.mktemp("straight"), tmp_path_factory.mktemp("killed")
    finish = rollback.finish

    def copy_and_finish(run_dir, *rest):
        if not (killed / "a").exists():
            shutil.copytree(run_dir, killed / "a")
        finish(run_dir, *rest)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(rollback, "finish", copy_and_finish)
        status, errors = train(runs, on_alarm="rollback")
    assert status == 1
    return runs, killed, errors


def test_alarm_stops_a_run_which_can_be_resumed(tmp_path):
    status, errors = train(tmp_path, on_alarm="stop")
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


def without_folders(content: bytes, *folders: Path) -> bytes:
    for folder in folders:
        content = content.replace(str(folder).encode(), b"RUNS")
    return content


def test_rollback_killed_after_its_checkpoint_ends_with_equal_bytes(rolled_back):
    straight, killed, _ = rolled_back
    assert not (killed / "a" / "rolled-back").exists()
    assert "after 3 rollbacks" in run_command("train", "--resume", killed / "a")[1]
    wanted, found = (
        {
            str(path.relative_to(runs)): without_folders(path.read_bytes(), straight, killed)
            for path in sorted(runs.rglob("*"))
            if path.is_file() and path.name not in ("times.jsonl", "lock")
        }
        for runs in (straight, killed)
    )
    assert found.keys() == wanted.keys()
    assert [name for name in wanted if found[name] != wanted[name]] == []
