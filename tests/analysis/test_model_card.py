"""The model card: front matter that the hub reads, settings, figures of the weights."""

import json

import pytest
from huggingface_hub import ModelCard

from reasoner.analysis.model_export import Export, file_name, model_card
from reasoner.rollouts.prompts import load_template
from reasoner.runs.run_dir import read_settings
from tests.fixtures.trained_run import write_records

R1 = load_template("r1-zero")


def card(run_dir, *, step="step-000003", template=R1, has_chat_template=True, licence=""):
    export = Export(run_dir, run_dir / "checkpoints" / step, licence)
    return model_card(export, template, has_chat_template=has_chat_template)


@pytest.mark.parametrize(
    ("values", "licence", "expected"),
    [
        ({}, "", {"license": "apache-2.0", "base_model": None, "datasets": None}),
        ({"model": "Qwen/Qwen2.5-0.5B"}, "", {"license": None, "base_model": "Qwen/Qwen2.5-0.5B"}),
        ({"model": "no/yes"}, "mit", {"license": "mit", "base_model": "no/yes"}),
        ({"model": "/home/ada/model"}, "", {"license": None, "base_model": None}),
        ({"data.train": "gsm8k:train"}, "", {"datasets": ["openai/gsm8k"]}),
    ],
)
def test_front_matter_is_read_by_the_hub_library(tmp_path, values, licence, expected):
    data = ModelCard(card(write_records(tmp_path / "run", values=values), licence=licence)).data
    assert {name: getattr(data, name) for name in expected} == expected
    assert (data.library_name, data.pipeline_tag) == ("transformers", "text-generation")
    assert {"reinforcement-learning", "math", "grpo"} <= set(data.tags)


def test_card_names_no_place_on_this_machine(tmp_path):
    (tmp_path / "secret.toml").write_text('text = "Q {question}"')
    values = {"run.dir": "/home/ada/runs", "data.train": "/home/ada/my.jsonl"}
    values["prompt.style"] = str(tmp_path / "secret.toml")
    text = card(write_records(tmp_path / "run", values=values))
    assert "my.jsonl" in text and "secret.toml" in text
    assert not any(place in text for place in ("/home/ada", str(tmp_path), "a machine"))


def test_card_names_no_folder_of_a_settings_file_or_of_a_part_of_a_list(tmp_path):
    run_dir = write_records(tmp_path / "run", values={"eval.heldout": "math,/home/ada/private/extra.jsonl"})
    stored = read_settings(run_dir)
    stored["origin"] |= dict.fromkeys(("seed", "reward.functions"), "/home/ada/private/settings.toml")
    stored["config"] |= {"reward.functions": "/home/ada/private/text.py:f"}
    (run_dir / "config.json").write_text(json.dumps(stored))
    text = card(run_dir)
    assert "private" not in text and "| settings.toml |" in text
    assert "text.py" in text and "math,extra.jsonl" in text


@pytest.mark.parametrize(
    ("step", "present", "absent"),
    [
        ("step-000003", ["12.0 [7.0, 17.0] | 83.0 [78.0, 88.0]"], ["Validation problems"]),
        ("best", ["10.0 [5.0, 15.0] | 50.0 [45.0, 55.0]", "too high"], ["83.0"]),
        ("step-000001", ["30.0 [25.0, 35.0]"], ["83.0", "too high"]),
        ("step-000009", ["no evaluation of these weights"], ["83.0"]),
    ],
)
def test_card_shows_figures_of_these_weights_alone(tmp_path, step, present, absent):
    run_dir = write_records(tmp_path / "run")
    (run_dir / "checkpoints" / "best").mkdir(parents=True)
    (run_dir / "checkpoints" / "best" / "best.json").write_text('{"steps_done": 2}')
    text = card(run_dir, step=step)
    assert all(part in text for part in present)
    assert not any(part in text for part in absent)


def test_card_shows_settings_that_differ_and_warns_of_a_control_run(tmp_path):
    text = card(write_records(tmp_path / "run", values={"algo.group_size": 16, "control": "random-reward"}))
    assert "| `algo.group_size` | `16` | command line |" in text
    assert "`algo.beta`" not in text
    assert "no result" in text


def test_folders_of_the_parts_of_a_mixture_and_of_reward_functions_are_not_told():
    spec = "/home/ada/a.jsonl?question=q=0.7,gsm8k=0.2,~/b.csv=0.1"
    assert file_name(spec) == "a.jsonl?question=q=0.7,gsm8k=0.2,b.csv=0.1"
    assert file_name("/home/ada/rewards.py:f=0.5,mine:g") == "rewards.py:f=0.5,mine:g"
    assert file_name("env:guess?max_turns=4&env_python=/home/ada/envs") == "env:guess?max_turns=4&env_python=envs"
    assert file_name("../a.jsonl;~/b.jsonl;org/c") == "a.jsonl;b.jsonl;org/c"
