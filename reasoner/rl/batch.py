"""The tensors of one step: graded groups in, rows out.

Shapes: P prompts, G completions of each, N = P * G rows, L longest prompt, T longest completion. A group's rows share
their prompt, so it is stored, and computed, once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace

import torch
from torch import Tensor

from reasoner.types import Group

Step = tuple[int, float]  # the token at which a step of a thought ends, and its reward


@dataclass(frozen=True, slots=True, eq=False)  # tensors do not compare to one bool
class Batch:
    """Rows of completions. Padding is known by lengths, never by the pad token's id, which may end a completion too."""

    prompt_ids: Tensor  # [P, L] int64, padded on the left
    prompt_lengths: Tensor  # [P] int64
    prompt_of: Tensor  # [N] int64, the row of prompt_ids
    completion_ids: (
        Tensor  # [N, T] int64, padded on the right; the drawn tokens, the end token included where it was drawn
    )
    lengths: Tensor  # [N] int64
    truncated: Tensor  # [N] bool, cut off at the limit and not ended
    place: Tensor  # [N] int64, the row of the step's batch as it was collated
    rewards: Tensor  # [N] float32
    sampler_logprobs: Tensor  # [N, T] float32, 0 in the padding
    advantages: Tensor  # [N, T] float32; 0 until credit is given, and in the padding
    weights: Tensor  # [N, T] float32; the mask until the step is weighed
    old_logprobs: Tensor | None = None  # [N, T], when there are several updates on these rows
    ref_logprobs: Tensor | None = None  # [N, T], when there is a reference
    step_rewards: Tensor | None = None  # [N, T] float32 at the tokens where a step of the thought ends, else 0
    step_ends: Tensor | None = None  # [N, T] bool
    values: Tensor | None = None  # [N, T + 1], where there is a critic: V of the state before each token and after all
    returns: Tensor | None = None  # [N, T], what the critic learns

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def mask(self) -> Tensor:
        """[N, T] bool: the position holds a drawn token."""
        return torch.arange(self.completion_ids.shape[1], device=self.lengths.device) < self.lengths[:, None]

    def rows(self, index: Tensor) -> Batch:
        """The rows of the index, cut to their longest completion; the prompts stay as they are."""
        width = max(1, int(self.lengths[index].max()))
        changed = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and field.name not in ("prompt_ids", "prompt_lengths"):
                kept = width + (field.name == "values")
                changed[field.name] = value[index][:, :kept] if value.ndim == 2 else value[index]
        return replace(self, **changed)

    def prompt_blocks(self, tokens: int, index: Tensor) -> Iterator[tuple[Tensor, Batch]]:
        """(index, rows) of prompts that have at most `tokens` padded tokens together, and of no other prompts.

        At least one prompt each. Every row of the index stands in exactly one of them.
        """
        needed, place = self.prompt_of[index].unique(return_inverse=True)
        width = int(self.prompt_lengths[needed].max())
        for start in range(0, len(needed), max(1, tokens // width)):
            prompts = needed[start : start + max(1, tokens // width)]
            inside = ((place >= start) & (place < start + len(prompts))).nonzero()[:, 0]
            ids, lengths = self.prompt_ids[prompts][:, -width:], self.prompt_lengths[prompts]
            rows = replace(
                self.rows(index[inside]), prompt_ids=ids, prompt_lengths=lengths, prompt_of=place[inside] - start
            )
            yield index[inside], rows

    def micro_batches(self, tokens: int) -> Iterator[tuple[Tensor, Batch]]:
        """(index, rows) of at most `tokens` padded completion tokens each, rows of like length together.

        At least one row each. Every row stands in exactly one of them.
        """
        ordered = self.lengths.argsort(stable=True)
        sizes = self.lengths[ordered].tolist()
        start = 0
        for end in range(1, len(ordered) + 1):
            if end == len(ordered) or (end - start + 1) * sizes[end] > tokens:
                yield ordered[start:end], self.rows(ordered[start:end])
                start = end

    def to(self, device: torch.device) -> Batch:
        """The same batch on the device."""
        moved = {f.name: v.to(device) for f in fields(self) if (v := getattr(self, f.name)) is not None}
        return replace(self, **moved)


def collate(groups: Sequence[Group], steps: Sequence[Sequence[Step]] | None = None) -> Batch:
    """Graded groups as one batch, in order. ValueError unless every group has the same G >= 2 completions.

    `steps`: where process supervision asks for them, the rewarded steps of each completion.
    """
    sizes = {len(group.completions) for group in groups}
    if len(sizes) != 1 or min(sizes) < 2:
        raise ValueError(f"every group needs the same number of completions, at least 2; these have {sorted(sizes)}")
    completions = [completion for group in groups for completion in group.completions]
    lengths = torch.tensor([len(c.token_ids) for c in completions])
    batch = Batch(
        prompt_ids=_padded([g.prompt.token_ids for g in groups], left=True).long(),
        prompt_lengths=torch.tensor([len(g.prompt.token_ids) for g in groups]),
        prompt_of=torch.arange(len(groups)).repeat_interleave(sizes.pop()),
        completion_ids=_padded([c.token_ids for c in completions]).long(),
        lengths=lengths,
        truncated=torch.tensor([c.finish != "stop" for c in completions]),
        place=torch.arange(len(completions)),
        rewards=torch.tensor([score.reward for g in groups for score in g.scores], dtype=torch.float32),
        sampler_logprobs=_padded([c.logprobs for c in completions]).float(),
        advantages=torch.zeros(0),
        weights=torch.zeros(0),
    )
    batch = replace(batch, weights=batch.mask.float(), advantages=torch.zeros(batch.mask.shape))
    return batch if steps is None else _with_steps(batch, steps)


def _with_steps(batch: Batch, steps: Sequence[Sequence[Step]]) -> Batch:
    """Steps that end at the same token are one, with the sum of their rewards."""
    rewards, ends = torch.zeros(batch.mask.shape), torch.zeros_like(batch.mask)
    for row, own in enumerate(steps):
        for token, reward in own:
            rewards[row, token] += reward
            ends[row, token] = True
    return replace(batch, step_rewards=rewards, step_ends=ends)


def _padded(rows: Sequence[Sequence[float]], *, left: bool = False) -> Tensor:
    """[N, longest], filled with 0."""
    width = max(1, *(len(row) for row in rows)) if rows else 1
    return torch.tensor([[0] * (width - len(r)) + list(r) if left else list(r) + [0] * (width - len(r)) for r in rows])
