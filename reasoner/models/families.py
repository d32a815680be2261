"""What is special about a model's family, from config.json alone: what is refused before a run exists, and how far its
positions reach. Training of every stage, the doctor and --dry-run ask here. No torch.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_STATE = "its layers carry a state from token to token, where completions read their prompt's keys and values"
_ALIBI = "its attention counts distances (ALiBi) and takes no positions, and prompts of unequal length are padded"
_OWN_CACHE = "its layers have a cache of their own kind, where completions read their prompt's keys and values"
_UNSUPPORTED: dict[str, str] = {  # model_type -> why it cannot be trained
    **dict.fromkeys(("mamba", "mamba2", "falcon_mamba", "rwkv", "xlstm", "recurrent_gemma"), _STATE),
    **dict.fromkeys(("falcon_h1", "jamba", "bamba", "zamba", "zamba2", "nemotron_h", "olmo_hybrid"), _STATE),
    **dict.fromkeys(("lfm2", "lfm2_moe", "qwen3_next", "qwen3_5_text", "qwen3_5_moe_text", "kimi_linear"), _STATE),
    **dict.fromkeys(("bloom", "mpt"), _ALIBI),
    "minimax": _OWN_CACHE,
    "gpt_neo": "its local attention counts from the end of the cache, not from the end of a row",
}
_EXPERTS = ("num_local_experts", "num_experts", "n_routed_experts", "moe_num_experts")


def check_family(config: Mapping[str, Any]) -> None:
    """Raise ValueError, with the reason, for a configuration of a family that cannot be trained, or of weights."""
    kind = config.get("model_type")
    if quantised := config.get("quantization_config"):
        method = quantised.get("quant_method", "quantization_config")
        raise ValueError(f"quantised weights ({method}) cannot be trained: name the model that they were made from")
    if reason := _ALIBI if config.get("alibi") else _UNSUPPORTED.get(str(kind)):
        raise ValueError(f"models of the kind {kind!r} are not supported: {reason}")


def has_experts(config: Mapping[str, Any]) -> bool:
    """Whether the configuration is that of a mixture of experts."""
    return any(config.get(name) not in (None, 0, 1) for name in _EXPERTS)


def vllm_obstacle(config: Mapping[str, Any], *, on_gpu: bool) -> str:
    """Why vLLM 0.32 cannot sample while the model is trained; empty if nothing is known that hinders it."""
    if has_experts(config) and not on_gpu:
        return "on a CPU it keeps the first experts, which it packs once"
    if config.get("model_type") == "cohere2":
        return "its sliding windows are one token longer than those of transformers"
    return ""


def lora_obstacle(config: Mapping[str, Any], target: str) -> str:
    """Why the layers of lora.target take no adapter; empty if they do."""
    if config.get("model_type") in ("gpt2", "openai-gpt"):
        return "its layers hold transposed weights (Conv1D), to which B A would be added as it is"
    if target == "all-linear" and has_experts(config):
        return "its experts are no linear layers but one tensor together; use --lora.target attention"
    return ""


def context_to_train(config: Mapping[str, Any]) -> int | None:
    """Most tokens of prompt and completion together; None if the configuration does not say.

    With LongRoPE the original context: beyond it every position is computed with other factors, in transformers as soon
    as the longest row of a pass is that long, in vLLM if max_model_len is. So the same tokens would have other
    log-probabilities in another batch, and in the engine.
    """
    context = config.get("max_position_embeddings")
    ropes = config.get("rope_parameters") or config.get("rope_scaling") or {}
    if ropes.get("rope_type", ropes.get("type")) in ("longrope", "su"):
        original = ropes.get("original_max_position_embeddings", config.get("original_max_position_embeddings"))
        context = min((value for value in (context, original) if isinstance(value, int)), default=None)
    return context if isinstance(context, int) else None
