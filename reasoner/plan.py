"""Before a run starts: which problems can be asked, and what is going to happen."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from data import Problem
from reasoner.config import Config
from reasoner.prompts import Template, render
from reasoner.types import Prompt


def askable(
    problems: Sequence[Problem], asked: Template, tokenizer: PreTrainedTokenizerBase, cfg: Config, context: int
) -> list[Prompt]:
    """The problems as prompts, without those that are too long, of which it tells the number.

    ValueError when none is left.
    """
    room = context - cfg.sampling.max_tokens
    limit = min(room, cfg.data.max_prompt_tokens) if cfg.data.max_prompt_tokens else room
    if limit < 1:
        raise ValueError(
            f"sampling.max_tokens is {cfg.sampling.max_tokens}; "
            f"the model's context of {context} tokens leaves no room for a question"
        )
    prompts = [render(problem, asked, tokenizer) for problem in problems]
    kept = [prompt for prompt in prompts if len(prompt.token_ids) <= limit]
    if not kept:
        shortest = min(len(prompt.token_ids) for prompt in prompts)
        raise ValueError(
            f"every one of {len(prompts)} questions is longer than the {limit} tokens that the "
            f"context of {context} leaves beside "
            f"sampling.max_tokens = {cfg.sampling.max_tokens}; the shortest has {shortest}"
        )
    if len(kept) < len(prompts):
        _say(f"left out {len(prompts) - len(kept)} of {len(prompts)} questions: longer than {limit} tokens")
    return kept


def announce(cfg: Config, policy: PreTrainedModel, prompts: Sequence[Prompt], run_dir: Path, start: int) -> None:
    """The plan, a line a subject."""
    parameters = sum(p.numel() for p in policy.parameters())
    per_step = cfg.data.prompts_per_step * cfg.algo.group
    lines = {
        "model": f"{cfg.model}, {parameters / 1e6:.1f}M parameters on {policy.device}",
        "problems": f"{cfg.data.train}: {len(prompts):,} questions, {cfg.data.prompts_per_step} a step",
        "algorithm": f"{cfg.algo.name}, G = {cfg.algo.group}, beta {cfg.algo.beta:g} ({cfg.algo.kl}), "
        f"lr {cfg.optim.lr:g}, seed {cfg.seed}",
        "steps": f"{start} to {cfg.steps}, {per_step} completions of at most {cfg.sampling.max_tokens} tokens each",
        "run folder": str(run_dir),
        "expected time": "said after the first step; " + _EXPECTED.get(cfg.model, "not measured for this model"),
    }
    for name, value in lines.items():
        _say(f"{name + ':':<15}{value}")


_EXPECTED = {"base": "about ten minutes on two cores"}


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
