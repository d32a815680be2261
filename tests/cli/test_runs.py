"""`reasoner runs`: what it prints and refuses."""

import json
from pathlib import Path

import pytest

from reasoner.api.training import Run
from reasoner.cli.main import main
from tests.fixtures.run_folder import run_folder

ANSWERS = {"3+4": [("7", True), ("8", False)]}


@pytest.fixture
def runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a finished run, of one that stopped half way, and of a damaged one."""
    run_folder(tmp_path / "runs" / "first", [ANSWERS, ANSWERS], seed=4, **{"eval.heldout_problems": 0})
    run_folder(tmp_path / "runs" / "second", [ANSWERS], seed=5, steps=9, **{"eval.heldout_problems": 0})
    (tmp_path / "runs" / "third").mkdir()
    (tmp_path / "runs" / "third" / "config.json").write_text("{")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "runs"


def result(capsys: pytest.CaptureFixture[str], *arguments: str) -> object:
    """What a command writes to standard output with --json."""
    capsys.readouterr()
    assert main([*arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_runs_are_listed_with_state_step_and_last_figures(runs, capsys) -> None:
    assert main(["runs"]) == 0
    lines = {line.split()[0]: line.split() for line in capsys.readouterr().out.splitlines()}
    assert lines["first"][1:6] == ["finished", "base", "grpo", "2/2", "10.0"]
    assert lines["second"][1:6] == ["stopped", "base", "grpo", "1/9", "0.0"]
    assert lines["third"][1] == "damaged" and lines["third:"]
    listed = {row["name"]: row["status"] for row in result(capsys, "runs", "list", "--runs", str(runs))}
    assert listed == {"first": "finished", "second": "stopped", "third": "damaged"}
    assert main(["runs", "--runs", "nowhere"]) == 2 and "there is no folder nowhere" in capsys.readouterr().err


def test_list_of_a_new_folder_says_how_to_begin(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    for _ in range(2):
        assert main(["runs"]) == 0 and "reasoner train" in capsys.readouterr().out
        assert result(capsys, "runs") == []
        (tmp_path / "runs").mkdir(exist_ok=True)


def test_run_without_its_final_evaluation_is_trained_and_not_finished(tmp_path, capsys) -> None:
    states = {}
    for name, values in {
        "evaluated": {},
        "interrupted": {},
        "by tokens": {"steps": 9, "max_train_tokens": 40},
        "of rewards": {"rm.data": "pairs.jsonl"},
        "no evaluation": {"eval.heldout_problems": 0},
        "continued": {"steps": 3},
    }.items():
        folder = run_folder(tmp_path / name, [ANSWERS, ANSWERS], **values)
        lines = [{"step": step, "correct": 0.5, "num_tokens": 20 * (step + 1)} for step in range(2)]
        (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
        if name in ("evaluated", "continued"):
            (folder / "report.json").write_text("{}")
        if name == "of rewards":
            (folder / "data.json").write_text('{"heldout_prompts": 4}')
        states[name] = Run(folder).state
    listed = {row["name"]: row["status"] for row in result(capsys, "runs", "--runs", str(tmp_path))}
    assert listed == states | {"continued": "stopped"}
    assert states == {
        "evaluated": "finished", "interrupted": "trained", "by tokens": "trained", "of rewards": "trained",
        "no evaluation": "finished", "continued": "stopped",
    }  # fmt: skip


def test_run_is_shown_with_its_last_step(runs, capsys) -> None:
    assert main(["runs", "show", "first"]) == 0
    lines = dict(line.split(maxsplit=1) for line in capsys.readouterr().out.splitlines())
    assert (lines["state"], lines["steps"], lines["stage"]) == ("finished", "2 of 2", "rl")
    assert "reward 0.5, correct 10.0 %" in lines["last"]
    assert result(capsys, "runs", "show", "first")["last_step"] == {"step": 1, "correct": 0.1, "reward/mean": 0.5}
