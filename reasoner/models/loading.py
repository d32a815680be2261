"""Load models and tokenizers from a folder; compute the log-probabilities of completions.

Shapes: P prompts, L longest prompt, N completions, T longest completion, H width.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, cast

import torch
from huggingface_hub.errors import StrictDataclassError
from torch import Tensor, nn
from torch.distributed.device_mesh import DeviceMesh
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForSequenceClassification,
    AutoTokenizer,
    PretrainedConfig,
    PreTrainedModel,
    PreTrainedTokenizerBase,
    PreTrainedTokenizerFast,
)
from transformers.utils import logging

from reasoner.console import first_line
from reasoner.models.adapter_files import merge_adapter
from reasoner.models.checksums import check_model_files
from reasoner.models.embedding_gradients import accumulates_gradient
from reasoner.models.families import check_family, context_to_train, lora_obstacle
from reasoner.models.folder import has_tokenizer, is_adapter, text_config
from reasoner.models.fused_lm_head import Teacher, selective_log_softmax
from reasoner.models.output_layer import OutputLayer, limit_ids
from reasoner.models.precision import follow_autocast, hold_in_bfloat16
from reasoner.models.prefix_attention import PrefixCausalMask, avoids_mask
from reasoner.models.recompute import CompletionKeyCache, PromptKeyCache
from reasoner.models.resolve import base_folder
from reasoner.models.shard_on_load import load_shards
from reasoner.models.sharding import gathers_bfloat16, is_sharded, reshard

logging.disable_progress_bar()  # type: ignore[no-untyped-call]  # bars per file would clutter the log of the steps

MAX_LOGITS = 2**22  # computed at once and kept for the gradient: 16 MiB in float32


# Configs, tokenizers and models are loaded from folders only in this file. A folder may name Python files of its own
# (auto_map): transformers runs them with trust_remote_code=True, and without the argument asks on standard input.
_SAFE = {"trust_remote_code": False}


def load_config(folder: Path) -> PretrainedConfig:
    """Load the configuration of the folder's language model; for a multimodal model, that of its text model.

    ValueError if there is none, or if reading it would need code from the folder, which is never run.
    """
    with _load_errors("model configuration", folder):
        config: PretrainedConfig = AutoConfig.from_pretrained(folder, **_SAFE).get_text_config()
    return config


def load_tokenizer(folder: Path) -> PreTrainedTokenizerBase:
    """Load the folder's tokenizer. ValueError if there is none, if it is none of the library `tokenizers`, or if it has
    no end token.
    """
    with _load_errors("tokenizer", folder):
        # mistral-common's class, which tekken.json would select where it is installed (as vLLM has it), lacks much.
        tokenizer = AutoTokenizer.from_pretrained(folder, mistral_format=False, **_SAFE)
    if not isinstance(tokenizer, PreTrainedTokenizerFast):
        kind = type(tokenizer).__name__
        raise ValueError(f"the tokenizer of {folder} ({kind}) has no form in the library tokenizers")
    if tokenizer.eos_token_id is None:
        raise ValueError(f"the tokenizer of {folder} has no end token (eos_token)")
    # Its model_max_length may be below the model's context, by which long texts are left out: no warning at each.
    tokenizer.deprecation_warnings["sequence-length-is-longer-than-the-specified-maximum"] = True
    return tokenizer


def num_ids(tokenizer: PreTrainedTokenizerBase) -> int:
    """Number of token ids that the tokenizer has texts for: the largest and one. Gaps below the largest count."""
    return max(tokenizer.get_vocab().values()) + 1


def load_policy(
    folder: Path, *, device: torch.device, dtype: torch.dtype = torch.float32, mesh: DeviceMesh | None = None
) -> PreTrainedModel:
    """Load the folder's causal language model, without dropout, for training. ValueError if there is none.

    `dtype` float32, or bfloat16 for weights that are not trained (reasoner.models.precision). A LoRA adapter in
    the folder is added to the weights of its base, in float32. Weights are read from safetensors only, and code in the
    folder is never run.

    Each rank of a `mesh` loads its shards alone: the model can be run, and check_supported() has to be called, when
    reasoner.models.sharding.distribute() has made it one model of the ranks.
    """
    check_family(text_config(folder))
    model = _load_merged(folder, mesh) if is_adapter(folder) else _load_stored(folder, dtype, mesh)
    if dtype == torch.bfloat16:
        hold_in_bfloat16(model)
    move_without_dropout(model, device)
    follow_autocast(model)
    if has_tokenizer(folder):
        limit_ids(model, num_ids(load_tokenizer(folder)))
    if mesh is None:
        check_supported(model)
    return model


def move_without_dropout(model: PreTrainedModel, device: torch.device) -> None:
    """Move the model to the device and disable its dropout."""
    for module in model.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    # eval() also disables dropout inside attention layers: the ratio must be 1 before the first update.
    cast(nn.Module, model).to(device).eval()  # transformers' own to() is wrapped without types


def _load_stored(folder: Path, dtype: torch.dtype, mesh: DeviceMesh | None) -> PreTrainedModel:
    """Load the weights in float32; for bfloat16 as they are stored, so that a model that is stored in bfloat16 never
    takes twice its memory.
    """
    with _load_errors("language model", folder, reads_weights=True), load_shards(mesh):
        model: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            folder,
            dtype=dtype if dtype == torch.float32 else "auto",
            use_safetensors=True,
            **_attention(folder),
            **_SAFE,
        )
    return model


def _attention(folder: Path) -> dict[str, str]:
    """The arguments for transformers' plain attention where scores are capped softly (Gemma 2): torch's
    scaled_dot_product_attention cannot, and transformers leaves the cap out there without a word.
    """
    return {"attn_implementation": "eager"} if text_config(folder).get("attn_logit_softcapping") else {}


def load_classifier(folder: Path) -> tuple[PreTrainedModel, list[str]]:
    """Load the folder's sequence classifier on the CPU in float32, and the names of weights that the folder lacks."""
    with _load_errors("reward model", folder, reads_weights=True):
        model, report = AutoModelForSequenceClassification.from_pretrained(
            folder, dtype=torch.float32, use_safetensors=True, output_loading_info=True, **_attention(folder), **_SAFE
        )
    return model, sorted(report["missing_keys"])


def _load_merged(folder: Path, mesh: DeviceMesh | None) -> PreTrainedModel:
    """Load the base of the adapter in the folder in float32, and add the adapter. ValueError for a model that takes
    none.
    """
    if reason := lora_obstacle(text_config(folder), ""):
        raise ValueError(f"the LoRA adapter in {folder} is not supported: {reason}")
    device = torch.device("cpu" if mesh is None else mesh.device_type)
    model = load_policy(base_folder(folder), device=device, mesh=mesh)
    merge_adapter(model, folder)
    return model


def load_meta_model(folder: Path) -> PreTrainedModel:
    """Build the folder's model without weights, on the meta device: it takes no memory. ValueError if there is none."""
    with _load_errors("language model", folder), torch.device("meta"):
        config = AutoConfig.from_pretrained(folder, **_SAFE)
        model: PreTrainedModel = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
            config, dtype=torch.float32, **_attention(folder), **_SAFE
        )
    return model


@contextmanager
def _load_errors(what: str, folder: Path, *, reads_weights: bool = False) -> Iterator[None]:
    """Raise the errors of transformers in the block as a ValueError of one line that names the folder. The files that
    the block reads are checked before.
    """
    check_model_files(folder, weights=reads_weights)
    try:
        yield
    except (OSError, ValueError, KeyError, TypeError, StrictDataclassError) as error:
        raise ValueError(f"no {what} can be loaded from {folder}: {first_line(error)}") from error


@torch.no_grad()
def check_supported(model: PreTrainedModel) -> None:
    """Raise ValueError unless completion_states gives what the model's own pass gives its head, and OutputLayer makes
    of the head's output what the model makes of it.

    States are compared relative to their size, and the head's output is replaced by numbers from -100 to 100: weights
    that give small logits hide nothing. A collective operation if the model is sharded.
    """
    name, layer, tolerance = type(model).__name__, OutputLayer.of(model), 0.1 if computes_in_bfloat16(model) else 1e-3
    ids = torch.tensor([[0, 1, 2, 1]], device=model.device)
    lengths, prompt_of = torch.tensor([2], device=model.device), torch.tensor([0], device=model.device)
    inputs, outputs = [], []

    def replace_output(_: nn.Module, args: tuple[Tensor, ...], output: Tensor) -> Tensor:
        inputs.append(args[0].float())
        outputs.append(torch.linspace(-100, 100, output.shape[-1]).to(output).expand_as(output).clone())
        return outputs[-1].clone()

    try:
        with precision_of(model):
            with layer.head.register_forward_hook(replace_output):
                logits = model(input_ids=ids).logits.float()
            prompts = encode_prompts(model, ids[:, :2], lengths)
            states = completion_states(model, prompts, prompt_of, ids[:, 2:]).float()
    except (AttributeError, TypeError, IndexError, ValueError, RuntimeError) as error:
        raise ValueError(
            f"{name} is not supported: its completions cannot read the keys and values of a prompt that they share "
            f"({first_line(error)})"
        ) from error
    if not float((states - inputs[0][:, 1:3]).norm() / inputs[0][:, 1:3].norm()) < tolerance:
        raise ValueError(f"{name} is not supported: with a prompt that completions share, its states are others")
    if not torch.allclose(logits, layer.process(outputs[0].float()), rtol=tolerance, atol=tolerance):
        raise ValueError(
            f"{name} is not supported: its logits are not its head's output, scaled and capped as its config.json says"
        )
    reshard(model)


def context_length(model: PreTrainedModel) -> int:
    """Maximum tokens of prompt and completion together."""
    return config_context(model.config.get_text_config())


def config_context(config: PretrainedConfig) -> int:
    """Maximum tokens of prompt and completion together of a language model's configuration."""
    context = context_to_train({**config.to_dict(), "max_position_embeddings": config.max_position_embeddings})
    assert context is not None
    return context


class BackboneModel(Protocol):
    """A model with a transformer backbone: a policy or a critic."""

    @property
    def base_model(self) -> nn.Module: ...


@dataclass(frozen=True, slots=True, eq=False)
class PromptCache:
    """Forward pass of P prompts, cached for their completions: last states, and keys and values of every layer."""

    lengths: Tensor  # [P]
    attention_mask: Tensor  # [P, L] int64, 0 in the padding
    last: Tensor  # [P, H]
    keys: tuple[Tensor, ...]  # per layer: [P, heads, L, head size]
    values: tuple[Tensor, ...]

    def leaves(self) -> PromptCache:
        """Return detached copies, in which the completions' gradients accumulate."""
        last, *rest = (tensor.detach().requires_grad_() for tensor in self._tensors())
        return replace(self, last=last, keys=tuple(rest[: len(self.keys)]), values=tuple(rest[len(self.keys) :]))

    def backward(self, leaves: PromptCache) -> None:
        """Backpropagate the gradients accumulated in the leaves into the model."""
        pairs = [(own, leaf.grad) for own, leaf in zip(self._tensors(), leaves._tensors(), strict=True)]
        with_gradient = [(own, gradient) for own, gradient in pairs if gradient is not None]
        torch.autograd.backward([own for own, _ in with_gradient], [gradient for _, gradient in with_gradient])

    def _tensors(self) -> tuple[Tensor, ...]:
        return (self.last, *self.keys, *self.values)


def encode_prompts(model: BackboneModel, prompt_ids: Tensor, prompt_lengths: Tensor) -> PromptCache:
    """Run the model over prompt_ids [P, L], padded on the left, with prompt_lengths [P]."""
    width = prompt_ids.shape[1]
    positions = torch.arange(width, device=prompt_ids.device) - (width - prompt_lengths[:, None])
    attention_mask = (positions >= 0).long()
    cache = PromptKeyCache()
    states = model.base_model(
        input_ids=prompt_ids,
        attention_mask=attention_mask,
        position_ids=positions.clamp_min(0),
        past_key_values=cache,
        use_cache=True,
    ).last_hidden_state
    layers = cast("list[Any]", cache.layers)  # a layer without keys is an AttributeError: such models are refused
    keys, values = zip(*((layer.keys, layer.values) for layer in layers), strict=True)
    return PromptCache(prompt_lengths, attention_mask, states[:, -1], keys, values)


def completion_states(
    model: BackboneModel, prompts: PromptCache, prompt_of: Tensor, completion_ids: Tensor, *, after_last: bool = False
) -> Tensor:
    """Hidden states before each completion token: prompt_of [N], completion_ids [N, T] -> [N, T, H].

    With `after_last` also the state after the last token: [N, T + 1, H].
    """
    states = prompts.last[prompt_of][:, None]  # [N, 1, H], predicts the first completion token
    inner = completion_ids.shape[1] - (not after_last)
    if not inner and is_sharded(model.base_model):
        # Other ranks may have longer rows, and the layers' weights are gathered on all ranks or on none.
        return completion_states(model, prompts, prompt_of, completion_ids, after_last=True)[:, :1]
    if not inner:
        return states
    prompt_mask = prompts.attention_mask[prompt_of]
    later = model.base_model(
        input_ids=completion_ids[:, :inner],
        attention_mask=PrefixCausalMask.of(prompt_mask, inner)
        if avoids_mask(model.base_model, inner, completion_ids.device)
        else torch.cat([prompt_mask, prompt_mask.new_ones(len(prompt_of), inner)], dim=1),
        position_ids=prompts.lengths[prompt_of][:, None] + torch.arange(inner, device=prompt_of.device),
        past_key_values=CompletionKeyCache(prompts.keys, prompts.values, prompt_of),
        use_cache=True,
    ).last_hidden_state
    return torch.cat([states, later], dim=1)


def completion_logprobs(
    model: PreTrainedModel,
    states: Tensor,
    completion_ids: Tensor,
    mask: Tensor,
    *,
    temperature: float,
    learns_entropy: bool = False,
    teacher: Teacher | None = None,
) -> tuple[Tensor, ...]:
    """Log-probability of every completion token, and the entropy of the distribution that it was sampled from, in nats;
    with a teacher's output layer and its states [N, T, H'] also KL(policy || teacher) over the vocabulary.

    states [N, T, H] before each token (completion_states), completion_ids [N, T] and mask [N, T] bool -> [N, T] each,
    0 outside the mask. Logits are divided by the temperature (by 1 if it is 0, greedy), the softmax is in float32.
    Logits are computed only inside the mask, and in tiles with a teacher, if there are more than MAX_LOGITS, and if the
    output layer's gradient is added in place (reasoner.models.embedding_gradients).
    """
    layer, temperature = OutputLayer.of(model), temperature or 1.0
    inside = states[mask], completion_ids[mask]
    is_large = len(inside[0]) * layer.num_ids > MAX_LOGITS
    is_tiled = type(layer.head) is nn.Linear and (is_large or accumulates_gradient(layer.head.weight))
    if is_tiled or teacher is not None:
        own = None if teacher is None else (teacher[0], teacher[1][mask])
        values = selective_log_softmax(
            layer, *inside, temperature=temperature, learns_entropy=learns_entropy, teacher=own
        )
    else:
        values = _dense_log_softmax(layer, *inside, temperature=temperature, learns_entropy=learns_entropy)
    empty = torch.zeros(mask.shape, device=mask.device, dtype=values[0].dtype)
    return tuple(empty.masked_scatter(mask, one) for one in values)


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
    """Run prompts and completions through the model -> completion_logprobs. Shared prompts are computed once.

    A model with weights in bfloat16 computes in bfloat16.
    """
    with precision_of(model):
        prompts = encode_prompts(model, prompt_ids, prompt_lengths)
        states = completion_states(model, prompts, prompt_of, completion_ids)
        mask = torch.arange(completion_ids.shape[1], device=lengths.device) < lengths[:, None]
        logprobs, entropy = completion_logprobs(model, states, completion_ids, mask, temperature=temperature)
    return logprobs, entropy


def precision_of(model: PreTrainedModel) -> AbstractContextManager[object]:
    """Autocast to bfloat16 for a model with weights in bfloat16; for any other one no context."""
    is_low = computes_in_bfloat16(model)
    return torch.autocast(model.device.type, dtype=torch.bfloat16) if is_low else nullcontext()


def computes_in_bfloat16(model: PreTrainedModel) -> bool:
    """Whether the model has weights in bfloat16, in its passes at least."""
    return gathers_bfloat16(model) or any(parameter.dtype == torch.bfloat16 for parameter in model.parameters())


def _dense_log_softmax(
    layer: OutputLayer, states: Tensor, token_ids: Tensor, *, temperature: float, learns_entropy: bool
) -> tuple[Tensor, Tensor]:
    """Compute selective_log_softmax with all logits at once: faster for few logits, works for any kind of head."""
    log_softmax = (layer(states) / temperature).log_softmax(dim=-1)
    logprobs = log_softmax.gather(1, token_ids[:, None])[:, 0]
    with torch.set_grad_enabled(learns_entropy and torch.is_grad_enabled()):
        entropy = -(log_softmax.exp() * log_softmax).sum(dim=-1)
    return logprobs, entropy
