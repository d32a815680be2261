"""Decoding of a batch of rows with transformers' key-value cache; rows that end leave the batch.

Shapes: N rows in the batch, P different prompts, W tokens of the longest row, H width, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import torch
from torch import Tensor
from transformers import DynamicCache, PreTrainedModel

from reasoner.console import first_line
from reasoner.inference.sampling import processed_logprobs, sample_tokens
from reasoner.models.loading import precision_of
from reasoner.models.output_layer import OutputLayer
from reasoner.rl.batch import pad
from reasoner.types import Finish, SamplingParams


@dataclass(slots=True)
class Row:
    """A completion in progress."""

    place: int  # index of its prompt
    number: int  # of its seed
    prompt: tuple[int, ...]  # token ids
    seed: int
    limit: int  # most tokens
    token_ids: list[int] = field(default_factory=list)
    logprobs: list[float] = field(default_factory=list)
    finish: Finish | None = None  # None until it ends


class Batch:
    """Rows in decoding, prompts padded on the left. A cycle is `sample`, and `advance` once ended rows are marked."""

    @torch.inference_mode()
    def __init__(self, model: PreTrainedModel, rows: Sequence[Row]) -> None:
        self._model, self._layer, self.rows = model, OutputLayer.of(model), list(rows)
        prompts = list(dict.fromkeys(row.prompt for row in rows))
        place = {prompt: number for number, prompt in enumerate(prompts)}
        marks = pad([[1] * len(prompt) for prompt in prompts], np.int64, left=True)
        self._mask = marks.to(model.device)  # [N, W]
        self._cache = DynamicCache(config=model.config)
        self._states = self._run(pad(prompts, np.int64, left=True).to(model.device))
        self._keep([place[row.prompt] for row in rows])

    @torch.inference_mode()
    def sample(self, sampling: SamplingParams) -> None:
        """Add a token to every row. The one transfer from the device in a cycle."""
        log_softmax = processed_logprobs(self._layer(self._states), sampling)
        if sampling.temperature == 0:
            token_ids = log_softmax.argmax(dim=1)
        else:
            positions = [len(row.prompt) + len(row.token_ids) for row in self.rows]
            token_ids = sample_tokens(log_softmax, [row.seed for row in self.rows], positions)
        logprobs = log_softmax.gather(1, token_ids[:, None])[:, 0]
        values = torch.stack((token_ids.double(), logprobs.double())).tolist()
        for row, token, logprob in zip(self.rows, *values, strict=True):
            row.token_ids.append(int(token))
            row.logprobs.append(logprob)

    @torch.inference_mode()
    def advance(self) -> None:
        """Drop the rows that ended, and compute the next states of the others."""
        alive = [i for i, row in enumerate(self.rows) if row.finish is None]
        if len(alive) < len(self.rows):
            self.rows = [self.rows[i] for i in alive]
            self._keep(alive)
        if self.rows:
            self._mask = torch.nn.functional.pad(self._mask, (0, 1), value=1)
            self._states = self._run(self._tensor([row.token_ids[-1:] for row in self.rows]))

    def _run(self, token_ids: Tensor) -> Tensor:
        """[N, tokens since the last pass] ids -> the last states [N, H], those that predict the next tokens."""
        positions = (self._mask.cumsum(dim=1) - 1).clamp(min=0)[:, -token_ids.shape[1] :]
        states: Tensor = self._model.base_model(
            input_ids=token_ids,
            attention_mask=self._mask,
            position_ids=positions,
            past_key_values=self._cache,
            use_cache=True,
        ).last_hidden_state
        return states[:, -1]

    def _keep(self, places: Sequence[int]) -> None:
        """Have the rows at these places, in this order, each as often as it is named."""
        rows = self._tensor(places)
        self._states, self._mask = self._states[rows], self._mask[rows]
        self._cache.batch_select_indices(rows)

    def _tensor(self, values: Sequence[object]) -> Tensor:
        return torch.tensor(values, dtype=torch.long, device=self._model.device)


@torch.inference_mode()
def check_decoding(model: PreTrainedModel) -> None:
    """Raise ValueError unless three tokens, decoded in a padded batch, have the log-probabilities of the model's whole
    pass.
    """
    name, layer = type(model).__name__, OutputLayer.of(model)
    rows = [Row(0, 0, (0, 1, 2), 0, 3), Row(1, 0, (2,), 0, 3)]
    try:
        with precision_of(model):
            batch = Batch(model, rows)
            for _ in range(3):
                batch.sample(SamplingParams(num_samples=1, temperature=0.0))
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
