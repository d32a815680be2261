"""Supervised examples as token ids, from rows of text, of token ids, or of conversations.

The column names are those of TRL's SFTTrainer:

    prompt_ids, completion_ids   token ids, used as they are (`reasoner rollouts export --as sft` writes them)
    question, completion         the question is rendered in the run's prompt style
    prompt, completion           texts, or both lists of messages
    messages                     a conversation: every turn of the assistant is an example
    text                         everything after the first token is the completion

Prompt and completion are tokenised apart, as a model samples a completion after the tokens of its prompt. Only the
completion has a loss.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from data import Problem
from reasoner.rollouts.prompts import Template, check_text, render

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Row = Mapping[str, Any]
Turn = Mapping[str, Any]  # a message: role and content


@dataclass(frozen=True, slots=True)
class Example:
    """A prompt and the completion to learn. Both have at least one token."""

    prompt_ids: tuple[int, ...]
    completion_ids: tuple[int, ...]  # with the token that ends it
    problem: str = field(default="", compare=False)  # what examples are split by: their problem or conversation

    @property
    def num_tokens(self) -> int:
        """Number of tokens, those of the prompt included."""
        return len(self.prompt_ids) + len(self.completion_ids)


def examples_of(
    rows: Iterable[tuple[str, Row]], tokenizer: PreTrainedTokenizerBase, template: Template
) -> Iterator[Example]:
    """Yield the examples of the rows, which come as (position in their source, row). `template` renders questions, and
    its stop texts end completions. ValueError that names the position for a row that cannot be used.
    """
    reader = _Reader(tokenizer, template)
    for where, row in rows:
        try:
            yield from reader.examples(row)
        except ValueError as error:
            raise ValueError(f"{where}: {error}") from None


@dataclass(frozen=True, slots=True)
class _Reader:
    tokenizer: PreTrainedTokenizerBase
    template: Template

    def examples(self, row: Row) -> Iterator[Example]:
        """The examples of a row, by the first form whose columns it has."""
        for columns, read in _FORMS.items():
            if all(row.get(name) is not None for name in columns):
                for example in read(self, row):
                    if not example.prompt_ids or not example.completion_ids:
                        raise ValueError("the prompt or the completion has no tokens")
                    yield replace(example, problem=_problem(row, columns[0]))
                return
        known = "; ".join(", ".join(columns) for columns in _FORMS)
        raise ValueError(f"the columns are {', '.join(row)}; known forms are: {known}")

    def from_ids(self, row: Row) -> Iterator[Example]:
        """Token ids as they are. ValueError where the row's prompt as text shows that they are another tokenizer's."""
        ids = self._checked_ids("prompt_ids", row["prompt_ids"])
        example = Example(ids, self._checked_ids("completion_ids", row["completion_ids"]))
        prompt = row.get("prompt")
        if isinstance(prompt, str) and _letters(prompt) not in _letters(str(self.tokenizer.decode(list(ids)))):
            raise ValueError(
                "prompt_ids is not the text of prompt in the model's tokenizer: the ids are another model's. Without "
                "the columns prompt_ids and completion_ids the texts are used"
            )
        yield example

    def from_question(self, row: Row) -> Iterator[Example]:
        """A question, rendered in the prompt style."""
        problem = Problem(id="", question=_text("question", row["question"]), answer="")
        prompt = render(problem, self.template, self.tokenizer)
        completion = _text("completion", row["completion"]).removeprefix(self.template.prefill)
        yield Example(prompt.token_ids, self._completion_ids(completion))

    def from_prompt(self, row: Row) -> Iterator[Example]:
        """A prompt and its completion: two texts, or two lists of messages."""
        prompt, completion = row["prompt"], row["completion"]
        if isinstance(prompt, list) and isinstance(completion, list):
            yield from self._turns([*prompt, *completion], first=len(prompt))
            return
        ids = list(self.tokenizer(_text("prompt", prompt))["input_ids"])
        if ids and ids[-1] == self.tokenizer.eos_token_id:  # some tokenizers end every text
            ids = ids[:-1]
        yield Example(tuple(ids), self._completion_ids(_text("completion", completion)))

    def from_messages(self, row: Row) -> Iterator[Example]:
        """A conversation: an example for every turn of the assistant."""
        if not isinstance(row["messages"], list):
            raise ValueError(f"messages is {row['messages']!r}; it must be a list of messages")
        yield from self._turns(row["messages"], first=0)

    def from_text(self, row: Row) -> Iterator[Example]:
        """A text: its first token is the prompt."""
        ids = list(self.tokenizer(_text("text", row["text"]))["input_ids"])
        if ids and ids[-1] != self.tokenizer.eos_token_id:
            ids.append(self._end())
        yield Example(tuple(ids[:1]), tuple(ids[1:]))

    def _turns(self, messages: Sequence[Turn], *, first: int) -> Iterator[Example]:
        """An example for every assistant's turn from number `first` on."""
        if not self.tokenizer.chat_template:
            raise ValueError("it is a conversation, and the model's tokenizer has no chat template")
        turns = [_message(number, turn) for number, turn in enumerate(messages)]
        places = [i for i, turn in enumerate(turns) if turn["role"] == "assistant" and i >= first]
        if not places:
            raise ValueError("the conversation has no turn of the assistant to learn")
        for place in places:
            before = self._rendered(turns[:place], add_generation_prompt=True)
            after = self._rendered(turns[: place + 1], add_generation_prompt=False)
            turn_text = after.removeprefix(before)
            if not after.startswith(before) or turns[place]["content"].strip() not in turn_text:
                raise ValueError(self._template_fault(turns[place]["content"], before, after))
            # Some templates write a line break after the end of a turn, which nobody samples.
            end = str(self.tokenizer.eos_token or "")
            turn_text = turn_text.rstrip() if end and turn_text.rstrip().endswith(end) else turn_text
            prompt, completion = (self.tokenizer(text, add_special_tokens=False) for text in (before, turn_text))
            yield Example(tuple(prompt["input_ids"]), self._ended(tuple(completion["input_ids"]), turn_text))

    def _rendered(self, turns: Sequence[Turn], *, add_generation_prompt: bool) -> str:
        return str(
            self.tokenizer.apply_chat_template(
                [dict(turn) for turn in turns], tokenize=False, add_generation_prompt=add_generation_prompt
            )
        )

    def _template_fault(self, content: str, before: str, after: str) -> str:
        """Why the chat template of the tokenizer cannot be trained on."""
        name = self.tokenizer.name_or_path or type(self.tokenizer).__name__
        missing = [tag for tag in ("<think>", "</think>") if tag in content and tag not in after.removeprefix(before)]
        if missing:
            return f"the chat template of {name} drops or prefills {', '.join(missing)} of the assistant's turn"
        return (
            f"the chat template of {name} renders a conversation in another way once the assistant has answered: "
            f"{after[-60:]!r} does not continue {before[-40:]!r} with the answer"
        )

    def _completion_ids(self, text: str) -> tuple[int, ...]:
        return self._ended(tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"]), text)

    def _ended(self, ids: tuple[int, ...], text: str) -> tuple[int, ...]:
        """The completion with its end: the end token, unless it is there or a stop text of the prompt style ends it."""
        is_ended = text.endswith(self.template.stop) if self.template.stop else False
        return ids if is_ended or ids[-1:] == (self.tokenizer.eos_token_id,) else (*ids, self._end())

    def _end(self) -> int:
        if self.tokenizer.eos_token_id is None:
            raise ValueError("the model's tokenizer has no end token, and the completion no stop text at its end")
        return int(self.tokenizer.eos_token_id)

    def _checked_ids(self, name: str, ids: object) -> tuple[int, ...]:
        size = len(self.tokenizer)
        if not isinstance(ids, list) or any(type(one) is not int or not 0 <= one < size for one in ids):
            raise ValueError(f"{name} must be a list of token ids from 0 to {size - 1}")
        return tuple(ids)


_FORMS: dict[tuple[str, ...], Callable[[_Reader, Row], Iterator[Example]]] = {
    ("prompt_ids", "completion_ids"): _Reader.from_ids,
    ("question", "completion"): _Reader.from_question,
    ("prompt", "completion"): _Reader.from_prompt,
    ("messages",): _Reader.from_messages,
    ("text",): _Reader.from_text,
}


def _problem(row: Row, column: str) -> str:
    """What all examples of a problem have in common: its id where the row has one, else its prompt, which of a
    conversation is what the user says first.
    """
    if row.get("problem_id") is not None:
        return str(row["problem_id"])
    value = row[column]
    if isinstance(value, list) and value and isinstance(value[0], Mapping):
        value = next((turn["content"] for turn in value if turn["role"] == "user"), value)
    return str(value)


def _letters(text: str) -> str:
    """The text without white space, which some tokenizers do not give back."""
    return "".join(text.split())


def _text(name: str, value: object) -> str:
    if not isinstance(value, str):
        raise ValueError(f"{name} is {value!r}; it must be a text")
    check_text(value, name)
    return value


def _message(number: int, turn: object) -> dict[str, str]:
    """A message with its role and text alone."""
    if not isinstance(turn, Mapping) or not {"role", "content"} <= turn.keys():
        raise ValueError(f"message {number} is {turn!r}; it must have role and content")
    role, content = turn["role"], turn["content"]
    return {"role": _text(f"role of message {number}", role), "content": _text(f"message {number}", content)}


# ------------------------------------------------------------------------------------------------ selection


@dataclass(frozen=True, slots=True)
class Selection:
    """Examples to train on, and how many rows were left out and why."""

    examples: tuple[Example, ...]
    too_long: int
    repeated: int

    @property
    def loss_tokens(self) -> int:
        """Number of tokens with a loss."""
        return sum(len(example.completion_ids) for example in self.examples)

    @property
    def loss_share(self) -> float:
        """Share of the tokens that have a loss."""
        return self.loss_tokens / max(1, sum(example.num_tokens for example in self.examples))


def select(examples: Iterable[Example], *, max_tokens: int) -> Selection:
    """Leave out examples of more than `max_tokens` tokens in all, and those that came before. ValueError for none."""
    chosen: dict[Example, None] = {}
    too_long = repeated = 0
    for example in examples:
        too_long += example.num_tokens > max_tokens
        if example.num_tokens <= max_tokens:
            repeated += example in chosen
            chosen[example] = None
    if not chosen:
        raise ValueError(f"no example is left: {too_long} have more than {max_tokens} tokens")
    return Selection(tuple(chosen), too_long, repeated)


def with_loss_on_prompts(example: Example) -> Example:
    """The example with its prompt, but for its first token, as a part of the completion (`sft.loss_on all`)."""
    return replace(
        example,
        prompt_ids=example.prompt_ids[:1],
        completion_ids=(*example.prompt_ids[1:], *example.completion_ids),
    )
