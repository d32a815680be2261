"""Supervised examples as token ids, from rows of text, of token ids, or of conversations, in the columns of TRL's
SFTTrainer (docs/SFT.md).

Prompt and completion are tokenised apart, as a model samples a completion after the tokens of its prompt: without the
blank that tokenizers such as Llama 2's put before a text. Only the completion has a loss.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from data import Problem
from reasoner.rollouts.prompts import (
    Template,
    check_text,
    opened_thinking,
    render,
    render_chat,
    turn_end,
    without_prefill,
)

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Row = Mapping[str, Any]
Turn = Mapping[str, Any]  # a message: role and content


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and the completion to learn. Both have at least one token."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]  # with the token that ends it
    problem: str = field(default="", compare=False)  # what examples are split by: the problem's id, or the prompt
    question: str = field(default="", compare=False)  # of the row, or its prompt

    @property
    def num_tokens(self) -> int:
        return len(self.prompt_ids) + len(self.completion_ids)


def examples_of(
    rows: Iterable[tuple[str, Row]], tokenizer: PreTrainedTokenizerBase, template: Template
) -> Iterator[Example]:
    """Yield the examples of the rows, which come as (position in their source, row). `template` renders questions, and
    its stop texts end completions. ValueError that names the position for a row that cannot be used.
    """
    reader = ExampleReader(tokenizer, template)
    for where, row in rows:
        try:
            yield from reader.examples(row)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


class ExampleReader:
    """Makes examples of rows with a tokenizer. `template`: as of examples_of."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, template: Template) -> None:
        self.tokenizer, self.template = tokenizer, template
        self._integers: dict[int, int] = {}  # one object for each token id
        self._num_ids = max(tokenizer.get_vocab().values()) + 1  # there may be gaps below
        self._turn_end = turn_end(tokenizer)
        adds_blank = self._ids("1") != self._ids(f"{_LEAD}1")[len(self._ids(_LEAD)) :]
        self._lead = _LEAD if adds_blank else ""  # stands before a completion while it is tokenised

    def examples(self, row: Row) -> Iterator[Example]:
        """The examples of a row, by the first form whose columns it has."""
        for columns, read in _FORMS.items():
            if all(row.get(name) is not None for name in columns):
                for example in read(self, row):
                    if not example.prompt_ids or not example.completion_ids:
                        raise ValueError("the prompt or the completion has no tokens")
                    prompt, own = _prompt(row, columns[0]), row.get("problem_id")
                    question = sys.intern(str(row.get("question") or prompt))
                    yield replace(example, problem=prompt if own in (None, "") else str(own), question=question)
                return
        known = "; ".join(", ".join(columns) for columns in _FORMS)
        raise ValueError(f"the columns are {', '.join(row)}; known forms are: {known}")

    def from_ids(self, row: Row) -> Iterator[Example]:
        """Token ids as they are: an example for every turn, where tools answered between them (`observation_tokens`).
        ValueError where the row's prompt as text shows that they are another tokenizer's.
        """
        prompt_ids, ids = self.column_ids(row, "prompt_ids"), self.column_ids(row, "completion_ids")
        bounds = [0, *(row.get("observation_tokens") or ()), len(ids)]
        for start, end in zip(bounds[::2], bounds[1::2], strict=True):
            yield Example((*prompt_ids, *ids[:start]), ids[start:end])

    def from_question(self, row: Row) -> Iterator[Example]:
        """A question, rendered in the prompt style."""
        problem = Problem(id="", question=_text("question", row["question"]), answer="")
        prompt = render(problem, self.template, self.tokenizer)
        completion = without_prefill(_text("completion", row["completion"]), prompt.prefill)
        yield Example(self._tuple(prompt.token_ids), self._completion_ids(completion))

    def from_prompt(self, row: Row) -> Iterator[Example]:
        """A prompt and its completion: two texts, or two lists of messages."""
        prompt, completion = row["prompt"], row["completion"]
        if isinstance(prompt, list) and isinstance(completion, list):
            yield from self._turns([*prompt, *completion], first=len(prompt))
            return
        ids = self._text_ids("prompt", prompt)
        if ids and ids[-1] == self.tokenizer.eos_token_id:  # some tokenizers end every text
            ids = ids[:-1]
        yield Example(self._tuple(ids), self._completion_ids(_text("completion", completion)))

    def from_messages(self, row: Row) -> Iterator[Example]:
        """A conversation: an example for every turn of the assistant."""
        if not isinstance(row["messages"], list):
            raise ValueError(f"messages is {row['messages']!r}; it must be a list of messages")
        yield from self._turns(row["messages"], first=0)

    def from_text(self, row: Row) -> Iterator[Example]:
        """A text: its first token is the prompt."""
        ids, end = self._text_ids("text", row["text"]), self.tokenizer.eos_token_id
        if ids[-2:] == [end, end]:  # the text has one, and some tokenizers end every text
            ids.pop()
        elif ids and ids[-1] != end:
            ids.append(end)
        yield Example(self._tuple(ids[:1]), self._tuple(ids[1:]))

    def _turns(self, messages: Sequence[Turn], *, first: int) -> Iterator[Example]:
        """An example for every assistant's turn from number `first` on."""
        if not self.tokenizer.chat_template:
            raise ValueError("it is a conversation, and the model's tokenizer has no chat template")
        turns = [_message(number, turn) for number, turn in enumerate(messages)]
        places = [i for i, turn in enumerate(turns) if turn["role"] == "assistant" and i >= first]
        if not places:
            raise ValueError("the conversation has no turn of the assistant to learn")
        for place in places:
            before = render_chat(turns[:place], self.tokenizer)
            after = render_chat(turns[: place + 1], self.tokenizer, add_generation_prompt=False)
            turn_text, content = after.removeprefix(before), turns[place]["content"]
            if not after.startswith(before) or content.strip() not in opened_thinking(before) + turn_text:
                raise ValueError(self._template_fault(content, before, after))
            yield Example(self._tuple(self._ids(before)), self._completion_ids(turn_text, is_turn=True))

    def _template_fault(self, content: str, before: str, after: str) -> str:
        """Why the chat template of the tokenizer cannot be trained on."""
        name = self.tokenizer.name_or_path or type(self.tokenizer).__name__
        missing = [tag for tag in ("<think>", "</think>") if tag in content and tag not in after.removeprefix(before)]
        if missing:
            return f"the chat template of {name} drops {', '.join(missing)} of the assistant's turn"
        return (
            f"the chat template of {name} renders a conversation in another way once the assistant has answered: "
            f"{after[-60:]!r} does not continue {before[-40:]!r} with the answer"
        )

    def _text_ids(self, name: str, text: object) -> list[int]:
        """The token ids of a whole text. One that a chat template wrote may begin with the begin token, which many
        tokenizers add: it stands there once.
        """
        ids = list(self.tokenizer(_text(name, text))["input_ids"])
        begin = self.tokenizer.bos_token_id
        return ids[1:] if begin is not None and ids[:2] == [begin, begin] else ids

    def _completion_ids(self, text: str, *, is_turn: bool = False) -> tuple[int, ...]:
        """The completion with its end: the end token, unless it is there, or that of a turn, or a stop text of the
        prompt style ends it. Of a turn nothing behind its end: some chat templates write a line break or an end token
        there, which nobody samples.
        """
        lead, ids = self._ids(self._lead), self._ids(self._lead + text)
        ids = ids[len(lead) :] if ids[: len(lead)] == lead else self._ids(text)  # it begins with a line break itself
        if is_turn:
            ids = ids[: max((size for size, token in enumerate(ids, 1) if token == self._turn_end), default=len(ids))]
        is_ended = bool(self.template.stop) and text.endswith(self.template.stop)
        is_ended = is_ended or (bool(ids) and ids[-1] in (self.tokenizer.eos_token_id, self._turn_end))
        return self._tuple(ids if is_ended else [*ids, self.tokenizer.eos_token_id])

    def _ids(self, text: str) -> list[int]:
        return list(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _tuple(self, ids: Sequence[int]) -> tuple[int, ...]:
        """The ids as a tuple of shared integers: 8 bytes a token, where integers of their own take 36."""
        return tuple(map(self._integers.setdefault, ids, ids))

    def side(self, row: Row, side: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(prompt ids, completion ids) of a row with one completion or more: `side` is the column of the completion. Of
        a conversation the last turn, which must be the assistant's, is the completion; those before are the prompt.

        ValueError for a row whose columns are neither texts nor messages.
        """
        prompt, completion = row.get("prompt"), row.get(side)
        if isinstance(completion, list):
            turns = [*(prompt if isinstance(prompt, list) else []), *completion]
            if len(turns) < 2:
                raise ValueError(f"{side}: a conversation must have a prompt and end with a turn of the assistant")
            prompt, completion = turns[:-1], turns[-1:]
        elif not (isinstance(prompt, str) and isinstance(completion, str)):
            raise ValueError(f"prompt and {side} must be texts or lists of messages; the columns are {', '.join(row)}")
        try:
            [example] = self.from_prompt({"prompt": prompt, "completion": completion})
        except ValueError as error:
            raise ValueError(f"{side}: {error}") from None
        return example.prompt_ids, example.completion_ids

    def column_ids(self, row: Row, name: str) -> tuple[int, ...]:
        """The token ids of a column as they are. ValueError where they are none of the tokenizer, and where those of a
        prompt are not its text: they are another tokenizer's.
        """
        size, ids, text = self._num_ids, row[name], row.get("prompt") if name.startswith("prompt") else None
        values = ids.tolist() if hasattr(ids, "tolist") else ids  # of numpy or torch
        if not isinstance(values, list | tuple) or any(type(one) is not int or not 0 <= one < size for one in values):
            raise ValueError(f"{name} must be a list of token ids from 0 to {size - 1}")
        if isinstance(text, str) and not self._are_ids_of(text, values):
            raise ValueError(
                f"{name} is not the text of prompt in the model's tokenizer: the ids are another model's. Without the "
                "columns of token ids the texts are used"
            )
        return self._tuple(values)

    def _are_ids_of(self, text: str, ids: Sequence[int]) -> bool:
        """Whether the ids hold the text, or what the tokenizer makes of it: many normalise Unicode (NFC)."""
        whole = _letters(str(self.tokenizer.decode(list(ids))))
        return _letters(text) in whole or _letters(str(self.tokenizer.decode(self._ids(text)))) in whole


def text_reader(tokenizer: PreTrainedTokenizerBase, stop: tuple[str, ...] = ()) -> ExampleReader:
    """A reader of prompts and completions that end in one of the stop texts, or else get the end token."""
    return ExampleReader(tokenizer, Template("{question}", stop=stop))


_FORMS: dict[tuple[str, ...], Callable[[ExampleReader, Row], Iterator[Example]]] = {
    ("prompt_ids", "completion_ids"): ExampleReader.from_ids,
    ("question", "completion"): ExampleReader.from_question,
    ("prompt", "completion"): ExampleReader.from_prompt,
    ("messages",): ExampleReader.from_messages,
    ("text",): ExampleReader.from_text,
}


def _prompt(row: Row, column: str) -> str:
    """The prompt of a row; of a conversation what the user says first."""
    value = row[column]
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        value = next((turn["content"] for turn in value if turn["role"] == "user"), value)
    return str(value)


_LEAD = "\n"
_BESIDE_CONTENT = ("reasoning_content", "reasoning", "thinking", "tool_calls")


def _letters(text: str) -> str:
    """The text without white space, which some tokenizers do not give back."""
    return "".join(text.split())


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}; it must be a text")
    check_text(value, name)
    return value


def _message(number: int, turn: object) -> dict[str, str]:
    """A message with its role and text alone. ValueError for one that says something beside its content."""
    if not isinstance(turn, Mapping) or not {"role", "content"} <= turn.keys():
        raise ValueError(f"message {number} is {turn!r}; it must have role and content")
    if more := [name for name in _BESIDE_CONTENT if turn.get(name)]:
        raise ValueError(f"message {number} has {', '.join(more)}, which would not be learnt: write it in the content")
    role, content = turn["role"], turn["content"]
    return {"role": _text(f"role of message {number}", role), "content": _text(f"message {number}", content)}


# ------------------------------------------------------------------------------------------------ selection


def select(examples: Iterable[Example], *, max_tokens: int) -> tuple[tuple[Example, ...], dict[str, int]]:
    """(the examples of at most `max_tokens` tokens in all, each once; the number of the others by why they are left
    out). ValueError for none.
    """
    chosen: dict[Example, None] = {}
    too_long = repeated = 0
    for example in examples:
        too_long += example.num_tokens > max_tokens
        if example.num_tokens <= max_tokens:
            repeated += example in chosen
            chosen[example] = None
    if not chosen and not too_long:
        raise ValueError("there is no example in it")
    if not chosen:
        raise ValueError(f"no example is left: {too_long} have more than {max_tokens} tokens")
    return tuple(chosen), {f"longer than {max_tokens:,} tokens": too_long, "repeated": repeated}


def with_loss_on_prompts(example: Example) -> Example:
    """The example with its prompt, but for its first token, as a part of the completion (`sft.loss_on all`)."""
    return replace(
        example, prompt_ids=example.prompt_ids[:1], completion_ids=(*example.prompt_ids[1:], *example.completion_ids)
    )
