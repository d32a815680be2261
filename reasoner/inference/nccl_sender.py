"""Weights to servers by NCCL, from the trainer's GPU to theirs, over vLLM's own transfer engine.

NOT RUN YET: it needs two GPUs. Written after the documentation and source of vLLM 0.32
(vllm.distributed.weight_transfer).
"""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlsplit

import httpx
import torch
from torch import Tensor

from reasoner.config.schema import EngineConfig
from reasoner.inference.server_client import Post, ServerError, bearer
from reasoner.inference.server_token import read_token

Result = TypeVar("Result")


class NcclSender:
    """One NCCL group for each server: the trainer and the server's workers. A server that fails ends its own alone.

    It cannot repeat a version: the trainer's tensors have moved on. A server that was left out gets the next one.
    """

    can_repeat = False

    def __init__(self, cfg: EngineConfig) -> None:
        """ValueError without a CUDA device."""
        if not torch.cuda.is_available():
            raise ValueError("engine.transfer is 'nccl', which needs a GPU in trainer and servers; use file")
        self._dtype: torch.dtype = getattr(torch, cfg.dtype)
        self._seconds = cfg.timeout_seconds
        self._weights: Sequence[tuple[str, Tensor]] = ()
        self._version = ""
        self._groups: dict[str, Any] = {}  # vLLM's trainer-side transfer engine, by the server's address

    def prepare(self, weights: Sequence[tuple[str, Tensor]], version: str) -> None:
        self._weights = [(name, tensor.detach().to("cuda", self._dtype)) for name, tensor in weights]
        self._version = version

    async def send(self, post: Post, url: str, *, num_workers: int) -> None:
        if url not in self._groups:
            self._groups[url] = await _in_thread(partial(self._open_group, url, num_workers), self._seconds)
        await _in_thread(self._groups[url].send_weights, self._seconds)
        await post("/update_weight_version", {"new_version": self._version})

    def _open_group(self, url: str, num_workers: int) -> Any:
        """Meet the server's workers in a new NCCL group."""
        from vllm.distributed.weight_transfer import HTTPVLLMWeightSyncClient
        from vllm.distributed.weight_transfer.base import ParamMeta, WeightSource
        from vllm.distributed.weight_transfer.factory import WeightTransferTrainerFactory
        from vllm.distributed.weight_transfer.nccl_engine import NCCLTrainerInitInfo

        sender = self

        class PreparedWeights(WeightSource):
            """The sender's present weights, as vLLM's transfer engine reads them."""

            def metadata(self) -> list[ParamMeta]:
                return [ParamMeta(name, tensor.dtype, tuple(tensor.shape)) for name, tensor in sender._weights]

            def __iter__(self) -> Iterator[tuple[str, Tensor]]:
                return iter(sender._weights)

        class Client(HTTPVLLMWeightSyncClient):
            """vLLM's client of the routes for weights, with the token."""

            def _post(self, path: str, json: dict[str, Any] | None = None) -> None:
                headers = bearer(read_token())
                httpx.post(
                    f"{url}/{path}", json=json, headers=headers, timeout=self.timeout, trust_env=False
                ).raise_for_status()

        address, port = _own_address(url)
        return WeightTransferTrainerFactory.trainer_init(
            NCCLTrainerInitInfo(master_address=address, master_port=port, world_size=1 + num_workers, rank=0),
            client=Client(url, timeout=self._seconds),
            source=PreparedWeights(),
        )

    def forget(self, url: str) -> None:
        """Abort the server's group, which ends a transfer that waits for it; not waited for."""
        group = self._groups.pop(url, None)
        if group is not None:
            threading.Thread(target=group.shutdown, daemon=True).start()

    def close(self) -> None:
        for group in self._groups.values():
            group.shutdown()
        self._groups.clear()


async def _in_thread(call: Callable[[], Result], seconds: float) -> Result:
    """What `call` returns. ServerError where it fails, or is not done in `seconds`.

    It runs in a thread that is then left behind: NCCL may wait for a dead server for ever, and asyncio and Python wait
    for the threads of asyncio.to_thread before they end.
    """
    done: Future[Result] = Future()
    done.set_running_or_notify_cancel()  # it cannot be cancelled, so its result may still be set when nobody waits

    def run() -> None:
        try:
            done.set_result(call())
        except Exception as error:  # raised below, in the thread that waits
            done.set_exception(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        async with asyncio.timeout(seconds):
            return await asyncio.wrap_future(done)
    except TimeoutError:
        raise ServerError(f"the transfer by NCCL is not done in {seconds:g} s (engine.timeout_seconds)") from None
    except (RuntimeError, OSError, httpx.HTTPError) as error:  # of NCCL, torch.distributed and the requests
        raise ServerError(f"the transfer by NCCL failed: {type(error).__name__}: {error}") from error


def _own_address(url: str) -> tuple[str, int]:
    """The address of this machine that the server reaches, and a free port there."""
    parts = urlsplit(url)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        probe.connect((parts.hostname, parts.port or 80))  # sends nothing: it only chooses the network interface
        address = probe.getsockname()[0]
    with socket.socket() as listener:
        listener.bind((address, 0))
        return address, listener.getsockname()[1]
