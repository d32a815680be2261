"""Problems as prompts: which of them can be graded, and which fit the model's context."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from data import Problem
from reasoner.console import say
from reasoner.rollouts.prompts import Template, render
from reasoner.types import Prompt
from verifiers import grade

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def askable(
    problems: Sequence[Problem],
    template: Template,
    tokenizer: PreTrainedTokenizerBase,
    *,
    context: int,
    max_tokens: int,
    max_prompt_tokens: int = 0,
) -> list[Prompt]:
    """Render problems as prompts. Drops those whose gold answer fails its own verifier or whose prompt is too long
    (most_question_tokens), and reports the counts. ValueError when none is left.
    """
    limit = most_question_tokens(context=context, max_tokens=max_tokens, max_prompt_tokens=max_prompt_tokens)
    prompts = [render(problem, template, tokenizer) for problem in gradable(problems)]
    kept = [prompt for prompt in prompts if len(prompt.token_ids) <= limit]
    if not kept:
        shortest = min(len(prompt.token_ids) for prompt in prompts)
        raise ValueError(
            f"every one of {len(prompts)} questions is longer than the {limit} tokens that the "
            f"context of {context} leaves beside "
            f"sampling.max_tokens = {max_tokens}; the shortest has {shortest}"
        )
    if len(kept) < len(prompts):
        say(f"left out {len(prompts) - len(kept)} of {len(prompts)} questions: longer than {limit} tokens")
    return kept


def most_question_tokens(*, context: int, max_tokens: int, max_prompt_tokens: int = 0) -> int:
    """Most tokens of a prompt: what a completion of `max_tokens` leaves of the model's context, and not more than
    `max_prompt_tokens` (0 = no further limit). ValueError where nothing is left.
    """
    room = context - max_tokens
    limit = min(room, max_prompt_tokens) if max_prompt_tokens else room
    if limit < 1:
        raise ValueError(
            f"sampling.max_tokens is {max_tokens}; "
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
