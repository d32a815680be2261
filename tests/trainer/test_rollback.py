"""A run that goes wrong, for a real reason: a learning rate that destroys the model."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reasoner.models.resolve import BASE
from reasoner.runs.health import read_alarms
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.checkpoint import list_checkpoints

pytestmark = pytest.mark.skipif(not (BASE / "model.safetensors").is_file(), reason="the embedded base is not built")


KILLED = """
import os, sys
from reasoner.trainer import rollback
from reasoner.cli.main import main
rollback.finish = lambda *_: os._exit(9)
main(sys.argv[1:])
"""


def trained(
    runs: Path, *more: object, program: tuple[str, ...] = ("-m", "reasoner")
) -> subprocess.CompletedProcess[str]:
    small = "--steps 12 --data.prompts_per_step 4 --algo.group_size 4 --sampling.max_tokens 32 --validation.interval 0"
    rest = "--eval.heldout_problems 0 --run.save_interval 2 --threads 1 --run.name a --optim.warmup_steps 0"
    where = ["--model", "base", "--engine.name", "transformers", "--run.dir", str(runs), "--optim.lr", "0.2"]
    command = [sys.executable, *program, "train", *where, *small.split(), *rest.split(), *map(str, more)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    root = Path(__file__).parents[2]
    if "--resume" in more:
        command = [sys.executable, *program, "train", *map(str, more)]
    return subprocess.run(command, cwd=root, capture_output=True, text=True, env=environment, check=False)


def test_an_alarm_stops_a_run_that_can_be_gone_on_with(tmp_path):
    done = trained(tmp_path, "--run.on_alarm", "stop")
    found = read_alarms(tmp_path / "a")
    assert done.returncode == 1 and f"by the alarm {found[0].name!r}" in done.stderr
    assert "go on with: reasoner train --resume" in done.stderr and f"ALARM  {found[0].name}" in done.stderr
    steps = len(read_metrics(tmp_path / "a"))
    assert steps == found[0].step + 1 < 12 and list_checkpoints(tmp_path / "a")[-1].name == f"step-{steps:06d}"


def test_a_rollback_keeps_what_it_leaves_behind_halves_the_rate_and_ends_after_three(tmp_path):
    done = trained(tmp_path, "--run.on_alarm", "rollback")
    run = tmp_path / "a"
    assert done.returncode == 1 and "after 3 rollbacks" in done.stderr
    assert sorted(path.name for path in (run / "rolled-back").iterdir()) == ["1", "2", "3"]
    lines = read_metrics(run)
    assert [line["step"] for line in lines] == list(range(len(lines)))
    assert lines[-1]["rollbacks"] == 3 and lines[-1]["lr"] == pytest.approx(0.2 / 8)
    first = read_metrics(run / "rolled-back" / "1")
    assert first[0]["lr"] == pytest.approx(0.2) and "rollbacks" not in first[0]
    assert (run / "rolled-back" / "1" / "alarms.jsonl").is_file()
    states = [json.loads((path / "trainer" / "state.json").read_text()) for path in list_checkpoints(run)]
    assert states[-1]["attempt"] == 3 and states[-1]["lr_scale"] == 1 / 8


def test_a_rollback_that_is_killed_after_its_checkpoint_ends_with_the_same_bytes(tmp_path):
    straight, killed = tmp_path / "straight", tmp_path / "killed"
    assert trained(straight, "--run.on_alarm", "rollback").returncode == 1
    assert trained(killed, "--run.on_alarm", "rollback", program=("-c", KILLED)).returncode == 9
    assert not (killed / "a" / "rolled-back").exists()
    assert "after 3 rollbacks" in trained(killed, "--resume", killed / "a").stderr
    wanted, found = (
        {
            str(path.relative_to(runs)): path.read_bytes().replace(str(runs).encode(), b"RUNS")
            for path in sorted(runs.rglob("*"))
            if path.is_file() and path.name not in ("times.jsonl", "lock")
        }
        for runs in (straight, killed)
    )
    assert found.keys() == wanted.keys()
    assert [name for name in wanted if found[name] != wanted[name]] == []
