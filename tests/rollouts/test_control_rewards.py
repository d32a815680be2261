"""Control rewards."""

from collections import Counter
from dataclasses import replace

import pytest

from data import Problem, load
from reasoner.rollouts import control_rewards
from reasoner.rollouts.control_rewards import ControlContext, apply_control, shuffled_answers, with_wrong_golds
from reasoner.types import Completion, Prompt, RolloutGroup
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, make_trainer
from verifiers import Score, Verdict, VerifierPool
from verifiers.equivalence import judge

PROBLEMS = load("generated", limit=400)
RIGHT = "<think> So. </think> <answer> {} </answer>"


def group(problem: Problem, texts: list[str], pool: VerifierPool) -> RolloutGroup:
    completions = tuple(Completion(text, (1,), (0.0,), "stop", 0) for text in texts)
    scores = tuple(pool.score([(text, problem) for text in texts]))
    return RolloutGroup(Prompt(problem, "", "", (1,)), completions, scores)


PROMPTS = [Prompt(problem, "", "", (1,)) for problem in PROBLEMS]


def wrong_gold_problems():
    return shuffled_answers(PROMPTS, seed=3)


def test_exchanged_gives_wrong_answers_of_same_family_and_refuses_one_with_one_answer():
    by_id = wrong_gold_problems()
    golds = {(p.subject, p.answer) for p in PROBLEMS}
    for problem in PROBLEMS:
        other = by_id[problem.id]
        assert other.answer != problem.answer and (problem.subject, other.answer) in golds
        assert not judge(other.answer, problem.answer, problem.verifier)
    assert by_id == wrong_gold_problems() != shuffled_answers(PROMPTS, seed=4)
    prompts = [Prompt(Problem(f"a/{i}", "?", ["7", "7.0", "3+4"][i], "a", "train"), "", "", (1,)) for i in range(3)]
    with pytest.raises(ValueError, match="wrong gold answers"):
        shuffled_answers(prompts, 0)


def test_a_share_of_the_problems_gets_wrong_golds_and_the_others_keep_theirs():
    assert with_wrong_golds(PROMPTS, 0.0, 3) == PROMPTS
    noisy = with_wrong_golds(PROMPTS, 0.3, 3)
    changed = [i for i, (own, new) in enumerate(zip(PROMPTS, noisy, strict=True)) if own != new]
    assert 0.22 < len(changed) / len(PROMPTS) < 0.38
    assert all(noisy[i].problem == wrong_gold_problems()[PROBLEMS[i].id] for i in changed)
    assert noisy == with_wrong_golds(PROMPTS, 0.3, 3) != with_wrong_golds(PROMPTS, 0.3, 4)
    more = with_wrong_golds(PROMPTS, 0.6, 3)
    assert all(more[i] == noisy[i] for i in changed)  # the wrong ones of a smaller share stay wrong
    wrong = wrong_gold_problems()
    assert with_wrong_golds(PROMPTS, 1.0, 3) == [replace(one, problem=wrong[one.problem.id]) for one in PROMPTS]


def test_controlled_changes_rewards_but_not_verdicts(pool):
    problem, exchange = PROBLEMS[0], wrong_gold_problems()
    other = exchange[problem.id].answer
    texts = [RIGHT.format(problem.answer), RIGHT.format(other), RIGHT.format("-1"), problem.answer]
    before = group(problem, texts, pool)
    arm = ControlContext(pool, exchange, seed=0, step=0)
    changed = {name: apply_control([before], name, arm)[0] for name in control_rewards.CONTROLS}
    rewards = {name: [score.reward for score in own.scores] for name, own in changed.items()}
    assert [s.reward for s in before.scores] == pytest.approx([1.2, 0.2, 0.2, 0.0])
    assert rewards["wrong-gold"] == [0.0, 1.0, 0.0, 0.0]
    assert rewards["format-only"] == [1.0, 1.0, 1.0, 0.0]
    for name in control_rewards.CONTROLS:
        assert [s.verdict for s in apply_control([before], name, arm)[0].scores] == [s.verdict for s in before.scores]
    assert apply_control([before], "", arm) == [before]


def test_random_rewards_are_fair_and_reproducible_per_step(pool):
    groups = [group(problem, ["x"] * 8, pool) for problem in PROBLEMS[:100]]

    def random_rewards(step: int) -> list[float]:
        add_reward = apply_control(groups, "random-reward", ControlContext(pool, {}, seed=1, step=step))
        return [score.reward for one in add_reward for score in one.scores]

    heads = Counter(random_rewards(0))
    assert set(heads) == {0.0, 1.0} and 320 < heads[1.0] < 480
    assert random_rewards(0) == random_rewards(0) != random_rewards(1)


def test_control_under_process_supervision_uses_outcome_only():
    """Correct equations would carry information: every token must have the advantage of the control's reward alone."""
    tokenizer = tiny_tokenizer()
    texts = ("12 + 30 = 42. So 42.", "12 + 30 = 41. So 41.", "7 * 8 = 56. So 56.", "7 * 8 = 51. So 51.")
    ids = [tuple(tokenizer.encode(text, add_special_tokens=False)) for text in texts]
    pairs = zip(texts, ids, strict=True)
    completions = tuple(Completion(text, own, (-1.0,) * len(own), "stop", 0) for text, own in pairs)
    scores = tuple(Score(float(coin), {}, Verdict.CORRECT) for coin in (0, 1, 0, 1))
    groups = [RolloutGroup(Prompt(PROBLEMS[0], "", "", (5, 6)), completions, scores)]
    credits = {}
    for control in ("", "random-reward"):
        cfg = replace(config(name="grpo_process"), control=control)
        trainer = make_trainer(cfg, tiny_model(vocabulary=len(tokenizer), width=32, layers=1))
        trainer.tokenizer = tokenizer
        batch = trainer.compute_advantages(trainer.prepare_batch(groups))
        rows = zip(batch.advantages, batch.lengths, strict=True)
        credits[control] = [set(own[:length].tolist()) for own, length in rows]
    assert [round(value, 4) for (value,) in credits["random-reward"]] == [-1, 1, -1, 1]
    assert any(len(values) > 1 for values in credits[""])
