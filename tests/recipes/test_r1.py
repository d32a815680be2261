"""The recipe of DeepSeek-R1 in miniature: real stages, killed twice, with the results of an unbroken pipeline."""

import json
import os
import random
import re
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from reasoner.cli.main import main
from reasoner.recipes.stages import FILE

ROOT = Path(__file__).parents[2]
SIZES = {
    "cold-problems": 12, "cold-samples": 4, "rl-steps": 2, "rejection-problems": 8, "rejection-samples": 4,
    "preference-problems": 8, "preference-samples": 4, "final-steps": 2, "student-problems": 6, "student-samples": 2,
    "student": "base", "where": "ended",
}  # fmt: skip
CHANGES = (
    "threads=1", "validation.interval=0", "eval.heldout_problems=3", "eval.samples=2", "engine.name=transformers",
    "sampling.max_tokens=48", "data.prompts_per_step=2", "algo.group_size=4", "run.save_interval=1",
)  # fmt: skip
FLAGS = [
    *(text for name, value in SIZES.items() for text in (f"--{name}", str(value))),
    *(text for change in CHANGES for text in ("--set", change)),
]


def start(runs: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "reasoner", "pipeline", "r1", "--runs", str(runs), *arguments]
    environment = os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
    pipe = subprocess.PIPE
    return subprocess.Popen(command, env=environment, text=True, stdout=pipe, stderr=subprocess.DEVNULL)


def kill(runs: Path, seconds: float) -> None:
    """Start the pipeline, or go on with it, and kill it after so many seconds."""
    process = start(runs, *FLAGS)
    with suppress(subprocess.TimeoutExpired):
        process.wait(timeout=seconds)
    process.send_signal(signal.SIGKILL)
    process.communicate()


def results(runs: Path) -> dict[str, bytes]:
    """The files of the runs that no clock has a part in; paths of the folder are left out."""
    names = ("metrics.jsonl", "report.json", "data.json", "student.jsonl", "pairs.parquet")
    paths = [path for path in runs.rglob("*") if path.name in names or path.suffix == ".safetensors"]
    place = str(runs).encode()
    return {str(path.relative_to(runs)): path.read_bytes().replace(place, b"RUNS") for path in sorted(paths)}


def table(runs: Path) -> list[str]:
    """The lines of the table, without the minutes and the width of columns."""
    lines = (runs / "r1" / "table.txt").read_text().splitlines()
    return [" ".join(re.sub(r" \d+\.\d( |$)", " ", line, count=1).split()) for line in lines]


def test_dry_run_prints_the_calls_and_writes_nothing(tmp_path, capsys):
    assert main(["pipeline", "r1", "--runs", str(tmp_path), "--dry-run", "--json", *FLAGS]) == 0
    output = capsys.readouterr()
    result, lines = json.loads(output.out), output.err.splitlines()
    functions = [line.partition("(")[0] for line in lines]
    assert len(lines) == 12 and functions[:3] == ["sample", "finetune", "train"]
    assert [stage["function"] for stage in result["stages"]] == functions
    assert result["settings"]["student"] == "base" and {stage["results"] for stage in result["stages"]} == {None}
    assert list(tmp_path.iterdir()) == []


def test_json_of_a_pipeline_that_failed_has_its_stages(tmp_path, capfd):
    command = ["pipeline", "r1", "--runs", str(tmp_path), "--set", "cold-samples:prompt=nothing", "--json"]
    assert main(command) == 2
    stages = json.loads(capfd.readouterr().out)["stages"]
    assert stages == json.loads((tmp_path / "r1" / FILE).read_text())["stages"]
    assert {stage["results"] for stage in stages} == {None}
    corrected = ["pipeline", "r1", "--runs", str(tmp_path), *FLAGS, "--set", "cold-samples:prompt=r1-zero"]
    assert main([*corrected, "--dry-run"]) == 0


def test_a_dry_run_refuses_what_the_run_would(tmp_path, capsys):
    old = tmp_path / "r1-rl" / "config.json"
    old.parent.mkdir()
    old.write_text('{"config": {}, "format": 2}')
    assert main(["pipeline", "r1", "--runs", str(tmp_path), "--dry-run", *FLAGS]) == 2
    assert "stage rl has not begun" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--name", "../x"], "--name is '../x'; it must be a plain name"),
        (["--set", "optim.lr=fast"], "--optim.lr takes a number, not 'fast'"),
        (["--set", "rl:sft.epochs=2"], "sft.epochs is 2, which has no effect here: it needs reasoner sft"),
        (["--set", "cold-samples:steps=2"], "sample takes no 'steps'"),
        (["--set", "nothing:steps=3"], "there is no stage 'nothing'"),
        (["--mix", "missing.jsonl"], "stage sft: no examples 'missing.jsonl'"),
        (["--student", "nowhere"], "stage student: no model 'nowhere'"),
        (["--model", "nowhere"], "stage cold-samples: no model 'nowhere'"),
        (["--data", "nonsense"], "stage cold-samples: "),
        (["--data", "few.jsonl"], "stage rejection-samples: skip is 300, and few.jsonl has 9 problems"),
        (["--set", "rl:data=nonsense"], "stage rl: "),
    ],
)
def test_what_a_later_stage_would_refuse_is_refused_at_once(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    problems = [{"question": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(9)]
    Path("few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in problems))
    for mode in (["--dry-run"], []):
        try:
            status = main(["pipeline", "r1", *mode, *arguments])
        except SystemExit as stop:
            status = stop.code
        assert status == 2 and message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["few.jsonl"]


def test_problems_that_changed_after_the_pipeline_began_are_refused(tmp_path, capfd):
    data = tmp_path / "few.jsonl"

    def run(offset: int) -> int:
        problems = [{"question": f"What is {i} + 1?", "answer": str(i + offset)} for i in range(9)]
        data.write_text("".join(json.dumps(row) + "\n" for row in problems))
        sizes = ["--cold-problems", "1", "--rejection-problems", "1", "--set", "cold-samples:prompt=nothing"]
        return main(["pipeline", "r1", "--runs", str(tmp_path / "runs"), "--data", str(data), *sizes])

    failed = "stage cold-samples has not ended"
    assert run(1) == 2 and failed in capfd.readouterr().err
    assert run(2) == 2 and f"error: the problems of {data} have changed since the pipeline" in capfd.readouterr().err
    assert run(1) == 2 and failed in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_a_pipeline_that_was_killed_six_times_ends_with_the_results_of_an_unbroken_one(tmp_path):
    whole, broken = tmp_path / "a", tmp_path / "b"
    begin, seed = time.monotonic(), time.time_ns()
    first = start(whole, *FLAGS)
    out, _ = first.communicate()
    draw, seconds = random.Random(seed), time.monotonic() - begin
    assert first.returncode == 0 and out.rstrip().endswith((whole / "r1" / "table.txt").read_text().rstrip())
    for _ in range(6):
        kill(broken, draw.uniform(0.02, 0.3) * seconds)
    last = start(broken, *FLAGS, "--json")
    out, _ = last.communicate()
    assert last.returncode == 0
    stages = json.loads((broken / "r1" / FILE).read_text())["stages"]
    assert json.loads(out)["stages"] == stages
    assert [stage["results"] is not None for stage in stages] == [True] * 12
    assert results(broken).keys() == results(whole).keys() and len(results(whole)) > 20, seed
    assert [name for name, content in results(whole).items() if results(broken)[name] != content] == [], seed
    assert table(broken) == table(whole) and len(table(whole)) == 13
