"""Sampling engine on vLLM servers that run elsewhere, started by `reasoner serve`: the same prompts with the same seeds
give the same completions as the engine in this process.
"""

from __future__ import annotations

import secrets
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor

from reasoner.config.schema import EngineConfig
from reasoner.distributed.world import ALONE, World
from reasoner.inference.sampling import Groups, Sampled, end_token_ids, max_completion_tokens, stop_token_ids
from reasoner.inference.server_answers import identity, parse_completion
from reasoner.inference.server_client import run_async
from reasoner.inference.server_dispatch import Request, sample
from reasoner.inference.server_pool import ServerPool
from reasoner.inference.vllm_model import stored_weights
from reasoner.inference.weight_file import WeightFolder
from reasoner.models.adapter_files import PREFIX
from reasoner.models.loading import load_config, load_meta_model, load_tokenizer, num_ids
from reasoner.models.resolve import full_folder
from reasoner.models.saving import as_saved
from reasoner.progress import OnDecodeStep
from reasoner.types import Completion, Engine, OnGroupDone, Prompt, SamplingParams


class RemoteEngine(Engine):
    """Requests to the servers of engine.urls. Weights are sent to all of them; close() leaves them running.

    With several ranks each asks all servers, for its own prompts, and the first alone sends weights: update_weights()
    is a collective operation.
    """

    name = "remote"
    accepts_adapter = False  # merged weights are sent

    def __init__(
        self, folder: Path, cfg: EngineConfig, *, max_model_len: int, world: World = ALONE, run: str = ""
    ) -> None:
        """Wait for the servers. TimeoutError for one that does not start; ValueError for one with another model, and
        for one that another run uses.
        """
        self._folder = folder
        self._tokenizer = load_tokenizer(folder)
        self._end_ids = end_token_ids(folder, self._tokenizer)
        full = full_folder(folder)
        self._meta_model = model = load_meta_model(full)
        num_rows = cast(Tensor, model.get_input_embeddings().weight).shape[0]
        self._num_ids = min(num_rows, num_ids(self._tokenizer))  # no others are sampled: limit_ids
        self._max_model_len = max_model_len
        self._version: int | None = None  # None: nothing has been sent yet
        self._num_updates = 0
        self._run = secrets.token_hex(4)  # a part of the version's name at the servers, which former runs have used
        self._world = world
        self._weights = WeightFolder(cfg.transfer_dir, run) if world.is_first else None
        self._dtype: torch.dtype = getattr(torch, cfg.dtype)
        own = identity(load_config(full), self._tokenizer, cfg.dtype, max_model_len)
        try:
            self._pool = ServerPool(cfg.urls, cfg, own, self._weights, world)
            run_async(self._pool.connect())
        except BaseException:
            self.close()
            raise

    def generate(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        seeds: Sequence[Sequence[int]],
        on_group_done: OnGroupDone | None = None,
        on_decode_step: OnDecodeStep | None = None,
    ) -> list[tuple[Completion, ...]]:
        if self._version is None:
            self.update_weights(stored_weights(self._folder, as_adapter=False), version=0)
        stop_ids, stop_texts = stop_token_ids(sampling, self._tokenizer)
        requests = self._requests(prompts, sampling, seeds, stop_ids, stop_texts)
        assert self._version is not None
        groups = Groups(seeds, self._version, self._end_ids, stop_texts, self._tokenizer, on_group_done)

        def on_answer(request: Request, sampled: Sampled) -> None:
            groups.add(request.place, request.number, sampled)

        def on_tick() -> None:
            if on_decode_step is not None:
                on_decode_step(lambda: (groups.num_ended, groups.num_tokens))

        if requests:
            run_async(sample(self._pool, requests, self._parse, on_answer, on_tick))
        return groups.completions

    def _requests(
        self,
        prompts: Sequence[Prompt],
        sampling: SamplingParams,
        seeds: Sequence[Sequence[int]],
        stop_ids: Sequence[int],
        stop_texts: Sequence[str],
    ) -> list[Request]:
        """A request for each completion. ValueError for one that is too long for a server."""
        settings = {
            "temperature": sampling.temperature,
            "top_p": sampling.top_p,
            "top_k": 0,
            "min_p": 0.0,
            "repetition_penalty": 1.0,
            "stop_token_ids": sorted({*stop_ids, *self._end_ids}),
            **({"stop": list(stop_texts)} if stop_texts else {}),
            "include_stop_str_in_output": True,
            "skip_special_tokens": False,
            "logprobs": 0,  # of the sampled token only
            "return_token_ids": True,
        }
        requests = []
        for place, (prompt, own) in enumerate(zip(prompts, seeds, strict=True)):
            limit = max_completion_tokens(prompt, sampling, self._max_model_len)
            size = len(prompt.token_ids) + limit
            self._pool.check_room(size, f"problem {prompt.problem.id}")
            body = {"prompt": list(prompt.token_ids), "max_tokens": limit, **settings}
            requests += [Request(prompt.problem.id, place, number, seed, size, body) for number, seed in enumerate(own)]
        return requests

    def _parse(self, request: Request, answer: Mapping[str, Any]) -> Sampled:
        return parse_completion(answer, max_tokens=request.body["max_tokens"], num_ids=self._num_ids)

    def update_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        if self._weights is None:
            deque(named, maxlen=0)  # iterated all the same: the ranks may gather each tensor together
        name = self._world.from_first(lambda: self._send(named, version), "the servers to get the weights")
        self._version = version
        if self._weights is None:
            run_async(self._pool.update(name))
        # Until every rank has seen them, the first one sends no others.
        self._world.gather(None, "the other ranks to see the servers' weights")

    def _send(self, named: Iterable[tuple[str, Tensor]], version: int) -> str:
        """Send the weights to all servers; returns the version's name there. On the first rank alone."""
        assert self._weights is not None, "the first rank writes the weights"
        self._num_updates += 1
        name = f"{self._run}-{self._num_updates}-step{version}"
        self._weights.write(as_saved(self._meta_model, self._checked(named)), name, self._dtype)
        run_async(self._pool.update(name))
        return name

    def _checked(self, named: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
        """The weights, one at a time: shards are gathered as they are taken. ValueError for an adapter and for names
        that are not the model's.
        """
        missing = set(self._meta_model.state_dict())
        for name, tensor in named:
            if name.startswith(PREFIX):
                raise ValueError("servers take merged weights, not LoRA adapters (accepts_adapter is False)")
            if name not in missing:
                raise ValueError(f"the model has no weights named {name!r}")
            missing.remove(name)
            yield name, tensor
        if missing:
            raise ValueError(f"the model lacks the weights {min(missing)!r}")

    def close(self) -> None:
        if self._weights is not None:
            self._weights.close()
