"""The examples of a supervised run: read, selected, and split by problem into those to train and to validate on."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from pathlib import Path
from typing import TYPE_CHECKING

from data import Problem
from reasoner.config.learning import SftConfig
from reasoner.rollouts.prompts import Template, render
from reasoner.sft.examples import Example, examples_of, select, with_loss_on_prompts
from reasoner.sft.sources import read_source

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

MAX_VALIDATION = 500  # examples: their loss has a standard error of a few percent, and is computed many times


@dataclass(frozen=True, slots=True)
class ExampleSplit:
    """Examples to train and to validate on: all examples of a problem are on one side."""

    training: tuple[Example, ...]
    validation: tuple[Example, ...]
    left_out: Mapping[str, int]  # rows by the reason

    @property
    def loss_share(self) -> float:
        """Share of the tokens that have a loss."""
        examples = (*self.training, *self.validation)
        return sum(len(one.completion_ids) for one in examples) / sum(one.num_tokens for one in examples)

    @property
    def fingerprint(self) -> str:
        """SHA-256 (hex) of all examples in their order."""
        digest = hashlib.sha256()
        for example in (*self.training, *self.validation):
            digest.update(json.dumps([example.prompt_ids, example.completion_ids]).encode())
        return digest.hexdigest()


def load_examples(
    cfg: SftConfig, tokenizer: PreTrainedTokenizerBase, template: Template, *, context: int, runs: Path
) -> ExampleSplit:
    """Read the examples of `cfg.data`. ValueError for rows that cannot be used, and where none is left to train on."""
    source = read_source(cfg.data, runs)
    examples = examples_of(source.rows, tokenizer, template)
    if cfg.loss_on == "all":
        examples = map(with_loss_on_prompts, examples)
    limit = min(context, cfg.max_tokens or context)
    try:
        selected, others = select(examples, max_tokens=limit)
    except ValueError as error:
        left_out = (f"; {number:,} rows are {reason}" for reason, number in source.left_out.items())
        raise ValueError(f"{cfg.data}: {error}{''.join(left_out)}") from error
    sides = split_by_problem(selected, cfg.validation_share)
    return ExampleSplit(*sides, Counter(source.left_out) + Counter(others))


def have_prompts_of(examples: Sequence[Example], tokenizer: PreTrainedTokenizerBase, template: Template) -> bool:
    """Whether an example begins as the template's prompts do, up to the question."""
    one, other = (render(Problem("", question, ""), template, tokenizer).token_ids for question in ("12", "What?"))
    start = tuple(own for own, _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    return any((*own.prompt_ids, *own.completion_ids)[: len(start)] == start for own in examples)


def split_by_problem(examples: Sequence[Example], share: float) -> tuple[tuple[Example, ...], tuple[Example, ...]]:
    """(training, validation): `share` of the problems to validate on, rounded, chosen by a hash of the problem, so that
    other problems do not change the side of one; at least one problem is trained on. Of many problems fewer are
    validated on: as many as have at most MAX_VALIDATION examples, and at least one.
    """
    sizes = Counter(example.problem for example in examples)
    problems = sorted(sizes, key=lambda problem: hashlib.sha256(problem.encode()).hexdigest())
    number = min(round(share * len(problems)), len(problems) - 1)
    totals = list(accumulate(sizes[problem] for problem in problems[:number]))
    apart = set(problems[: max(min(number, 1), sum(total <= MAX_VALIDATION for total in totals))])
    training = tuple(example for example in examples if example.problem not in apart)
    return training, tuple(example for example in examples if example.problem in apart)
