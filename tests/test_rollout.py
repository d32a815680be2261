"""Prompts in, graded groups out: with a scripted engine and the real grading processes."""

import pytest

from reasoner.rollout import rollout
from reasoner.seeds import sample_seed
from reasoner.types import Sampling
from tests.scripted import Scripted, answering, prompt
from verifiers import RewardWeights, Verdict, VerifierPool


@pytest.fixture(scope="module")
def pool():
    with VerifierPool() as opened:
        yield opened


PROMPTS = [prompt("a", "4"), prompt("b", "9")]
SCRIPT = {"a": [answering(4), answering(5), "4"], "b": [answering(8), answering("no"), answering("18/2")]}


def test_each_completion_is_graded_against_its_own_problem(pool):
    groups = rollout(Scripted(SCRIPT), pool, PROMPTS, Sampling(3), RewardWeights(1.0, 0.2), run_seed=0, step=0)
    assert [group.prompt for group in groups] == PROMPTS
    assert [len(group.completions) for group in groups] == [len(group.scores) for group in groups] == [3, 3]  # trap 6
    assert [score.correct for group in groups for score in group.scores] == [True, False, False, False, False, True]
    assert [score.reward for score in groups[0].scores] == [1.2, 0.2, 0.0]
    assert groups[0].scores[2].verdict is Verdict.MALFORMED


def test_the_prefill_belongs_to_what_is_graded(pool):  # trap 20
    half = "so </think> <answer> 4 </answer>"
    prompts = [prompt("a", "4", "<think>"), prompt("b", "4")]
    groups = rollout(
        Scripted({"a": [half], "b": [half]}), pool, prompts, Sampling(1), RewardWeights(), run_seed=0, step=0
    )
    assert [group.scores[0].correct for group in groups] == [True, False]


def test_every_completion_has_a_seed_of_its_own_whatever_the_batch(pool):  # trap 33
    engine = Scripted(SCRIPT)
    rollout(engine, pool, PROMPTS, Sampling(3), RewardWeights(), run_seed=5, step=2)
    together = engine.seeds
    assert together == [[sample_seed(5, 2, name, j) for j in range(3)] for name in ("a", "b")]
    assert len({seed for row in together for seed in row}) == 6
    rollout(engine, pool, PROMPTS[1:], Sampling(3), RewardWeights(), run_seed=5, step=2)
    assert engine.seeds == together[1:]
    rollout(engine, pool, PROMPTS, Sampling(3), RewardWeights(), run_seed=5, step=3)
    assert not {seed for row in engine.seeds for seed in row} & {seed for row in together for seed in row}


def test_more_samples_extend_the_earlier_ones(pool):
    engine = Scripted(SCRIPT)
    rollout(engine, pool, PROMPTS, Sampling(3), RewardWeights(), run_seed=0, step="eval")
    three = engine.seeds
    rollout(engine, pool, PROMPTS, Sampling(2), RewardWeights(), run_seed=0, step="eval")
    assert engine.seeds == [row[:2] for row in three]
