"""Findings about sampled responses."""

from dataclasses import replace
from itertools import combinations

import pytest

from reasoner.config.algorithm import AlgoConfig
from reasoner.config.schema import Config, DataConfig, SamplingConfig
from reasoner.doctor.findings import Severity
from reasoner.doctor.pass_rate import informative_share, response_findings, response_stats
from reasoner.rollouts.prompts import load_template
from reasoner.types import Completion, Prompt, RolloutGroup
from tests.doctor.sums import SUMS
from tests.fixtures.tiny import tiny_tokenizer
from verifiers import Score, Verdict


def written(name: str, letters: str) -> RolloutGroup:
    """A group with a letter a completion: r right, w wrong, f formless, all of 10 tokens; R, W, F cut off at 50."""
    verdicts = {"r": Verdict.CORRECT, "w": Verdict.WRONG, "f": Verdict.NO_ANSWER}
    worth = {"r": 1.2, "w": 0.2, "f": 0.0}
    ends = [(50, "length") if letter.isupper() else (10, "stop") for letter in letters]
    completions = tuple(Completion("</answer>", (1,) * tokens, (), finish, 0) for tokens, finish in ends)
    scores = (Score(worth[c], {}, verdicts[c], well_formed=c != "f", lenient=c == "r") for c in letters.lower())
    return RolloutGroup(Prompt(replace(SUMS[0], id=name), "?", "", (1,)), completions, tuple(scores))


CFG = Config(
    sampling=SamplingConfig(max_tokens=50), algo=AlgoConfig(group_size=4), data=DataConfig(prompts_per_step=32)
)
R1 = load_template("r1-zero")


def findings(groups):
    lines = response_findings(response_stats(groups, R1, CFG), R1, tiny_tokenizer(), CFG, 400)
    return {line.subject: line for line in lines}


@pytest.mark.parametrize(
    ("groups", "subject", "severity", "suggestion"),
    [
        (["rwff"] * 4, "variance", Severity.OK, ""),
        (["ffff"] * 4, "variance", Severity.ERROR, ""),
        (["r" * 15 + "w"] * 4, "variance", Severity.WARNING, "--algo.group_size 8 --data.prompts_per_step 16"),
        (["rrrr"] * 3 + ["rrrw"], "variance", Severity.WARNING, ""),  # no larger group was sampled
        (["rwww"] * 4, "pass rate", Severity.OK, ""),
        (["wfff"] * 4, "pass rate", Severity.WARNING, ""),
        (["rrrr"] * 4, "pass rate", Severity.WARNING, ""),
        (["rwff"] * 4, "format", Severity.OK, ""),
        (["ffff"] * 4, "format", Severity.WARNING, "--prompt none"),
        (["rwff"] * 4, "responses", Severity.OK, ""),
        (["rwFF"] * 4, "responses", Severity.WARNING, "--sampling.max_tokens 32"),  # only wrong ones need so much room
        (["wwFF"] * 4, "responses", Severity.WARNING, "--sampling.max_tokens 100"),
        (["RwFF"] * 4, "responses", Severity.WARNING, "--sampling.max_tokens 100"),
    ],
)
def test_responses_give_the_expected_severity_and_suggestion(groups, subject, severity, suggestion):
    sampled = [written(f"p{i}", letters) for i, letters in enumerate(groups)]
    line = findings(sampled)[subject]
    assert (line.severity, line.suggestion) == (severity, suggestion)


@pytest.mark.parametrize("rewards", [[0, 0, 0, 1, 1, 0.2], [0, 0, 0, 0, 0, 1], [1, 1, 1, 1, 1, 1], [0, 1, 2, 3, 4, 5]])
@pytest.mark.parametrize("group", [2, 3, 5, 6])
def test_share_of_mixed_groups_is_that_of_all_subsets(rewards, group):
    subsets = list(combinations(rewards, group))
    counted = sum(len(set(subset)) > 1 for subset in subsets) / len(subsets)
    assert informative_share([rewards], group).value == pytest.approx(counted)


def test_grading_that_fails_is_a_warning():
    group = written("p", "rwff")
    group = replace(group, scores=(*group.scores[:3], replace(group.scores[3], verdict=Verdict.TIMED_OUT)))
    assert findings([group])["grading"].suggestion == "--verify.seconds 4"
