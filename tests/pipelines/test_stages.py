"""Stages as data: the commands that settings make of a recipe."""

from dataclasses import replace
from pathlib import Path

import pytest

from reasoner.pipelines.r1 import R1, R1Settings
from reasoner.pipelines.stages import Stage, StageTemplate, build_stages, command_of, parse_change

RUNS = Path("runs")
DEFAULTS = R1Settings()
EVERYTHING = R1Settings(student="small", controls=True, mix="texts.jsonl", noise="1")


def r1(settings: R1Settings = DEFAULTS, *changes: str) -> dict[str, str]:
    """The commands of the recipe by stage."""
    parsed = [parse_change(text) for text in changes]
    stages = build_stages(R1, settings.values(), name="p", runs=RUNS, changes=parsed)
    return {stage.name: " ".join(stage.command) for stage in stages}


def test_commands_have_the_settings_and_the_runs_of_other_stages():
    commands = r1(R1Settings(seed=3))
    assert commands["cold-samples"] == (
        "sample --model base --data generated --problems 300 --num-samples 8 --seed 3 --runs runs --name p-cold-samples"
    )
    assert commands["cold-examples"] == (
        "rollouts export runs/p-cold-samples runs/p/cold.jsonl --as sft --per-problem 4"
    )
    assert commands["final-rl"] == (
        "train --model runs/p-sft --data generated --steps 16 --reward.model runs/p-reward-model=0.25 "
        "--reward.language 0.1 --optim.decay_share 1 --seed 4 --run.dir runs --run.name p-final-rl"
    )


def test_second_finetuning_begins_with_the_first_model():
    commands = r1(R1Settings(model="some/model"))
    assert commands["sft"].startswith("sft --model some/model --data runs/p/rejection.jsonl ")
    assert "--model runs/p-rl " in commands["rejection-samples"]


def test_what_a_command_reads_was_written_by_a_stage_before_it():
    written: set[str] = set()
    for stage in build_stages(R1, EVERYTHING.values(), name="p", runs=RUNS):
        places = [word.partition("=")[0].partition(";")[0] for word in stage.command if word.startswith("runs/p")]
        if stage.command[0] == "rollouts":
            written.add(places.pop())  # of the file that it writes
        assert set(places) <= written
        written |= {str(stage.run)} if stage.run else set()


def test_samples_of_the_two_finetunings_and_of_the_reward_model_are_of_different_problems():
    values = R1Settings(cold_problems=10, rejection_problems=20).values()
    assert (values["rejection_skip"], values["preference_skip"]) == (10, 30)


def test_flags_without_a_value_are_left_out():
    assert "--noise" not in r1()["preference-pairs"]
    assert "--noise 1 " in r1(EVERYTHING)["preference-pairs"]
    assert "--data runs/p/rejection.jsonl;texts.jsonl" in r1(EVERYTHING)["sft"]


def test_stages_whose_settings_are_empty_are_left_out():
    assert [name for name in r1(EVERYTHING) if name not in r1()] == [
        "rl-control", "student-samples", "student-examples", "student", "student-control",
    ]  # fmt: skip


def test_changes_go_to_the_stages_that_have_a_use_for_them():
    commands = r1(DEFAULTS, "optim.lr=0.01", "sft.epochs=1", "rl:steps=3", "cold-samples:max-tokens=9", "threads=1")
    flags = ("--optim.lr 0.01", "--sft.epochs 1", "--steps 3", "--max-tokens 9", "--threads 1")
    changed = {flag: [name for name, text in commands.items() if f"{flag} " in f"{text} "] for flag in flags}
    assert changed == {
        "--optim.lr 0.01": ["cold-sft", "rl", "sft", "reward-model", "final-rl"],
        "--sft.epochs 1": ["cold-sft", "sft"],
        "--steps 3": ["rl"],
        "--max-tokens 9": ["cold-samples"],
        "--threads 1": [name for name, text in commands.items() if not text.startswith("rollouts export")],
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("steps", "is no change of a setting"),
        ("=3", "is no change of a setting"),
        ("stepps=3", "no setting 'stepps'"),
        ("nothing:steps=3", "no stage 'nothing'; there are cold-samples"),
    ],
)
def test_changes_that_nothing_has_a_use_for_are_refused(text, message):
    with pytest.raises(ValueError, match=message):
        r1(DEFAULTS, text)


def test_sizes_below_one_are_refused():
    with pytest.raises(ValueError, match="rl_steps is 0; it must be at least 1"):
        R1Settings(rl_steps=0)


def test_a_run_that_was_begun_is_resumed_and_another_command_repeated(tmp_path):
    words = ("reward-model", "train", "--model", "base")
    stage = Stage("rm", "", words, tmp_path / "p-rm")
    assert stage.next_command() == words
    (tmp_path / "p-rm").mkdir()
    (tmp_path / "p-rm" / "config.json").write_text("{}")
    assert stage.next_command() == ("reward-model", "train", "--resume", str(tmp_path / "p-rm"))
    assert replace(stage, command=("sample", "--model", "base")).next_command() == ("sample", "--model", "base")


def test_a_run_that_was_begun_takes_the_settings_that_its_resumption_accepts(tmp_path):
    (tmp_path / "config.json").write_text("{}")
    (tmp_path / "metrics.jsonl").write_text("{}")
    place = ("--run.dir", "runs", "--run.name", "p-rl")
    words = ("train", "--model", "base", "--steps", "4", *place, "--engine.name", "vllm")
    stage = Stage("rl", "", (*words, "--engine.name", "transformers"), tmp_path)
    resumed = ("train", "--resume", str(tmp_path), "--steps", "4", "--engine.name", "transformers")
    assert stage.next_command() == resumed
    assert stage.continues(words) and stage.continues(words[:-2])
    assert not stage.continues((*words, "--run.keep_last", "3"))  # which the run would keep
    assert not stage.continues((*words, "--optim.lr", "1"))
    assert not stage.continues(("train", "--model", "other", *words[3:]))
    assert not replace(stage, command=("sample", "--engine.name", "x")).continues(("sample", "--engine.name", "y"))
    assert replace(stage, run=tmp_path / "nothing").continues(("train", "--model", "other"))  # it failed at once


def test_words_of_a_command_keep_their_spaces():
    template = StageTemplate("a", "", "train --model {model}")
    [stage] = build_stages([template], {"model": "my model"}, name="p", runs=Path("my runs"))
    assert stage.command == ("train", "--model", "my model", "--run.dir", "my runs", "--run.name", "p-a")
    assert command_of(stage.command) == "train" and command_of(["rollouts", "export", "x"]) == "rollouts"
