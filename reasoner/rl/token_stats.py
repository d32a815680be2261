"""Statistics collected during an update: sums over tokens, and per-token values from the first pass over each row."""

from __future__ import annotations

from array import array
from collections.abc import Mapping

import torch
from torch import Tensor

from reasoner.distributed.world import World, largest_of

LOSSES = ("loss", "critic/loss")


class TokenStats:
    """Sums over tokens, by the name of the metric that is their mean. With `keeps_tokens`, tokens[row of the step's
    batch][name] has a value per token: entropy and kl (to the reference, if there is one) in nats; loss, the token's
    share of the step's loss before its first update; advantages, where the tokens of a row differ in theirs.
    """

    def __init__(self, *, keeps_tokens: bool = False) -> None:
        self.sums: dict[str, float] = {}
        self.gap_max = 0.0
        self.tokens: dict[int, dict[str, array[float]]] = {}
        self._keeps_tokens = keeps_tokens

    def add(self, sums: Mapping[str, Tensor], *, gap_max: Tensor) -> None:
        """Add a micro-batch's sums by name, and the largest log-probability difference to the engine."""
        # One transfer from the device for all of them; float64 holds every value of theirs.
        *values, largest = torch.stack([value.double() for value in (*sums.values(), gap_max)]).tolist()
        for name, value in zip(sums, values, strict=True):
            self.sums[name] = self.sums.get(name, 0.0) + value
        self.gap_max = largest_of([self.gap_max, largest])

    def record(self, row_index: Tensor, lengths: Tensor, token_values: Mapping[str, Tensor]) -> None:
        """Record [N, T] values of the rows [N] with lengths [N]. A row that is already recorded is not overwritten."""
        if not self._keeps_tokens:
            return
        values = torch.stack([value.detach().float() for value in token_values.values()], dim=1).numpy(force=True)
        for row, length, columns in zip(row_index.tolist(), lengths.tolist(), values, strict=True):
            if row >= 0 and row not in self.tokens:  # nor Batch.empty_row()
                own = (array("f", column[:length].tobytes()) for column in columns)
                self.tokens[row] = dict(zip(token_values, own, strict=True))

    def combine(self, world: World) -> None:
        """Take in the sums of the other ranks, in the order of the ranks, and on the first rank, which writes them,
        their token values; the other ranks have none afterwards. A collective operation.
        """
        if world.size == 1:
            return
        ranks = world.gather((self.sums, self.gap_max), "the statistics of the update")
        self.sums, self.gap_max = {}, largest_of([gap_max for _, gap_max in ranks])
        for sums, _ in ranks:
            self.sums |= {name: self.sums.get(name, 0.0) + value for name, value in sums.items()}
        if self._keeps_tokens:
            of_ranks = world.gather(self.tokens, "the statistics of tokens", to_first=True)
            self.tokens = {row: values for tokens in of_ranks for row, values in tokens.items()}

    def averages(self) -> dict[str, float]:
        """Each sum divided by the number of tokens, without the losses."""
        tokens = max(1.0, self.sums.get("tokens", 0.0))
        return {name: total / tokens for name, total in self.sums.items() if name not in ("tokens", *LOSSES)}

    def losses(self, updates: int) -> dict[str, float]:
        """Mean loss per update. A loss is a weighted sum over tokens whose weights already contain the denominator."""
        return {name: self.sums[name] / max(1, updates) for name in LOSSES if name in self.sums}
