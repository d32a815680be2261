"""What `reasoner serve` adds to the workers of a vLLM server: weights from a file, and the in-process engine's sampler.

vLLM imports this file in every worker (--worker-extension-cls). It reads vLLM's internals: constraints.txt pins its
version.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from reasoner.inference.server_answers import identity
from reasoner.inference.vllm_engine import install_sampler
from reasoner.inference.vllm_model import known_weights, mask_ids
from reasoner.inference.weight_file import Holder, open_weights
from reasoner.models.loading import load_tokenizer, num_ids

if TYPE_CHECKING:
    from vllm.config import VllmConfig


class ServerExtension:
    """Methods of vLLM's workers that the trainer calls by /collective_rpc."""

    vllm_config: VllmConfig
    model_runner: Any
    reload_weights: Callable[..., None]
    _holder = Holder()  # of this process, which is one worker

    def prepare_rollouts(self, folder: str = "", run: str = "") -> dict[str, Any]:
        """Install the sampler on a CPU; return what the trainer must know and check. `folder`: of the weights that the
        run will send; without it the server keeps its holder.
        """
        model = self.vllm_config.model_config
        has_own_sampler = not torch.cuda.is_available()
        if has_own_sampler:
            install_sampler(self.model_runner)
        tokenizer, dtype = load_tokenizer(Path(model.tokenizer)), str(model.dtype).removeprefix("torch.")
        mask_ids(self.model_runner.get_model(), num_ids(tokenizer))
        return {
            "model": model.served_model_name,
            "identity": identity(model.hf_text_config, tokenizer, dtype, model.max_model_len),
            "has_own_sampler": has_own_sampler,
            "max_model_len": model.max_model_len,
            "held_by": self._holder.claim(folder, run) if folder else "",
        }

    def load_weight_file(self, path: str, version: str) -> None:
        """Load a version of the trainer's weights. The model is unchanged if the file does not hold it."""
        with open_weights(path, version) as weights:
            self.reload_weights(weights_iterator=known_weights(self.model_runner.get_model(), weights))
