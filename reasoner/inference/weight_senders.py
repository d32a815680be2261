"""How the trainer's weights reach a server: by a file, or by NCCL. Both use the routes of vLLM's weight transfer."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import Protocol

import torch
from torch import Tensor

from reasoner.config.schema import EngineConfig
from reasoner.inference.server_client import Post, ServerError
from reasoner.inference.weight_file import WeightFolder


class WeightSender(Protocol):
    """Sends versions of the weights to servers."""

    can_repeat: bool  # whether a version can be sent again while the trainer computes the next one

    def prepare(self, weights: Sequence[tuple[str, Tensor]], version: str) -> None:
        """Take a new version of the weights."""
        ...

    async def send(self, post: Post, url: str, *, num_workers: int) -> None:
        """Load the version into a server that is paused; the server names it afterwards (/weight_info)."""
        ...

    def forget(self, url: str) -> None:
        """Drop a connection to a server that has failed."""
        ...

    def close(self) -> None:
        """Free what was made for sending."""
        ...


class FileSender:
    """Writes a safetensors file that the servers read: on one machine in memory, else in a folder of both machines."""

    can_repeat = True

    def __init__(self, cfg: EngineConfig) -> None:
        self._folder = WeightFolder(cfg.transfer_dir)
        self._dtype: torch.dtype = getattr(torch, cfg.dtype)

    def prepare(self, weights: Sequence[tuple[str, Tensor]], version: str) -> None:
        self._folder.write(weights, version, self._dtype)

    async def send(self, post: Post, url: str, *, num_workers: int) -> None:
        file = self._folder.file
        assert file is not None, "a file is sent before it is written"
        await post("/init_weight_transfer_engine", {"init_info": {}})
        await _start_update(post)
        await post("/update_weights", {"update_info": asdict(file)})
        await post("/finish_weight_update", {"weight_version": file.version})

    def forget(self, url: str) -> None:
        pass

    def close(self) -> None:
        self._folder.close()


async def _start_update(post: Post) -> None:
    """Start an update, after the end of one that a former trainer began and did not finish."""
    try:
        await post("/start_weight_update")
    except ServerError as error:
        if "already active" not in str(error):
            raise
        await post("/finish_weight_update", {})
        await post("/start_weight_update")


def _nccl(cfg: EngineConfig) -> WeightSender:
    from reasoner.inference.nccl_sender import NcclSender

    return NcclSender(cfg)


SENDERS: dict[str, Callable[[EngineConfig], WeightSender]] = {"file": FileSender, "nccl": _nccl}
