"""Models and tokenizers from a folder, and the log-probabilities of completions."""

from __future__ import annotations

import copy
from pathlib import Path

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, AutoTokenizer, DynamicCache, PreTrainedModel, PreTrainedTokenizerBase


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The folder's tokenizer. ValueError when there is none, or it has no end token."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"no tokenizer can be loaded from {folder}: {_first_line(error)}") from error
    if tokenizer.eos_token_id is None:
        raise ValueError(f"the tokenizer of {folder} has no end token (eos_token)")
    return tokenizer


def load_policy(folder: Path, *, device: torch.device) -> PreTrainedModel:
    """The folder's causal language model in float32, without dropout, ready to learn. ValueError when there is none."""
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"no language model can be loaded from {folder}: {_first_line(error)}") from error
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    # eval() also stops the dropout that attention layers apply by themselves: the ratio is 1 before the first update.
    return model.to(device).eval()


def frozen_copy(model: PreTrainedModel) -> PreTrainedModel:
    """The reference: the same weights in their own memory, without gradient."""
    return copy.deepcopy(model).requires_grad_(False)


def context_length(model: PreTrainedModel) -> int:
    """Most tokens of prompt and completion together."""
    return int(model.config.get_text_config().max_position_embeddings)


def token_logprobs(
    model: PreTrainedModel,
    prompt_ids: Tensor,
    prompt_lengths: Tensor,
    prompt_of: Tensor,
    completion_ids: Tensor,
    lengths: Tensor,
    *,
    temperature: float,
) -> tuple[Tensor, Tensor]:
    """Log-probability of every completion token, and the entropy of the distribution that it was drawn from, in nats.

    prompt_ids [P, L] padded on the left, prompt_lengths [P], prompt_of [N], completion_ids [N, T] padded on the right, lengths
    [N] -> [N, T] x 2, 0 in the padding. Logits are divided by the temperature (1 for greedy, 0) and soft-maxed in float32.

    A prompt is computed once however many rows share it: its keys and values are handed to its rows, gradient included.
    Logits are made where a token was drawn and nowhere else.
    """
    width = prompt_ids.shape[1]
    positions = torch.arange(width, device=prompt_ids.device) - (width - prompt_lengths[:, None])
    attended = (positions >= 0).long()
    cache = DynamicCache()
    prompt_states = model.model(
        input_ids=prompt_ids,
        attention_mask=attended,
        position_ids=positions.clamp_min(0),
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state
    states = prompt_states[:, -1:][prompt_of]  # [N, 1, H], predicts the first completion token

    inner = completion_ids.shape[1] - 1
    if inner:
        shared = DynamicCache()
        for layer, kept in enumerate(cache.layers):
            shared.update(kept.keys[prompt_of], kept.values[prompt_of], layer)
        steps = torch.arange(inner, device=prompt_ids.device)
        later = model.model(
            input_ids=completion_ids[:, :-1],
            attention_mask=torch.cat([attended[prompt_of], attended.new_ones(len(prompt_of), inner)], dim=1),
            position_ids=prompt_lengths[prompt_of][:, None] + steps,
            past_key_values=shared,
            use_cache=True,
        ).last_hidden_state
        states = torch.cat([states, later], dim=1)

    mask = torch.arange(inner + 1, device=lengths.device) < lengths[:, None]
    logits = model.lm_head(states[mask]).float() / (temperature or 1.0)
    log_softmax = logits.log_softmax(dim=-1)
    drawn = log_softmax.gather(1, completion_ids[mask][:, None])[:, 0]
    with torch.no_grad():
        entropy = -(log_softmax.exp() * log_softmax).sum(dim=-1)
    empty = torch.zeros(mask.shape, device=mask.device)
    return empty.masked_scatter(mask, drawn), empty.masked_scatter(mask, entropy)


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
