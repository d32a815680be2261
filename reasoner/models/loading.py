"""Models and tokenizers from a folder, and the log-probabilities of completions.

Shapes: P prompts, L longest prompt, N completions, T longest completion, H width.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor, nn
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoTokenizer,
    DynamicCache,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
)
from transformers.utils import logging

from reasoner.models.fused_lm_head import drawn_logprobs

logging.disable_progress_bar()  # a bar for every file loaded and saved would stand between the lines of the steps

MOST_LOGITS = 2**22  # made and kept for the gradient, at most: 16 MiB in float32


# Configs, tokenizers and models are loaded from folders here and nowhere else. A folder may name Python files of its
# own (auto_map): transformers runs them with trust_remote_code=True, and without the argument asks on standard input.
_SAFE = {"trust_remote_code": False}


def load_config(folder: Path) -> PretrainedConfig:
    """Load the configuration of the folder's language model: of a model of several parts, the text model's.

    ValueError when there is none, or when reading it takes code from the folder, which is never run.
    """
    try:
        return AutoConfig.from_pretrained(folder, **_SAFE).get_text_config()
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"no model configuration can be loaded from {folder}: {_first_line(error)}") from error


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """The folder's tokenizer. ValueError when there is none, or it has no end token."""
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **_SAFE)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"no tokenizer can be loaded from {folder}: {_first_line(error)}") from error
    if tokenizer.eos_token_id is None:
        raise ValueError(f"the tokenizer of {folder} has no end token (eos_token)")
    return tokenizer


def load_policy(folder: Path, *, device: torch.device) -> PreTrainedModel:
    """The folder's causal language model in float32, without dropout, ready to learn. ValueError when there is none.

    Weights are read from safetensors alone, and no code that a model brings is run.
    """
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, use_safetensors=True, **_SAFE)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"no language model can be loaded from {folder}: {_first_line(error)}") from error
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    # eval() also stops the dropout that attention layers apply by themselves: the ratio is 1 before the first update.
    model = model.to(device).eval()
    _check_supported(model)
    return model


def load_shape(folder: Path) -> PreTrainedModel:
    """The folder's model without weights, on the meta device: it takes no memory. ValueError when there is none."""
    try:
        config = AutoConfig.from_pretrained(folder, trust_remote_code=False)
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(config, dtype=torch.float32, trust_remote_code=False)
    except (OSError, ValueError, KeyError) as error:
        raise ValueError(f"no language model can be loaded from {folder}: {_first_line(error)}") from error


@torch.no_grad()
def _check_supported(model: PreTrainedModel) -> None:
    """ValueError unless token_logprobs finds what the model's own forward does.

    It would not where there is no key-value cache to share, or where something stands between last state and logits.
    """
    ids = torch.tensor([[0, 1, 2, 1]], device=model.device)
    two, first = torch.tensor([2], device=model.device), torch.tensor([0], device=model.device)
    expected = model(input_ids=ids).logits.float().log_softmax(dim=-1)[:, 1:3].gather(2, ids[:, 2:, None])[..., 0]
    try:
        found, _ = token_logprobs(model, ids[:, :2], two, first, ids[:, 2:], two, temperature=1.0)
    except (AttributeError, TypeError, IndexError) as error:
        raise ValueError(f"{type(model).__name__} is not supported: {_first_line(error)}") from error
    if not torch.allclose(found, expected, atol=1e-3):
        raise ValueError(f"{type(model).__name__} is not supported: its logits are not its head's output, unchanged")


def context_length(model: PreTrainedModel) -> int:
    """Most tokens of prompt and completion together."""
    return int(model.config.get_text_config().max_position_embeddings)


class Reader(Protocol):
    """What has a transformer's body: a policy, a critic."""

    @property
    def base_model(self) -> nn.Module: ...


@dataclass(frozen=True, slots=True, eq=False)
class ReadPrompts:
    """What prompts leave behind for their completions: the last state, and the keys and values of every layer."""

    lengths: Tensor  # [P]
    attended: Tensor  # [P, L] int64, 0 in the padding
    last: Tensor  # [P, H]
    keys: tuple[Tensor, ...]  # a layer each: [P, heads, L, size]
    values: tuple[Tensor, ...]

    def leaves(self) -> ReadPrompts:
        """The same values cut off from the model: gradients stop, and add up, here."""
        last, *rest = (tensor.detach().requires_grad_() for tensor in self._tensors())
        return replace(self, last=last, keys=tuple(rest[: len(self.keys)]), values=tuple(rest[len(self.keys) :]))

    def backward(self, leaves: ReadPrompts) -> None:
        """Carry the gradient that the leaves have gathered on into the model."""
        pairs = [(own, leaf.grad) for own, leaf in zip(self._tensors(), leaves._tensors(), strict=True)]
        reached = [(own, gradient) for own, gradient in pairs if gradient is not None]
        torch.autograd.backward([own for own, _ in reached], [gradient for _, gradient in reached])

    def _tensors(self) -> tuple[Tensor, ...]:
        return (self.last, *self.keys, *self.values)


def read_prompts(model: Reader, prompt_ids: Tensor, prompt_lengths: Tensor) -> ReadPrompts:
    """prompt_ids [P, L] padded on the left, prompt_lengths [P]."""
    width = prompt_ids.shape[1]
    positions = torch.arange(width, device=prompt_ids.device) - (width - prompt_lengths[:, None])
    attended = (positions >= 0).long()
    cache = DynamicCache()
    states = model.base_model(
        input_ids=prompt_ids,
        attention_mask=attended,
        position_ids=positions.clamp_min(0),
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state
    keys, values = zip(*((layer.keys, layer.values) for layer in cache.layers), strict=True)
    return ReadPrompts(prompt_lengths, attended, states[:, -1], keys, values)


def completion_states(
    model: Reader, prompts: ReadPrompts, prompt_of: Tensor, completion_ids: Tensor, *, after_last: bool = False
) -> Tensor:
    """[N], [N, T] -> [N, T, H]: what the model knows before each completion token; [N, T + 1, H] `after_last`: what
    it knows after the last one too.
    """
    states = prompts.last[prompt_of][:, None]  # [N, 1, H], predicts the first completion token
    inner = completion_ids.shape[1] - (not after_last)
    if not inner:
        return states
    cache = DynamicCache()
    for layer, (keys, values) in enumerate(zip(prompts.keys, prompts.values, strict=True)):
        # index_select: its gradient is a sum of slices, that of keys[prompt_of] a sum of single numbers
        cache.update(keys.index_select(0, prompt_of), values.index_select(0, prompt_of), layer)
    attended = prompts.attended[prompt_of]
    later = model.base_model(
        input_ids=completion_ids[:, :inner],
        attention_mask=torch.cat([attended, attended.new_ones(len(prompt_of), inner)], dim=1),
        position_ids=prompts.lengths[prompt_of][:, None] + torch.arange(inner, device=prompt_of.device),
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state
    return torch.cat([states, later], dim=1)


def completion_logprobs(
    model: PreTrainedModel,
    states: Tensor,
    completion_ids: Tensor,
    lengths: Tensor,
    *,
    temperature: float,
    learns_entropy: bool = False,
) -> tuple[Tensor, Tensor]:
    """Log-probability of every completion token, and the entropy of the distribution that it was drawn from, in nats.

    states [N, T, H] before each token (completion_states), completion_ids [N, T] padded on the right, lengths [N] ->
    [N, T] x 2, 0 in the padding. Logits are
    divided by the temperature (1 where that is 0, greedy), the softmax is in float32. They are made where a token
    was drawn and nowhere else; more of them than MOST_LOGITS never stand in memory at once.
    """
    mask = torch.arange(completion_ids.shape[1], device=lengths.device) < lengths[:, None]
    chosen, drawn_ids = states[mask], completion_ids[mask]
    head = model.get_output_embeddings()
    is_large = len(chosen) * model.config.get_text_config().vocab_size > MOST_LOGITS
    found = drawn_logprobs if is_large and type(head) is nn.Linear else _of_states
    drawn, entropy = found(head, chosen, drawn_ids, temperature=temperature or 1.0, learns_entropy=learns_entropy)
    empty = torch.zeros(mask.shape, device=mask.device)
    return empty.masked_scatter(mask, drawn), empty.masked_scatter(mask, entropy)


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
    """completion_logprobs of rows with their prompts. A prompt is computed once however many rows share it."""
    prompts = read_prompts(model, prompt_ids, prompt_lengths)
    states = completion_states(model, prompts, prompt_of, completion_ids)
    return completion_logprobs(model, states, completion_ids, lengths, temperature=temperature)


def _of_states(
    head: nn.Module, states: Tensor, drawn_ids: Tensor, *, temperature: float, learns_entropy: bool
) -> tuple[Tensor, Tensor]:
    """fused_lm_head.drawn_logprobs with all logits at once: quicker where they are few, and for any kind of head."""
    log_softmax = (head(states).float() / temperature).log_softmax(dim=-1)
    drawn = log_softmax.gather(1, drawn_ids[:, None])[:, 0]
    with torch.set_grad_enabled(learns_entropy and torch.is_grad_enabled()):
        entropy = -(log_softmax.exp() * log_softmax).sum(dim=-1)
    return drawn, entropy


def _first_line(error: BaseException) -> str:
    return str(error).strip().split("\n")[0]
