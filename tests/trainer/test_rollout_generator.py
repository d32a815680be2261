"""Rollouts of a step with reward models: when they are scored, and what dynamic sampling sees of them."""

from dataclasses import replace

import pytest

from data import Problem
from reasoner.config.learning import RewardConfig
from reasoner.config.schema import DataConfig
from reasoner.rl.algorithms import ALGORITHMS
from reasoner.trainer.rollout_generator import RolloutGenerator
from reasoner.trainer.step_metrics import generation_metrics, tool_metrics
from reasoner.types import Completion, Prompt, SamplingParams
from tests.fixtures.toys import config, group

PROMPTS = [Prompt(Problem(f"p/{n}", "?", "1", "maths", "train"), "?", "<think>", (n + 3,)) for n in range(12)]


class AlwaysRight:
    """An engine whose completions are all correct, and of one to four tokens."""

    def __init__(self):
        self.events = []

    def generate(self, prompts, sampling, seeds, on_group_done=None, on_decode_step=None):
        self.events.append("generate")
        text = "so </think> <answer> 1 </answer>"
        rows = [range(1, 1 + sampling.num_samples) for _ in prompts]
        groups = [tuple(Completion(text, (7,) * n, (-1.0,) * n, "stop", 0) for n in own) for own in rows]
        for place, own in enumerate(groups):
            on_group_done(place, own)
        return groups

    def sleep(self, *, keeps_weights):
        self.events.append("sleep")

    def wake_up(self):
        self.events.append("wake up")


class Lengths:
    """Scores a completion by its number of tokens, and notes when."""

    def __init__(self, events):
        self.events = events

    def scores(self, groups):
        self.events.append("score")
        return [float(len(own.token_ids)) for group in groups for own in group.completions]


def generator(pool, name="grpo", *, weight="1", control=""):
    cfg = replace(config(name=name), data=DataConfig(prompts_per_step=3), control=control)
    cfg = replace(cfg, reward=RewardConfig(model=f"rm={weight}"))
    engine = AlwaysRight()
    models = {"rm": Lengths(engine.events)}
    return RolloutGenerator(engine, pool, PROMPTS, SamplingParams(num_samples=4), cfg, reward_models=models)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_every_algorithm_gets_the_scores_of_the_step_and_the_engine_sleeps_meanwhile(name, pool):
    own = generator(pool, name, weight="0.5")
    rollouts = own.generate(0)
    assert own.engine.events == ["generate", "sleep", "score", "wake up"]
    assert [score.reward for score in rollouts.groups[0].scores] == pytest.approx([1.7, 2.2, 2.7, 3.2])
    metrics = generation_metrics(0, rollouts, own)
    assert metrics["reward/model"] == pytest.approx(1.25)


def test_dynamic_sampling_replaces_groups_whose_rewards_with_scores_are_equal(pool):
    assert len(generator(pool, "dapo").generate(0).all) == 3
    flat = generator(pool, "dapo", weight="0")
    assert len(flat.generate(0).all) > 3 and flat.engine.events.count("score") > 1


def test_control_run_does_not_learn_from_the_reward_model(pool):
    own = generator(pool, control="format-only").generate(0).groups[0]
    assert [score.reward for score in own.scores] == [1.0] * 4
    assert [score.parts["model:rm"] for score in own.scores] == [1.0, 2.0, 3.0, 4.0]


def test_a_step_without_calls_of_tools_has_no_share_of_failed_ones():
    assert tool_metrics([group([5], [[6], [7]], [0.0, 1.0])]) == {"tools/calls": 0.0}
