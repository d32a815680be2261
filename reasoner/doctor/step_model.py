"""Time of a training step on N GPUs: a model made of data sheets and the assumptions below, not a measurement.

Colocated: every rank samples its share of the prompts with an engine of its own, all ranks wait for the longest
completion, exchange the rollouts, and then pass over their share of the tokens. All functions are pure. Letters: P
parameters, N ranks; times in seconds, sizes in bytes, bandwidths in bytes a second.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from math import ceil

from reasoner.doctor.gpus import GPUS_PER_NODE, Gpu

# Share of the data sheet's FLOP/s that passes over long micro-batches reach. Assumed: training frameworks report 30 %
# to 50 % for dense models.
PASS_EFFICIENCY = 0.4
# Share of the memory's bandwidth that decoding reaches. Assumed: 256 rows of a 7B model on an H100 then take about
# 10 ms a token.
DECODE_EFFICIENCY = 0.7
LINK_EFFICIENCY = 0.8  # share of a link's bandwidth that a collective of large tensors reaches; assumed
EXCHANGE_BANDWIDTH = 1e9  # of rollouts, which are gathered by gloo over TCP; assumed
BYTES_PER_TOKEN = 12  # of a rollout in an exchange: measured, 12 MB for 1,024 completions of 1,000 tokens
_BYTES_PER_VALUE = 4  # of a token's statistics: rl.token_stats
MAX_ROWS = 512  # completions that an engine samples at once: inference.vllm_engine
LATENCY_LIMIT = 0.5  # share of a step that its longest completion alone takes, above which servers apart pay


@dataclass(frozen=True, slots=True)
class ModelShape:
    """What decides the time of a model's passes."""

    parameters: int
    trained: int  # parameters: all, or those of a LoRA adapter
    keys_bytes: int  # of the keys and values of a token in the engine's cache, all layers


@dataclass(frozen=True, slots=True)
class StepWork:
    """A training step, of all ranks together."""

    prompts: int
    group_size: int
    prompt_tokens: int
    mean_tokens: float  # of a completion
    longest: int  # tokens of the longest completion
    epochs: int = 1  # passes of the update over the batch
    minibatches: int = 1  # optimiser steps of each
    critic_epochs: int = 0  # passes of the update of a critic with a backbone of its own
    critic_minibatches: int = 1
    token_values: int = 0  # statistics of every token that the first rank gets and writes
    forward_passes: int = 0  # besides those of updates: reference, old log-probabilities, values
    recompute: bool = False
    micro_batch_tokens: int = 16_384

    @property
    def tokens(self) -> float:
        """Tokens of prompts and completions that a pass computes; a prompt once for its group."""
        return self.prompts * (self.prompt_tokens + self.group_size * self.mean_tokens)

    @property
    def updates(self) -> int:
        """Optimiser steps of the policy and of a critic of its size."""
        return self.epochs * self.minibatches + self.critic_epochs * self.critic_minibatches


@dataclass(frozen=True, slots=True)
class StepTime:
    """Seconds of the parts of a step on each rank."""

    sampling: float  # while most rows are active
    tail: float  # waiting for the longest completion
    exchange: float  # of the rollouts, and of the statistics of their tokens
    passes: float  # forward and backward, reference and old log-probabilities
    gradients: float  # sums and gathers between the ranks
    sync: float  # weights into the engine

    @property
    def total(self) -> float:
        return float(sum(asdict(self).values()))


def decode_seconds(model: ModelShape, gpu: Gpu, *, rows: int, context: float) -> float:
    """One decoding step: the weights in bfloat16 and the cache of all rows are read once, 2P FLOP a row are computed;
    the slower of the two counts.
    """
    read = 2 * model.parameters + rows * context * model.keys_bytes
    compute = 2 * model.parameters * rows / (PASS_EFFICIENCY * gpu.flops)
    return max(read / (DECODE_EFFICIENCY * gpu.memory_bandwidth), compute)


def sampling_seconds(model: ModelShape, gpu: Gpu, work: StepWork, ranks: int) -> tuple[float, float]:
    """(seconds until the mean length, seconds from there to the longest completion) of one rank's share: full batches
    for the mean length, then a single row; and the prompts' pass of 2P FLOP a token.
    """
    prompts = ceil(work.prompts / ranks)
    rows = prompts * work.group_size
    waves = ceil(rows / MAX_ROWS)
    context = work.prompt_tokens + work.mean_tokens / 2
    full = decode_seconds(model, gpu, rows=ceil(rows / waves), context=context)
    prefill = 2 * model.parameters * prompts * work.prompt_tokens / (PASS_EFFICIENCY * gpu.flops)
    tail = (work.longest - work.mean_tokens) * _single_row_seconds(model, gpu, work)
    return prefill + waves * work.mean_tokens * full, tail


def _single_row_seconds(model: ModelShape, gpu: Gpu, work: StepWork) -> float:
    """A decoding step of one completion."""
    return decode_seconds(model, gpu, rows=1, context=work.prompt_tokens + work.longest)


def latency_share(model: ModelShape, gpu: Gpu, work: StepWork, ranks: int, sharding: str) -> float:
    """The share of a step that its longest completion takes alone, on any number of GPUs."""
    latency = work.longest * _single_row_seconds(model, gpu, work)
    return latency / step_time(model, gpu, work, ranks, sharding).total


def pass_seconds(model: ModelShape, gpu: Gpu, work: StepWork, ranks: int) -> float:
    """2P FLOP a token forward, 4P backward, 2P where layers are computed again (Kaplan et al. 2020, section 2.1; the
    products of the attention, quadratic in the length, are left out). LoRA has no gradients of the weights: 2P less.
    A critic of its own has the policy's backbone.
    """
    of_update = 6 + 2 * work.recompute - (2 if model.trained < model.parameters else 0)
    passes = of_update * (work.epochs + work.critic_epochs) + 2 * work.forward_passes
    flops = passes * model.parameters * work.tokens / ranks
    return flops / (PASS_EFFICIENCY * gpu.flops)


def ring_seconds(size: float, ranks: int, gpu: Gpu) -> float:
    """One gather or reduce-scatter of `size` bytes in a ring: each rank sends (N-1)/N of them (Patarasuk and Yuan
    2009); a sum of all ranks on all ranks is both. The slowest link of the ring counts.
    """
    bandwidth = gpu.link if ranks <= GPUS_PER_NODE else gpu.network
    return (ranks - 1) / ranks * size / (LINK_EFFICIENCY * bandwidth)


def gradient_seconds(model: ModelShape, gpu: Gpu, work: StepWork, ranks: int, sharding: str) -> float:
    """Collectives of the passes in float32. Replicated: one sum of the gradients an optimiser step. Gathered: the
    weights once and the gradients once an optimiser step, and the weights once for each forward pass over the batch.
    Sharded, for every micro-batch: the weights for the forward and again for the backward pass, and the gradients.
    Nothing is taken to overlap with computation.
    """
    gather, reduce = ring_seconds(4.0 * model.parameters, ranks, gpu), ring_seconds(4.0 * model.trained, ranks, gpu)
    if sharding == "replicated":
        return work.updates * 2 * reduce
    if sharding == "gathered":
        return work.updates * (gather + reduce) + work.forward_passes * gather

    def micro_batches(epochs: int, minibatches: int = 1) -> int:
        return epochs * minibatches * ceil(work.tokens / minibatches / ranks / work.micro_batch_tokens)

    number = micro_batches(work.epochs, work.minibatches) + micro_batches(work.critic_epochs, work.critic_minibatches)
    return number * (2 * gather + reduce) + micro_batches(work.forward_passes) * gather


def sync_seconds(model: ModelShape, gpu: Gpu, ranks: int, sharding: str) -> float:
    """Read the weights in float32 and write them in bfloat16; from shards they are gathered first."""
    gather = 0.0 if sharding == "replicated" else ring_seconds(4.0 * model.parameters, ranks, gpu)
    return gather + 6 * model.parameters / (DECODE_EFFICIENCY * gpu.memory_bandwidth)


def step_time(model: ModelShape, gpu: Gpu, work: StepWork, ranks: int, sharding: str) -> StepTime:
    """The parts of a step on `ranks` GPUs that hold the models as `sharding` says (optim.sharding)."""
    sampling, tail = sampling_seconds(model, gpu, work, ranks)
    bytes_of_token = BYTES_PER_TOKEN + _BYTES_PER_VALUE * work.token_values
    num_bytes = bytes_of_token * work.prompts * work.group_size * work.mean_tokens
    return StepTime(
        sampling=sampling,
        tail=tail,
        exchange=(ranks - 1) / ranks * num_bytes / EXCHANGE_BANDWIDTH,
        passes=pass_seconds(model, gpu, work, ranks),
        gradients=gradient_seconds(model, gpu, work, ranks, sharding),
        sync=sync_seconds(model, gpu, ranks, sharding),
    )


def servers_from(model: ModelShape, gpu: Gpu, work: StepWork, sharding: str) -> int | None:
    """The smallest number of GPUs, of 1, 2, 4 to 1,024, at which the longest completion alone takes more than
    LATENCY_LIMIT of the step, so that more GPUs hardly help: from there on servers apart, which sample while the
    trainer works, pay. None where there is none.
    """
    sizes = (2**power for power in range(11))
    return next((n for n in sizes if latency_share(model, gpu, work, n, sharding) > LATENCY_LIMIT), None)
