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
def test_threads_are_those_of_torch(command, tmp_path, monkeypatch):
    """With an engine that stops the command, after the threads have been set and before anything is sampled."""
    monkeypatch.chdir(tmp_path)
    before = torch.get_num_threads()
    try:
        torch.set_num_threads(2)
        assert main([command, "--threads", "1", "--engine", "remote", "--data", str(SUMS)]) == 2
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
