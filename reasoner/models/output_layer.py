"""The output layer of a language model: from a hidden state to the logits of the next token.

After the head some families scale the logits (Cohere, Granite) or cap them softly (Gemma 2). Many models have more rows
in the head than their tokenizer has ids, for the sake of kernels: such a row stands for no text, so it has no logit.

Shapes: V ids that can be sampled, H width.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

from torch import Tensor, nn
from transformers import PreTrainedModel


@dataclass(frozen=True, slots=True)
class OutputLayer:
    """The head of a model, and what the model makes of its output."""

    head: nn.Module
    num_ids: int  # V; the head may have more rows
    scale: float = 1.0  # of the head's output
    soft_cap: float = 0.0  # c in c tanh(logit / c); 0 for no cap

    @classmethod
    def of(cls, model: PreTrainedModel) -> OutputLayer:
        """The model's output layer. All rows of a head are ids unless limit_ids() was called."""
        config: Any = model.config.get_text_config()
        scale = (getattr(config, "logit_scale", None) or 1.0) / (getattr(config, "logits_scaling", None) or 1.0)
        soft_cap = getattr(config, "final_logit_softcapping", None) or 0.0
        head = cast(nn.Module, model.get_output_embeddings())  # type: ignore[no-untyped-call]
        return cls(head, min(getattr(model, _NUM_IDS, config.vocab_size), config.vocab_size), scale, soft_cap)

    def __call__(self, states: Tensor) -> Tensor:
        """[..., H] states -> [..., V] logits in float32."""
        return self.process(self.head(states)[..., : self.num_ids].float())

    def process(self, logits: Tensor) -> Tensor:
        """The head's output, scaled and capped."""
        logits = logits if self.scale == 1 else logits * self.scale
        return (logits / self.soft_cap).tanh() * self.soft_cap if self.soft_cap else logits


_NUM_IDS = "_num_ids"


def limit_ids(model: PreTrainedModel, num_ids: int) -> None:
    """Let the model's output layer have logits of the first `num_ids` ids alone."""
    setattr(model, _NUM_IDS, num_ids)
