"""A teacher of on-policy distillation on vLLM servers that run elsewhere, started by `reasoner serve`: the
log-probabilities that it gives to the tokens of completions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from functools import partial
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from reasoner.config.schema import EngineConfig
from reasoner.distributed.world import ALONE, World
from reasoner.inference.server_answers import parse_prompt_logprobs, vocabulary_identity
from reasoner.inference.server_client import run_async
from reasoner.inference.server_dispatch import Request, sample
from reasoner.inference.server_pool import ServerPool
from reasoner.rl.batch import Batch

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_FIRST_WEIGHTS = "default"  # vLLM's name for the weights that a server was started with


class RemoteTeacher:
    """A frozen model: a server whose weights a run has replaced is left out. The ranks share the rows."""

    def __init__(
        self, urls: str, tokenizer: PreTrainedTokenizerBase, cfg: EngineConfig, *, world: World = ALONE
    ) -> None:
        """Wait for the servers. TimeoutError for one that does not start; ValueError for one with another tokenizer
        than the policy's. A collective operation.
        """
        self._pool = ServerPool(urls, cfg, {"tokenizer": vocabulary_identity(tokenizer)}, None, world)
        self._world = world.with_own_group(world.time_limit + timedelta(seconds=cfg.timeout_seconds))
        run_async(self._pool.connect())
        run_async(self._pool.update(_FIRST_WEIGHTS))

    def check_room(self, num_tokens: int) -> None:
        """ValueError for a server that cannot read so many tokens, of a prompt and its completion."""
        self._pool.check_room(num_tokens + 1, "prompt and completion, with the one token that a teacher samples,")

    def all_logprobs(self, batch: Batch, on_microbatch: Any = None) -> Tensor:
        """[N, T] log-probabilities at temperature 1 of the sampled tokens; 0 elsewhere. A collective operation."""
        rows = self._world.stripe(range(len(batch)), partial(self._rows, batch), "the teacher's log-probabilities")
        logprobs = torch.zeros(batch.completion_ids.shape)
        for row, values in zip(logprobs, rows, strict=True):
            row[: len(values)] = torch.tensor(values)
        return logprobs.to(batch.completion_ids.device) * batch.mask

    def _rows(self, batch: Batch, numbers: Sequence[int]) -> list[list[float]]:
        """The log-probabilities of the completions of some rows."""
        values: dict[int, list[float]] = {}
        requests = [self._request(batch, number) for number in numbers]

        def parse(request: Request, answer: Mapping[str, Any]) -> list[float]:
            return parse_prompt_logprobs(answer, request.body["prompt"])

        def on_answer(request: Request, logprobs: list[float]) -> None:
            values[request.place] = logprobs

        run_async(sample(self._pool, requests, parse, on_answer, lambda: None))
        return [values[number][int(batch.prompt_lengths[batch.prompt_of[number]]) - 1 :] for number in numbers]

    def _request(self, batch: Batch, number: int) -> Request:
        prompt = int(batch.prompt_of[number])
        before = batch.prompt_ids[prompt, -int(batch.prompt_lengths[prompt]) :]
        ids = [*before.tolist(), *batch.completion_ids[number, : int(batch.lengths[number])].tolist()]
        body = {"prompt": ids, "max_tokens": 1, "temperature": 0.0, "prompt_logprobs": 0}  # of the prompt's own tokens
        return Request(f"row {number}", number, 0, 0, len(ids) + 1, body)
