"""Render problems as prompts; drop those that cannot be graded or do not fit the context."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import TYPE_CHECKING

from data import Problem
from reasoner.console import log
from reasoner.rollouts.prompts import Template, render
from reasoner.types import Prompt
from verifiers import grade

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase


def filter_prompts(
    problems: Sequence[Problem],
    template: Template,
    tokenizer: PreTrainedTokenizerBase,
    *,
    context: int,
    max_tokens: int,
    max_prompt_tokens: int = 0,
) -> list[Prompt]:
    """Render problems as prompts. Drops those whose gold answer fails its own verifier or whose prompt is too long
    (prompt_token_limit), and reports the counts. ValueError when none is left.
    """
    limit = prompt_token_limit(context=context, max_tokens=max_tokens, max_prompt_tokens=max_prompt_tokens)
    prompts = [render(problem, template, tokenizer) for problem in filter_gradable(problems)]
    fitting = [prompt for prompt in prompts if len(prompt.token_ids) <= limit]
    if not fitting:
        shortest = min(len(prompt.token_ids) for prompt in prompts)
        raise ValueError(
            f"every one of {len(prompts)} prompts is longer than {limit} tokens, the limit with a context of "
            f"{context} and sampling.max_tokens = {max_tokens}; the shortest has {shortest}"
        )
    if len(fitting) < len(prompts):
        log(f"dropped {len(prompts) - len(fitting)} of {len(prompts)} prompts: longer than {limit} tokens")
    return fitting


def prompt_token_limit(*, context: int, max_tokens: int, max_prompt_tokens: int = 0) -> int:
    """Maximum tokens of a prompt: the context less `max_tokens` of completion, and at most `max_prompt_tokens` (0 = no
    further limit). ValueError if no room is left.
    """
    room = context - max_tokens
    limit = min(room, max_prompt_tokens) if max_prompt_tokens else room
    if limit < 1:
        raise ValueError(
            f"sampling.max_tokens is {max_tokens}; "
            f"the model's context of {context} tokens (with LongRoPE the original one) leaves no room for a question"
        )
    return limit


def filter_gradable(problems: Sequence[Problem]) -> list[Problem]:
    """Keep the problems that split_gradable() keeps, and report the others. ValueError if none is left."""
    gradable, fault = split_gradable(problems)
    if fault and not gradable:
        raise ValueError(fault)
    if fault:
        log(f"dropped: {fault}")
    return gradable


def split_gradable(problems: Sequence[Problem]) -> tuple[list[Problem], str]:
    """(the problems whose gold answer grades as correct against itself, a message that names others; empty without)."""
    faults = {problem.id: why for problem in problems if (why := gold_fault(problem))}
    if not faults:
        return list(problems), ""
    examples = "; ".join(f"{name} ({why})" for name, why in list(faults.items())[:_NUM_EXAMPLES])
    message = f"{len(faults)} of {len(problems)} problems have a gold answer that cannot be graded: {examples}"
    if len(faults) > _NUM_EXAMPLES:
        message += f"; and {len(faults) - _NUM_EXAMPLES} more"
    return [problem for problem in problems if problem.id not in faults], message


_NUM_EXAMPLES = 5  # ids in the message
# What data sets have in place of an answer, in any case: NuminaMath-1.5 of a proof, programs of a missing value.
NO_ANSWER = ("proof", "notfound", "nan", "null", "<na>", "#n/a")


def gold_fault(problem: Problem) -> str:
    """Say why the gold answer cannot be graded; empty if it can."""
    return _gold_fault(problem.answer, problem.verifier)


@cache  # the doctor asks twice, and sets repeat their answers
def _gold_fault(answer: str, verifier: str) -> str:
    if verifier == "maths" and answer.casefold() in NO_ANSWER:
        return f"{answer!r} stands for no answer"
    try:
        judgement = grade(answer, answer, verifier)
    except ValueError as error:
        return str(error)
    return "" if judgement else f"{judgement.verdict}: {judgement.layer}"
