"""Reward functions: the columns that they are called with, the rewards that they add, and what is refused."""

import asyncio
from dataclasses import replace
from fractions import Fraction
from functools import partial

import numpy as np
import pytest
import torch

from data import Problem
from reasoner.rollouts.reward_functions import (
    apply_reward_functions,
    check_columns,
    parse_weighted,
    reward_functions_of,
)
from reasoner.types import Completion, Prompt, RolloutGroup
from verifiers import Score, Verdict

ODD = Problem("odd", "1+2?", "3", "sums", "train", columns={"hint": "odd", "source": "a book"})
EVEN = Problem("even", "1+3?", "4", "sums", "train", level=2)


def group(problem, *texts):
    """A group whose first completion is correct, with a reward of 1.2."""
    prompt = Prompt(problem, f"Q: {problem.question} <think>", "<think>", (1, 2))
    completions = tuple(Completion(text, tuple(range(len(text))), (0.0,) * len(text), "stop", 0) for text in texts)
    right = Score(1.2, {"correct": 1.0, "format": 1.0}, Verdict.CORRECT, well_formed=True)
    wrong = Score(0.2, {"correct": 0.0, "format": 1.0}, Verdict.WRONG, well_formed=True)
    return RolloutGroup(prompt, completions, (right, *(wrong for _ in texts[1:])))


GROUPS = [group(ODD, "a", "bb"), group(EVEN, "ccc", "dddd")]


def applied(*entries, groups=GROUPS):
    return apply_reward_functions(groups, reward_functions_of(entries))


def rewards(groups):
    return [[score.reward for score in one.scores] for one in groups]


def test_function_is_called_once_with_a_column_for_every_field_and_all_of_one_length():
    calls = []

    def record(**columns):
        calls.append(columns)
        return [0] * len(columns["completions"])

    applied(record)
    (columns,) = calls
    assert columns == {
        "prompts": ["Q: 1+2? ", "Q: 1+2? ", "Q: 1+3? ", "Q: 1+3? "],
        "completions": ["<think>a", "<think>bb", "<think>ccc", "<think>dddd"],
        "completion_ids": [[0], [0, 1], [0, 1, 2], [0, 1, 2, 3]], "correct": [True, False, True, False],
        "well_formed": [True] * 4, "id": ["odd", "odd", "even", "even"], "question": ["1+2?", "1+2?", "1+3?", "1+3?"],
        "answer": ["3", "3", "4", "4"], "source": ["a book", "a book", "sums", "sums"], "split": ["train"] * 4,
        "level": [None, None, 2, 2], "subject": [None] * 4, "verifier": ["maths"] * 4,
        "hint": ["odd", "odd", None, None],
    }  # fmt: skip


def test_weighted_values_are_added_and_recorded_without_their_weights():
    def size(completions, **columns):
        return [len(completion) for completion in completions]

    def gold(answer):
        return map(int, answer)

    result = applied((size, 0.5), gold)
    assert rewards(result) == [[1.2 + 4 + 3, 0.2 + 4.5 + 3], [1.2 + 5 + 4, 0.2 + 5.5 + 4]]
    assert result[1].scores[1].parts == {"correct": 0.0, "format": 1.0, "size": 11.0, "gold": 4.0}
    assert [replace(one, scores=GROUPS[i].scores) for i, one in enumerate(result)] == GROUPS


def test_none_adds_nothing_and_records_nothing():
    def only_odd(completions, hint):
        return [1.0 if value == "odd" else None for value in hint]

    result = applied(only_odd)
    assert rewards(result) == [[2.2, 1.2], [1.2, 0.2]]
    assert [["only_odd" in score.parts for score in one.scores] for one in result] == [[True, True], [False, False]]


def test_order_of_groups_and_no_functions_or_groups_change_no_rewards():
    def size(completions):
        return [len(completion) for completion in completions]

    assert applied(size, groups=GROUPS[::-1]) == applied(size)[::-1]
    assert applied() == GROUPS
    assert applied(lambda completions: 1 / 0, groups=[]) == []


@pytest.mark.parametrize(
    "number",
    [1, 1.0, True, np.float32(1), np.int64(1), np.bool_(True), np.array(1.0), Fraction(1), torch.tensor(1.0),
     torch.tensor(1, dtype=torch.bfloat16), torch.tensor(True)],
)  # fmt: skip
def test_values_may_be_any_real_number(number):
    def constant(completions):
        return [number] * len(completions)

    assert rewards(applied(constant)) == [[2.2, 1.2], [2.2, 1.2]]


def test_values_may_be_a_tensor():
    assert rewards(applied(lambda completions: torch.ones(len(completions)))) == [[2.2, 1.2], [2.2, 1.2]]


@pytest.mark.parametrize(
    ("values", "faults"),
    [
        ([1.0] * 3, ["3 values for 4 completions"]),
        ([1.0, float("nan"), 1.0, 1.0], ["nan for completion 2 of 4", "'odd'"]),
        ([1.0, 1.0, 1.0, float("-inf")], ["-inf for completion 4 of 4", "'even'"]),
        ([1.0, "0.5", 1.0, 1.0], ["'0.5' for completion 2 of 4", "'odd'"]),
        ([1.0, 1j, 1.0, 1.0], ["1j for completion 2 of 4", "'odd'"]),
        ("1234", ["'1234'", "list of numbers"]),
        (0.5, ["0.5", "list of numbers"]),
        (None, ["None", "list of numbers"]),
        (torch.tensor([1.0, 1.0, 1.0, float("inf")]), ["inf for completion 4 of 4", "'even'"]),
    ],
)
def test_other_results_are_refused_with_the_name_of_the_function_and_the_value(values, faults):
    def broken(completions, **columns):
        return values

    with pytest.raises(ValueError, match="broken") as caught:
        applied(broken)
    assert all(fault in str(caught.value) for fault in faults)


def test_exception_has_file_line_problem_and_completion():
    def divides(completions, hint):
        return [1 / (len(text) - len("<think>ccc")) for text in completions]

    line = divides.__code__.co_firstlineno + 1
    with pytest.raises(ValueError) as caught:
        applied(divides)
    assert f"({__file__}:{line}, problem 'even', completion '<think>ccc')" in str(caught.value)
    assert "divides" in str(caught.value) and isinstance(caught.value.__cause__, ZeroDivisionError)

    def fails_together(completions):
        return list(map(float, np.zeros(2) if len(completions) == 1 else np.stack([np.zeros(2), np.zeros(3)])))

    with pytest.raises(ValueError, match="failed: ValueError") as caught:
        applied(fails_together)
    assert "completion" not in str(caught.value)


def test_asynchronous_function_runs_where_an_event_loop_runs_already():
    async def size(completions):
        return [1.0] * len(completions)

    async def notebook():
        return applied(size)

    assert rewards(asyncio.run(notebook())) == [[2.2, 1.2], [2.2, 1.2]]


def test_column_that_these_problems_do_not_have_is_none():
    def only_hint(completions, hints):
        return [None if hint is None else 1.0 for hint in hints]

    assert rewards(applied(only_hint)) == rewards(GROUPS)  # as in a validation on other problems


def test_missing_column_is_named_with_those_that_exist():
    def needs(completions, answers, *, bonus=1.0):
        return completions

    with pytest.raises(ValueError, match=r"needs .*answers; .* answer, complet.*hint"):
        check_columns(reward_functions_of([needs]), lambda: [ODD, EVEN])


def test_function_that_no_call_by_name_fits_is_refused():
    def by_place(completions, /, **columns):
        return completions

    def of_nothing():
        return []

    for function in (by_place, of_nothing, lambda *completions: completions):
        with pytest.raises(ValueError, match="is called with columns by name"):
            check_columns(reward_functions_of([function]), lambda: [ODD])


def test_problems_are_loaded_only_for_a_column_of_their_own():
    def load():
        raise AssertionError("loaded")

    check_columns(reward_functions_of([lambda completions, answer, **columns: completions]), load)
    with pytest.raises(AssertionError):
        check_columns(reward_functions_of([lambda hint: hint]), load)


def test_partials_lambdas_and_objects_get_names_of_their_own():
    class Judge:
        def __call__(self, completions):
            return completions

    def size(completions, scale):
        return [scale * len(text) for text in completions]

    entries = [partial(size, scale=1), (partial(size, scale=2), 0.5), lambda completions: completions]
    functions = reward_functions_of([*entries, lambda hint: hint, Judge(), Judge()])
    names = ["size", "size_2", "lambda", "lambda_2", "Judge", "Judge_2"]
    assert [function.name for function in functions] == names
    parts = apply_reward_functions(GROUPS, functions[:2])[0].scores[1].parts
    assert (parts["size"], parts["size_2"]) == (9.0, 18.0)


def correct(completions):
    return completions


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        (["brevity"], "reward_functions has 'brevity'"),
        ([(print, "1")], "the weight of reward function print is '1'; it must be a finite number"),
        ([(print, float("inf"))], "the weight of reward function print is inf; it must be a finite number"),
        ([print, (print, 2.0)], "reward function 'print' has the name of another reward"),
        ([correct], "reward function 'correct' has the name of another reward"),
    ],
)
def test_entries_that_cannot_be_used_are_refused(entries, message):
    with pytest.raises(ValueError) as caught:
        reward_functions_of(entries)
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("text", "weights"),
    [
        ("", {}),
        ("a", {"a": 1.0}),
        (" a = 0.5 ,b,", {"a": 0.5, "b": 1.0}),
        ("runs/x=1/step=-2e-1", {"runs/x=1/step": -0.2}),
    ],
)
def test_weights_are_read_by_name(text, weights):
    assert parse_weighted("reward.model", text, "MODEL") == weights


@pytest.mark.parametrize(
    ("text", "message"),
    [
        *((f"a,b={weight}", f"'b={weight}'; it takes MODEL or MODEL=WEIGHT") for weight in ("", "x", "nan", "-inf")),
        ("=2", "'=2'; it takes MODEL"),
        ("a,a=2", "'a' twice"),
        ("a=1, a =2", "'a' twice"),
    ],
)
def test_faulty_entry_is_refused_by_setting_and_entry(text, message):
    with pytest.raises(ValueError, match=rf"^reward\.model has {message}"):
        parse_weighted("reward.model", text, "MODEL")
