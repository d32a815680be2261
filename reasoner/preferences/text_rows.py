"""Token ids of preference rows that hold texts or conversations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reasoner.preferences.dataset import Row

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


@dataclass(frozen=True, slots=True)
class TextEncoder:
    """Tokenises prompt and completion apart, as a model samples a completion after the tokens of its prompt.

    A completion is ended by the end token, unless it ends in one of the stop texts.
    """

    tokenizer: PreTrainedTokenizerBase
    stop: tuple[str, ...] = ()

    def __call__(self, row: Row, side: str) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """(prompt ids, completion ids) of a side of the row: `side` is the column of the completion.

        ValueError for a row whose columns are neither texts nor messages.
        """
        prompt, completion = row.get("prompt"), row.get(side)
        if isinstance(prompt, str) and isinstance(completion, str):
            ids = list(self.tokenizer(prompt)["input_ids"])
            if ids and ids[-1] == self.tokenizer.eos_token_id:  # some tokenizers end every text
                ids = ids[:-1]
            return tuple(ids), self._ended(self._ids(completion), completion)
        if isinstance(completion, list):
            return self._conversation([*(prompt if isinstance(prompt, list) else []), *completion])
        raise ValueError(f"prompt and {side} must be texts or lists of messages; the columns are {', '.join(row)}")

    def _conversation(self, turns: Sequence[Mapping[str, Any]]) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """The last turn, which must be the assistant's, is the completion; those before are the prompt."""
        if not self.tokenizer.chat_template:
            raise ValueError("the row is a conversation, and the model's tokenizer has no chat template")
        if len(turns) < 2 or turns[-1].get("role") != "assistant":
            raise ValueError("a conversation must have a prompt and end with a turn of the assistant")
        before, whole = (
            str(
                self.tokenizer.apply_chat_template(
                    [dict(turn) for turn in own], tokenize=False, add_generation_prompt=is_open
                )
            )
            for own, is_open in ((turns[:-1], True), (turns, False))
        )
        text = whole.removeprefix(before)
        if not whole.startswith(before) or str(turns[-1]["content"]).strip() not in text:
            raise ValueError(f"the chat template of {self.tokenizer.name_or_path} changes the assistant's turn")
        end = str(self.tokenizer.eos_token)
        text = text.rstrip() if text.rstrip().endswith(end) else text  # a line break that nobody samples
        return self._ids(before), self._ended(self._ids(text), text)

    def _ids(self, text: str) -> tuple[int, ...]:
        return tuple(self.tokenizer(text, add_special_tokens=False)["input_ids"])

    def _ended(self, ids: tuple[int, ...], text: str) -> tuple[int, ...]:
        end = self.tokenizer.eos_token_id
        is_ended = bool(self.stop) and text.endswith(self.stop)
        return ids if is_ended or ids[-1:] == (end,) else (*ids, int(end))
