"""What is asked: gold answers that can be graded, prompts that fit, and how often each comes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from data import Problem
from reasoner.config.schema import Config
from reasoner.doctor.findings import Line, Mark
from reasoner.rollouts.dataset import fault
from reasoner.types import Prompt

_NAMED = 3  # problems
_MANY = 0.1  # a share of the problems that should not be lost without a word


def gold_line(problems: Sequence[Problem], cfg: Config) -> tuple[Line, list[Problem]]:
    """(the line, the problems whose gold answer grades as correct against itself). ValueError when there are none."""
    faults = {problem.id: fault(problem) for problem in problems}
    good = [problem for problem in problems if not faults[problem.id]]
    named = [f"{name} ({why})" for name, why in faults.items() if why]
    text = f"{len(good):,} of {len(problems):,} gold answers of {cfg.data.train} can be graded"
    if not named:
        return Line(Mark.OK, "problems", text), good
    more = f" and {len(named) - _NAMED} more" if len(named) > _NAMED else ""
    text += f"; not {', '.join(named[:_NAMED])}{more}"
    if not good:
        raise ValueError(text)
    return Line(Mark.LOOK, "problems", text), good


def length_line(prompts: Sequence[Prompt], num_gradable: int, cfg: Config, context: int) -> tuple[Line, dict[str, int]]:
    """Lengths of the prompts that fit, and how many do not."""
    lengths = sorted(len(prompt.token_ids) for prompt in prompts)
    figures = {
        "fitting": len(prompts),
        "left_out": num_gradable - len(prompts),
        "shortest": lengths[0],
        "median": lengths[len(lengths) // 2],
        "longest": lengths[-1],
        "context": context,
        "room": context - lengths[-1] - cfg.sampling.max_tokens,
    }
    text = (
        f"{lengths[0]} to {lengths[-1]} tokens, median {figures['median']}; with {cfg.sampling.max_tokens} of a "
        f"completion {figures['room']} of the context's {context:,} are left"
    )
    if not figures["left_out"]:
        return Line(Mark.OK, "length", text), figures
    text += f"; {figures['left_out']:,} of {num_gradable:,} questions are longer and left out"
    mark = Mark.LOOK if figures["left_out"] > _MANY * num_gradable else Mark.OK
    return Line(mark, "length", text), figures


def asked_lines(prompts: Sequence[Prompt], held: Sequence[Prompt], cfg: Config) -> Iterator[Line]:
    """How often a question comes; whether those of the evaluations are among them."""
    count, times = cfg.data.prompts_per_step, cfg.steps * cfg.data.prompts_per_step / len(prompts)
    text = f"{count} of {len(prompts):,} a step; each comes {times:.1f} times in {cfg.steps} steps"
    if count > len(prompts):
        proposed = f"--data.prompts_per_step {len(prompts)}"
        yield Line(Mark.LOOK, "questions", f"{text}: the same one more than once in a step", proposed)
    else:
        yield Line(Mark.OK, "questions", text)
    known = {prompt.problem.question for prompt in prompts}
    if seen := sum(prompt.problem.question in known for prompt in held):
        yield Line(Mark.LOOK, "evaluation", f"{seen} of its {len(held)} questions are among those trained on")
