"""The size of a run: validations, checkpoints, completions, and the problems of its first steps."""

import pytest

from reasoner.config.schema import Config, DataConfig, RunConfig, ValidationConfig
from reasoner.doctor.budget import run_budget
from reasoner.doctor.trial_step import next_prompts
from reasoner.rollouts.prompts import load_template, render
from reasoner.trainer.run import is_due
from tests.doctor.sums import SUMS
from tests.fixtures.tiny import tiny_tokenizer


@pytest.mark.parametrize(("steps", "every", "save"), [(10, 3, 20), (12, 12, 4), (7, 0, 3), (1, 5, 1)])
def test_run_budget_equals_a_count_over_the_loop(steps, every, save):
    cfg = Config(steps=steps, run=RunConfig(save_interval=save), validation=ValidationConfig(interval=every))
    ends = [step for step in range(steps) if step + 1 == steps]
    looks = {step for step in range(steps) if every and is_due(step, every)} | (set(ends) if every else set())
    assert run_budget(cfg).validations == len(looks) + bool(every)
    assert run_budget(cfg).checkpoints == len({step for step in range(steps) if is_due(step, save)} | set(ends))


def test_the_upcoming_questions_are_those_of_the_first_steps():
    prompts = [render(problem, load_template("none"), tiny_tokenizer()) for problem in SUMS]
    cfg = Config(data=DataConfig(prompts_per_step=5))
    names = [prompt.problem.id for prompt in next_prompts(prompts, cfg, 12)]
    assert len(names) == len(set(names)) == 12
    assert names[:5] == [prompt.problem.id for prompt in next_prompts(prompts, cfg, 5)]
    assert names[:1] == [prompt.problem.id for prompt in next_prompts(prompts, cfg, 1)]
