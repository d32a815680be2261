"""The report at the end of a run: the table of before and after, and example answers."""

import re
import shlex
from pathlib import Path

import pytest

from reasoner.cli.main import build_parser
from reasoner.config.learning import RewardModelConfig, SftConfig
from reasoner.config.schema import Config, EvalConfig
from reasoner.evals.before_after import example_answers, next_commands, table
from reasoner.evals.result import MetricKs
from tests.fixtures.scripted import answering, evaluated, prompt

ASKED = (("a", "5", "sums", 1), ("b", "9", "words", 1), ("c", "7", "words", 2))
PROMPTS = [prompt(name, gold, subject=subject, level=level) for name, gold, subject, level in ASKED]
MENDED = "2+3=6. Check: 2+3=5. I had 6. Wait, 5."
BEFORE = {"a": [answering(6, "About 6.\x1b[2J")], "b": [answering(9)], "c": [answering(6)]}
AFTER = {"a": [answering(5, MENDED)], "b": [answering(9)], "c": [answering(7, "4+3=7.")]}


@pytest.fixture(scope="module")
def evals(pool):
    ks = MetricKs(pass_at=(1, 4), cons_at=(4,))
    return [
        {"sampled": evaluated(own, pool, PROMPTS, 4, ks=ks), "greedy": evaluated(own, pool, PROMPTS)}
        for own in (BEFORE, AFTER)
    ]


def row(text, name):
    return next(line for line in text.splitlines() if line.startswith(name))


def test_table_has_every_metric_before_and_after(evals):
    text = table(*evals)
    for name in ("pass@1 ", "pass@4 ", "cons@4 ", "greedy ", "correct given well-formed"):
        assert "33.3 %" in row(text, name) and "100.0 %" in row(text, name), row(text, name)
    assert "[" in row(text, "pass@1 ")  # with intervals
    assert row(text, "wrong claims caught").split()[-1] == "4)" and "100.0 % (4 of" in row(text, "wrong claims caught")
    assert "0.0 % / 0.0 %" in row(text, "sums 1") and "100.0 % / 100.0 %" in row(text, "sums 1")


def test_traces_show_newly_correct_problems_self_corrected_first(evals):
    text = example_answers(*evals)
    first, second = text.split("\n\n")
    assert first.splitlines()[0].endswith("(gold: 5)") and "Wait, 5." in first.splitlines()[2]
    assert second.splitlines()[0].endswith("(gold: 7)")  # a family each; b was right before
    assert "\x1b" not in text and "\\x1b[2J" in text


def test_the_evaluation_that_is_suggested_is_on_the_problems_of_the_run():
    own, default = (next_commands(Path("runs/a"), Config(eval=one)) for one in (EvalConfig("gsm8k:test"), EvalConfig()))
    assert "reasoner eval --model a --data gsm8k:test --pass@1" in own
    assert "reasoner eval --model a --pass@1" in default


@pytest.mark.parametrize("data", [{}, {"sft": SftConfig(data="x")}, {"rm": RewardModelConfig(data="x")}])
def test_the_commands_that_are_suggested_after_a_stage_can_be_given(data):
    lines = next_commands(Path("my runs/a"), Config(**data)).splitlines()[1:-1]
    words = [shlex.split(re.sub(r"--\w+@\d+", "", line), comments=True)[1:] for line in lines]
    assert len(words) > 2 and all(build_parser(own).parse_args(own) for own in words)
