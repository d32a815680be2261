"""What an update saw on its way: sums over its tokens, and the figures of every token as the update first met it."""

from __future__ import annotations

from collections.abc import Mapping

from torch import Tensor

# Nats, nats, share in the step's loss before its first update; "advantages" too where a row's tokens have their own.
TOKEN_FIGURES = ("entropy", "kl", "loss")
LOSSES = ("loss", "critic/loss")


class Tally:
    """`tokens[row of the step's batch][name]` is a figure for each of the row's tokens, where `keeps_tokens`."""

    def __init__(self, *, keeps_tokens: bool = False) -> None:
        self.sums: dict[str, float] = {}
        self.gap_max = 0.0
        self.told: dict[str, float] = {}  # what else happened, by the name of its metric
        self.tokens: dict[int, dict[str, list[float]]] = {}
        self._keeps_tokens = keeps_tokens

    def add(self, sums: Mapping[str, Tensor], *, gap_max: Tensor) -> None:
        for name, value in sums.items():
            self.sums[name] = self.sums.get(name, 0.0) + float(value)
        self.gap_max = max(self.gap_max, float(gap_max))

    def keep(self, place: Tensor, lengths: Tensor, figures: Mapping[str, Tensor]) -> None:
        """[N] rows, [N] lengths, [N, T] figures. A row that was met before keeps what it has."""
        if not self._keeps_tokens:
            return
        columns = {name: value.detach().tolist() for name, value in figures.items()}
        for i, (row, length) in enumerate(zip(place.tolist(), lengths.tolist(), strict=True)):
            self.tokens.setdefault(row, {name: values[i][:length] for name, values in columns.items()})

    def averages(self) -> dict[str, float]:
        """The sums over the number of tokens."""
        tokens = max(1.0, self.sums.get("tokens", 0.0))
        return {name: total / tokens for name, total in self.sums.items() if name not in ("tokens", *LOSSES)}

    def losses(self, updates: int) -> dict[str, float]:
        """The losses of the updates, on average: a sum over tokens each, whose weights have the denominator already."""
        return {name: self.sums[name] / max(1, updates) for name in LOSSES if name in self.sums}
