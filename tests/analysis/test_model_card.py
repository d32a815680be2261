"""The model card: front matter that the hub reads, a command that repeats the run, figures of the weights."""

import ast
import json
import shlex

import pytest
from huggingface_hub import ModelCard

from reasoner.analysis.model_card import CardFacts, model_card
from reasoner.analysis.run_command import command, python_call, shown_value
from reasoner.cli.main import build_parser
from reasoner.cli.train import new_run
from reasoner.config.presets import find_preset
from reasoner.config.resolve import settings, to_dict
from reasoner.rollouts.prompts import Template, load_template
from reasoner.runs.run_dir import read_settings
from tests.fixtures.trained_run import write_records

R1 = load_template("r1-zero")


def card(run_dir, **facts):
    return model_card(run_dir, CardFacts(**{"steps_done": 3, "template": R1} | facts))


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


def test_command_gives_the_settings_of_the_run(tmp_path):
    values = {"seed": 7, "algo.beta": 0.0, "run.token_stats": False, "data.train": "generated", "optim.lr": 3e-4}
    stored = read_settings(
        write_records(tmp_path / "run", values=values, preset=find_preset("base", "cpu").values(), steps=5)
    )
    words = shlex.split(command(stored))
    assert words[:4] == ["reasoner", "train", "--preset", "base"]
    again, _ = new_run(build_parser(words[1:]).parse_args(words[1:]))
    assert to_dict(again.config) == stored["config"]


@pytest.mark.parametrize(
    ("origin", "preset", "changes"),
    [
        ("preset qwen2.5-0.5b@24gb", "qwen2.5-0.5b@24gb", {"optim.lr": 2e-6}),
        ("preset qwen2.5-0.5b@24gb", "qwen2.5-0.5b@24gb", {"optim.micro_batch_tokens": 2048, "optim.recompute": False}),
    ],
)
def test_command_gives_the_settings_of_a_run_whose_preset_has_changed_since(tmp_path, origin, preset, changes):
    stored = read_settings(write_records(tmp_path / "run", preset=find_preset("base", "cpu").values()))
    values = find_preset("qwen2.5-0.5b@24gb", "cpu").values() | changes
    kept = {key: value for key, value in stored["origin"].items() if value != "preset base"}
    origins = dict.fromkeys(stored["origin"], "default") | kept | dict.fromkeys(values, origin)
    defaults = {key: setting.default for key, setting in settings().items()}
    stored |= {"config": defaults | values | {"steps": 3}, "origin": origins | {"steps": "command line"}}
    words = shlex.split(command(stored))
    assert words[2:4] == (["--preset", preset] if preset else ["--model", "Qwen/Qwen2.5-0.5B"])
    again, _ = new_run(build_parser(words[1:]).parse_args(words[1:]))
    assert to_dict(again.config) == stored["config"]


@pytest.mark.parametrize("problems", ["problems.jsonl", "problems.jsonl?environments=allow"])
def test_run_from_python_shows_its_call(tmp_path, problems):
    run_dir = write_records(tmp_path / "run", values={"data.train": problems, "algo.group_size": 4})
    stored = read_settings(run_dir)
    origin = {key: "reasoner.train" if value == "command line" else value for key, value in stored["origin"].items()}
    stored |= {"origin": origin, "reward_functions": {"brevity": 0.5}}
    (run_dir / "config.json").write_text(json.dumps(stored))
    (call,) = ast.parse(python_call(stored)).body
    arguments = {argument.arg: ast.unparse(argument.value) for argument in call.value.keywords}
    assert arguments == {
        "model": "'base'",
        "data": "problems",
        "reward_functions": "[(brevity, 0.5)]",
        "settings": "{'steps': 3, 'algo.group_size': 4}",
    }
    assert python_call(stored) in card(run_dir) and "0.5 × `brevity`" in card(run_dir)


def test_card_names_no_place_on_this_machine(tmp_path):
    (tmp_path / "secret.toml").write_text('text = "Q {question}"')
    values = {
        "prompt.style": str(tmp_path / "secret.toml"),
        "run.dir": "/home/ada/runs",
        "data.train": "/home/ada/my.jsonl",
    }
    text = card(write_records(tmp_path / "run", values=values))
    assert "my.jsonl" in text and "secret.toml" in text
    assert not any(place in text for place in ("/home/ada", str(tmp_path), "a machine"))


def test_card_names_no_folder_of_a_settings_file_or_of_a_part_of_a_list(tmp_path):
    run_dir = write_records(tmp_path / "run", values={"eval.heldout": "math,/home/ada/private/extra.jsonl"})
    stored = read_settings(run_dir)
    stored["origin"] |= {
        "seed": "/home/ada/private/settings.toml",
        "reward.functions": "/home/ada/private/settings.toml",
    }
    stored["config"] |= {"reward.functions": "/home/ada/private/text.py:f"}
    (run_dir / "config.json").write_text(json.dumps(stored))
    text = card(run_dir)
    assert "private" not in text and "| settings.toml |" in text
    assert "text.py" in text and "math,extra.jsonl" in text


@pytest.mark.parametrize(
    ("facts", "present", "absent"),
    [
        ({"steps_done": 3}, ["12.0 [7.0, 17.0] | 83.0 [78.0, 88.0]"], ["Validation problems"]),
        ({"steps_done": 2, "is_best": True}, ["10.0 [5.0, 15.0] | 50.0 [45.0, 55.0]", "too high"], ["83.0"]),
        ({"steps_done": 1}, ["30.0 [25.0, 35.0]"], ["83.0", "too high"]),
        ({"steps_done": 9}, ["no evaluation of these weights"], ["83.0"]),
    ],
)
def test_card_shows_figures_of_these_weights_alone(tmp_path, facts, present, absent):
    text = card(write_records(tmp_path / "run"), **facts)
    assert all(part in text for part in present)
    assert not any(part in text for part in absent)


def test_card_of_a_checkpoint_has_its_validation_and_no_held_out_table(tmp_path):
    facts = {"is_checkpoint": True, "has_chat_template": False}
    run_dir = write_records(tmp_path / "run", values={"lora.rank": 4})  # with the table of an earlier end
    text = card(run_dir, steps_done=2, **facts)
    assert "10.0 [5.0, 15.0] | 50.0 [45.0, 55.0]" in text and "Held-out" not in text
    assert "reasoner export run --out" in text and "adapter alone" in text
    assert "vllm serve" not in text and "generation_config.json" not in text
    assert "no validation of these weights" in card(run_dir, steps_done=3, **facts)


def test_held_out_table_of_an_earlier_end_is_left_out(tmp_path):
    run_dir = write_records(tmp_path / "run", values={"steps": 100})  # continued to 100 steps, stopped after 3
    assert "83.0" not in card(run_dir, steps_done=3)


def test_card_shows_settings_that_differ_and_warns_of_a_control_run(tmp_path):
    text = card(write_records(tmp_path / "run", values={"algo.group_size": 16, "control": "random-reward"}))
    assert "| `algo.group_size` | `16` | command line |" in text
    assert "`algo.beta`" not in text
    assert "this model is no result" in text


def test_card_tells_how_the_run_prompted(tmp_path):
    run_dir = write_records(tmp_path / "run")
    text = card(run_dir, template=Template("``` {question}", prefill="<think>", stop=("</a>",)))
    assert "````\n``` {question}\n````" in text
    assert "ends with `<think>`" in text and "ends at `</a>`" in text
    assert "vllm serve FOLDER" in text and "/v1/chat/completions" in text
    assert "/v1/chat/completions" not in card(run_dir, has_chat_template=False)


def test_folders_of_the_parts_of_a_mixture_and_of_reward_functions_are_not_told():
    spec = "/home/ada/a.jsonl?question=q=0.7,gsm8k=0.2,~/b.csv=0.1"
    assert shown_value(spec) == "a.jsonl?question=q=0.7,gsm8k=0.2,b.csv=0.1"
    assert shown_value("/home/ada/rewards.py:f=0.5,mine:g") == "rewards.py:f=0.5,mine:g"
