"""Rewarded steps of the reasoning, located at the tokens where they end."""

from reasoner.rl.advantages import process_advantages
from reasoner.rl.batch import collate
from reasoner.rl.process_rewards import step_rewards, token_ends
from reasoner.types import Completion, Prompt, RolloutGroup
from tests.fixtures.tiny import tiny_tokenizer
from tests.fixtures.toys import PROBLEM, score
from verifiers import Score, Verdict

TOKENIZER = tiny_tokenizer().backend_tokenizer
TEXT = "<think> 12 + 30 = 42. 7 * 8 = 51, so 42.</think><answer>42</answer>"


def completion(text):
    ids = tuple(TOKENIZER.encode(text, add_special_tokens=False).ids)
    return Completion(text, ids, (-1.0,) * len(ids), "stop", 0)


def group(completions, scores):
    return RolloutGroup(Prompt(PROBLEM, "", "", (1,)), tuple(completions), tuple(scores))


def test_token_ends_match_decoded_prefixes():
    ids = completion(TEXT).token_ids
    ends = token_ends(ids, TOKENIZER)
    assert ends[-1] == len(TEXT) and ends == sorted(ends)
    assert all(TOKENIZER.decode(ids[: i + 1], skip_special_tokens=False) == TEXT[:end] for i, end in enumerate(ends))


def test_step_rewards_has_each_equation_and_answer_last():
    solution = completion(TEXT)
    (steps,) = step_rewards([group([solution], [score(1.0)])], TOKENIZER)
    assert [reward for _, reward in steps] == [1.0, 0.0, 1.0]
    ends = token_ends(solution.token_ids, TOKENIZER)
    assert TEXT[: ends[steps[0][0]]].rstrip(". ").endswith("= 42")
    assert TEXT[: ends[steps[1][0]]].rstrip(", ").endswith("= 51")
    assert steps[2][0] == len(solution.token_ids) - 1


def test_step_rewards_without_equations_is_answer_only():
    short = completion("so 42")
    first, second = step_rewards([group([short, completion("")], [score(0.5), score(0.0)])], TOKENIZER)
    assert first == [(len(short.token_ids) - 1, 0.5)] and second == []


def test_collate_stores_step_rewards_and_ends():
    both = group([completion(TEXT), completion("so 42")], [score(1.0), score(0.0)])
    batch = collate([both], step_rewards([both], TOKENIZER))
    assert [batch.step_ends[row].sum().item() for row in (0, 1)] == [3, 1]
    assert batch.step_rewards[0].sum().item() == 2.0
    assert not (batch.step_ends & ~batch.mask).any()


def steps_of(text):
    """The rewards of the steps before the answer."""
    answer = completion(f"<think> {text} </think><answer>1</answer>")
    ((*steps, _),) = step_rewards([group([answer], [score(0.0)])], TOKENIZER)
    return [reward for _, reward in steps]


def test_repeated_equation_is_one_step():
    assert steps_of("1 + 1 = 2. " * 20) == [1.0]
    assert steps_of("12 + 30 = 42. 30 + 12 = 42. 12+30=42. 12 * 3 = 36.") == [1.0, 1.0]
    assert steps_of("12 + 30 = 41. Wait, 12 + 30 = 42. 12 + 30 = 41.") == [0.0, 1.0]


def test_trivial_equation_is_not_a_step():
    assert steps_of("7 + 0 = 7. 0 + 7 = 7. 7 - 0 = 7. 7 * 1 = 7. 1 * 7 = 7. 7 / 1 = 7. 0 * 7 = 0. 7 * 0 = 0.") == []
    assert steps_of("7 + 10 = 17. 10 + 7 = 17. 7 * 10 = 70. 71 * 2 = 142. 7 * 0.5 = 3.5. 101 + 1 = 102.") == [1.0] * 5


def test_outcome_only_has_answer_as_single_step():
    both = group([completion(TEXT)] * 2, [score(1.0), score(0.0)])
    last = len(both.completions[0].token_ids) - 1
    assert step_rewards([both], TOKENIZER, outcome_only=True) == [[(last, 1.0)], [(last, 0.0)]]


def test_gated_steps_that_hold_count_under_a_right_answer_alone():
    """A wrong answer has no credit for true statements, and keeps the blame for false ones."""
    both = group([completion(TEXT)] * 2, [score(1.0), Score(0.2, {}, Verdict.WRONG)])
    of_right, of_wrong = step_rewards([both], TOKENIZER, gated=True)
    assert [reward for _, reward in of_right] == [1.0, 0.0, 1.0] and [reward for _, reward in of_wrong] == [0.2]
    assert step_rewards([both], TOKENIZER)[1] == [*of_right[:2], (len(both.completions[1].token_ids) - 1, 0.2)]


def test_a_farm_of_true_statements_has_the_credit_of_a_guess():
    """In a group without a right answer: a dozen different sums, a bare guess, and an honest attempt with a slip."""
    sums = " ".join(f"{a}+{b}={a + b}." for a in range(2, 5) for b in range(5, 9))
    texts = [f"<think> {sums} About 7.", "<think> About 7.", "<think> 12 + 30 = 52. So 7.", "<think> 7 * 8 = 51. So 7."]
    members = [completion(f"{text} </think><answer>7</answer>") for text in texts]
    own = group(members, [Score(0.2, {}, Verdict.WRONG) for _ in texts])
    credits = {}
    for how in ("sum", "gated"):
        batch = collate([own], step_rewards([own], TOKENIZER, gated=how == "gated"))
        credit = process_advantages(batch.step_rewards, batch.step_ends, batch.mask, group=4, step_credit=how)
        credits[how] = credit[:, 0].tolist()
    assert credits["sum"][0] > credits["sum"][1] + 1
    assert credits["gated"] == [0.0] * 4  # as under the outcome alone
