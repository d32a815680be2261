"""The size of a run: its validations, and the problems of its first steps."""

import pytest

from reasoner.config.schema import Config, DataConfig
from reasoner.doctor.time_estimate import estimate_time, num_validations
from reasoner.doctor.trial_step import StepTiming, TrialStep, next_prompts
from reasoner.rl.algorithms import ALGORITHMS
from reasoner.rollouts.prompts import load_template, render
from reasoner.trainer.run import is_due
from tests.doctor.sums import SUMS
from tests.fixtures.tiny import tiny_tokenizer


@pytest.mark.parametrize(("steps", "every"), [(10, 3), (12, 12), (7, 0), (1, 5)])
def test_number_of_validations_equals_a_count_over_the_loop(steps, every):
    ends = [step for step in range(steps) if step + 1 == steps]
    looks = {step for step in range(steps) if every and is_due(step, every)} | (set(ends) if every else set())
    assert num_validations(steps, every) == len(looks) + bool(every)


def test_a_run_that_its_tokens_end_validates_as_often_as_it_has_steps_to():
    now = StepTiming(8, tokens=80, generate_seconds=1.0, train_seconds=1.0)
    none = {"sync_seconds": 0.0, "probe_seconds": 0.0, "logprob_diff": 0.0, "update_metrics": {}, "rollout_bytes": 0}
    trial, data = TrialStep([], now, now, **none), DataConfig(prompts_per_step=1)
    runs = (Config(steps=100_000, max_train_tokens=800, data=data), Config(steps=10, data=data))
    of_tokens, of_steps = (estimate_time(trial, ALGORITHMS["grpo"], cfg, informative_share=1.0) for cfg in runs)
    assert of_tokens == of_steps


def test_the_upcoming_questions_are_those_of_the_first_steps():
    prompts = [render(problem, load_template("none"), tiny_tokenizer()) for problem in SUMS]
    cfg = Config(data=DataConfig(prompts_per_step=5))
    names = [prompt.problem.id for prompt in next_prompts(prompts, cfg, 12)]
    assert len(names) == len(set(names)) == 12
    assert names[:5] == [prompt.problem.id for prompt in next_prompts(prompts, cfg, 5)]
    assert names[:1] == [prompt.problem.id for prompt in next_prompts(prompts, cfg, 1)]
