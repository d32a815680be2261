"""Comparisons from rows: identity of completions, texts and conversations, limits, and the split by problem."""

import pytest

from reasoner.preferences.dataset import comparisons_of, num_pairs, split_by_problem
from reasoner.sft.examples import text_reader
from tests.fixtures.tiny import END, tiny_tokenizer
from tests.preferences.comparisons import COMPARISONS, comparison

TOKENIZER = tiny_tokenizer()
ENCODE = text_reader(TOKENIZER, ("</answer>",))
END_ID = TOKENIZER.eos_token_id


def ids_row(chosen, rejected, **columns):
    return {"prompt_ids": [5], "chosen_ids": [5, *chosen], "rejected_ids": [5, *rejected], **columns}


def read(*rows):
    return comparisons_of([(f"row {number}", row) for number, row in enumerate(rows, 1)], ENCODE)


def test_pairs_of_a_group_share_their_completions():
    (one,) = read(
        ids_row([1], [2], correct_chosen=True, finish_rejected="length", problem_id="a"),
        ids_row([2], [3], margin=2),
        ids_row([3], [1]),
    )
    assert [text.token_ids for text in one.completions] == [(1,), (2,), (3,)]
    assert [(pair.chosen, pair.rejected, pair.margin) for pair in one.pairs] == [(0, 1, 0.0), (1, 2, 2.0), (2, 0, 0.0)]
    first, second, _ = one.completions
    assert (first.correct, second.finish, one.problem_id) == (True, "length", "a")


def test_groups_of_one_problem_are_apart():
    rows = [ids_row([1], [2], group=group, problem_id="a") for group in ("0.1", "0.1", "4.0")]
    assert [len(one.pairs) for one in read(*rows)] == [2, 1]


def test_the_problem_0_is_one_problem_whatever_its_prompts():
    first, second = read(
        ids_row([1], [2], problem_id=0), {"prompt": "?", "chosen": "7", "rejected": "8", "problem_id": 0}
    )
    assert first.problem_id == second.problem_id == "0"


def test_texts_are_ended_by_the_end_token_unless_a_stop_text_ends_them():
    (one,) = read({"prompt": "What is 7?", "chosen": " 7", "rejected": " 8</answer>"})
    ended, stopped = (text.token_ids for text in one.completions)
    assert ended == (*TOKENIZER(" 7")["input_ids"], END_ID)
    assert stopped == tuple(TOKENIZER(" 8</answer>")["input_ids"])
    assert one.prompt_ids == tuple(TOKENIZER("What is 7?")["input_ids"])


CHAT = (
    "{% for m in messages %}{{ m['role'] }}: {{ m['content'] }}"
    + f"{END}\n"
    + "{% endfor %}{% if add_generation_prompt %}assistant: {% endif %}"
)


def turn(role, content):
    return {"role": role, "content": content}


@pytest.mark.parametrize("is_implicit", [False, True])
def test_conversations_end_as_the_model_samples_them(is_implicit):
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = CHAT
    question, sides = [turn("user", "7 * 8")], {"chosen": "56", "rejected": "51"}
    row = {side: question * is_implicit + [turn("assistant", text)] for side, text in sides.items()}
    row |= {} if is_implicit else {"prompt": question}
    (one,) = comparisons_of([("row 1", row)], text_reader(tokenizer))
    assert tokenizer.decode(one.prompt_ids) == f"user: 7 * 8{END}\nassistant: "
    assert [tokenizer.decode(text.token_ids) for text in one.completions] == [f"56{END}", f"51{END}"]


def test_a_template_that_drops_the_thought_is_refused_by_name():
    tokenizer = tiny_tokenizer()
    tokenizer.name_or_path = "their-model"
    tokenizer.chat_template = CHAT.replace("m['content'] }}", "m['content'].split('</think>')[-1] }}")
    row = {side: [turn("user", "7"), turn("assistant", f"<think>{side}</think>7")] for side in ("chosen", "rejected")}
    with pytest.raises(ValueError, match="row 1: chosen: the chat template of their-model"):
        comparisons_of([("row 1", row)], text_reader(tokenizer))


WHOLE = ids_row([1], [2])


@pytest.mark.parametrize(
    ("row", "message"),
    [
        (ids_row([1, 2], [1, 2]), "chosen and rejected are the same tokens"),
        ({"prompt": "?", "chosen": "a"}, "prompt and rejected must be texts or lists of messages"),
        ({"prompt_ids": [], "chosen_ids": [1], "rejected_ids": [2]}, "the prompt has no tokens"),
        ({"prompt_ids": [5], "chosen_ids": [5, 1], "rejected_ids": [6, 2]}, "rejected_ids do not begin with"),
        ({"prompt": [turn("user", "a")], "chosen": [turn("assistant", "b")]}, "chosen: it is a conversation"),
        (ids_row([1], [99999]), "rejected_ids must be a list of token ids from 0 to"),
        (WHOLE | {"prompt_ids": "5"}, "prompt_ids must be a list of token ids"),
        (WHOLE | {"prompt": "another text"}, "prompt_ids is not the text of prompt in the model's tokenizer"),
        (WHOLE | {"correct_chosen": "False"}, "correct_chosen is 'False'; it must be true or false"),
        (WHOLE | {"finish_rejected": 3}, "finish_rejected is 3; it must be a text"),
        (WHOLE | {"margin": float("nan")}, "margin is nan; it must be a finite number"),
        (WHOLE | {"margin": "2"}, "margin is '2'; it must be a finite number"),
    ],
)
def test_rows_that_cannot_be_used_are_named(row, message):
    with pytest.raises(ValueError) as error:
        read(row)
    assert str(error.value).startswith(f"row 1: {message}")


@pytest.mark.parametrize(
    ("side", "message"),
    [
        (["a", "b"], "row 1: chosen: message 0 is 'a'; it must have role and content"),
        ([turn("user", "7"), turn("assistant", None)], "row 1: chosen: message 1 is None; it must be a text"),
        ([turn("assistant", "8")], "row 1: chosen: a conversation must have a prompt"),
        ([turn("system", "8"), turn("assistant", "8")], "row 1: chosen: the chat template of"),
    ],
)
def test_a_conversation_that_cannot_be_used_is_named(side, message):
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = (
        "{% if messages[0].role == 'system' %}{{ raise_exception('no system') }}{% endif %}" + CHAT
    )
    with pytest.raises(ValueError) as error:
        comparisons_of([("row 1", {"chosen": side, "rejected": side})], text_reader(tokenizer))
    assert str(error.value).startswith(message)


def test_an_empty_file_has_no_pair_to_train_on():
    with pytest.raises(ValueError, match="there is no pair in it"):
        split_by_problem([], share=0.1, seed=0, max_tokens=9)


def test_no_problem_is_on_both_sides_of_the_split():
    many = [comparison(f"problem {i % 20}", (i,), (i, 1), (i, 2)) for i in range(60)]
    split = split_by_problem(many, share=0.25, seed=0, max_tokens=100)
    training, heldout = ({one.problem_id for one in side} for side in (split.training, split.heldout))
    assert len(heldout) == 5 and len(training) == 15 and not training & heldout
    assert len(split.training) + len(split.heldout) == 60
    other = split_by_problem(many[::-1], share=0.25, seed=0, max_tokens=100)
    assert {one.problem_id for one in other.heldout} == heldout  # by seed and names alone
    assert {one.problem_id for one in split_by_problem(many, share=0.25, seed=1, max_tokens=100).heldout} != heldout


def test_pairs_of_long_completions_are_left_out_and_counted():
    split = split_by_problem(COMPARISONS, share=0.0, seed=0, max_tokens=7)
    assert split.too_long == num_pairs(COMPARISONS) - num_pairs(split.training)
    first = next(one for one in split.training if one.problem_id == "a")
    assert [text.token_ids for text in first.completions] == [(8, 9, 10, 11), (12, 0), (13, 14, 15)]
    assert [(pair.chosen, pair.rejected) for pair in first.pairs] == [(0, 1), (0, 2), (1, 2)]
    with pytest.raises(ValueError, match="no pair is left to train on"):
        split_by_problem(COMPARISONS, share=0.0, seed=0, max_tokens=2)
