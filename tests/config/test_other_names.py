"""Names of TRL and verl: refused with the setting here, which exists; the page of the docs."""

import re
from pathlib import Path

import pytest

from reasoner.cli.main import main
from reasoner.config.other_names import OTHER_NAMES, find_other_name, markdown, other_name_message
from reasoner.config.resolve import resolve
from reasoner.config.schema import settings

ROOT = Path(__file__).parents[2]


def test_every_other_name_leads_to_a_setting_or_says_why_there_is_none():
    known = settings()
    for name, row in OTHER_NAMES.items():
        assert row.ours in known or (not row.ours and row.difference), name
        assert name not in known and find_other_name(name) is row


@pytest.mark.parametrize(
    ("flag", "names"),
    [
        ("--num_generations", "TRL --algo.group_size"), ("--num-generations=4", "TRL --algo.group_size"),
        ("--rollout.n", "verl --algo.group_size"),
        ("--actor_rollout_ref.actor.clip_ratio_high", "verl --algo.clip_high"),
        ("--kl_coef", "verl --algo.beta algo.kl_in"), ("--optim.learning_rate", "TRL --optim.lr"),
        ("--critic.learning_rate", "TRL --critic.lr"), ("--algo.num-generations", "TRL --algo.group_size"),
        ("--epsilon", "TRL --algo.clip_low algo.clip_high"), ("--top_k", "TRL nothing"),
    ],
)  # fmt: skip
def test_flag_of_another_project_is_refused_with_the_one_here(flag, names, capsys):
    with pytest.raises(SystemExit) as stopped:
        main(["train", flag, *([] if "=" in flag else ["4"])])
    message = capsys.readouterr().err
    assert stopped.value.code == 2 and message.count("\n") == 1 and flag.partition("=")[0] in message
    assert [name for name in names.split() if not re.search(rf"(?<![\w.]){re.escape(name)}(?![\w])", message)] == []


def test_setting_of_another_project_in_a_file_is_refused_with_the_one_here_and_not_named_without_one(capsys):
    with pytest.raises(ValueError, match=r"num_generations .*TRL.* algo\.group_size$"):
        resolve([("file", {"num_generations": 8})])
    with pytest.raises(SystemExit):
        main(["grade", "--gold", "1", "--answer", "1", "--num_generations", "4"])
    assert "unknown argument '--num_generations'" in capsys.readouterr().err


def test_short_or_other_word_is_no_name_of_another_project():
    for key in ("n", "lr", "path", "name", "algo.groop_size", "generations", "sampling.n", "lora.learning"):
        assert find_other_name(key) is None and other_name_message(key) == "", key


def test_page_in_the_docs_is_up_to_date():
    assert (ROOT / "docs" / "FROM_TRL_AND_VERL.md").read_text() == markdown(), "make docs"
