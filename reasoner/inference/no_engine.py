"""The engine of a run in which nothing is sampled: supervised finetuning without validation and held-out problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor

from reasoner.types import Completion, Engine, Prompt


class NoEngine(Engine):
    """Takes no memory, ignores weights, and cannot sample."""

    name = "none"
    accepts_adapter = False

    def generate(self, prompts: Sequence[Prompt], *_: object, **__: object) -> list[tuple[Completion, ...]]:
        assert not prompts, "a run without an engine samples"
        return []

    def update_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Nothing has weights. The tensors are not read, on any rank."""
