"""The engine of a run in which nothing is sampled: supervised finetuning without validation and held-out problems."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from torch import Tensor

from reasoner.progress import OnDecodeStep
from reasoner.types import Completion, OnGroupDone, Prompt, SamplingParams


class NoEngine:
    """Takes no memory, ignores weights, and cannot sample."""

    name = "none"
    accepts_adapter = False

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        seeds: Sequence[Sequence[int]],
        on_group_done: OnGroupDone | None = None,
        on_decode_step: OnDecodeStep | None = None,
    ) -> list[tuple[Completion, ...]]:
        assert not prompts, "a run without an engine samples"
        return []

    def update_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Nothing has weights. The tensors are not read, on any rank."""

    def sleep(self) -> None:
        """Nothing is released."""

    def wake_up(self) -> None:
        """Nothing was released."""

    def close(self) -> None:
        """Nothing is freed."""
