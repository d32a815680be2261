"""Gold answers that can be graded, the problems of the first steps, epochs, and problems that are evaluated on."""

import pytest

from data import Problem
from reasoner.config.schema import Config, DataConfig
from reasoner.doctor.findings import Severity
from reasoner.doctor.problems import check_epochs, check_gold_answers
from reasoner.doctor.trial_step import next_prompts
from reasoner.rollouts.prompts import load_template, render
from tests.doctor.sums import SUMS
from tests.fixtures.tiny import tiny_tokenizer


def test_gold_answers_that_cannot_be_graded_are_counted_and_named():
    bad = [Problem(f"bad/{i}", "?", "x+", "bad", "train", verifier="countdown") for i in range(7)]
    line, good = check_gold_answers([*SUMS, *bad], Config())
    assert (line.severity, good) == (Severity.WARNING, SUMS)
    assert "12 of 19" in line.message and "bad/0" in line.message and "and 2 more" in line.message
    assert check_gold_answers(SUMS, Config())[0].severity is Severity.OK
    with pytest.raises(ValueError, match="7 of 7 problems"):
        check_gold_answers(bad, Config())


def test_questions_that_come_twice_in_a_step_or_are_evaluated_on_are_warnings():
    prompts = [render(problem, load_template("none"), tiny_tokenizer()) for problem in SUMS]
    lines = list(check_epochs(prompts, prompts[:3], Config(data=DataConfig(prompts_per_step=32))))
    assert [line.severity for line in lines] == [Severity.WARNING, Severity.WARNING]
    assert lines[0].suggestion == "--data.prompts_per_step 12"
    assert "3 of 3 stand in the training set" in lines[1].message


def test_the_upcoming_questions_are_those_of_the_first_steps():
    prompts = [render(problem, load_template("none"), tiny_tokenizer()) for problem in SUMS]
    cfg = Config(data=DataConfig(prompts_per_step=5))
    names = [prompt.problem.id for prompt in next_prompts(prompts, cfg, 12)]
    assert len(names) == len(set(names)) == 12
    assert names[:5] == [prompt.problem.id for prompt in next_prompts(prompts, cfg, 5)]
    assert names[:1] == [prompt.problem.id for prompt in next_prompts(prompts, cfg, 1)]
