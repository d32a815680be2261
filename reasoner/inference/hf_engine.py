"""Sampling engine on transformers: slower than vLLM, runs wherever torch runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import cast

import torch
from torch import Tensor, nn
from transformers import DynamicCache

from reasoner.config.schema import EngineConfig
from reasoner.inference.rng import sample_tokens
from reasoner.inference.stop_tokens import decode_completions, end_token_ids, max_completion_tokens, stop_token_ids
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.progress import OnDecodeStep
from reasoner.types import Completion, Finish, OnGroupDone, Prompt, SamplingParams

_MAX_ROWS = 256  # completions per batch


class TransformersEngine:
    """Decoding loop over its own copy of the model. Each row has its own seed: batching does not change samples."""

    name = "transformers"
    accepts_adapter = False  # merged weights sample faster

    def __init__(self, folder: Path, cfg: EngineConfig, *, max_model_len: int) -> None:
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._tokenizer = load_tokenizer(folder)
        self._end_ids = end_token_ids(folder, self._tokenizer)
        # Loaded into the host's memory: the GPU, which holds the trainer, never holds these weights in float32 as well.
        model = load_policy(folder, device=torch.device("cpu"))
        cast(nn.Module, model).to(self._device, getattr(torch, cfg.dtype))  # transformers' own to() has no types
        self._model = model.requires_grad_(False)
        self._max_model_len = max_model_len
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
        rows = [(prompt, seed) for prompt, own in zip(prompts, seeds, strict=True) for seed in own]
        completions: list[Completion] = []
        groups: list[tuple[Completion, ...]] = []
        num_tokens = 0
        for start in range(0, len(rows), _MAX_ROWS):
            part = self._sample_rows(
                rows[start : start + _MAX_ROWS], sampling, on_decode_step, before=(start, num_tokens)
            )
            num_tokens += sum(len(completion.token_ids) for completion in part)
            completions += part
            while len(groups) < len(seeds) and len(completions) >= len(seeds[len(groups)]):
                size = len(seeds[len(groups)])
                group, completions = tuple(completions[:size]), completions[size:]
                if on_group_done is not None:
                    on_group_done(len(groups), group)
                groups.append(group)
        return groups

    @torch.inference_mode()
    def _sample_rows(
        self,
        rows: Sequence[tuple[Prompt, int]],
        sampling: SamplingParams,
        on_decode_step: OnDecodeStep | None,
        before: tuple[int, int],
    ) -> list[Completion]:
        """Sample one completion per row. `before`: numbers of completions and tokens of the earlier batches."""
        stop_ids, stop_texts = stop_token_ids(sampling, self._tokenizer)
        stop_and_end_ids = self._end_ids | set(stop_ids)
        limits = [max_completion_tokens(prompt, sampling, self._max_model_len) for prompt, _ in rows]
        outputs = _Outputs(len(rows))
        alive = list(range(len(rows)))  # unfinished rows; the tensors hold only these

        def count() -> tuple[int, int]:
            return before[0] + len(rows) - len(alive), before[1] + sum(map(len, outputs.token_ids))

        states, attention_mask, cache = self._run_prompts([prompt.token_ids for prompt, _ in rows])
        lengths = attention_mask.sum(dim=1)
        for step in range(max(limits)):
            if on_decode_step is not None:
                on_decode_step(count)
            log_softmax = _processed_logprobs(self._model.lm_head(states).float(), sampling)
            token_ids = _next_tokens(log_softmax, [rows[row] for row in alive], step, sampling.temperature)
            outputs.add(alive, token_ids, log_softmax, self.on_token)
            for row in alive:
                tokens = outputs.token_ids[row]
                if tokens[-1] in stop_and_end_ids or self._ends_in(tokens, stop_texts):
                    outputs.finish[row] = "stop"
            unfinished = [i for i, row in enumerate(alive) if outputs.finish[row] != "stop" and step + 1 < limits[row]]
            if not unfinished:
                break
            if len(unfinished) < len(alive):
                index = torch.tensor(unfinished, device=self._device)
                cache.batch_select_indices(index)
                token_ids, attention_mask, lengths = token_ids[index], attention_mask[index], lengths[index]
                alive = [alive[i] for i in unfinished]
            attention_mask = torch.cat([attention_mask, attention_mask.new_ones(len(alive), 1)], dim=1)
            states = self._states(token_ids[:, None], attention_mask, (lengths + step)[:, None], cache)
        texts = decode_completions(outputs.token_ids, self._end_ids, stop_texts, self._tokenizer)
        return outputs.completions(texts, self._version)

    def _states(self, ids: Tensor, attention_mask: Tensor, positions: Tensor, cache: DynamicCache) -> Tensor:
        """[N, L] tokens -> [N, H] hidden states at the last token."""
        output = self._model.model(
            input_ids=ids, attention_mask=attention_mask, position_ids=positions, past_key_values=cache, use_cache=True
        )
        states: Tensor = output.last_hidden_state[:, -1]
        return states

    def _run_prompts(self, prompts: Sequence[tuple[int, ...]]) -> tuple[Tensor, Tensor, DynamicCache]:
        """N prompts -> last states [N, H], attention mask [N, L], key-value cache. Equal prompts are computed once."""
        place = {ids: i for i, ids in enumerate(dict.fromkeys(prompts))}
        row_of = torch.tensor([place[ids] for ids in prompts], device=self._device)
        ids, attention_mask = self._left_padded(list(place))
        cache = DynamicCache()
        states = self._states(ids, attention_mask, (attention_mask.cumsum(dim=1) - 1).clamp_min(0), cache)
        cache.batch_select_indices(row_of)
        return states[row_of], attention_mask[row_of], cache

    def _left_padded(self, prompts: Sequence[Sequence[int]]) -> tuple[Tensor, Tensor]:
        """P prompts -> token ids [P, L] padded with 0 on the left, attention mask [P, L]."""
        width = max(map(len, prompts))
        ids = torch.tensor([[0] * (width - len(p)) + list(p) for p in prompts], device=self._device)
        attention_mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in prompts], device=self._device)
        return ids, attention_mask

    def _ends_in(self, tokens: list[int], stop_texts: Sequence[str]) -> bool:
        """Whether the last token completes a stop text, which may begin in earlier tokens."""
        if not stop_texts:
            return False
        tail = self._tokenizer.decode(tokens[-2 * max(map(len, stop_texts)) :], skip_special_tokens=False)
        before = self._tokenizer.decode(tokens[-2 * max(map(len, stop_texts)) : -1], skip_special_tokens=False)
        return any(stop in tail and stop not in before for stop in stop_texts)

    def update_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        own = self._model.state_dict()
        with torch.no_grad():
            for name, tensor in named:
                if name not in own:
                    raise ValueError(f"the model has no weights named {name!r}")
                own[name].copy_(tensor)
        self._version = version

    def sleep(self) -> None:
        pass

    def wake_up(self) -> None:
        pass

    def close(self) -> None:
        del self._model


class _Outputs:
    """Tokens, log-probabilities and finish reasons of N rows while they are decoded."""

    def __init__(self, num_rows: int) -> None:
        self.token_ids: list[list[int]] = [[] for _ in range(num_rows)]
        self.logprobs: list[list[float]] = [[] for _ in range(num_rows)]
        self.finish: list[Finish] = ["length"] * num_rows

    def add(
        self, rows: Sequence[int], token_ids: Tensor, log_softmax: Tensor, on_token: Callable[[int, float], None] | None
    ) -> None:
        """Add a token to each of the rows [B]: token_ids [B], log_softmax [B, V]. Calls `on_token` for each."""
        logprobs = log_softmax.gather(1, token_ids[:, None])[:, 0].tolist()
        for row, token, logprob in zip(rows, token_ids.tolist(), logprobs, strict=True):
            self.token_ids[row].append(token)
            self.logprobs[row].append(logprob)
            if on_token is not None:
                on_token(token, logprob)

    def completions(self, texts: Sequence[str], policy_version: int) -> list[Completion]:
        """Convert the rows, with their texts, to completions."""
        return [
            Completion(text, tuple(token_ids), tuple(logprobs), finish, policy_version)
            for text, token_ids, logprobs, finish in zip(texts, self.token_ids, self.logprobs, self.finish, strict=True)
        ]


def _next_tokens(log_softmax: Tensor, rows: Sequence[tuple[Prompt, int]], step: int, temperature: float) -> Tensor:
    """[B, V] log-probabilities -> [B] tokens at position `step` of the rows' completions; greedy at temperature 0."""
    if temperature == 0:
        return log_softmax.argmax(dim=1)
    positions = [len(prompt.token_ids) + step for prompt, _ in rows]
    return sample_tokens(log_softmax, [seed for _, seed in rows], positions)


def _processed_logprobs(logits: Tensor, sampling: SamplingParams) -> Tensor:
    """[B, V] logits -> [B, V] log-probabilities after temperature, top-k and top-p; excluded tokens are -inf."""
    logits = logits / (sampling.temperature or 1.0)
    if sampling.top_k:
        kth = logits.topk(min(sampling.top_k, logits.shape[-1])).values[:, -1:]
        logits = logits.masked_fill(logits < kth, -torch.inf)
    if sampling.top_p < 1:
        sorted_logits, order = logits.sort(dim=-1, descending=True)
        before = sorted_logits.softmax(dim=-1).cumsum(dim=-1) - sorted_logits.softmax(dim=-1)
        outside = torch.zeros_like(logits, dtype=torch.bool).scatter(1, order, before >= sampling.top_p)
        logits = logits.masked_fill(outside, -torch.inf)
    return logits.log_softmax(dim=-1)
