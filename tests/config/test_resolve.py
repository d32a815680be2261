"""Settings: layers over each other, each value with its origin; unknown keys and values out of range are refused."""

from pathlib import Path

import pytest

from reasoner.config.check import check_run
from reasoner.config.resolve import markdown, parse, read_file, resolve, to_dict
from reasoner.config.schema import Config, settings
from reasoner.inference.factory import ENGINES
from reasoner.models.lora import TARGETS
from reasoner.rollouts.control_rewards import CONTROLS
from reasoner.rollouts.prompts import load_template
from reasoner.trainer.components import sampling_params

ROOT = Path(__file__).parents[2]


def test_later_settings_layer_overrides_earlier_origin_is_recorded_and_to_dict_resolves_to_the_same():
    layers = {"preset": {"steps": 7, "optim.lr": 0.1}, "a.toml": {"optim.lr": 0.2}, "command line": {"seed": 3}}
    resolved = resolve([*layers.items()])
    assert (resolved.config.steps, resolved.config.optim.lr, resolved.config.seed) == (7, 0.2, 3)
    assert [resolved.origin[key] for key in ("steps", "optim.lr", "seed", "algo.group_size")] == [
        "preset", "a.toml", "command line", "default",
    ]  # fmt: skip
    assert resolved.origin.keys() == settings().keys() == to_dict(resolved.config).keys()
    changed = resolve([("x", {"algo.clip_low": 0.1, "engine.dtype": "bfloat16", "run.name": "a"})]).config
    assert resolve([("stored", to_dict(changed))]).config == changed != Config()


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("steps", "12", 12), ("optim.lr", "5e-4", 5e-4), ("optim.lr", "1", 1.0), ("algo.clip_high", "none", None),
        ("algo.clip_high", "0.28", 0.28), ("algo.baseline", "none", "none"), ("algo.baseline", "", None),
        ("algo.filter_zero_advantages", "true", True), ("run.token_stats", "False", False), ("run.name", "12", "12"),
        ("data.train", "a b.jsonl", "a b.jsonl"),
    ],
)  # fmt: skip
def test_texts_of_the_command_line_are_read_by_the_type_of_the_setting(key, text, value):
    parsed = parse(settings()[key], text)
    assert parsed == value and type(parsed) is type(value)


@pytest.mark.parametrize(
    ("key", "text", "kind"),
    [
        ("steps", "many", "a whole number"), ("steps", "1.5", "a whole number"), ("steps", "True", "a whole number"),
        ("seed", "", "a whole number"), ("optim.lr", "fast", "a number"), ("run.token_stats", "yes", "true or false"),
    ],
)  # fmt: skip
def test_a_text_of_another_type_is_refused_by_key_and_value(key, text, kind):
    with pytest.raises(ValueError, match=rf"--{key} takes {kind}, not '{text}'"):
        parse(settings()[key], text)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"algo.groop": 8}, "unknown setting 'algo.groop'; did you mean 'algo.group_size'"),
        ({"lr": 8}, "unknown setting 'lr'; did you mean 'critic.lr' or 'optim.lr'"),
        ({"algo.group_size": 1}, "algo.group_size is 1; it must be at least 2"),
        ({"optim.decay_share": 1.5}, "optim.decay_share is 1.5; it must be at least 0, at most 1"),
        ({"optim.lr": 1e6}, "optim.lr is 1000000.0; it must be above 0, at most 1"),
        ({"critic.lr": 5.0}, "critic.lr is 5.0; it must be above 0, at most 1"),
        ({"optim.decay_share": -0.1}, "optim.decay_share is -0.1; it must be at least 0"),
        ({"sampling.temperature": 0.0}, "sampling.temperature is 0"),
        ({"sampling.temperature": float("inf")}, "sampling.temperature is inf"),
        ({"reward.length": float("nan")}, "reward.length is nan"),
        ({"optim.dtype": "float8"}, "optim.dtype is 'float8'; known are float32, bfloat16"),
        (
            {"max_off_policy_steps": 3, "algo.importance_sampling": "token", "run.save_interval": 3},
            "needs max_off_policy_steps < run.save_interval.*run.save_interval is 3",
        ),
        ({"max_off_policy_steps": 1, "algo.importance_sampling": "none"}, "needs algo.importance_sampling != 'none'"),
        ({"engine.dtype": "fp8", "algo.importance_sampling": "none"}, "needs algo.importance_sampling != 'none'"),
        ({"engine.dtype": "fp8", "engine.name": "transformers"}, "needs engine.name in .*quantises"),
        (
            {"engine.dtype": "fp8", "engine.urls": "http://a:1", "engine.name": "remote"},
            "needs engine.name in .*in this process alone quantises",
        ),
    ],
)
def test_a_value_out_of_range_is_refused_with_the_allowed_ones(values, message):
    with pytest.raises(ValueError, match=message):
        check_run(resolve([("command line", values)]).config)


def test_settings_file_is_read_as_flat_keys(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text('steps = 4\n[optim]\nlr = 1\ncompile = true\n[algo]\nname = "dapo"\n[run]\ntoken_stats = false\n')
    flags = {"optim.compile": True, "run.token_stats": False}
    assert read_file(path) == {"steps": 4, "optim.lr": 1, "algo.name": "dapo"} | flags


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps = ", "is not TOML"),
        ("step = 4", "unknown setting 'step'; did you mean 'steps'"),
        ("[algo]\ngroup = 4", "unknown setting 'algo.group'; did you mean 'algo.group_size'"),
        ("steps = 'four'", "steps takes a whole number, not 'four'"),
        ("steps = true", "steps takes a whole number, not True"),
        ("run.token_stats = 1", "true or false"),
    ],
)
def test_a_file_that_holds_something_else_is_refused_by_name(tmp_path, text, message):
    path = tmp_path / "a.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=f"{path}.*{message}"):
        read_file(path)
    with pytest.raises(ValueError, match="cannot read"):
        read_file(tmp_path / "none.toml")


def test_the_table_of_settings_in_the_docs_is_up_to_date():
    assert (ROOT / "docs" / "config.md").read_text() == markdown(), "make docs"


@pytest.mark.parametrize(
    ("key", "table"),
    [
        ("engine.name", ENGINES),
        ("control", ["", *CONTROLS]),
        ("lora.target", TARGETS),
    ],
)
def test_choices_of_a_setting_are_the_rows_of_its_table(key, table):
    assert set(settings()[key].choices) == set(table)


def test_the_defaults_stay_clear_of_known_traps():  # traps 8, 44
    with pytest.raises(ValueError, match=r"top_p.* training samples from the whole"):
        resolve([("command line", {"sampling.top_p": 0.9})])
    whole = sampling_params(Config(), load_template("r1-zero"))
    assert whole.top_p == 1.0
    assert Config().data.prompts_per_step >= 16
