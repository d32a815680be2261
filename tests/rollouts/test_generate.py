"""Generation of graded groups, with a scripted engine and the real grading processes."""

import time
from dataclasses import replace

import pytest

from reasoner.rollouts.generate import generate_groups, num_repeats, sample_until_full
from reasoner.rollouts.seeds import sample_seed
from reasoner.types import Completion, Prompt, RolloutGroup, SamplingParams
from tests.fixtures.scripted import Scripted, answering, prompt
from tests.fixtures.toys import PROBLEM
from verifiers import RewardWeights, Score, Verdict, VerifierPool

PROMPTS = [prompt("a", "4"), prompt("b", "9")]
SCRIPT = {"a": [answering(4), answering(5), "4"], "b": [answering(8), answering("no"), answering("18/2")]}


def generate(engine, pool, prompts=PROMPTS, *, samples=3, seed=0, step=0, weights=None, repeats=None):
    sampling, weights = SamplingParams(num_samples=samples), weights or RewardWeights()
    more = {} if repeats is None else {"repeats": repeats}
    return generate_groups(engine, pool, prompts, sampling, weights, run_seed=seed, step=step, **more)


def test_rollout_grades_each_completion_against_its_problem(pool):
    groups = generate(Scripted(SCRIPT), pool, weights=RewardWeights(1.0, 0.2))
    assert [group.prompt for group in groups] == PROMPTS
    assert [len(group.completions) for group in groups] == [len(group.scores) for group in groups] == [3, 3]  # trap 6
    assert [score.correct for group in groups for score in group.scores] == [True, False, False, False, False, True]
    assert [score.reward for score in groups[0].scores] == [1.2, 0.2, 0.0]
    assert groups[0].scores[2].verdict is Verdict.MALFORMED


def test_rollout_grades_finished_group_during_sampling(pool):
    class Slow(Scripted):
        def generate(self, prompts, sampling, seeds, on_group_done, on_decode_step):
            completions = super().generate(prompts, sampling, seeds)
            before, ends = sum(pool.counts.values()), time.monotonic() + 60
            on_group_done(1, completions[1])
            while sum(pool.counts.values()) == before and time.monotonic() < ends:
                time.sleep(0.01)
            self.graded = sum(pool.counts.values()) - before
            on_group_done(0, completions[0])
            return completions

    engine = Slow(SCRIPT)
    groups = generate(engine, pool)
    assert engine.graded == 3
    assert [score.correct for group in groups for score in group.scores] == [True, False, False, False, False, True]


def test_rollout_raises_errors_of_engine_and_pool(pool):
    class Broken(Scripted):
        def generate(self, prompts, sampling, seeds, on_group_done, on_decode_step):
            on_group_done(0, super().generate(prompts, sampling, seeds)[0])
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        generate(Broken(SCRIPT), pool)
    with VerifierPool() as closed:
        pass
    with pytest.raises(ValueError, match="the pool is closed"):
        generate(Scripted(SCRIPT), closed)


def test_rollout_grades_prefill_with_completion(pool):  # trap 20
    half = "so </think> <answer> 4 </answer>"
    prompts = [prompt("a", "4", "<think>"), prompt("b", "4")]
    groups = generate(Scripted({"a": [half], "b": [half]}), pool, prompts, samples=1)
    assert [group.scores[0].correct for group in groups] == [True, False]


def test_rollout_seeds_are_unique_and_independent_of_batch(pool):  # trap 33
    engine = Scripted(SCRIPT)
    generate(engine, pool, seed=5, step=2)
    together = engine.seeds
    assert together == [[sample_seed(5, 2, name, j) for j in range(3)] for name in ("a", "b")]
    assert len({seed for row in together for seed in row}) == 6
    generate(engine, pool, PROMPTS[1:], seed=5, step=2)
    assert engine.seeds == together[1:]
    generate(engine, pool, seed=5, step=3)
    assert not {seed for row in engine.seeds for seed in row} & {seed for row in together for seed in row}


def test_groups_of_one_problem_in_a_step_have_different_seeds(pool):
    """A step with more prompts than problems asks a problem again: equal seeds would sample the same completions."""
    engine, step = Scripted(SCRIPT), [*PROMPTS, PROMPTS[0], PROMPTS[0], PROMPTS[1]]
    generate(engine, pool, step, seed=5, step=2)
    together = engine.seeds
    assert together[:2] == [[sample_seed(5, 2, name, j) for j in range(3)] for name in ("a", "b")]
    assert len({seed for row in together for seed in row}) == 3 * len(step)
    for rank in (0, 1):  # each rank samples a part of the step
        generate(engine, pool, step[rank::2], seed=5, step=2, repeats=num_repeats(step)[rank::2])
        assert engine.seeds == together[rank::2]


def graded_group(problem, rewards):
    completions = tuple(Completion("", (1,), (0.0,), "stop", 0) for _ in rewards)
    scores = tuple(Score(reward, {}, Verdict.CORRECT if reward >= 1 else Verdict.WRONG) for reward in rewards)
    return RolloutGroup(Prompt(replace(PROBLEM, id=problem), "", "", (1,)), completions, scores)


FORMS = {"a": (0.2, 0.1), "b": (1, 1.2), "c": (1, 0.2)}  # the rewards of a and b differ by the form alone


@pytest.mark.parametrize(
    ("rewards", "rounds", "settings", "turns", "kept", "replaced"),
    [
        ({"a": (1, 0), "b": (1, 1)}, ["ab"], {"dynamic_sampling": False}, ["ab"], "ab", ""),
        (
            {"a": (1, 0), "b": (1, 1), "c": (0, 0), "d": (0, 1), "e": (1, 0)}, ["abc", "abde", "e"], {},
            ["abc", "de"], "ade", "bc",
        ),
        (FORMS, ["ab", "c"], {"metric": "correct"}, ["ab", "c"], "c", "ab"),
        (FORMS, ["ab", "c"], {}, ["ab"], "ab", ""),
        ({"a": (1, 1), "b": (1, 1), "c": (0, 0)}, ["ab", "c"], {}, ["ab", "c"], "ab", "c"),  # none left: the first ones
        ({"a": (1, 1), "b": (1, 1), "d": (1, 0)}, ["ab", "d"], {}, ["ab", "d"], "d", "ab"),
    ],
)  # fmt: skip
def test_gathered_replaces_zero_variance_groups_without_repeating_prompts(
    rewards, rounds, settings, turns, kept, replaced
):
    sampled = []

    def sample(prompts):
        sampled.append(names(prompts))
        return [graded_group(name, rewards[name]) for name in sampled[-1]]

    def names(prompts):
        return "".join(prompt.problem.id for prompt in prompts)

    asked = [[graded_group(name, ()).prompt for name in own] for own in rounds]
    results = sample_until_full(sample, asked, **{"dynamic_sampling": True} | settings)
    assert sampled == turns and [names(group.prompt for group in own) for own in results] == [kept, replaced]
