"""The model inside vLLM: it samples the ids that have a text, and its class is not the trainer's.

This reads vLLM's internals: constraints.txt pins its version.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor


def mask_ids(model: Any, num_ids: int) -> None:
    """Let the model of a vLLM worker sample the first `num_ids` ids alone, as reasoner.models.output_layer does."""
    compute = model.compute_logits

    def compute_logits(*args: Any, **kwargs: Any) -> Tensor | None:
        logits: Tensor | None = compute(*args, **kwargs)
        if logits is not None:  # it is on other ranks of a server
            logits[:, num_ids:] = -torch.inf
        return logits

    if num_ids < model.config.get_text_config().vocab_size:
        model.compute_logits = compute_logits


def known_weights(model: Any, named: Iterable[tuple[str, Tensor]]) -> Iterator[tuple[str, Tensor]]:
    """The weights without the output layer of a model that has none in vLLM: Gemma 2 uses its embeddings."""
    return (pair for pair in named if pair[0] != "lm_head.weight" or hasattr(model, "lm_head"))


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
