"""Stages of training: a setting that a stage would ignore is refused."""

import pytest

from reasoner.config.stages import STAGES, check_used, is_used, preset_values, stage_defaults


def test_settings_without_a_meaning_are_named():
    check_used({"sft.rows": 4, "optim.lr": 1e-3, "validation.interval": 3}, "sft")
    with pytest.raises(ValueError, match=r"steps is 5, .*needs reasoner train .*sft\.epochs"):
        check_used({"seed": 3, "steps": 5}, "sft")
    with pytest.raises(ValueError, match=r"processes is 2, .*needs reasoner train or reasoner sft"):
        check_used({"processes": 2}, "reward-model")
    with pytest.raises(ValueError, match=r"sft.rows is 4, .*needs reasoner sft"):
        check_used({"sft.rows": 4}, "rl")


def test_a_preset_gives_supervised_finetuning_no_values_of_reinforcement_learning():
    values = {"optim.lr": 1e-6, "algo.name": "grpo", "steps": 3, "engine.dtype": "bfloat16", "lora.rank": 8}
    assert preset_values(values, "sft") == {"engine.dtype": "bfloat16", "lora.rank": 8}
    assert preset_values(values, "rl") == values
    rates = [stage_defaults("sft", *choice)["optim.lr"] for choice in (("base", 0), ("a", 0), ("a", 8))]
    assert rates == [5e-4, 2e-5, 2e-4]
    assert [stage_defaults("sft", name, 0)["optim.decay_share"] for name in ("base", "a")] == [0.0, 1.0]
    for stage in STAGES:
        assert all(is_used(key, stage) or key == "algo.beta" for key in stage_defaults(stage, "a", 0))
