"""What a run needs of memory and disk, part by part: by formula before anything large is made, and as it was seen.

Letters of the formulas: H width, K keys and values of a token and layer, I inner width, V vocabulary.
"""

from __future__ import annotations

import resource
import shutil
import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import PreTrainedModel

from reasoner.checkpoint import nearest, room_needed
from reasoner.config import Config
from reasoner.doctor.extent import extent
from reasoner.doctor.lines import Line, Mark
from reasoner.models import MOST_LOGITS
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.learner import Learner

_MIB = 2**20
_COPIES = 5  # of the logits: as made, divided by the temperature, log-softmax, entropy, gradient
_SEQUENCES = 256  # that the transformers engine has in flight
_SMALLEST = 256  # tokens of a micro-batch that is worth proposing


def parts(policy: PreTrainedModel, algorithm: Algorithm, cfg: Config, context: int, prompt: int) -> dict[str, int]:
    """Bytes by part. `prompt`: tokens of the longest one."""
    parameters = sum(parameter.numel() for parameter in policy.parameters())
    critic = parameters if algorithm.critic and algorithm.trunk == "own" else 0
    width = min(context, prompt + cfg.sampling.max_tokens)
    return {
        "weights": 4 * parameters,
        "gradients": 4 * parameters,
        "optimiser": 8 * parameters,
        "reference": 4 * parameters if cfg.algo.beta > 0 else 0,
        "critic": 16 * critic,
        "engine_weights": (2 if cfg.engine.dtype == "bfloat16" else 4) * parameters,
        "engine_cache": _engine_cache(policy, cfg, width),
        **_micro_batch(policy, cfg, prompt),
    }


def _engine_cache(policy: PreTrainedModel, cfg: Config, width: int) -> int:
    """Of the sequences in flight. vLLM's is no larger than it may be, and on a GPU a share of the whole memory."""
    size = 2 if cfg.engine.dtype == "bfloat16" else 4
    _, keys, _, _ = _sizes(policy)
    row, rows = width * keys * _layers(policy) * size, extent(cfg).per_step
    if cfg.engine.name != "transformers" and find_spec("vllm") is not None:
        return min(cfg.engine.cpu_cache_gib * 2**30, rows * row) if policy.device.type == "cpu" else 0
    return 2 * min(_SEQUENCES, rows) * row  # twice: a cache grows by copying


def _micro_batch(policy: PreTrainedModel, cfg: Config, prompt: int) -> dict[str, int]:
    """What stays of a micro-batch, and of the prompts that its rows read, until the gradient has come back."""
    hidden, keys, inner, vocabulary = _sizes(policy)
    size = 2 if cfg.optim.dtype == "bfloat16" else 4
    tokens = min(cfg.optim.micro_batch_tokens, extent(cfg).per_step * cfg.sampling.max_tokens)
    prompts = min(cfg.optim.micro_batch_tokens, cfg.data.prompts_per_step * prompt)
    read = 2 * prompt * tokens // cfg.sampling.max_tokens  # each row has its prompt's keys and values beside its own
    states = (tokens + prompts) * (8 * hidden + 2 * keys + 4 * inner) + (tokens + read) * 2 * keys
    logits = min(tokens * vocabulary, MOST_LOGITS)
    return {"activations": states * _layers(policy) * size, "logits": _COPIES * 4 * logits}


def _sizes(policy: PreTrainedModel) -> tuple[int, int, int, int]:
    """H, K, I, V."""
    config = policy.config.get_text_config()
    heads = config.num_attention_heads
    size = getattr(config, "head_dim", None) or config.hidden_size // heads
    key_heads = getattr(config, "num_key_value_heads", None) or heads
    inner = getattr(config, "intermediate_size", None) or 4 * config.hidden_size
    return config.hidden_size, 2 * key_heads * size, inner, config.vocab_size


def _layers(policy: PreTrainedModel) -> int:
    return int(policy.config.get_text_config().num_hidden_layers)


def memory_line(needed: dict[str, int], policy: PreTrainedModel, cfg: Config) -> Line:
    """Is there room? The engine's cache is given back while the learner works, on a GPU its weights too; not so where
    the run samples ahead.
    """
    free, whole = _free(policy.device)
    resident = sum(needed[name] for name in ("weights", "optimiser", "reference", "critic"))
    learning = needed["gradients"] + needed["activations"] + needed["logits"]
    cache = needed["engine_cache"]
    if policy.device.type == "cuda":
        cache = int(cfg.engine.gpu_memory * whole)
    else:
        resident += needed["engine_weights"]
    peak = resident + (learning + cache if cfg.ahead else max(learning, cache))
    told = ", ".join(f"{name.replace('_', ' ')} {size / _MIB:,.0f}" for name, size in needed.items() if size)
    text = f"{peak / _MIB:,.0f} MiB by formula ({told})"
    if free is None:
        return Line(Mark.OK, "memory", text)
    text += f"; {free / _MIB:,.0f} free"
    if peak - needed["weights"] <= free:  # the weights are there already
        return Line(Mark.OK, "memory", text)
    return Line(Mark.NO, "memory", text, _smaller(needed, peak - free, cfg))


def _smaller(needed: dict[str, int], missing: int, cfg: Config) -> str:
    """The setting that frees so many bytes, if one does."""
    moving = needed["activations"] + needed["logits"]
    if missing < moving:
        tokens = int(cfg.optim.micro_batch_tokens * (1 - missing / moving))
        if tokens >= _SMALLEST:
            return f"--optim.micro_batch_tokens {2 ** (tokens.bit_length() - 1)}"
    return "--algo.beta 0" if 0 < missing <= needed["reference"] else ""


def _free(device: torch.device) -> tuple[int | None, int]:
    """(bytes that can still be had, bytes of the device); None where nobody says."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
    except OSError:
        return None, 0
    known = {line.split(":")[0]: 1024 * int(line.split()[1]) for line in lines}
    return min(known["MemAvailable"], _left_to_us()), known["MemTotal"]


def _left_to_us() -> int:
    """What a container leaves to its processes; no limit is a very large number."""
    folder = Path("/sys/fs/cgroup")
    try:
        return int((folder / "memory.max").read_text()) - int((folder / "memory.current").read_text())
    except (OSError, ValueError):
        return sys.maxsize


def peak_memory(device: torch.device) -> int:
    """The most bytes that this process has had at once: on the GPU where there is one."""
    if device.type == "cuda":
        return torch.cuda.max_memory_allocated(device)
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def disk_line(
    run_dir: Path, learner: Learner, cfg: Config, *, tokens: float, bytes_per_token: float
) -> tuple[Line, dict[str, float]]:
    """`tokens`: sampled by all steps. The rule for checkpoints is the one that a run begins with."""
    free = shutil.disk_usage(nearest(run_dir)).free
    rollouts = bytes_per_token * tokens
    checkpoint, checkpoints = room_needed(learner, keep=cfg.run.keep)
    needed = checkpoints + rollouts
    figures = {"checkpoint": checkpoint, "rollouts": rollouts, "needed": needed, "free": free}
    figures["bytes_per_token"] = bytes_per_token
    text = (
        f"{needed / _MIB:,.0f} MiB in all: {rollouts / _MIB:,.1f} of rollouts ({bytes_per_token:.0f} bytes a token), "
        f"{checkpoint / _MIB:,.0f} each checkpoint, {cfg.run.keep} kept; {free / _MIB:,.0f} free in {nearest(run_dir)}"
    )
    if needed <= free:
        return Line(Mark.OK, "disk", text), figures
    fewer = cfg.run.keep > 1 and needed - (cfg.run.keep - 1) * checkpoint <= free
    return Line(Mark.NO, "disk", text, "--run.keep 1" if fewer else ""), figures
