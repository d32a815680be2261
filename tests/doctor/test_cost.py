"""The time that a run is expected to take."""

from dataclasses import replace

import pytest

from reasoner.config.algorithm import AlgoConfig
from reasoner.config.schema import Config, DataConfig, EvalConfig, ValidationConfig
from reasoner.doctor.cost import estimate_time, num_validations
from reasoner.doctor.trial_step import StepTiming, TrialStep
from reasoner.rl.algorithms import ALGORITHMS
from reasoner.trainer.run import is_due

# A quarter of a step's 128 completions took 2 s and 3 s; 100 others took 5 s.
TRIAL = TrialStep([], StepTiming(32, 320, 1.5, 3.0, 0.5), StepTiming(100, 1000, 5.0), 0.3, 0.2, 0.0, {}, 0)
CFG = Config(steps=10, algo=AlgoConfig(group_size=4), data=DataConfig(prompts_per_step=32))


@pytest.mark.parametrize(("steps", "every"), [(10, 3), (12, 12), (7, 0), (1, 5)])
def test_number_of_validations_equals_a_count_over_the_loop(steps, every):
    ends = [step for step in range(steps) if step + 1 == steps]
    looks = {step for step in range(steps) if every and is_due(step, every)} | (set(ends) if every else set())
    assert num_validations(steps, every) == len(looks) + bool(every)


def test_a_run_that_its_tokens_end_validates_as_often_as_it_has_steps_to():
    runs = (replace(CFG, steps=100_000, max_train_tokens=12_800), CFG)  # 1,280 tokens a step
    of_tokens, of_steps = (estimate_time(TRIAL, ALGORITHMS["grpo"], cfg, informative_share=1.0) for cfg in runs)
    assert of_tokens == of_steps


def test_the_expected_time_is_the_sum_of_steps_validations_and_table():
    looks = ValidationConfig(interval=5, problems=4, samples=4)
    rest = {"cfg": replace(CFG, eval=EvalConfig(heldout_problems=10, samples=4), validation=looks)}
    rest |= {"informative_share": 0.5}
    time = estimate_time(TRIAL, ALGORITHMS["grpo"], **rest)
    assert (time.step, time.steps) == (4 * 5 + 0.5, 10 * 20.5)
    assert time.evaluation == pytest.approx((3 * 20 + 100) * 0.05) and time.total == time.steps + time.evaluation
    assert estimate_time(TRIAL, ALGORITHMS["dapo"], **rest).step == 4 * (2 * 2 + 3) + 0.5
