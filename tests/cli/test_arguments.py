"""The parser: settings of former versions are refused with one line that names the new setting."""

import pytest

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
