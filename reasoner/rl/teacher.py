"""The teacher of on-policy distillation whose whole distribution counts (teacher.kl full): its states before each
token, from which the KL divergence over the vocabulary is computed with the policy's loss.

Shapes: N rows, T completion positions, H' width of the teacher's states.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import torch
from torch import nn

from reasoner.models.fused_lm_head import Teacher
from reasoner.models.loading import PromptCache
from reasoner.models.output_layer import OutputLayer
from reasoner.rl.batch import Batch
from reasoner.rl.passes import ModelPasses


@dataclass(slots=True, eq=False)
class FullTeacher:
    """A frozen model that reads each micro-batch beside the policy: only that micro-batch's states are stored."""

    passes: ModelPasses
    _block: tuple[PromptCache, PromptCache] | None = None  # the policy's pass over a block's prompts, and the teacher's

    @classmethod
    def of(cls, passes: ModelPasses, policy: ModelPasses) -> FullTeacher:
        """The teacher of a policy. ValueError for output layers that are not computed in tiles."""
        own, other = OutputLayer.of(passes.model), OutputLayer.of(policy.model)
        for who, layer in (("teacher", own), ("policy", other)):
            if type(layer.head) is not nn.Linear:
                kind = type(layer.head).__name__
                raise ValueError(f"teacher.kl full needs a linear output layer, and the {who}'s is {kind}; use sampled")
        if own.num_ids < other.num_ids:
            raise ValueError(f"teacher.kl full: the teacher has {own.num_ids} token ids, the policy {other.num_ids}")
        return cls(passes)

    @contextmanager
    def reading(self) -> Iterator[None]:
        """A block of passes. A collective operation; the ranks run equally many, as those of the policy."""
        with self.passes.distributed.passes():
            yield
        self._block = None

    @torch.no_grad()
    def read(self, block: PromptCache, rows: Batch) -> Teacher:
        """The output layer, and [N, T, H'] last states before each completion token of a micro-batch. `block` is the
        policy's pass over the prompts that its micro-batches share: they go through the teacher once as well.
        """
        if self._block is None or self._block[0] is not block:
            self._block = block, self.passes.encode(rows.with_teacher_prompts())
        return OutputLayer.of(self.passes.model), self.passes.states(self._block[1], rows)
