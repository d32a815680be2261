"""Before a run starts: which problems can be asked, and what is going to happen."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from data import Problem
from reasoner.config.schema import Config
from reasoner.rl.algorithms import Algorithm
from reasoner.rollouts.prompts import Template, render
from reasoner.types import Prompt
from verifiers import grade

if TYPE_CHECKING:
    from transformers import PreTrainedModel, PreTrainedTokenizerBase


def askable(
    problems: Sequence[Problem], asked: Template, tokenizer: PreTrainedTokenizerBase, cfg: Config, context: int
) -> list[Prompt]:
    """The problems as prompts, without those that cannot be graded or are too long, of which it tells.

    ValueError when none is left.
    """
    limit = most_question_tokens(cfg, context)
    prompts = [render(problem, asked, tokenizer) for problem in gradable(problems)]
    kept = [prompt for prompt in prompts if len(prompt.token_ids) <= limit]
    if not kept:
        shortest = min(len(prompt.token_ids) for prompt in prompts)
        raise ValueError(
            f"every one of {len(prompts)} questions is longer than the {limit} tokens that the "
            f"context of {context} leaves beside "
            f"sampling.max_tokens = {cfg.sampling.max_tokens}; the shortest has {shortest}"
        )
    if len(kept) < len(prompts):
        say(f"left out {len(prompts) - len(kept)} of {len(prompts)} questions: longer than {limit} tokens")
    return kept


def most_question_tokens(cfg: Config, context: int) -> int:
    """Most tokens of a question in a model's context. ValueError where sampling.max_tokens leaves no room for one."""
    room = context - cfg.sampling.max_tokens
    limit = min(room, cfg.data.max_prompt_tokens) if cfg.data.max_prompt_tokens else room
    if limit < 1:
        raise ValueError(
            f"sampling.max_tokens is {cfg.sampling.max_tokens}; "
            f"the model's context of {context} tokens leaves no room for a question"
        )
    return limit


def gradable(problems: Sequence[Problem]) -> list[Problem]:
    """The problems whose gold answer grades as correct against itself; tells of the others by id.

    ValueError when none is left.
    """
    faults = {problem.id: why for problem in problems if (why := fault(problem))}
    if not faults:
        return list(problems)
    named = "; ".join(f"{name} ({why})" for name, why in list(faults.items())[:_NAMED])
    told = f"{len(faults)} of {len(problems)} problems have a gold answer that cannot be graded: {named}"
    if len(faults) > _NAMED:
        told += f"; and {len(faults) - _NAMED} more"
    if len(faults) == len(problems):
        raise ValueError(told)
    say(f"left out: {told}")
    return [problem for problem in problems if problem.id not in faults]


_NAMED = 5


def fault(problem: Problem) -> str:
    """Why the gold answer cannot be used; empty where it can."""
    try:
        judgement = grade(problem.answer, problem.answer, problem.verifier)
    except ValueError as error:
        return str(error)
    return "" if judgement else f"{judgement.verdict}: {judgement.layer}"


def announce(
    cfg: Config, algorithm: Algorithm, policy: PreTrainedModel, prompts: Sequence[Prompt], run_dir: Path, start: int
) -> None:
    """The plan, a line a subject."""
    parameters = sum(p.numel() for p in policy.parameters())
    per_step = cfg.data.prompts_per_step * cfg.algo.group
    lines = {
        "model": f"{cfg.model}, {parameters / 1e6:.1f}M parameters on {policy.device}",
        "problems": f"{cfg.data.train}: {len(prompts):,} questions, {cfg.data.prompts_per_step} a step",
        "algorithm": f"{cfg.algo.name}, G = {cfg.algo.group}, "
        f"beta {cfg.algo.beta:g} ({algorithm.kl} in the {algorithm.kl_in}), lr {cfg.optim.lr:g}, seed {cfg.seed}"
        + (f"; CONTROL ARM: rewards are {cfg.control}" if cfg.control else ""),
        "steps": f"{start} of {cfg.steps} done; "
        f"{per_step} completions a step, of at most {cfg.sampling.max_tokens} tokens each",
        "run folder": str(run_dir),
        "expected time": "said after the first step; " + _EXPECTED.get(cfg.model, "not measured for this model"),
    }
    for name, value in lines.items():
        say(f"{name + ':':<15}{value}")


_EXPECTED = {"base": "about ten minutes on two cores"}


def say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
