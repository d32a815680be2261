"""Stages of training: a setting that a stage would ignore is refused."""

import pytest

from reasoner.config.resolve import settings
from reasoner.config.stages import STAGES, check_used, is_used, preset_values, stage_defaults


def test_every_name_of_the_table_is_a_setting_or_a_section():
    known = {*settings(), *(key.partition(".")[0] + "." for key in settings())}
    assert {name for stage in STAGES.values() for name in (*stage.unused, stage.source)} <= known


def test_settings_without_a_meaning_are_named():
    check_used(["sft.rows", "optim.lr", "validation.interval"], "sft")
    with pytest.raises(
        ValueError, match=r"algo.beta, steps: without a meaning for reasoner sft; its length is sft.epo"
    ):
        check_used(["seed", "algo.beta", "steps"], "sft")
    with pytest.raises(ValueError, match=r"sft.rows: without a meaning for reasoner train"):
        check_used(["sft.rows"], "rl")


def test_a_preset_gives_supervised_finetuning_no_values_of_reinforcement_learning():
    values = {"optim.lr": 1e-6, "algo.name": "grpo", "steps": 3, "engine.dtype": "bfloat16", "lora.rank": 8}
    assert preset_values(values, "sft") == {"engine.dtype": "bfloat16", "lora.rank": 8}
    assert preset_values(values, "rl") == values
    rates = [stage_defaults("sft", *choice)["optim.lr"] for choice in (("base", 0), ("a", 0), ("a", 8))]
    assert rates == [5e-4, 2e-5, 2e-4]
    assert [stage_defaults("sft", name, 0)["optim.decay_share"] for name in ("base", "a")] == [0.0, 1.0]
    for stage in STAGES:
        assert all(is_used(key, stage) or key == "algo.beta" for key in stage_defaults(stage, "a", 0))
