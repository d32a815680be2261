"""The recipe of DeepSeek-R1: the calls that settings and changes make of it, and the whole in miniature, killed again
and again.
"""

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
from reasoner.recipes.pipeline import Pipeline
from reasoner.recipes.r1 import R1Settings, r1
from reasoner.recipes.stages import FILE, Stage

ROOT = Path(__file__).parents[2]
DEFAULTS = R1Settings()
EVERYTHING = R1Settings(student="small", controls=True, mix="texts.jsonl")


def stages(settings: R1Settings, *changes: str) -> list[Stage]:
    pipeline = Pipeline("p", Path("runs"), {}, changes)
    r1(pipeline, settings)
    return pipeline.stages


def calls(settings: R1Settings = DEFAULTS, *changes: str) -> dict[str, str]:
    """The calls of the recipe by stage."""
    return {stage.name: stage.call for stage in stages(settings, *changes)}


def test_calls_have_the_settings_and_the_runs_of_other_stages():
    own = calls(R1Settings(seed=3))
    assert own["cold-samples"] == (
        "sample(data='generated', seed=3, model='base', skip=0, problems=300, num_samples=8, name='p-cold-samples', "
        "runs='runs')"
    )
    assert "data='runs:p-cold-samples?where=correct,well-formed,ended&per_problem=4'" in own["cold-sft"]
    assert own["final-rl"] == (
        "train(model='runs/p-sft', data='generated', steps=16, seed=4, settings={'reward.model': "
        "'runs/p-reward-model=0.25', 'reward.language': 0.1, 'optim.decay_share': 1.0}, name='p-final-rl', runs='runs')"
    )


def test_second_finetuning_begins_with_the_first_model():
    own = calls(R1Settings(model="some/model"))
    assert own["sft"].startswith("finetune(model='some/model', data='runs:p-rejection-samples?")
    assert "model='runs/p-rl'" in own["rejection-samples"]


def test_what_a_stage_reads_was_made_by_a_stage_before_it():
    outputs = set()
    for stage in stages(EVERYTHING):
        texts = [str(value) for name, value in stage.values.items() if name not in ("name", "runs", "out")]
        places = [text.partition("=")[0] for text in texts if text.startswith("runs/p")]
        places += [f"runs/{text[5:].partition('?')[0]}" for text in texts if text.startswith("runs:")]
        assert set(places) <= outputs, stage.name
        outputs.add(stage.output)
    assert len(outputs) == 14


def test_samples_of_the_stages_are_of_different_problems_and_mix_is_a_second_source():
    own = calls(R1Settings(cold_problems=10, rejection_problems=20))
    assert "skip=10, problems=20" in own["rejection-samples"] and "skip=30" in own["preference-samples"]
    assert "per_problem=4;texts.jsonl'" in calls(EVERYTHING)["sft"] and ";" not in calls()["sft"]


def test_problems_that_a_run_validates_on_are_not_sampled():
    own = calls(R1Settings(data="gsm8k"))
    assert "data='gsm8k?without_sample=200'" in own["cold-samples"] and "data='gsm8k'" in own["rl"]


def test_finetuned_models_are_evaluated_on_the_benchmark_that_is_trained_on():
    finetunings = ("cold-sft", "sft", "student")
    own = calls(R1Settings(data="gsm8k", student="small"), "sft:validation.interval=0")
    assert all("'eval.heldout': 'gsm8k:test'" in own[name] for name in finetunings)
    assert ["'validation.data': 'gsm8k?sample=200'" in own[name] for name in finetunings] == [True, False, True]


def test_stages_whose_settings_are_empty_are_left_out():
    assert [name for name in calls(EVERYTHING) if name not in calls()] == [
        "rl-control", "student-samples", "student-examples", "student", "student-control",
    ]  # fmt: skip


def test_changes_go_to_the_stages_that_have_a_use_for_them():
    changes = ("optim.lr=0.01", "sft.epochs=1", "rl:steps=3", "cold-samples:max-tokens=9", "threads=1")
    own = calls(DEFAULTS, *changes)
    texts = ("'optim.lr': 0.01", "'sft.epochs': 1", "steps=3", "max_tokens=9", "threads=1", "'threads': 1")
    assert {text: [name for name, call in own.items() if text in call] for text in texts} == {
        "'optim.lr': 0.01": ["cold-sft", "rl", "sft", "reward-model", "final-rl"],
        "'sft.epochs': 1": ["cold-sft", "sft"],
        "steps=3": ["rl"],
        "max_tokens=9": ["cold-samples"],
        "threads=1": ["cold-samples", "rejection-samples", "preference-samples"],
        "'threads': 1": ["cold-sft", "rl", "sft", "reward-model", "final-rl"],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps", "is no change of a setting"),
        ("=3", "is no change of a setting"),
        ("stepps=3", "unknown setting 'stepps'"),
        ("cold-samples:steps=3", "stage cold-samples: sample takes no 'steps'"),
        ("rl:run.name=x", "stage rl: train takes no 'run.name'"),
    ],
)
def test_changes_that_nothing_has_a_use_for_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        calls(DEFAULTS, text)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rl_steps": 0}, "rl_steps is 0; it must be at least 1"),
        ({"where": "right"}, "where is 'right'"),
        ({"per_problem": -1}, "per_problem is -1"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        R1Settings(**settings)


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
        (["--data", "nonsense"], "unknown problems 'nonsense'"),
        (["--data", "few.jsonl"], "stage rejection-samples: "),
        (["--set", "rl:data=nonsense"], "stage rl: "),
        (["--set", "optim.lr=-1"], "stage cold-sft: optim.lr is -1.0"),
        (["--set", "rl:algo.name=nothing"], "stage rl: "),
        (["--set", "final-rl:prompt.style=nothing"], "stage final-rl: unknown prompt style"),
        (["--set", "rl:reward.clip=3"], "stage rl: reward.clip is 3.0, which has no effect here"),
        (["--set", "sft:processes=2"], "stage sft: reasoner.finetune() is one process"),
    ],
)
def test_what_a_later_stage_would_refuse_is_refused_at_once(tmp_path, monkeypatch, capsys, arguments, message):
    monkeypatch.chdir(tmp_path)
    problems = [{"question": f"What is {i} + 1?", "answer": str(i + 1)} for i in range(9)]
    Path("few.jsonl").write_text("".join(json.dumps(row) + "\n" for row in problems))
    for mode in ([], ["--dry-run"])[: 1 + (arguments[0] == "--name")]:  # they check alike
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
