"""Prompts in, graded groups out."""

from __future__ import annotations

from collections.abc import Sequence

from reasoner.engines import Engine
from reasoner.seeds import sample_seed
from reasoner.types import Group, Prompt, Sampling
from verifiers import RewardWeights, VerifierPool


def rollout(
    engine: Engine,
    pool: VerifierPool,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    weights: RewardWeights,
    *,
    run_seed: int,
    step: int | str,
) -> list[Group]:
    """A group of `sampling.num` graded completions for each prompt, in order.

    A completion's seed is a function of (run_seed, step, problem, sample): more samples of the same step extend the
    earlier ones. What is graded is the prefill with the completion.
    """
    seeds = [[sample_seed(run_seed, step, prompt.problem.id, j) for j in range(sampling.num)] for prompt in prompts]
    drawn = engine.sample(prompts, sampling, seeds)
    rows = [
        (prompt, completion) for prompt, completions in zip(prompts, drawn, strict=True) for completion in completions
    ]
    scores = iter(
        pool.score(
            [(prompt.prefill + completion.text, prompt.problem) for prompt, completion in rows],
            weights,
            policy=prompts[0].extract,
            tokens=[len(completion.token_ids) for _, completion in rows],
            max_tokens=sampling.max_tokens,
        )
    )
    return [
        Group(prompt, completions, tuple(next(scores) for _ in completions))
        for prompt, completions in zip(prompts, drawn, strict=True)
    ]
