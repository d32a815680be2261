"""Prompts in, graded groups out: with a scripted engine and the real grading processes."""

import time
from dataclasses import replace

import pytest

from reasoner.progress import Progress
from reasoner.rl.batch import collate
from reasoner.rl.process_rewards import step_rewards
from reasoner.rollouts.generate import gathered, penalise_truncated, rollout
from reasoner.rollouts.seeds import sample_seed
from reasoner.types import Completion, Group, Prompt, Sampling
from tests.fixtures.scripted import Scripted, answering, prompt
from tests.fixtures.tiny import tiny_tokenizer
from tests.fixtures.toys import PROBLEM
from verifiers import RewardWeights, Score, Verdict, VerifierPool


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


def test_a_finished_group_is_graded_while_others_are_drawn(pool):
    class Slow(Scripted):
        def sample(self, prompts, sampling, seeds, done, tick):
            drawn = super().sample(prompts, sampling, seeds)
            before, ends = sum(pool.counts.values()), time.monotonic() + 60
            done(1, drawn[1])
            while sum(pool.counts.values()) == before and time.monotonic() < ends:
                time.sleep(0.01)
            self.graded = sum(pool.counts.values()) - before
            done(0, drawn[0])
            return drawn

    engine = Slow(SCRIPT)
    groups = rollout(engine, pool, PROMPTS, Sampling(3), RewardWeights(), run_seed=0, step=0)
    assert engine.graded == 3
    assert [score.correct for group in groups for score in group.scores] == [True, False, False, False, False, True]


def test_a_fault_of_the_engine_or_of_the_grader_is_not_swallowed(pool):
    class Broken(Scripted):
        def sample(self, prompts, sampling, seeds, done, tick):
            done(0, super().sample(prompts, sampling, seeds)[0])
            raise RuntimeError("out of memory")

    with pytest.raises(RuntimeError, match="out of memory"):
        rollout(Broken(SCRIPT), pool, PROMPTS, Sampling(3), RewardWeights(), run_seed=0, step=0)
    with VerifierPool() as closed:
        pass
    with pytest.raises(ValueError, match="the pool is closed"):
        rollout(Scripted(SCRIPT), closed, PROMPTS, Sampling(3), RewardWeights(), run_seed=0, step=0)


def test_a_rollout_counts_what_is_sampled_and_what_is_graded(pool):
    progress = Progress()
    rollout(Scripted(SCRIPT), pool, PROMPTS, Sampling(3), RewardWeights(), run_seed=0, step=0, progress=progress)
    text = progress.text()
    assert text.startswith("sampled 6/6 completions, ") and text.endswith("; graded 6/6")


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


def made(problem, rewards):
    prompt = Prompt(replace(PROBLEM, id=problem), "", "", (1,))
    completions = tuple(Completion("", (1,), (0.0,), "stop", 0) for _ in rewards)
    return Group(prompt, completions, tuple(Score(reward, {}, Verdict.WRONG) for reward in rewards))


class Asked:
    """Answers questions by a table of rewards, and remembers which were asked."""

    def __init__(self, **rewards):
        self.rewards, self.turns = rewards, []

    def __call__(self, prompts):
        self.turns.append([prompt.problem.id for prompt in prompts])
        return [made(prompt.problem.id, self.rewards[prompt.problem.id]) for prompt in prompts]

    def prompts(self, names):
        return [made(name, (0.0,)).prompt for name in names]


def test_without_refills_the_first_turn_is_what_there_is():
    ask = Asked(a=(1, 0), b=(1, 1))
    groups, flat = gathered(ask, [ask.prompts("ab")], refills=False)
    assert ([g.prompt.problem.id for g in groups], flat) == (["a", "b"], [])


def test_refills_replace_groups_without_a_signal_and_ask_nothing_twice():
    ask = Asked(a=(1, 0), b=(1, 1), c=(0, 0), d=(0, 1), e=(1, 0))
    groups, flat = gathered(ask, [ask.prompts("abc"), ask.prompts("abde"), ask.prompts("e")], refills=True)
    assert ask.turns == [["a", "b", "c"], ["d", "e"]]
    assert [g.prompt.problem.id for g in groups] == ["a", "d", "e"]
    assert [g.prompt.problem.id for g in flat] == ["b", "c"]


def test_refills_end_with_their_turns_and_all_flat_is_better_than_nothing():
    ask = Asked(a=(1, 1), b=(1, 1), c=(0, 0), d=(1, 0))
    assert [g.prompt.problem.id for g in gathered(ask, [ask.prompts("ab"), ask.prompts("c")], refills=True)[0]] == [
        "a",
        "b",
    ]
    groups, flat = gathered(ask, [ask.prompts("ab"), ask.prompts("d")], refills=True)
    assert ([g.prompt.problem.id for g in groups], len(flat)) == (["d"], 2)


def test_the_penalty_on_truncation_belongs_to_the_reward_before_anything_looks_at_it():
    group = made("a", (0.5, 0.5))
    cut = replace(group.completions[0], finish="length")
    group = replace(group, completions=(cut, group.completions[1]))
    (penalised,) = penalise_truncated([group], 0.5)
    assert [score.reward for score in penalised.scores] == [0.0, 0.5]
    assert [score.parts for score in penalised.scores] == [{"missing_end": -1.0}, {"missing_end": 0.0}]
    assert group.is_flat and not penalised.is_flat
    assert collate([penalised]).rewards.tolist() == [0.0, 0.5]
    assert step_rewards([penalised], tiny_tokenizer().backend_tokenizer) == [[(0, 0.0)], [(0, 0.5)]]
    even = made("b", (1.0, 0.5))
    even = replace(even, completions=(cut, even.completions[1]))
    assert not even.is_flat and penalise_truncated([even], 0.5)[0].is_flat
    assert penalise_truncated([group], 0.0) == [group]
