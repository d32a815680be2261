"""What an optimiser step does when, as pure functions: the learning rate, and which rows it takes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import torch

from reasoner.config.schema import Config
from reasoner.rl.batch import Batch
from reasoner.rollouts.seeds import minibatch_seed


def learning_rate_factor(cfg: Config, steps_done: int, tokens_before: float) -> float:
    """Factor of the learning rate: linear warm-up, then 1, then linear decay to 0 over the last optim.decay_share of
    the run, measured in steps or in max_train_tokens, whichever ends sooner.
    """
    optim = cfg.optim
    warm = (steps_done + 1) / max(1, optim.warmup_steps)
    left = (cfg.steps - steps_done) / max(1.0, optim.decay_share * cfg.steps) if optim.decay_share else 1.0
    if optim.decay_share and cfg.max_train_tokens:
        budget = cfg.max_train_tokens
        left = min(left, max(0, budget - tokens_before) / (optim.decay_share * budget))
    return min(1.0, warm, left)


def minibatches(batch: Batch, parts: int, cfg: Config, *, step: int, epoch: int) -> Iterator[Batch]:
    """Split the batch into at most `parts` minibatches of whole groups, in an order that depends on (seed, step,
    epoch). A single minibatch has the batch's own order.

    The loss weights, whose denominators are those of the batch, are multiplied by the number of minibatches, as in
    TRL's GRPOTrainer: a token weighs the same in each, also where the groups do not divide evenly.
    """
    groups = torch.arange(len(batch)).view(-1, cfg.algo.group_size)
    if parts > 1:
        seed = minibatch_seed(cfg.seed, step, epoch)
        groups = groups[torch.randperm(len(groups), generator=torch.Generator().manual_seed(seed))]
    number = min(parts, len(groups))
    for part in groups.tensor_split(number):
        rows = batch.rows(part.flatten())
        yield replace(rows, weights=rows.weights * number)
