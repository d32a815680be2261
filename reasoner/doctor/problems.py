"""Check the training problems: gold answers that can be graded, prompts that fit, epochs, overlap with evaluation."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from data import Problem
from data.overlap import describe_overlaps, find_overlaps
from reasoner.config.schema import Config
from reasoner.doctor.findings import Finding, Severity
from reasoner.rollouts.dataset import split_gradable
from reasoner.types import Prompt

_MANY = 0.1  # share of prompts left out above which there is a warning


def check_gold_answers(problems: Sequence[Problem], cfg: Config) -> tuple[Finding, list[Problem]]:
    """(the finding, the problems whose gold answer is correct against itself). ValueError where there are none."""
    good, fault = split_gradable(problems)
    if fault and not good:
        raise ValueError(fault)
    text = f"{len(good):,} of {len(problems):,} gold answers of {cfg.data.train} can be graded"
    return Finding(Severity.WARNING if fault else Severity.OK, "problems", f"{text}; {fault}" if fault else text), good


def check_prompt_lengths(prompts: Sequence[Prompt], num_gradable: int, cfg: Config, context: int) -> Finding:
    """The finding on prompt lengths in tokens. `prompts`: those that fit, of `num_gradable` problems."""
    lengths = sorted(len(prompt.token_ids) for prompt in prompts)
    left_out, median = num_gradable - len(prompts), lengths[len(lengths) // 2]
    room = context - lengths[-1] - cfg.sampling.max_tokens
    sizes = {"fitting": len(prompts), "left_out": left_out, "shortest": lengths[0], "median": median}
    sizes |= {"longest": lengths[-1], "context": context, "room": room}
    text = (
        f"{lengths[0]} to {lengths[-1]} tokens, median {median}; with a completion of "
        f"{cfg.sampling.max_tokens} {room} of the context's {context:,} are left"
    )
    text += f"; {left_out:,} of {num_gradable:,} problems are longer and left out" if left_out else ""
    severity = Severity.WARNING if left_out > _MANY * num_gradable else Severity.OK
    return Finding(severity, "length", text, measurements={"prompts": sizes})


def check_epochs(prompts: Sequence[Prompt], evaluation: Sequence[Prompt], cfg: Config) -> Iterator[Finding]:
    """Findings on how often each problem is sampled, and on `evaluation` prompts that are also trained on."""
    count, times = cfg.data.prompts_per_step, cfg.steps * cfg.data.prompts_per_step / len(prompts)
    text = f"{count} of {len(prompts):,} a step; each is sampled {times:.1f} times in {cfg.steps} steps"
    if count > len(prompts):
        suggestion = f"--data.prompts_per_step {len(prompts)}"
        yield Finding(Severity.WARNING, "epochs", f"{text}: the same one more than once in a step", suggestion)
    else:
        yield Finding(Severity.OK, "epochs", text)
    overlaps = find_overlaps([prompt.problem for prompt in prompts], [prompt.problem for prompt in evaluation])
    if overlaps:
        yield Finding(Severity.WARNING, "evaluation", describe_overlaps(overlaps, len(evaluation)))
