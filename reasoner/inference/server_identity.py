"""What a server and the run that uses it must agree on: the model's
configuration, the tokenizer and the precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reasoner.models.families import context_to_train
from reasoner.rollouts.seeds import digest

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

# Of a model's configuration: what decides the names and shapes of its weights, and what is computed with them. Not all
# of it: token ids, names and limits may differ, and releases of transformers add values.
_MODEL = (
    "model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "tie_word_embeddings", "num_experts", "num_local_experts",
    "num_experts_per_tok", "norm_topk_prob", "rope_parameters", "rms_norm_eps", "layer_norm_eps", "hidden_act",
    "hidden_activation", "sliding_window", "layer_types", "query_pre_attn_scalar", "attn_logit_softcapping",
    "final_logit_softcapping",
)  # fmt: skip


def identity(
    config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase, dtype: str, max_model_len: int
) -> dict[str, Any]:
    """The identity of a model that is loaded somewhere, as JSON: its model, a hash of its vocabulary, its precision,
    and whether it is loaded for more tokens than can be trained (context_to_train).
    """
    vocabulary = sorted((token, number) for token, number in tokenizer.get_vocab().items())
    model = {name: value for name in _MODEL if (value := getattr(config, name, None))}  # 0 and False say: without
    context = context_to_train(config.to_dict())
    is_long = {"max_model_len": f"above {context}"} if context is not None and max_model_len > context else {}
    return {**model, **is_long, "tokenizer": digest(vocabulary), "dtype": dtype}


def check_identity(server: Mapping[str, Any], own: Mapping[str, Any], url: str) -> None:
    """Raise ValueError, naming both values, where a server holds another model than the run's."""
    differing = [name for name in own.keys() | server.keys() if own.get(name) != server.get(name)]
    if differing:
        pairs = ", ".join(f"{name} {server.get(name)} there and {own.get(name)} here" for name in sorted(differing))
        raise ValueError(f"the server {url} holds another model than this run: {pairs}")
