"""The tensors of one training step, collated from graded groups.

Shapes: P prompts, G completions of each, N = P * G rows, L longest prompt, T longest completion. The rows of a
group share their prompt, which is stored and computed once.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from reasoner.types import Completion, RolloutGroup

_PROMPTS = (("prompt_ids", "prompt_lengths"), ("teacher_prompt_ids", "teacher_prompt_lengths"))
_OF_PROMPTS = frozenset(name for pair in _PROMPTS for name in pair)
Step = tuple[int, float]  # (index of the token at which a step of the reasoning ends, the step's reward)


@dataclass(frozen=True, slots=True, eq=False)  # tensors do not compare to one bool
class Batch:
    """Rows of completions. Lengths mark the padding, not the pad token's id, which may also end a completion."""

    prompt_ids: Tensor  # [P, L] int64, padded on the left
    prompt_lengths: Tensor  # [P] int64
    prompt_of: Tensor  # [N] int64, the row of prompt_ids
    completion_ids: Tensor  # [N, T] int64, padded on the right; the sampled tokens, including a sampled end token
    lengths: Tensor  # [N] int64, of the completions, observations included
    missing_eos: Tensor  # [N] bool, ended without an end token or stop text: at sampling.max_tokens, or aborted
    row_index: Tensor  # [N] int64, the row's index in the batch as collated
    rewards: Tensor  # [N] float32
    correct: Tensor  # [N] bool
    sampler_logprobs: Tensor  # [N, T] float32, 0 in the padding
    advantages: Tensor  # [N, T] float32; 0 until they are computed, and in the padding
    weights: Tensor  # [N, T] float32; the mask until the loss weights are computed
    old_logprobs: Tensor | None = None  # [N, T], if there are several updates on these rows
    ref_logprobs: Tensor | None = None  # [N, T], if there is a reference model
    teacher_logprobs: Tensor | None = None  # [N, T], if there is a teacher whose sampled tokens count
    teacher_prompt_ids: Tensor | None = None  # [P, L'] as prompt_ids, where the teacher reads other prompts
    teacher_prompt_lengths: Tensor | None = None  # [P]
    step_rewards: Tensor | None = None  # [N, T] float32, 0 except at the tokens where a step ends
    step_ends: Tensor | None = None  # [N, T] bool
    values: Tensor | None = None  # [N, T], if there is a critic: V before each token
    returns: Tensor | None = None  # [N, T], the critic's targets
    is_observation: Tensor | None = None  # [N, T] bool, tokens that a tool returned, if there are any

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def mask(self) -> Tensor:
        """[N, T] bool: the position holds a token that the policy sampled."""
        is_token = torch.arange(self.completion_ids.shape[1], device=self.lengths.device) < self.lengths[:, None]
        return is_token if self.is_observation is None else is_token & ~self.is_observation

    @property
    def policy_logprobs(self) -> Tensor:
        """[N, T] log-probabilities of the policy that sampled: the trainer's if it computed them, else the engine's."""
        return self.sampler_logprobs if self.old_logprobs is None else self.old_logprobs

    def rows(self, index: Tensor) -> Batch:
        """Select rows, trimmed to their longest completion. All prompts are kept."""
        width = max(1, int(self.lengths[index].max()))
        selected = {}
        for field in fields(self):
            value = getattr(self, field.name)
            if value is not None and field.name not in _OF_PROMPTS:
                selected[field.name] = value[index][:, :width] if value.ndim == 2 else value[index]
        return replace(self, **selected)

    def sampled_first(self) -> tuple[Batch, Tensor]:
        """(the batch without its observations, order [N, T] of the positions). Column t of the batch is order[:, t] of
        this one: the sampled tokens, then the others.
        """
        order, ends = (~self.mask).byte().argsort(dim=1, stable=True), self.mask.sum(dim=1)
        columns: dict[str, Any] = {"lengths": ends, "is_observation": None}
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name not in _OF_PROMPTS and value is not None and value.shape == order.shape:
                columns.setdefault(field.name, value.gather(1, order))
        return replace(self, **columns), order

    def prompt_blocks(self, tokens: int, index: Tensor) -> Iterator[tuple[Tensor, Batch]]:
        """Split the indexed rows by prompt into blocks of at most `tokens` padded prompt tokens: (index, rows).

        A block has at least one prompt, and only its own prompts. Every indexed row is in exactly one block; without
        rows there is none.
        """
        if not len(index):
            return
        prompt_index, position = self.prompt_of[index].unique(return_inverse=True)  # type: ignore[no-untyped-call]
        width = int(self.prompt_lengths[prompt_index].max())
        for start in range(0, len(prompt_index), max(1, tokens // width)):
            prompts = prompt_index[start : start + max(1, tokens // width)]
            members = ((position >= start) & (position < start + len(prompts))).nonzero()[:, 0]
            rows = replace(self.rows(index[members]), prompt_of=position[members] - start)
            yield index[members], replace(rows, **self._prompts(prompts, among=prompt_index))

    def _prompts(self, index: Tensor, *, among: Tensor) -> dict[str, Tensor]:
        """The indexed prompts, and those of the teacher, trimmed to the longest `among` others: fields of a batch."""
        columns: dict[str, Tensor] = {}
        for name, lengths in _PROMPTS:
            if (ids := getattr(self, name)) is not None:
                columns[lengths] = getattr(self, lengths)[index]
                columns[name] = ids[index][:, -int(getattr(self, lengths)[among].max()) :]
        return columns

    def with_teacher_prompts(self) -> Batch:
        """The batch as the teacher reads it."""
        if self.teacher_prompt_ids is None or self.teacher_prompt_lengths is None:
            return self
        return replace(self, prompt_ids=self.teacher_prompt_ids, prompt_lengths=self.teacher_prompt_lengths)

    def micro_batches(self, tokens: int) -> Iterator[tuple[Tensor, Batch]]:
        """Split the rows, sorted by length, into parts of at most `tokens` padded completion tokens: (index, rows).

        A part has at least one row. Every row is in exactly one part.
        """
        yield from ((part, self.rows(part)) for part in self.parts(tokens))

    def parts(self, tokens: int) -> list[Tensor]:
        """The index of each of micro_batches()."""
        order = self.lengths.argsort(stable=True)
        sizes = self.lengths[order].tolist()
        parts, start = [], 0
        for end in range(1, len(order) + 1):
            if end == len(order) or (end - start + 1) * sizes[end] > tokens:
                parts.append(order[start:end])
                start = end
        return parts

    def empty_row(self) -> Batch:
        """A row without tokens and without weight, of a prompt of one token: it takes a model's passes and adds nothing
        to any sum. Its row_index is -1.
        """
        row, zero = self.rows(index := self.lengths.new_zeros(1)), self.lengths.new_zeros(1)
        prompt = {"prompt_ids": self.prompt_ids[:1, -1:], "prompt_lengths": zero + 1, "prompt_of": zero}
        if self.teacher_prompt_ids is not None:
            prompt |= {"teacher_prompt_ids": self.teacher_prompt_ids[:1, -1:], "teacher_prompt_lengths": zero + 1}
        return replace(row, **prompt, lengths=zero, row_index=zero - 1, weights=row.weights * 0).rows(index)

    def to(self, device: torch.device) -> Batch:
        """Copy the batch to the device."""
        moved = {f.name: v.to(device) for f in fields(self) if (v := getattr(self, f.name)) is not None}
        return replace(self, **moved)


def collate_tokens(
    prompts: Sequence[Sequence[int]], completions: Sequence[Sequence[int]], prompt_of: Sequence[int]
) -> Batch:
    """Collate token ids alone: N completions, of the prompts at the places `prompt_of` [N]. Everything else is 0."""
    lengths = torch.tensor([len(ids) for ids in completions])
    completion_ids = pad(completions, np.int64)
    return Batch(
        prompt_ids=pad(prompts, np.int64, left=True),
        prompt_lengths=torch.tensor([len(prompt) for prompt in prompts]),
        prompt_of=torch.tensor(prompt_of),
        completion_ids=completion_ids,
        lengths=lengths,
        missing_eos=torch.zeros(len(completions), dtype=torch.bool),
        row_index=torch.arange(len(completions)),
        rewards=torch.zeros(len(completions)),
        correct=torch.zeros(len(completions), dtype=torch.bool),
        sampler_logprobs=torch.zeros(completion_ids.shape),
        advantages=torch.zeros(completion_ids.shape),
        weights=torch.zeros(completion_ids.shape),
    )


def collate_rows(rows: Sequence[tuple[Sequence[int], Sequence[int]]]) -> Batch:
    """Collate rows of (prompt ids, completion ids), in order. Rows with the same prompt share it, unless it is a single
    token, such as that which begins all texts: ranks divide a batch by its prompts. All else is 0.
    """
    keys = [(tuple(prompt), number if len(prompt) == 1 else -1) for number, (prompt, _) in enumerate(rows)]
    place = {key: number for number, key in enumerate(dict.fromkeys(keys))}
    prompts = [prompt for prompt, _ in place]
    return collate_tokens(prompts, [completion for _, completion in rows], [place[key] for key in keys])


def collate(groups: Sequence[RolloutGroup], steps: Sequence[Sequence[Step]] | None = None) -> Batch:
    """Collate graded groups into one batch, in order. ValueError unless all groups have the same G >= 2 completions.

    `steps`: the rewarded steps of each completion, for process supervision.
    """
    sizes = {len(group.completions) for group in groups}
    if len(sizes) != 1 or min(sizes) < 2:
        raise ValueError(f"every group needs the same number of completions, at least 2; these have {sorted(sizes)}")
    completions = [completion for group in groups for completion in group.completions]
    prompt_of = [place for place, group in enumerate(groups) for _ in group.completions]
    batch = collate_tokens([g.prompt.token_ids for g in groups], [c.token_ids for c in completions], prompt_of)
    batch = replace(
        batch,
        missing_eos=torch.tensor([c.finish != "stop" for c in completions]),
        rewards=torch.tensor([score.reward for g in groups for score in g.scores], dtype=torch.float32),
        correct=torch.tensor([score.correct for g in groups for score in g.scores]),
        sampler_logprobs=pad([c.logprobs for c in completions], np.float32),
        is_observation=_is_observation(completions, batch.completion_ids),
    )
    batch = replace(batch, weights=batch.mask.float())
    if own := [group.prompt.teacher_ids for group in groups if group.prompt.teacher_ids]:
        lengths = torch.tensor([len(ids) for ids in own])
        batch = replace(batch, teacher_prompt_ids=pad(own, np.int64, left=True), teacher_prompt_lengths=lengths)
    return batch if steps is None else _with_steps(batch, steps)


def _is_observation(completions: Sequence[Completion], completion_ids: Tensor) -> Tensor | None:
    """[N, T] bool: a tool returned the token; None where no tool returned any."""
    if not any(completion.observations for completion in completions):
        return None
    is_observation = torch.zeros(completion_ids.shape, dtype=torch.bool)
    for row, completion in zip(is_observation, completions, strict=True):
        for part in completion.observations:
            row[part.start : part.end] = True
    return is_observation


def _with_steps(batch: Batch, steps: Sequence[Sequence[Step]]) -> Batch:
    """Add step rewards and ends to the batch. The rewards of steps that end at the same token are summed."""
    rewards, ends = torch.zeros(batch.mask.shape), torch.zeros_like(batch.mask)
    for row, row_steps in enumerate(steps):
        for token, reward in row_steps:
            rewards[row, token] += reward
            ends[row, token] = True
    return replace(batch, step_rewards=rewards, step_ends=ends)


def pad(rows: Sequence[Sequence[float]], dtype: type[np.number[Any]], *, left: bool = False) -> Tensor:
    """N sequences -> [N, longest], padded with 0 on the right, or on the left."""
    padded = np.zeros((len(rows), max([1, *map(len, rows)])), dtype)
    for place, row in zip(padded, rows, strict=True):
        start = len(place) - len(row) if left else 0
        place[start : start + len(row)] = row
    return torch.from_numpy(padded)
