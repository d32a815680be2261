"""The pretraining mix of PPO-ptx: every optimiser step of the policy also raises the likelihood of pretraining texts.

InstructGPT (Ouyang et al. 2022, eq. 2) adds gamma E[log pi(x)] over its pretraining data to the objective of RL. Here
ptx.weight is gamma, for the mean over the tokens of ptx.rows texts. Which texts an optimiser step gets is a function of
its number and the run's seed.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from data import sample_indices
from data.files import read_file
from reasoner.config.schema import Config
from reasoner.pretrain.corpus import document
from reasoner.rl.model_passes import ModelPasses
from reasoner.rollouts.prompts import load_template
from reasoner.sft.batches import collate_examples
from reasoner.sft.examples import Example, examples_of, select

CORPUS = "corpus:base"
_CORPUS_SEED = 0  # of texts like those that the embedded base was trained on last, whose seeds are 1 and 2
_PART = 1_000_003  # documents between those of a run and those of a run with the next seed

Texts = Callable[[int], Sequence[Example]]  # the texts of an optimiser step, by its number


@dataclass(frozen=True, slots=True)
class PretrainingMix:
    """The texts, and the coefficient of their mean negative log-likelihood per token."""

    texts: Texts
    weight: float

    def add_gradient(self, passes: ModelPasses, number: int) -> float:
        """Accumulate the gradient of the texts of optimiser step `number`. Returns their mean negative log-likelihood
        per token, in nats. A collective operation, but for the gradient: each rank has that of its own rows.
        """
        batch = collate_examples(self.texts(number)).to(passes.model.device)
        passes, total = replace(passes, temperature=1.0, learns_entropy=False), 0.0
        for prompts, rows in passes.gradient_microbatches(batch):
            nll = -(rows.weights * passes.logprobs(passes.states(prompts, rows), rows)[0]).sum()
            total += float(nll.detach())
            (self.weight * nll).backward()  # type: ignore[no-untyped-call]
        return passes.world.total(total, "the likelihood of the pretraining texts")


def load_pretraining_mix(cfg: Config, tokenizer: PreTrainedTokenizerBase, context: int) -> PretrainingMix | None:
    """The mix that the settings name; None without one. ValueError for a file that cannot be used."""
    if not cfg.ptx.data or not cfg.ptx.weight:
        return None
    texts = _of_corpus if cfg.ptx.data == CORPUS else _of_file
    return PretrainingMix(texts(cfg, tokenizer, context), cfg.ptx.weight)


def _of_corpus(cfg: Config, tokenizer: PreTrainedTokenizerBase, context: int) -> Texts:
    """Consecutive documents of the embedded base's corpus."""
    template, rows = load_template(cfg.prompt.style), cfg.ptx.rows

    def texts(number: int) -> Sequence[Example]:
        first = cfg.seed * _PART + number * rows
        lines = ((f"document {i}", {"text": document(_CORPUS_SEED, i)}) for i in range(first, first + rows))
        return select(examples_of(lines, tokenizer, template), max_tokens=context).examples

    return texts


def _of_file(cfg: Config, tokenizer: PreTrainedTokenizerBase, context: int) -> Texts:
    """The examples of a file that fit into the model's context, each once in an epoch."""
    path = Path(cfg.ptx.data)
    lines = examples_of(read_file(path), tokenizer, load_template(cfg.prompt.style))
    examples = select(lines, max_tokens=context).examples
    return lambda number: [examples[i] for i in sample_indices(len(examples), number, cfg.ptx.rows, cfg.seed)]
