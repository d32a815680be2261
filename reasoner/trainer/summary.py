"""What a run is going to do, told before its first step."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from transformers import PreTrainedModel

from reasoner.config.schema import Config
from reasoner.console import log
from reasoner.models.sharding import is_sharded, num_own_values
from reasoner.rl.algorithms import Algorithm
from reasoner.types import Prompt


def log_run_summary(
    cfg: Config, algorithm: Algorithm, policy: PreTrainedModel, prompts: Sequence[Prompt], run_dir: Path, start: int
) -> None:
    """The plan, a line a subject."""
    parameters = sum(p.numel() for p in policy.parameters())
    per_step = cfg.data.prompts_per_step * cfg.algo.group_size
    lines = {
        "model": f"{cfg.model}, {parameters / 1e6:.1f}M parameters on {policy.device}"
        + (f", {num_own_values(policy) / 1e6:.1f}M of them in this process" if is_sharded(policy) else ""),
        "problems": f"{cfg.data.train}: {len(prompts):,} questions, {cfg.data.prompts_per_step} a step",
        "algorithm": f"{cfg.algo.name}, G = {cfg.algo.group_size}, "
        f"beta {cfg.algo.beta:g} ({algorithm.kl} in the {algorithm.kl_in}), lr {cfg.optim.lr:g}, seed {cfg.seed}"
        + (f"; CONTROL ARM: rewards are {cfg.control}" if cfg.control else ""),
        "steps": f"{start} of {cfg.steps} done; "
        f"{per_step} completions a step, of at most {cfg.sampling.max_tokens} tokens each",
        "run folder": str(run_dir),
        "expected time": "said after the first step; " + _EXPECTED.get(cfg.model, "not measured for this model"),
    }
    for name, value in lines.items():
        log(f"{name + ':':<15}{value}")


_EXPECTED = {"base": "about ten minutes on two cores"}
