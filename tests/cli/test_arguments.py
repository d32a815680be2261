"""The parser: unknown flags, and arguments that several commands share."""

from pathlib import Path

import pytest
import torch

from reasoner.cli.main import main

SUMS = Path(__file__).parents[1] / "fixtures" / "sums.jsonl"


@pytest.mark.parametrize(
    "command", [["eval"], ["sample"], ["base", "build", "--out", "x"], ["reward-model", "eval", "x"]]
)
@pytest.mark.parametrize("number", ["-1", "two"])
def test_threads_that_are_no_number_are_refused(command, number, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--threads", number])
    assert stopped.value.code == 2
    assert f"{number!r} is no number of threads" in capsys.readouterr().err


@pytest.mark.parametrize("command", ["eval", "sample"])
def test_remote_engines_are_refused_before_a_folder_is_begun(command, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main([command, "--engine", "remote", "--data", str(SUMS)]) == 2
    assert "'remote' needs engine.urls" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("command", ["eval", "sample"])
def test_threads_are_those_of_torch(command, tmp_path, monkeypatch):
    """With a prompt that is too long, which stops the command before anything is sampled."""
    monkeypatch.chdir(tmp_path)
    Path("long.txt").write_text("word " * 1000 + "{question}")
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert main([command, "--threads", "1", "--prompt", "long.txt", "--data", str(SUMS)]) == 2
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
