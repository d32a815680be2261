"""What `reasoner serve` adds to the workers of a vLLM server: a backend of vLLM's weight transfer that reads files, and
the sampler of the in-process engine.

vLLM imports this file in every worker (--worker-extension-cls). It reads vLLM's internals: constraints.txt pins its
version.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from vllm.distributed.weight_transfer.base import WeightTransferEngine, WeightTransferInitInfo, WeightTransferUpdateInfo
from vllm.distributed.weight_transfer.factory import WeightTransferEngineFactory
from vllm.model_executor.model_loader.reload import finalize_layerwise_reload, initialize_layerwise_reload

from reasoner.inference.server_answers import identity
from reasoner.inference.vllm_engine import install_sampler
from reasoner.inference.vllm_model import known_weights, mask_ids
from reasoner.inference.weight_file import WeightFile, open_weights
from reasoner.models.loading import load_tokenizer, num_ids

if TYPE_CHECKING:
    from vllm.config import VllmConfig


@dataclass
class FileInit(WeightTransferInitInfo):
    """The trainer's greeting: a file needs no connection."""


@dataclass
class FileUpdate(WeightTransferUpdateInfo):
    """A WeightFile, field by field."""

    path: str
    version: str
    num_tensors: int
    num_bytes: int


class FileTransfer(WeightTransferEngine[FileInit, FileUpdate]):
    """vLLM's weight transfer by a safetensors file that trainer and server both see.

    The reload begins and ends in one call, so a trainer that dies between two calls leaves no half-loaded model.
    """

    init_info_cls, update_info_cls = FileInit, FileUpdate

    def init_transfer_engine(self, init_info: FileInit) -> None:
        pass

    def start_weight_update(self) -> None:
        pass

    def update_weights(self, update_info: dict[str, Any]) -> None:
        # The base class ends with torch.accelerator.synchronize(), which fails without an accelerator.
        self.receive_weights(self.parse_update_info(update_info))
        if torch.accelerator.is_available():
            torch.accelerator.synchronize()

    def receive_weights(self, update_info: FileUpdate) -> None:
        """Check the file, then load it. The model is unchanged if it is not the trainer's."""
        file = WeightFile(update_info.path, update_info.version, update_info.num_tensors, update_info.num_bytes)
        with open_weights(file) as weights:
            model: Any = self.model
            initialize_layerwise_reload(model)  # a CPU packs weights after loading: load_weights alone would fail
            model.load_weights(known_weights(model, weights))
            finalize_layerwise_reload(model, self.model_config)  # type: ignore[no-untyped-call]

    def finish_weight_update(self) -> None:
        pass

    def shutdown(self) -> None:
        pass


# By its name: vLLM imports the file in the server's first process too, to read the command line.
if "file" not in WeightTransferEngineFactory._registry:
    WeightTransferEngineFactory.register_engine("file", FileTransfer)


class ServerExtension:
    """Methods of vLLM's workers that the trainer calls by /collective_rpc."""

    vllm_config: VllmConfig
    model_runner: Any

    def prepare_rollouts(self) -> dict[str, Any]:
        """Install the sampler on a CPU; return what the trainer must know and check."""
        model = self.vllm_config.model_config
        has_own_sampler = not torch.cuda.is_available()
        if has_own_sampler:
            install_sampler(self.model_runner)
        tokenizer, dtype = load_tokenizer(Path(model.tokenizer)), str(model.dtype).removeprefix("torch.")
        mask_ids(self.model_runner.get_model(), num_ids(tokenizer))
        return {
            "identity": identity(model.hf_text_config, tokenizer, dtype, model.max_model_len),
            "has_own_sampler": has_own_sampler,
            "max_model_len": model.max_model_len,
        }
