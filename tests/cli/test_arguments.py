"""The parser: settings of former versions are refused with one line that names the new setting."""

import pytest
import torch

from reasoner.cli.main import main
from reasoner.config.former_names import SETTINGS
from reasoner.config.resolve import settings, unknown_setting_error


@pytest.mark.parametrize("command", ["train", "doctor"])
@pytest.mark.parametrize(
    ("flags", "old", "new"),
    [
        (["--algo.group", "4"], "algo.group", "algo.group_size"),
        (["--ahead=1"], "ahead", "max_off_policy_steps"),
        (["--steps", "3", "--tokens", "100"], "tokens", "max_train_tokens"),
        (["--eval.selection", "gsm8k"], "eval.selection", "validation.data"),
        (["--run.keep", "1"], "run.keep", "run.keep_last"),
    ],
)
def test_old_flag_is_refused_with_the_new_name(command, flags, old, new, capsys):
    with pytest.raises(SystemExit) as stopped:
        main([command, *flags])
    assert stopped.value.code == 2
    assert capsys.readouterr().err == f"reasoner: error: unknown setting {old!r}; it is now {new!r}\n"


@pytest.mark.parametrize(("old", "new"), SETTINGS.items())
def test_every_renamed_setting_is_refused_with_a_setting_of_today(old, new):
    assert str(unknown_setting_error(old)) == f"unknown setting {old!r}; it is now {new!r}"
    assert new in settings()


def test_command_without_the_setting_does_not_name_it(capsys):
    with pytest.raises(SystemExit):
        main(["eval", "--model", "base", "--tokens", "4"])
    assert capsys.readouterr().err.startswith("reasoner: error: unknown argument '--tokens'")


def test_unknown_flag_gets_the_nearest_known_one(capsys):
    with pytest.raises(SystemExit):
        main(["train", "--algo.groop_size", "4"])
    assert capsys.readouterr().err.endswith("unknown argument '--algo.groop_size'; did you mean '--algo.group_size'?\n")


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
        assert main([command, "--threads", "1", "--engine", "nothing", "--data", "generated:heldout"]) == 2
        assert torch.get_num_threads() == 1
    finally:
        torch.set_num_threads(before)
