"""Token ids of rows of preferences and completions: checked as they are, or made of texts and conversations."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reasoner.rollouts.prompts import Template
from reasoner.sft.examples import ExampleReader

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """Tokenises prompt and completion as supervised finetuning does: apart, as a model samples a completion after the
    tokens of its prompt. A completion is ended by the end token, unless it ends in one of the stop texts.
    """

    tokenizer: PreTrainedTokenizerBase
    stop: tuple[str, ...] = ()
    reader: ExampleReader = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "reader", ExampleReader(self.tokenizer, Template("{question}", stop=self.stop)))

    def __call__(self, row: Row, side: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(prompt ids, completion ids) of a side of the row: `side` is the column of the completion. Of a conversation
        the last turn, which must be the assistant's, is the completion; those before are the prompt.

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
            [example] = self.reader.from_prompt({"prompt": prompt, "completion": completion})
        except ValueError as error:
            raise ValueError(f"{side}: {error}") from None
        return example.prompt_ids, example.completion_ids

    def ids(self, row: Row, name: str) -> tuple[int, ...]:
        """The token ids in a column of the row. ValueError where they are not the tokenizer's; those of a prompt are
        compared with its text.
        """
        return self.reader.checked_ids(name, row[name], text=row.get("prompt") if name.startswith("prompt") else None)
