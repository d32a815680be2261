"""The plan of a recipe: the calls that settings and changes make of it."""

from pathlib import Path

import pytest

from reasoner.recipes.plan import Change, Plan
from reasoner.recipes.r1 import R1Settings, r1

RUNS = Path("runs")
DEFAULTS = R1Settings()
EVERYTHING = R1Settings(student="small", controls=True, mix="texts.jsonl")


def calls(settings: R1Settings = DEFAULTS, *changes: str) -> dict[str, str]:
    """The calls of the recipe by stage."""
    plan = Plan("p", RUNS, [Change.parse(text) for text in changes])
    r1(plan, settings)
    return {stage.name: stage.call for stage in plan.stages}


def test_calls_have_the_settings_and_the_runs_of_other_stages():
    own = calls(R1Settings(seed=3))
    assert own["cold-samples"] == (
        "sample(data='generated', seed=3, model='base', skip=0, problems=300, num_samples=8, name='p-cold-samples', "
        "runs='runs')"
    )
    assert "data='runs:p-cold-samples?where=correct,well-formed,ended&per_problem=4'" in own["cold-sft"]
    assert own["final-rl"] == (
        "train(model='runs/p-sft', data='generated', steps=16, seed=4, settings={'reward.model': "
        "'runs/p-reward-model=0.25', 'reward.language': 0.1, 'optim.decay_share': 1.0}, name='p-final-rl', runs='runs')"
    )


def test_second_finetuning_begins_with_the_first_model():
    own = calls(R1Settings(model="some/model"))
    assert own["sft"].startswith("finetune(model='some/model', data='runs:p-rejection-samples?")
    assert "model='runs/p-rl'" in own["rejection-samples"]


def test_what_a_stage_reads_was_made_by_a_stage_before_it():
    plan, made = Plan("p", RUNS), set()
    r1(plan, EVERYTHING)
    for stage in plan.stages:
        texts = [str(value) for name, value in stage.values.items() if name not in ("name", "runs", "out")]
        places = [text.partition("=")[0] for text in texts if text.startswith("runs/p")]
        places += [f"runs/{text[5:].partition('?')[0]}" for text in texts if text.startswith("runs:")]
        assert set(places) <= made, stage.name
        made.add(stage.output)
    assert len(made) == 14


def test_samples_of_the_stages_are_of_different_problems_and_mix_is_a_second_source():
    own = calls(R1Settings(cold_problems=10, rejection_problems=20))
    assert "skip=10, problems=20" in own["rejection-samples"] and "skip=30" in own["preference-samples"]
    assert "per_problem=4;texts.jsonl'" in calls(EVERYTHING)["sft"] and ";" not in calls()["sft"]


def test_problems_that_a_run_validates_on_are_not_sampled():
    own = calls(R1Settings(data="gsm8k"))
    assert "data='gsm8k?without_sample=200'" in own["cold-samples"] and "data='gsm8k'" in own["rl"]


def test_stages_whose_settings_are_empty_are_left_out():
    assert [name for name in calls(EVERYTHING) if name not in calls()] == [
        "rl-control", "student-samples", "student-examples", "student", "student-control",
    ]  # fmt: skip


def test_changes_go_to_the_stages_that_have_a_use_for_them():
    changes = ("optim.lr=0.01", "sft.epochs=1", "rl:steps=3", "cold-samples:max-tokens=9", "threads=1")
    own = calls(DEFAULTS, *changes)
    texts = ("'optim.lr': 0.01", "'sft.epochs': 1", "steps=3", "max_tokens=9", "threads=1", "'threads': 1")
    assert {text: [name for name, call in own.items() if text in call] for text in texts} == {
        "'optim.lr': 0.01": ["cold-sft", "rl", "sft", "reward-model", "final-rl"],
        "'sft.epochs': 1": ["cold-sft", "sft"],
        "steps=3": ["rl"],
        "max_tokens=9": ["cold-samples"],
        "threads=1": ["cold-samples", "rejection-samples", "preference-samples"],
        "'threads': 1": ["cold-sft", "rl", "sft", "reward-model", "final-rl"],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps", "is no change of a setting"),
        ("=3", "is no change of a setting"),
        ("stepps=3", "unknown setting 'stepps'"),
        ("cold-samples:steps=3", "stage cold-samples: sample takes no 'steps'"),
        ("rl:run.name=x", "stage rl: train takes no 'run.name'"),
    ],
)
def test_changes_that_nothing_has_a_use_for_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        calls(DEFAULTS, text)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"rl_steps": 0}, "rl_steps is 0; it must be at least 1"),
        ({"where": "right"}, "where is 'right'"),
        ({"per_problem": -1}, "per_problem is -1"),
    ],
)
def test_settings_that_cannot_be_used_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        R1Settings(**settings)
