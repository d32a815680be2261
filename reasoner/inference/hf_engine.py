"""Sampling engine on transformers: slower than vLLM, runs wherever torch runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn

from reasoner.config.schema import EngineConfig
from reasoner.inference.decoding import Batch, Row, check_decoding
from reasoner.inference.sampling import (
    Groups,
    StopTexts,
    end_token_ids,
    max_completion_tokens,
    stop_token_ids,
)
from reasoner.models.loading import context_length, load_policy, load_tokenizer
from reasoner.models.precision import cast_parameters
from reasoner.progress import OnDecodeStep
from reasoner.types import Completion, Engine, OnGroupDone, Prompt, SamplingParams

MAX_ROWS = 256  # in a batch


class TransformersEngine(Engine):
    """Decoding loop over its own copy of the model. Each row has its own seed: batching does not change samples."""

    name = "transformers"
    accepts_adapter = False  # merged weights sample faster

    def __init__(self, folder: Path, cfg: EngineConfig, *, max_model_len: int) -> None:
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._tokenizer = load_tokenizer(folder)
        self._end_ids = end_token_ids(folder, self._tokenizer)
        # Loaded into the host's memory: the GPU, which holds the trainer, never holds these weights in float32 as well.
        model = load_policy(folder, device=torch.device("cpu"))
        if max_model_len > (context := context_length(model)):
            raise ValueError(
                f"the engine transformers computes {context} tokens of prompt and completion with this model, not "
                f"{max_model_len}: beyond, its positions have other factors (LongRoPE) or none"
            )
        check_decoding(model)
        cast_parameters(model, getattr(torch, cfg.dtype))
        cast(nn.Module, model).to(self._device)  # transformers' own to() has no types
        self._model = model.requires_grad_(False)
        self._max_model_len = max_model_len
        self._max_batch_tokens = cfg.max_batch_tokens
        self._stop_texts = StopTexts(self._tokenizer)
        self._version = 0
        # Called with (token, log-probability) of each token; may raise to stop.
        self.on_token: Callable[[int, float], None] | None = None

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        seeds: Sequence[Sequence[int]],
        on_group_done: OnGroupDone | None = None,
        on_decode_step: OnDecodeStep | None = None,
    ) -> list[tuple[Completion, ...]]:
        stop_ids, stop_texts = stop_token_ids(sampling, self._tokenizer)
        end_ids = self._end_ids | set(stop_ids)
        limits = [max_completion_tokens(prompt, sampling, self._max_model_len) for prompt in prompts]
        rows = [
            Row(place, number, prompt.token_ids, seed, limit)
            for place, (prompt, limit, own) in enumerate(zip(prompts, limits, seeds, strict=True))
            for number, seed in enumerate(own)
        ]
        groups = Groups(seeds, self._version, self._end_ids, stop_texts, self._tokenizer, on_group_done)

        def counts() -> tuple[int, int]:
            return groups.num_ended, sum(len(row.token_ids) for row in rows)

        for batch in self._batches(rows):
            while batch.rows:
                if on_decode_step is not None:
                    on_decode_step(counts)
                batch.sample(sampling)
                self._mark_ended(batch.rows, end_ids, stop_texts)
                for row in batch.rows:
                    if row.finish is not None:
                        groups.add(row.place, row.number, (row.token_ids, row.logprobs, row.finish))
                batch.advance()
        return groups.completions

    def _batches(self, rows: Sequence[Row]) -> Iterator[Batch]:
        """Batches of as many rows as the key-value cache may hold, were all as long as the longest may be."""
        longest = max((len(row.prompt) + row.limit for row in rows), default=1)
        size = max(1, min(MAX_ROWS, self._max_batch_tokens // longest))
        for start in range(0, len(rows), size):
            yield Batch(self._model, rows[start : start + size])

    def _mark_ended(self, rows: Sequence[Row], end_ids: Set[int], stop_texts: tuple[str, ...]) -> None:
        """Set the finish of the rows whose last token ends them. Calls `on_token` for every row."""
        for row in rows:
            token = row.token_ids[-1]
            if self.on_token is not None:
                self.on_token(token, row.logprobs[-1])
            if token in end_ids or self._stop_texts.are_complete(stop_texts, row.token_ids):
                row.finish = "stop"
            elif len(row.token_ids) == row.limit:
                row.finish = "length"

    def update_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        own = self._model.state_dict()
        with torch.no_grad():
            for name, tensor in named:
                if name not in own:
                    raise ValueError(f"the model has no weights named {name!r}")
                own[name].copy_(tensor)
        self._version = version

    def close(self) -> None:
        del self._model
