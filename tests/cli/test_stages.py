"""The stages of training beside reinforcement learning, on the command line: what they print before they train."""

from pathlib import Path

import pytest
import torch

from reasoner.cli.main import main
from reasoner.recipes import expert_iteration

SOLUTIONS = Path(__file__).parents[1] / "fixtures" / "solutions.jsonl"


@pytest.mark.parametrize(
    ("command", "lines"),
    [(["sft"], ["sft.rows", "sft.epochs"]), (["reward-model", "train"], ["rm.prompts", "rm.epochs"])],
    ids=["sft", "reward model"],
)
def test_dry_run_of_a_stage_prints_its_own_settings_and_writes_nothing(capsys, tmp_path, command, lines):
    rows = {"sft": "--sft.rows", "reward-model": "--rm.prompts"}[command[0]]
    arguments = ["--model", "base", "--data", str(SOLUTIONS), rows, "4", "--run.dir", str(tmp_path / "runs")]
    assert main([*command, *arguments, "--dry-run"]) == 0
    printed = capsys.readouterr().out
    for line in (*lines, f"run folder: {tmp_path / 'runs'}"):
        assert f"\n{line}" in f"\n{printed}", line
    assert "\nalgo." not in printed and "command line" in printed
    assert not (tmp_path / "runs").exists()


def test_dry_run_of_a_stage_refuses_what_its_training_refuses(capsys, tmp_path):
    missing = str(tmp_path / "none.jsonl")
    for command in (["sft"], ["reward-model", "train"]):
        assert main([*command, "--model", "base", "--data", missing, "--dry-run"]) == 2
        assert missing in capsys.readouterr().err


@pytest.mark.parametrize("is_launched", [False, True], ids=["--processes", "torchrun"])
def test_expert_iteration_of_several_processes_is_refused_before_it_samples(capsys, tmp_path, monkeypatch, is_launched):
    flags = [] if is_launched else ["--processes", "2"]
    if is_launched:
        for name, value in {"RANK": "1", "WORLD_SIZE": "2", "LOCAL_RANK": "1"}.items():
            monkeypatch.setenv(name, value)
    assert main(["expert-iteration", "--model", "base", "--run.dir", str(tmp_path), *flags]) == 2
    assert "expert iteration is one process, not 2" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("flag", ["--eval.heldout", "--run.track", "--prompt"])
def test_expert_iteration_refuses_what_a_round_would_before_it_samples(capsys, tmp_path, flag):
    assert main(["expert-iteration", "--model", "base", "--run.dir", str(tmp_path), flag, "nonsense"]) == 2
    assert "nonsense" in capsys.readouterr().err and list(tmp_path.iterdir()) == []


def test_expert_iteration_samples_with_its_threads(monkeypatch, tmp_path):
    threads = []
    monkeypatch.setattr(expert_iteration, "sample", lambda *_: threads.append(torch.get_num_threads()))
    torch.set_num_threads(2)
    main(["expert-iteration", "--model", "base", "--run.dir", str(tmp_path), "--threads", "1"])
    assert threads == [1]


@pytest.mark.parametrize(("key", "value"), [("run.name", "mine"), ("sft.data", "runs:x")])
def test_expert_iteration_heeds_a_file_of_settings(capsys, monkeypatch, tmp_path, key, value):
    file, plans = tmp_path / "own.toml", []
    file.write_text(f'{key} = "{value}"')
    monkeypatch.setattr(expert_iteration, "expert_iteration", lambda _, name, **__: plans.append(name) or [])
    status = main(["expert-iteration", "--model", "base", "--run.dir", str(tmp_path), "--config", str(file)])
    assert (status, plans) == ((0, [value]) if key == "run.name" else (2, []))


@pytest.mark.parametrize(
    ("flags", "data"),
    [([], "generated"), (["--preset", "smollm-135m@cpu"], "one-step"), (["--data", "mine.jsonl"], "mine.jsonl")],
    ids=["base", "preset", "named"],
)
def test_expert_iteration_samples_the_problems_of_the_preset(monkeypatch, tmp_path, flags, data):
    assert expert_iteration_of(monkeypatch, tmp_path, flags)[0] == data


def test_expert_iteration_on_a_benchmark_validates_and_ends_on_it(monkeypatch, tmp_path):
    sets = expert_iteration_of(monkeypatch, tmp_path, ["--data", "gsm8k"])
    assert sets == ("gsm8k?without_sample=200", "gsm8k?sample=200", "gsm8k:test")
    named = expert_iteration_of(monkeypatch, tmp_path, ["--data", "gsm8k", "--eval.heldout", "math500"])
    assert named == (*sets[:2], "math500")


def expert_iteration_of(monkeypatch, runs, flags):
    """The problems that the rounds of a command line sample, validate on and end with."""
    calls = []
    monkeypatch.setattr(
        expert_iteration, "expert_iteration", lambda resolved, data, **_: calls.append((data, resolved)) or []
    )
    assert main(["expert-iteration", "--model", "base", "--run.dir", str(runs), *flags]) == 0
    ((data, resolved),) = calls
    return data, resolved.config.validation.data, resolved.config.eval.heldout
