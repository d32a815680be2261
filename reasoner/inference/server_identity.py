"""What a server and the run that uses it must agree on: the model's shape, the tokenizer and the precision."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reasoner.rollouts.seeds import digest

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

# Of a model's configuration: what decides the names and shapes of its weights.
_SHAPE = (
    "model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "tie_word_embeddings", "num_experts", "num_local_experts",
)  # fmt: skip


def identity(config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase, dtype: str) -> dict[str, Any]:
    """The identity of a model that is loaded somewhere, as JSON: its shape, a hash of its vocabulary, its precision."""
    vocabulary = sorted((token, number) for token, number in tokenizer.get_vocab().items())
    shape = {name: value for name in _SHAPE if (value := getattr(config, name, None)) is not None}
    return {**shape, "tokenizer": digest(vocabulary), "dtype": dtype}


def check_identity(server: Mapping[str, Any], own: Mapping[str, Any], url: str) -> None:
    """Raise ValueError, naming both values, where a server holds another model than the run's."""
    differing = [name for name in own.keys() | server.keys() if own.get(name) != server.get(name)]
    if differing:
        pairs = ", ".join(f"{name} {server.get(name)} there and {own.get(name)} here" for name in sorted(differing))
        raise ValueError(f"the server {url} holds another model than this run: {pairs}")
