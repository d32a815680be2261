"""Names of TRL and verl: refused with the setting here, which exists; the page of the docs."""

from pathlib import Path

import pytest

from reasoner.cli.main import main
from reasoner.config.other_names import OTHER_NAMES, find_other_name, markdown, other_name_message
from reasoner.config.resolve import resolve
from reasoner.config.schema import settings

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(("name", "row"), OTHER_NAMES.items())
def test_every_other_name_leads_to_a_setting_or_says_why_there_is_none(name, row):
    assert row.ours in settings() or (not row.ours and row.difference)
    assert name not in settings()
    assert find_other_name(name) is row


@pytest.mark.parametrize(
    ("flag", "message"),
    [
        ("--num_generations", "--num_generations is TRL's name; here it is --algo.group_size"),
        ("--num-generations=4", "--num-generations is TRL's name; here it is --algo.group_size"),
        ("--rollout.n", "--rollout.n is verl's name; here it is --algo.group_size"),
        (
            "--actor_rollout_ref.actor.clip_ratio_high",
            "--actor_rollout_ref.actor.clip_ratio_high is verl's name; here it is --algo.clip_high",
        ),
        ("--kl_coef", "--kl_coef is verl's name; here it is --algo.beta (with algo.kl_in reward)"),
        ("--optim.learning_rate", "--optim.learning_rate: learning_rate is TRL's name; here it is --optim.lr"),
        ("--critic.learning_rate", "--critic.learning_rate: learning_rate is TRL's name; here it is --critic.lr"),
        (
            "--algo.num-generations",
            "--algo.num-generations: num_generations is TRL's name; here it is --algo.group_size",
        ),
        (
            "--epsilon",
            "--epsilon is TRL's name; here it is --algo.clip_low (the lower bound alone; algo.clip_high is the upper "
            "one)",
        ),
        (
            "--top_k",
            "--top_k is TRL's name; nothing here corresponds to it: training samples from the whole distribution",
        ),
    ],
)
def test_flag_of_another_project_is_refused_with_the_one_here(flag, message, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["train", flag, *([] if "=" in flag else ["4"])])
    assert stopped.value.code == 2 and capsys.readouterr().err == f"reasoner: error: {message}\n"


def test_setting_of_another_project_in_a_file_is_refused_with_the_one_here():
    with pytest.raises(
        ValueError, match=r"^unknown setting: num_generations is TRL's name; here it is algo\.group_size$"
    ):
        resolve([("file", {"num_generations": 8})])


def test_command_without_the_setting_does_not_name_it(capsys):
    with pytest.raises(SystemExit):
        main(["grade", "--gold", "1", "--answer", "1", "--num_generations", "4"])
    assert "unknown argument '--num_generations'" in capsys.readouterr().err


@pytest.mark.parametrize(
    "key", ["n", "lr", "path", "name", "algo.groop_size", "generations", "sampling.n", "lora.learning"]
)
def test_short_or_other_word_is_no_name_of_another_project(key):
    assert find_other_name(key) is None and other_name_message(key) == ""


def test_page_in_the_docs_is_up_to_date():
    assert (ROOT / "docs" / "FROM_TRL_AND_VERL.md").read_text() == markdown(), "make docs"
