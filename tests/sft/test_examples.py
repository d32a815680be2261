"""Examples: what becomes prompt and completion in each form of a row, and which rows are refused."""

from collections.abc import Sequence
from typing import Any

import pytest
from tokenizers import normalizers, pre_tokenizers
from tokenizers.processors import TemplateProcessing

from reasoner.rollouts.prompts import Template
from reasoner.sft.examples import Example, examples_of, with_loss_on_prompts
from tests.fixtures.tiny import END, OTHER_END, tiny_tokenizer

R1 = Template("User: {question}\nAssistant:", stop=("</answer>",))
PLAIN = Template("{question}")
CHATML = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}" + END + "\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
# Writes no end after a turn, and an end token before every later one.
LLAMA = (
    "{% for m in messages %}[{{ m.role }}] {{ m.content | trim }}{% if not loop.last %}" + END + "{% endif %}"
    "{% endfor %}{% if add_generation_prompt %}" + END + "[assistant] {% endif %}"
)
DROPS_THOUGHTS = CHATML.replace("m.content", "m.content.split('</think>')[-1]")
PREFILLS = CHATML.replace("%}<assistant>{", "%}<assistant><think>{")
TOKENIZER = tiny_tokenizer()


def read(*rows: dict[str, Any], template: Template = PLAIN, chat: str | None = None) -> list[Example]:
    tokenizer = tiny_tokenizer()
    tokenizer.chat_template = chat
    return list(examples_of(((f"row {i}", row) for i, row in enumerate(rows)), tokenizer, template))


def text(ids: Sequence[int]) -> str:
    return str(TOKENIZER.decode(list(ids)))


def test_ids_are_used_as_they_are_and_turns_between_answers_of_tools_are_examples_of_their_own() -> None:
    assert read({"prompt_ids": [5, 6], "completion_ids": [7], "text": "ignored"}) == [Example((5, 6), (7,))]
    row = {"prompt_ids": [5, 6], "completion_ids": [7, 8, 20, 21, 9, 22, 10], "observation_tokens": [2, 4, 5, 6]}
    before = (5, 6, 7, 8, 20, 21)
    assert read(row) == [Example((5, 6), (7, 8)), Example(before, (9,)), Example((*before, 9, 22), (10,))]


def test_ids_of_another_tokenizer_are_refused_where_the_prompts_text_shows_it() -> None:
    ids = TOKENIZER("12 + 30")["input_ids"]
    row = {"prompt_ids": ids, "completion_ids": [7], "prompt": "12 + 30"}
    assert read(row) == [Example(tuple(ids), (7,))]
    with pytest.raises(ValueError, match="row 0: prompt_ids"):
        read(row | {"prompt": "9 * 8"})


def test_ids_are_compared_with_what_the_tokenizer_makes_of_a_text() -> None:
    """As Qwen's, which normalises Unicode; and there may be gaps between token ids (Phi-4-mini)."""
    tokenizer = tiny_tokenizer()
    tokenizer.backend_tokenizer.normalizer = normalizers.NFC()
    vocabulary = tokenizer.get_vocab() | {"<|far|>": 400}
    tokenizer.get_vocab = lambda: vocabulary
    ids = tokenizer("5 \u2126")["input_ids"]
    row = {"prompt_ids": ids, "completion_ids": [400], "prompt": "5 \u2126"}
    assert list(examples_of([("row 0", row)], tokenizer, PLAIN)) == [Example(tuple(ids), (400,))]


def test_a_completion_has_no_blank_that_the_tokenizer_puts_before_every_text() -> None:
    """As Llama 2's: ids of the whole conversation are those of its parts."""
    tokenizer = tiny_tokenizer()
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(replacement="Ġ", prepend_scheme="first")
    tokenizer.backend_tokenizer.add_tokens(["\n"])
    for row in ({"prompt": "Q: 7 * 8 =", "completion": " 56"}, {"prompt": "Q:\n", "completion": "56"}):
        [example] = examples_of([("row 0", row)], tokenizer, PLAIN)
        whole = tokenizer(row["prompt"] + row["completion"])["input_ids"]
        assert [*example.prompt_ids, *example.completion_ids] == [*whole, tokenizer.eos_token_id]


def test_a_completion_does_not_repeat_what_its_prompt_opens() -> None:
    opens = CHATML.replace("%}<assistant>{", "%}<assistant><think>\n{")
    row = {"question": "12 + 30?", "completion": "<think>\n40 + 2</think> 42"}
    [example] = read(row, template=Template("{question}", chat=True), chat=opens)
    assert text(example.prompt_ids).endswith("<assistant><think>\n")
    assert text(example.completion_ids) == "40 + 2</think> 42" + END


def test_prompt_and_completion_are_tokenised_apart_and_end_with_the_end_token() -> None:
    [example] = read({"prompt": "12 + ", "completion": "30 = 42"})
    assert (text(example.prompt_ids), text(example.completion_ids)) == ("12 + ", "30 = 42" + END)


def test_a_stop_text_of_the_prompt_style_ends_a_completion() -> None:
    row = {"question": "12 + 30?", "completion": " <think> 42 </think> <answer> 42 </answer>"}
    [example] = read(row, template=R1)
    assert text(example.prompt_ids) == "User: 12 + 30?\nAssistant:"
    assert text(example.completion_ids) == row["completion"]
    [unended] = read(row | {"completion": " I give up."}, template=R1)
    assert text(unended.completion_ids) == " I give up." + END


def test_a_text_is_learnt_from_its_second_token_on() -> None:
    [example] = read({"text": "12 + 30 = 42"})
    assert len(example.prompt_ids) == 1
    assert text((*example.prompt_ids, *example.completion_ids)) == "12 + 30 = 42" + END


@pytest.mark.parametrize("written", ["", END])
def test_text_ends_once_with_a_tokenizer_that_ends_every_text(written: str) -> None:
    tokenizer = tiny_tokenizer()
    ends = TemplateProcessing(single=f"$A {END}", special_tokens=[(END, tokenizer.eos_token_id)])
    tokenizer.backend_tokenizer.post_processor = ends
    row = {"text": f"12 + 30 = 42{written}"}
    [example] = examples_of([("row 0", row)], tokenizer, PLAIN)
    assert text((*example.prompt_ids, *example.completion_ids)) == "12 + 30 = 42" + END


CONVERSATION = [
    {"role": "user", "content": "12 + 30?"},
    {"role": "assistant", "content": "<think> 40 + 2 </think> 42"},
    {"role": "user", "content": "7 * 8?"},
    {"role": "assistant", "content": "56"},
]


def test_every_turn_of_the_assistant_is_an_example_that_sees_the_turns_before() -> None:
    first, second = read({"messages": CONVERSATION}, chat=CHATML)
    assert text(first.prompt_ids) == f"<user>12 + 30?{END}\n<assistant>"
    assert text(first.completion_ids) == f"<think> 40 + 2 </think> 42{END}"
    assert text(second.prompt_ids).endswith(f"<think> 40 + 2 </think> 42{END}\n<user>7 * 8?{END}\n<assistant>")
    assert text(second.completion_ids) == f"56{END}"


def test_a_template_without_an_end_of_the_turn_gets_the_end_token_and_a_completion_is_learnt_alone() -> None:
    texts = [text(one.completion_ids) for one in read({"messages": CONVERSATION}, chat=LLAMA)]
    assert texts == [f"<think> 40 + 2 </think> 42{END}", f"56{END}"]
    [example] = read({"prompt": CONVERSATION[:3], "completion": CONVERSATION[3:]}, chat=CHATML)
    assert text(example.completion_ids) == f"56{END}"


def test_a_text_that_begins_with_the_begin_token_gets_it_once() -> None:
    tokenizer = tiny_tokenizer()
    tokenizer.add_special_tokens({"bos_token": OTHER_END})
    begin = tokenizer.bos_token_id
    begins = TemplateProcessing(single=f"{OTHER_END} $A", special_tokens=[(OTHER_END, begin)])
    tokenizer.backend_tokenizer.post_processor = begins
    assert tokenizer(f"{OTHER_END}12")["input_ids"][:2] == [begin, begin]
    rows = [{"prompt": f"{start}12", "completion": "3"} for start in ("", OTHER_END)]
    rows.append({"text": f"{OTHER_END}123"})
    plain, rendered, whole = examples_of([("row", row) for row in rows], tokenizer, PLAIN)
    assert plain.prompt_ids[:1] == (begin,) and rendered == plain
    assert (whole.prompt_ids, whole.completion_ids[0]) == ((begin,), plain.prompt_ids[1])


def test_no_line_break_is_learnt_after_a_turn_whose_end_is_another_special_token() -> None:
    """As with Qwen2.5's base: turns end with <|im_end|>, where sampling ends, and the end token is <|endoftext|>."""
    first, _ = read({"messages": CONVERSATION}, chat=CHATML.replace(END, OTHER_END))
    assert text(first.completion_ids) == f"<think> 40 + 2 </think> 42{OTHER_END}"


def test_equal_token_ids_are_one_object() -> None:
    rows = [{"prompt_ids": [int("300")], "completion_ids": [int(own)]} for own in ("301", "300")]
    first, second = read(*rows)
    assert first.prompt_ids[0] is second.prompt_ids[0] is second.completion_ids[0]


def test_a_thought_that_the_chat_template_opens_is_learnt_from_there_on() -> None:
    """As with Qwen3-Thinking, whose template writes the thought of a finished turn as well."""
    first, *_ = read({"messages": CONVERSATION[:2]}, chat=PREFILLS)
    assert text(first.prompt_ids).endswith("<assistant><think>")
    assert text(first.completion_ids) == f" 40 + 2 </think> 42{END}"


def test_nothing_is_learnt_behind_the_end_of_a_turn() -> None:
    """As with Phi-4-mini, whose template writes an end token after it."""
    chat = CHATML.replace(END + "\n", OTHER_END) + "{% if not add_generation_prompt %}" + END + "{% endif %}"
    first, second = read({"messages": CONVERSATION}, chat=chat)
    assert text(first.completion_ids).endswith(f"42{OTHER_END}") and text(second.completion_ids) == f"56{OTHER_END}"


@pytest.mark.parametrize(
    ("row", "chat", "message"),
    [
        ({"answer": "42"}, None, "the columns are answer; known forms are: prompt_ids, completion_ids; question"),
        ({"prompt": "a", "completion": 42}, None, "completion is 42; it must be a text"),
        ({"prompt": "", "completion": "42"}, None, "the prompt or the completion has no tokens"),
        ({"prompt_ids": [1], "completion_ids": [10**6]}, None, "completion_ids must be a list of token ids from 0 to"),
        ({"text": "\ud83d"}, None, "text holds half of a surrogate pair"),
        ({"messages": CONVERSATION}, None, "it is a conversation, and the model's tokenizer has no chat template"),
        ({"messages": CONVERSATION[:1]}, CHATML, "the conversation has no turn of the assistant to learn"),
        ({"messages": [{"role": "user"}]}, CHATML, "message 0 is {'role': 'user'}; it must have role and content"),
        (
            {"messages": [*CONVERSATION[:1], {"role": "assistant", "content": "42", "reasoning_content": "40 + 2"}]},
            CHATML,
            "message 1 has reasoning_content",
        ),
        ({"messages": "hello"}, CHATML, "messages is 'hello'; it must be a list of messages"),
        ({"messages": CONVERSATION}, "{{ raise_exception('System role not supported') }}", "System role not supported"),
        ({"messages": CONVERSATION}, DROPS_THOUGHTS, " <think>"),
    ],
)
def test_a_row_that_cannot_be_used_is_named(row: dict[str, Any], chat: str | None, message: str) -> None:
    with pytest.raises(ValueError) as error:
        read(row, chat=chat)
    assert str(error.value).startswith("row 0: ") and message in str(error.value)


def test_loss_on_all_leaves_the_first_token_alone_as_the_prompt() -> None:
    assert with_loss_on_prompts(Example((1, 2, 3), (4,))) == Example((1,), (2, 3, 4))
