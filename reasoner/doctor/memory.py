"""Memory that a run needs, part by part: by formula before anything large is loaded, and as measured.

Letters of the formulas: H hidden size, Q width of all query heads, K keys and values of a token and layer, I
intermediate size, V vocabulary, T most tokens of a completion.
"""

from __future__ import annotations

import resource
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch
from transformers import PreTrainedModel

from reasoner.config.presets import HEADROOM
from reasoner.config.schema import Config
from reasoner.inference.factory import resolve_engine_name
from reasoner.inference.hf_engine import MAX_ROWS
from reasoner.models.embedding_gradients import MIN_VALUES
from reasoner.models.folder import num_parameters
from reasoner.models.fused_lm_head import CPU_TILE, GPU_TILE
from reasoner.models.loading import MAX_LOGITS, context_length
from reasoner.models.lora import num_adapter_parameters
from reasoner.models.prefix_attention import avoids_mask, sees_all
from reasoner.models.resolve import resolve_cached_model
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rollouts.reward_models import parse_reward_models
from reasoner.trainer.snapshot import MOST_COPIED

_BYTES = {"float32": 4, "bfloat16": 2}
_NUM_ADAPTED = {"all-linear": 7, "attention": 4}  # linear layers of a layer with an adapter, by lora.target
# Copies of the logits at once in float32: their log-softmax, and two more for the entropy or for the gradient; another
# one with a gradient of the entropy. In bfloat16 those of the head and of its gradient are one more.
_COPIES = {"float32": 3, "bfloat16": 4}
_TILE_COPIES, _TEACHER_COPIES = 3, 2  # copies of a tile of logits at once, and of the teacher's beside it
_RESIDENT = (
    "weights", "optimiser", "reference", "critic", "reward_models", "teacher", "waiting_weights", "checkpoint",
    "overhead",
)  # fmt: skip
_OVERHEAD = 28 * 2**20  # code of kernels that the first update reads, modules and Python's objects; on a CPU
_VLLM_OVERHEAD = 2**30  # its activations and CUDA graphs
_PAGE = 2**21  # bytes from which a tensor begins at a page of its own, in the heap of a CPU
# TRPO: vectors as long as the weights in a product of its conjugate gradient, and what the graph of a derivative that
# is derived again takes, relative to that of one pass. Measured on a CPU with models of 5M and 23M parameters.
_TRPO_VECTORS, _TRPO_PASSES = 13, 2.7
_algorithm_of = lru_cache(maxsize=8)(resolve_algorithm)  # of many estimates
_SAMPLING_COPIES = 4  # copies of their next token's logits at once: log-probabilities, random bits and numbers, sums


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """The memory that a run needs. `model` may be on the meta device: only its shape is read."""

    model: PreTrainedModel
    cfg: Config
    longest_prompt: int  # tokens
    device: str  # "cpu" or "cuda"
    total: int  # bytes of the device's memory

    @property
    def available(self) -> float:
        """Bytes that a prediction may use."""
        return (1 - HEADROOM) * self.total

    def changed(self, section: str, **values: object) -> MemoryEstimate:
        """The estimate for other values of a section's settings."""
        own = replace(getattr(self.cfg, section), **values)
        return replace(self, cfg=replace(self.cfg, **{section: own}))

    def parts(self) -> dict[str, int]:
        """Bytes of each part. With LoRA only the adapter is trained, and the weights without it are the reference."""
        cfg, model = self.cfg, self.model
        parameters, algorithm = model.num_parameters(), _algorithm_of(cfg.algo)
        is_lora = cfg.lora.rank > 0
        trained = num_adapter_parameters(model, cfg.lora) if is_lora else parameters
        critic = trained if algorithm.critic and algorithm.critic_backbone == "separate" else 0
        has_reference = cfg.algo.beta > 0 and not is_lora
        is_trpo = self._is_trpo
        moments = 0 if is_trpo else 8 * trained
        checkpoint = 4 * trained + moments + 12 * critic  # written from a copy on a CPU
        part = {
            "weights": _bytes_held(model, cfg.lora.base_dtype) + (4 * trained if is_lora else 0),
            "gradients": 4 * trained * (_TRPO_VECTORS if is_trpo else 1),
            "optimiser": moments,
            "reference": _bytes_held(model, cfg.optim.dtype) if has_reference else 0,
            "critic": 12 * critic,  # its gradients are freed before those of the policy are computed
            "reward_models": self._loaded("reward.model", *parse_reward_models(cfg.reward.model)),
            "teacher": self._loaded("teacher.model", *filter(None, [cfg.teacher.loaded])),
            "waiting_weights": self._waiting_weights(),
            "checkpoint": checkpoint if self.device == "cpu" and checkpoint <= MOST_COPIED else 0,
            "overhead": _OVERHEAD if self.device == "cpu" else 0,
            **self._engine(),
            **{name: int(size * (_TRPO_PASSES if is_trpo else 1)) for name, size in self._micro_batch().items()},
        }
        return part | {"gaps": self._gaps(part.pop("temporaries"), part.pop("small_temporaries"))}

    def peak(self) -> int:
        """Most bytes at once. Weights and optimiser state stay for the whole run, and with max_off_policy_steps above 1
        copies of the weights wait in the machine's memory.
        """
        part = self.parts()
        training = part["gradients"] + passes_peak(part) + part["gaps"]
        return sum(part[name] for name in _RESIDENT) + self.beside_engine(training, part)

    def beside_engine(self, training: int, part: Mapping[str, int]) -> int:
        """Most bytes of training and engine: gradients are freed before the engine samples, and it frees its cache
        while the trainer works, vLLM on a GPU its weights too. With max_off_policy_steps above 0 it keeps them.
        """
        engine = part["engine_weights"]
        cache = part["engine_cache"] + part["engine_logits"] + part.get("synced_tensor", 0)
        if self.cfg.max_off_policy_steps:
            return training + engine + cache
        frees_weights = self.device != "cpu" and self._has_vllm()
        return max(training, engine + cache) if frees_weights else engine + max(training, cache)

    def _gaps(self, temporaries: int, small: int) -> int:
        """Bytes of the heap's gaps on a CPU at the peak: what a layer computes and does not store. malloc does not use
        the blocks of small tensors again for tensors of the same size, so that those of every layer stay between the
        activations that it stores; where layers are computed again, those of one layer do.
        """
        if self.device != "cpu":
            return 0
        return temporaries + (0 if self._recomputes else (model_sizes(self.model).layers - 1) * small)

    @property
    def _is_trpo(self) -> bool:
        return _algorithm_of(self.cfg.algo).trust == "constrained"

    @property
    def _recomputes(self) -> bool:
        """Whether layers are computed again; those that TRPO derives twice are not."""
        return self.cfg.optim.recompute and not self._is_trpo

    def fits_share(self, rows: int = 1) -> bool:
        """Whether vLLM's fraction of the GPU holds it with so many sequences. True without vLLM or GPU."""
        share = self.cfg.engine.gpu_memory * self.total
        return self.device == "cpu" or not self._has_vllm() or self.vllm_bytes(rows) <= share

    def vllm_bytes(self, rows: int) -> int:
        """Bytes of vLLM on a GPU: its weights, its own, and the cache of so many completions of full length."""
        part = self.changed("engine", gpu_memory=1 / self.total).parts()  # the cache of one, at least
        return part["engine_weights"] + rows * part["engine_cache"] + _VLLM_OVERHEAD

    def _loaded(self, key: str, *names: str) -> int:
        """Bytes of the models that a setting names. ValueError for one of the hub that is not downloaded."""
        total = 0
        for name in names:
            folder = resolve_cached_model(name, runs=Path(self.cfg.run.dir))
            if folder is None:
                raise ValueError(f"{key} names {name}, which is not in the cache: download it first")
            total += _BYTES[self.cfg.optim.dtype] * (num_parameters(folder) or 0)
        return total

    def _waiting_weights(self) -> int:
        """Bytes of the copies of the weights that wait in the machine's memory for steps sampled ahead: one for each of
        max_off_policy_steps above 1, a tied output layer with a copy of its own. vLLM gets the LoRA adapter alone,
        servers all weights.
        """
        copies, lora = self.cfg.max_off_policy_steps, self.cfg.lora
        if copies <= 1 or self.device != "cpu":
            return 0
        if lora.rank and self._has_vllm():
            return copies * 4 * num_adapter_parameters(self.model, lora)
        return copies * 4 * (self.model.num_parameters() + model_sizes(self.model).tied)

    def _has_vllm(self) -> bool:
        return resolve_engine_name(self.cfg.engine) == "vllm"

    def _engine(self) -> dict[str, int]:
        """Bytes of the engine's weights, of its cache for the sequences in flight, and of their logits. vLLM bounds its
        cache; on a GPU all three together are a fraction of the whole memory. Nothing where servers sample.
        """
        if self.cfg.engine.urls:
            return {"engine_weights": 0, "engine_cache": 0, "engine_logits": 0}
        size = 4 if self.cfg.engine.dtype == "float32" else 2
        weights, sizes = size * self.model.num_parameters(), model_sizes(self.model)
        width = min(context_length(self.model), self.longest_prompt + self.cfg.sampling.max_tokens)
        row, rows = width * sizes.keys * sizes.layers * size, self.cfg.completions_per_step
        if self._has_vllm() and self.device == "cuda":
            share = int(self.cfg.engine.gpu_memory * self.total)
            return {"engine_weights": weights, "engine_cache": max(row, share - weights), "engine_logits": 0}
        if self._has_vllm():
            cache = min(self.cfg.engine.cpu_cache_gib * 2**30, rows * row)
        else:  # of one layer also what it was before the last token, and keys and values for each query head
            most_tokens = max(width, min(self.cfg.engine.max_batch_tokens, min(MAX_ROWS, rows) * width))
            repeated = 2 * sizes.query if 2 * sizes.query > sizes.keys else 0
            cache = most_tokens * size * (sizes.keys * (sizes.layers + 1) + repeated)
        logits = _SAMPLING_COPIES * 4 * sizes.vocabulary * min(MAX_ROWS, rows)
        return {"engine_weights": weights, "engine_cache": cache, "engine_logits": logits}

    def _micro_batch(self) -> dict[str, int]:
        """Bytes of the passes of the micro-batch that takes most: of responses as long as they may be, or of as many
        rows as there can be, each of which copies the keys and values of its prompt.
        """
        cfg = self.cfg
        most, limit = cfg.optim.micro_batch_tokens, cfg.sampling.max_tokens
        num_prompts = max(1, min(most // self.longest_prompt, cfg.data.prompts_per_step))
        num_rows = num_prompts * cfg.algo.group_size
        lengths = {limit, max(1, min(limit, most // num_rows))}
        parts = [self._passes(num_prompts, min(num_rows, max(1, most // length)), length) for length in lengths]
        return max(parts, key=passes_peak)

    def _passes(self, num_prompts: int, rows: int, length: int) -> dict[str, int]:
        """Bytes that autograd stores for `rows` of `length` tokens and their prompts until the backward pass."""
        sizes, size, recompute = model_sizes(self.model), _BYTES[self.cfg.optim.dtype], self._recomputes
        tokens, prompts, lora = rows * length, num_prompts * self.longest_prompt, self.cfg.lora
        of_norm = 4 if lora.rank else 2 * 4
        of_adapter = size * lora.rank * _NUM_ADAPTED[lora.target]  # A x of each
        backbone, context = self.model.base_model, self.longest_prompt + length
        of_completions = sizes.activations(rows, length, size, of_norm, context=context)
        is_packed = self.device == "cuda" and size == 2 and sees_all(backbone)
        if is_packed or avoids_mask(backbone, length - 1, torch.device(self.device)):
            of_completions -= size * tokens * context  # the mask
        if is_packed:
            of_completions -= size * rows * context * (2 * sizes.query - sizes.keys)  # keys and values are not repeated
        of_prompts = sizes.activations(num_prompts, self.longest_prompt, size, of_norm, context=self.longest_prompt)
        of_completions, of_prompts = of_completions + of_adapter * tokens, of_prompts + of_adapter * prompts
        last = (tokens + prompts) * (of_norm + size) * sizes.hidden  # the last norm
        back = 2 * size * sizes.inner * max(tokens, prompts)  # gradients of one layer in the backward pass
        shared = 2 * size * sizes.keys * prompts  # keys and values that completions read, and their gradients
        stored = 4 * sizes.hidden * (tokens + prompts) if recompute else of_completions + of_prompts
        # A small tied embedding's gradient is held from the head's backward pass to that of the input.
        tied = 0 if lora.rank or sizes.is_summed_in_place else 4 * sizes.tied
        # Autocast casts float32 weights to bfloat16 for the prompts' pass and again for the completions'; both are
        # stored, unless layers are computed again: then each layer frees its own.
        base = self.model.num_parameters() - sizes.embeddings if lora.base_dtype == "float32" else 0
        casts = 2 * (base + (num_adapter_parameters(self.model, lora) if lora.rank else 0)) if size == 2 else 0
        # A layer in bfloat16 has gradients of four float32 states of a token, and computed again its own cast weights.
        back += 4 * 4 * sizes.hidden * max(tokens, prompts) if size == 2 else 0
        low = casts // sizes.layers
        temporaries = [max(tokens, prompts) * one for one in sizes.temporaries(size, has_adapter=lora.rank > 0)]
        return {
            "low_precision_weights": 0 if recompute else 2 * casts,
            "activations": (stored + shared) * sizes.layers + last,
            "layer": back + (max(of_completions, of_prompts) + tied + low if recompute else 0),
            "temporaries": sum(temporaries),
            "small_temporaries": sum(one for one in temporaries if one < _PAGE),
            "logits": self._logits(tokens, sizes),
        }

    def _logits(self, tokens: int, sizes: ModelSizes) -> int:
        """Bytes of the output layer's logits, and where they are computed in tiles of the gradients of its states and
        its weight. LoRA freezes the weight; the gradient of a large one is added to the sum without a copy.
        """
        logits = tokens * sizes.vocabulary
        is_frozen, is_in_place = self.cfg.lora.rank > 0, sizes.is_summed_in_place
        has_teacher = bool(self.cfg.teacher.model) and self.cfg.teacher.kl == "full"
        if logits <= MAX_LOGITS and (is_frozen or not is_in_place) and not has_teacher:
            return (_COPIES[self.cfg.optim.dtype] + (self.cfg.algo.entropy_coef > 0)) * 4 * logits
        tile = min(logits, CPU_TILE if self.device == "cpu" else GPU_TILE)
        weight = 0 if is_frozen or is_in_place else sizes.vocabulary
        return (_TILE_COPIES + _TEACHER_COPIES * has_teacher) * 4 * tile + 4 * sizes.hidden * (tokens + weight)


def passes_peak(part: Mapping[str, int]) -> int:
    """Most bytes that the forward and backward pass of a micro-batch and its prompts add. The backward pass of a layer
    begins when that of the head has freed its logits.
    """
    return part["activations"] + part["low_precision_weights"] + max(part["logits"], part["layer"])


@dataclass(frozen=True, slots=True)
class ModelSizes:
    """H, Q, K, I, V, the number of layers, parameters of the embeddings, and whether queries and keys have a norm."""

    hidden: int
    query: int
    keys: int
    inner: int
    vocabulary: int
    layers: int
    embeddings: int
    has_query_norm: bool

    @property
    def head(self) -> int:
        """Values of the output layer."""
        return self.hidden * self.vocabulary

    @property
    def tied(self) -> int:
        """Values of the embeddings if input and output share them, else 0."""
        return self.embeddings if self.embeddings == self.head else 0

    @property
    def is_summed_in_place(self) -> bool:
        """Whether the gradients of the embeddings are added in place (reasoner.models.embedding_gradients)."""
        return self.head >= MIN_VALUES

    def activations(self, rows: int, length: int, size: int, of_norm: int, *, context: int) -> int:
        """Bytes that autograd stores in a layer for `rows` of `length` tokens that see `context` tokens: for each of
        two norms `of_norm` bytes of a state (the input in float32, and if the norm is trained the normalised state) and
        the result for each linear layer in its precision (float32 shares one result); queries and the attention's
        output; the token's row of the mask; four intermediate states of a gated feed-forward; the norms of queries and
        keys, where the model has them; and keys and values, repeated for every query head.
        """
        norms = (2 * of_norm + (2 * 4 if size == 4 else 5 * size)) * self.hidden
        norms += (4 + size) * (self.query + self.keys // 2) if self.has_query_norm else 0
        of_token = norms + size * (2 * self.query + context + 4 * self.inner)
        return rows * (length * of_token + 2 * self.query * size * context)

    def temporaries(self, size: int, *, has_adapter: bool) -> list[int]:
        """Bytes for a token of each tensor that a layer's forward pass computes and does not store: four states
        (squares in two norms, the results of attention and feed-forward before they are added), queries and keys before
        their rotation and four steps of it, keys and values before they are repeated; with an adapter B A x of each
        linear layer.
        """
        keys = self.keys // 2
        widths = [self.hidden] * 4 + [self.query] * 5 + [keys] * 9
        widths += [self.query, keys, keys, self.hidden, self.hidden, self.inner, self.inner] if has_adapter else []
        return [size * width for width in widths]


def model_sizes(model: PreTrainedModel) -> ModelSizes:
    """Read the dimensions from the model's config and modules."""
    config: Any = model.config.get_text_config()
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    key_heads = getattr(config, "num_key_value_heads", None) or heads
    inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    ends: Any = (model.get_input_embeddings(), model.get_output_embeddings())  # type: ignore[no-untyped-call]
    return ModelSizes(
        hidden=config.hidden_size,
        query=heads * size,
        keys=2 * key_heads * size,
        inner=inner,
        vocabulary=config.vocab_size,
        layers=int(config.num_hidden_layers),
        embeddings=sum({id(end.weight): end.weight.numel() for end in ends}.values()),  # tied ones count once
        has_query_norm=any(name.endswith("q_norm") for name, _ in model.named_modules()),
    )


def _bytes_held(model: PreTrainedModel, dtype: str) -> int:
    """Bytes of the model's weights in the precision; vectors are always float32 (reasoner.models.precision)."""
    return sum(parameter.numel() * (_BYTES[dtype] if parameter.ndim > 1 else 4) for parameter in model.parameters())


def memory_of(device: torch.device) -> tuple[int | None, int]:
    """(available bytes, total bytes) of the GPU, or of the machine for a CPU; available is None where unknown."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None, 0
    meminfo = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}
    return min(meminfo["MemAvailable"], _container_limit()), meminfo["MemTotal"]


def _container_limit() -> int:
    """Bytes that the container's limit leaves to its processes; sys.maxsize without a limit."""
    folder = Path("/sys/fs/cgroup")
    try:
        stat = dict(line.split() for line in (folder / "memory.stat").read_text().splitlines())
        # Cached files are evicted first.
        used = int((folder / "memory.current").read_text()) - int(stat["inactive_file"])
        return int((folder / "memory.max").read_text()) - used
    except (OSError, ValueError, KeyError):
        return sys.maxsize


def peak_memory(device: torch.device) -> int:
    """Most bytes that this process has used at once: of GPU memory where the device is one."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
