"""The model inside vLLM: it samples the ids that have a text, its class is not the trainer's, its adapter is in files.

This reads vLLM's internals: constraints.txt pins its version.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from reasoner.models.adapter_files import PREFIX, Adapter, read_adapter, write_adapter
from reasoner.models.folder import is_adapter
from reasoner.models.loading import load_policy
from reasoner.models.resolve import base_folder

if TYPE_CHECKING:
    from vllm import LLM
    from vllm.lora.request import LoRARequest


def mask_ids(model: Any, num_ids: int) -> None:
    """Let the model of a vLLM worker sample the first `num_ids` ids alone, as reasoner.models.output_layer does. Every
    rank of every run asks it of a server again, to no effect.
    """
    compute = model.compute_logits

    def compute_logits(*args: Any, **kwargs: Any) -> Tensor | None:
        logits: Tensor | None = compute(*args, **kwargs)
        if logits is not None:  # it is on other ranks of a server
            logits[:, num_ids:] = -torch.inf
        return logits

    if num_ids < model.config.get_text_config().vocab_size and "compute_logits" not in vars(model):
        model.compute_logits = compute_logits


def known_weights(model: Any, named: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """The weights without the output layer of a model that has none in vLLM: Gemma 2 uses its embeddings."""
    return (pair for pair in named if pair[0] != "lm_head.weight" or hasattr(model, "lm_head"))


def forget_layers(model: Any) -> None:
    """Let the model be freed when its engine is: of each layer whose weights were reloaded vLLM keeps a record whose
    loaders refer to the layer. On a GPU it starts no other engine while weights of one are left.
    """
    from vllm.model_executor.model_loader.reload.layerwise import LAYERWISE_INFO

    for layer in model.modules():
        LAYERWISE_INFO.pop(layer, None)


@contextmanager
def separate_classes() -> Iterator[None]:
    """In the block, vLLM builds the families that it takes from transformers (OLMo 2, SmolLM3, GPT-NeoX) as subclasses.

    It replaces `__init__`, `__call__` and the bases of the class of what it builds, with versions that work in vLLM
    alone: the trainer's model in this process is of the same class.
    """
    from transformers import AutoModel, PretrainedConfig, PreTrainedModel
    from transformers.models.auto.auto_factory import _get_model_class
    from vllm.model_executor.models.transformers import base

    backend: Any = base
    subclasses: dict[type, type[PreTrainedModel]] = {}

    class SeparateModel:
        """Stands for AutoModel."""

        @staticmethod
        def from_config(config: PretrainedConfig, **kwargs: Any) -> PreTrainedModel:
            own = _get_model_class(config, AutoModel._model_mapping)  # type: ignore[no-untyped-call]
            separate = subclasses.setdefault(own, type(own.__name__, (own,), {"__module__": own.__module__}))
            kwargs.pop("trust_remote_code")  # no code from the folder is run
            model: PreTrainedModel = separate._from_config(config, **kwargs)  # type: ignore[no-untyped-call]
            return model

    backend.AutoModel = SeparateModel
    try:
        yield
    finally:
        backend.AutoModel = AutoModel


_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM has kernels for; an adapter of a smaller rank is padded


def lora_settings(rank: int) -> dict[str, Any]:
    """vLLM's settings for one adapter of the rank. ValueError above the largest rank that vLLM has."""
    largest = next((size for size in _RANKS if size >= rank), None)
    if largest is None:
        raise ValueError(f"lora.rank is {rank}, and vLLM runs adapters up to {_RANKS[-1]}; use --engine transformers")
    return {"enable_lora": True, "max_lora_rank": largest, "max_loras": 1, "max_cpu_loras": 1}


def folder_rank(folder: Path) -> int:
    """Rank of the adapter in a model folder; 0 for a full model, and for an adapter on top of another one."""
    if not is_adapter(folder) or is_adapter(base_folder(folder)):
        return 0
    return read_adapter(folder).rank


def stored_weights(folder: Path, *, as_adapter: bool) -> Iterable[tuple[str, Tensor]]:
    """(name, tensor) of the adapter in the folder, or of its base with the adapter added, for update_weights."""
    if as_adapter:
        return read_adapter(folder).weights()
    return load_policy(folder, device=torch.device("cpu")).state_dict().items()


def is_adapter_state(weights: Sequence[tuple[str, Tensor]]) -> bool:
    return bool(weights) and weights[0][0].startswith(PREFIX)


class AdapterSlot:
    """The place of an engine's one adapter; empty at first. Each version has a new number, by which vLLM keeps it."""

    def __init__(self) -> None:
        self._folder: tempfile.TemporaryDirectory[str] | None = None  # with the first adapter, whose size it knows
        self._number = 0
        self.request: LoRARequest | None = None

    def clear(self, llm: LLM) -> None:
        if self.request is not None:
            llm.llm_engine.remove_lora(self.request.lora_int_id)
        self.request = None

    def fill(self, weights: Sequence[tuple[str, Tensor]]) -> None:
        """Put an adapter there, by the names of its file; its B includes the factor alpha / rank."""
        from vllm.lora.request import LoRARequest

        tensors = {name.removeprefix(PREFIX): tensor for name, tensor in weights}
        rank = next(len(tensor) for name, tensor in tensors.items() if ".lora_A." in name)
        if self._folder is None:
            parent = memory_folder(sum(tensor.nbytes for tensor in tensors.values()))
            self._folder = tempfile.TemporaryDirectory(prefix="adapter-", dir=parent)
        write_adapter(Path(self._folder.name), Adapter(rank, rank, tensors))
        self._number += 1
        self.request = LoRARequest(f"policy-{self._number}", self._number, self._folder.name)

    def close(self) -> None:
        if self._folder is not None:
            self._folder.cleanup()


def memory_folder(size: int, folder: Path = Path("/dev/shm")) -> Path | None:
    """The folder, which is in the machine's memory, if it has room for twice so many bytes. A container has 64 MiB by
    default, less than an adapter of rank 16 for 1.5B parameters takes.
    """
    return folder if folder.is_dir() and shutil.disk_usage(folder).free > 2 * size else None
