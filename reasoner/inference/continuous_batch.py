"""Continuous batching: rows that end leave the batch, and waiting rows take their places.

Shapes: N rows in the batch, P prompts, L longest prompt, H width, V vocabulary.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from reasoner.console import first_line
from reasoner.inference.sampling import sample_tokens
from reasoner.inference.slot_cache import SlotCache, decode_masks
from reasoner.models.loading import precision_of
from reasoner.models.output_layer import OutputLayer
from reasoner.types import Finish, SamplingParams

_MAX_ROWS = 256  # in the batch
_REFILL_SHARE = 8  # waiting rows are added when one slot in so many is free: a forward pass for one prompt is dear
_PREFILL_TOKENS = 8192  # of prompts in one forward pass, padding included
_GROWTH = 256  # tokens beyond the longest prompt for which the cache has room at first
_ALIGNMENT = 8  # tokens; widths that GPU kernels like


@dataclass(slots=True)
class Row:
    """A completion in progress."""

    place: int  # index of its prompt
    prompt: tuple[int, ...]  # token ids
    seed: int
    limit: int  # most tokens
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: Finish | None = None  # None until it ends

    def length(self) -> int:
        """Tokens of prompt and completion: the position of the next token."""
        return len(self.prompt) + len(self.token_ids)


class ContinuousBatch:
    """Rows in decoding, and those that wait. A cycle is `refill`, `sample`, and `advance` once ended rows are marked.

    The cache has room for `max_tokens` tokens, and for one row at least. When rows become so long that fewer fit, those
    with the fewest tokens wait again; later their tokens go through the model once more, like a prompt.
    """

    def __init__(self, model: PreTrainedModel, rows: Sequence[Row], *, max_tokens: int) -> None:
        self._model, self._layer = model, OutputLayer.of(model)
        self._waiting = deque(rows)
        self._max_tokens = max_tokens
        self._most_rows = min(_MAX_ROWS, len(rows))
        self._most_capacity = _aligned(max((len(row.prompt) + row.limit for row in rows), default=1))
        capacity = min(self._most_capacity, _aligned(max((len(row.prompt) for row in rows), default=1) + _GROWTH))
        self._cache = SlotCache(self._num_slots(capacity), capacity)
        self.rows: list[Row] = []
        self._num_done = self._num_tokens = 0
        self._states = torch.empty(0)  # [N, H], those that predict the rows' next tokens
        self._token_ids = torch.empty(0, dtype=torch.long)  # [N], sampled last

    def counts(self) -> tuple[int, int]:
        """Completions that ended, and tokens of all."""
        return self._num_done, self._num_tokens

    def _num_slots(self, capacity: int) -> int:
        return max(1, min(self._most_rows, self._max_tokens // capacity))

    @torch.inference_mode()
    def refill(self) -> bool:
        """Add waiting rows if enough slots are free. False if no row is left."""
        num_slots = self._cache.num_slots
        free = num_slots - len(self.rows)
        if self._waiting and (not self.rows or free >= min(len(self._waiting), 1 + num_slots // _REFILL_SHARE)):
            new = [self._waiting.popleft() for _ in range(self._num_new(free))]
            states = self._prefill(new)
            self._states = torch.cat([self._states, states]) if self.rows else states
            self.rows += new
        return bool(self.rows)

    def _num_new(self, free: int) -> int:
        """Number of waiting rows to add: up to the last whole group that fits, since its rows share their prompt."""
        if free >= len(self._waiting):
            return len(self._waiting)
        places = [self._waiting[i].place for i in range(free + 1)]
        return next((size for size in range(free, 0, -1) if places[size] != places[size - 1]), free)

    def _prefill(self, rows: Sequence[Row]) -> Tensor:
        """Run the tokens so far of K rows through the model, equal ones once, and store them in the next slots.

        Returns the last states [K, H].
        """
        states, start = [], len(self.rows)
        for texts in _parts([(*row.prompt, *row.token_ids) for row in rows]):
            place = {text: i for i, text in enumerate(dict.fromkeys(texts))}
            row_of = torch.tensor([place[text] for text in texts], device=self._model.device)
            cache = DynamicCache()
            states.append(self._run_prompts(list(place), cache).index_select(0, row_of))
            self._cache.add(cache, row_of, start)
            start += len(texts)
        return torch.cat(states)

    def _run_prompts(self, prompts: Sequence[tuple[int, ...]], cache: DynamicCache) -> Tensor:
        """P prompts -> last states [P, H]. Padded on the right, where causal attention needs no mask."""
        width, device = max(map(len, prompts)), self._model.device
        ids = torch.tensor([[*prompt, *[0] * (width - len(prompt))] for prompt in prompts], device=device)
        states: Tensor = self._model.base_model(input_ids=ids, past_key_values=cache, use_cache=True).last_hidden_state
        last = torch.tensor([len(prompt) - 1 for prompt in prompts], device=device)
        return states[torch.arange(len(prompts), device=device), last]

    @torch.inference_mode()
    def sample(self, sampling: SamplingParams) -> None:
        """Add a token to every row. The one transfer from the device in a cycle."""
        log_softmax = processed_logprobs(self._layer(self._states), sampling)
        if sampling.temperature == 0:
            self._token_ids = log_softmax.argmax(dim=1)
        else:
            positions = [row.length() for row in self.rows]
            self._token_ids = sample_tokens(log_softmax, [row.seed for row in self.rows], positions)
        logprobs = log_softmax.gather(1, self._token_ids[:, None])[:, 0]
        values = torch.stack((self._token_ids.double(), logprobs.double())).tolist()
        self._num_tokens += len(self.rows)
        for row, token, logprob in zip(self.rows, *values, strict=True):
            row.token_ids.append(int(token))
            row.logprobs.append(logprob)

    @torch.inference_mode()
    def advance(self) -> None:
        """Drop the rows that ended, and compute the next states of the others."""
        alive = [i for i, row in enumerate(self.rows) if row.finish is None]
        self._num_done += len(self.rows) - len(alive)
        longest = max((self.rows[i].length() for i in alive), default=0)
        capacity = self._cache.capacity
        if longest > capacity:
            capacity = min(self._most_capacity, 2 * capacity)
            alive = self._with_most_tokens(alive, self._num_slots(capacity))
        self._arrange(alive, longest)
        if capacity != self._cache.capacity:
            self._cache.resize(self._num_slots(capacity), capacity)
        if self.rows:
            self._decode(min(_aligned(longest), capacity))

    def _blocks(self) -> list[tuple[int, int, int]]:
        """(first row, row after the last, tokens of the longest) of each range of rows of one size class."""
        blocks: list[tuple[int, int, int]] = []
        for i, length in enumerate(row.length() for row in self.rows):
            if blocks and length.bit_length() == blocks[-1][2].bit_length():
                blocks[-1] = (blocks[-1][0], i + 1, max(blocks[-1][2], length))
            else:
                blocks.append((i, i + 1, length))
        return blocks

    def _with_most_tokens(self, alive: Sequence[int], most: int) -> list[int]:
        """Keep `most` of the rows, those with the most tokens; the others wait again."""
        by_tokens = sorted(alive, key=lambda i: -len(self.rows[i].token_ids))
        self._waiting.extendleft(self.rows[i] for i in sorted(by_tokens[most:], reverse=True))
        return sorted(by_tokens[:most])

    def _arrange(self, alive: Sequence[int], width: int) -> None:
        """Move the rows `alive` to the first slots, the longest size class first, with few moves.

        A size class is the number of binary digits of the length. Attention reads each class as far as its longest row.
        """
        sizes = {i: self.rows[i].length().bit_length() for i in alive}
        targets = sorted(sizes.values(), reverse=True)
        movers: dict[int, list[int]] = {size: [] for size in targets}
        for i in reversed(alive):
            if i >= len(targets) or sizes[i] != targets[i]:
                movers[sizes[i]].append(i)
        order = [i if sizes.get(i) == size else movers[size].pop() for i, size in enumerate(targets)]
        if order == list(range(len(self.rows))):
            return
        moves = [(source, target) for target, source in enumerate(order) if source != target]
        self._cache.move([source for source, _ in moves], [target for _, target in moves], width)
        self.rows = [self.rows[i] for i in order]
        self._token_ids = self._token_ids[torch.tensor(order, dtype=torch.long, device=self._token_ids.device)]

    def _decode(self, width: int) -> None:
        positions = torch.tensor([row.length() - 1 for row in self.rows], device=self._model.device)
        self._cache.begin_step(positions, width)
        self._states = self._model.base_model(
            input_ids=self._token_ids[:, None],
            attention_mask=decode_masks(positions, width, self._model.config, self._model.dtype),
            position_ids=positions[:, None],
            past_key_values=self._cache,
            use_cache=True,
            blocks=self._blocks(),
        ).last_hidden_state[:, -1]


@torch.inference_mode()
def check_decoding(model: PreTrainedModel) -> None:
    """Raise ValueError unless three tokens decoded in slots have the log-probabilities of the model's whole pass."""
    name, layer = type(model).__name__, OutputLayer.of(model)
    rows = [Row(0, (0, 1, 2), 0, 3), Row(1, (2,), 0, 3)]
    batch = ContinuousBatch(model, rows, max_tokens=2 * _ALIGNMENT)
    try:
        with precision_of(model):
            while batch.refill():
                batch.sample(SamplingParams(num_samples=1, temperature=0.0))
                for row in rows:
                    row.finish = "length" if len(row.token_ids) == row.limit else None
                batch.advance()
            for row in rows:
                ids = torch.tensor([[*row.prompt, *row.token_ids]], device=model.device)
                states = model.base_model(input_ids=ids).last_hidden_state[0, len(row.prompt) - 1 : -1]
                expected = layer(states).log_softmax(dim=-1).amax(dim=-1)
                tolerance = 1e-3 if model.dtype == torch.float32 else 0.5
                if not torch.allclose(torch.tensor(row.logprobs), expected.cpu(), atol=tolerance):
                    raise ValueError("its log-probabilities are others")
    except (AttributeError, TypeError, IndexError, ValueError, RuntimeError) as error:
        raise ValueError(f"the engine transformers cannot sample from {name}: {first_line(error)}") from error


def _aligned(length: int) -> int:
    return -(-length // _ALIGNMENT) * _ALIGNMENT


def _parts(texts: Sequence[tuple[int, ...]]) -> list[list[tuple[int, ...]]]:
    """Split the texts so that the different ones of a part, padded, have at most _PREFILL_TOKENS tokens, or are one."""
    parts: list[list[tuple[int, ...]]] = [[]]
    unique: set[tuple[int, ...]] = set()
    for text in texts:
        if unique and len(unique | {text}) * max(map(len, unique | {text})) > _PREFILL_TOKENS:
            parts.append([])
            unique = set()
        parts[-1].append(text)
        unique.add(text)
    return parts


def processed_logprobs(logits: Tensor, sampling: SamplingParams) -> Tensor:
    """[B, V] logits -> [B, V] log-probabilities after temperature, top-k and top-p; excluded tokens are -inf."""
    logits = logits / (sampling.temperature or 1.0)
    if sampling.top_k:
        kth = logits.topk(min(sampling.top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    if sampling.top_p < 1:
        sorted_logits, order = logits.sort(dim=-1, descending=True)
        probabilities = sorted_logits.softmax(dim=-1)
        before = _cumulative(probabilities) - probabilities
        outside = torch.zeros_like(logits, dtype=torch.bool).scatter(1, order, before >= sampling.top_p)
        logits = logits.masked_fill(outside, -torch.inf)
    return logits.log_softmax(dim=-1)


def _cumulative(probabilities: Tensor) -> Tensor:
    """Sums of [B, V] probabilities up to each token. A GPU sums integers: its sums of fractions have no fixed order."""
    if probabilities.device.type == "cpu":
        return probabilities.cumsum(dim=-1)
    return (probabilities.double() * 2.0**52).long().cumsum(dim=-1).double() * 2.0**-52
