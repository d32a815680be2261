"""The rows that pretraining reads, and where in them a build is."""

from __future__ import annotations

from dataclasses import dataclass, field

import torch
from transformers import PreTrainedTokenizerBase

from reasoner.pretrain.corpus import document
from reasoner.pretrain.mixture import Mixture

IGNORED = -100  # target of a padded position
_DOCUMENTS = 256  # generated at once
_WAITING = 64  # documents to choose from, at least


@dataclass(slots=True)
class RowStream:
    """Rows of token ids without end: whole documents, each with the end token, at most `row_tokens` a row.

    A document that does not fit into the current row waits for a later one, so that there is little padding. `index`
    (documents generated) and `waiting` (their token ids) are the position: with them a stream goes on.
    """

    tokenizer: PreTrainedTokenizerBase
    seed: int
    mixture: Mixture
    row_tokens: int
    index: int = 0
    waiting: list[list[int]] = field(default_factory=list)

    def batch(self, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The next (inputs, targets), both [rows, row_tokens - 1] int64; targets in the padding are IGNORED."""
        ids = torch.full((rows, self.row_tokens), self.tokenizer.pad_token_id)
        targets = torch.full((rows, self.row_tokens), IGNORED)
        for r in range(rows):
            row = torch.tensor(self._row())
            ids[r, : len(row)] = targets[r, : len(row)] = row
        return ids[:, :-1], targets[:, 1:]

    def _row(self) -> list[int]:
        row: list[int] = []
        while True:
            self._fill()
            room = self.row_tokens - len(row)
            fits = next((i for i, ids in enumerate(self.waiting) if len(ids) <= room), None)
            if fits is not None:
                row += self.waiting.pop(fits)
            elif row:
                return row
            else:
                self.waiting.pop(0)  # longer than a whole row

    def _fill(self) -> None:
        """Generate documents where too few wait."""
        if len(self.waiting) >= _WAITING:
            return
        texts = [document(self.seed, self.index + i, self.mixture) for i in range(_DOCUMENTS)]
        self.index += len(texts)
        self.waiting += [[*ids, self.tokenizer.eos_token_id] for ids in self.tokenizer(texts)["input_ids"]]
