"""What a training step does when, as pure functions: its learning rate, its minibatches, and what is due."""

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


def is_due(step: int, interval: int) -> bool:
    """Whether something that happens every `interval` steps happens after this step; never for the interval 0."""
    return interval > 0 and (step + 1) % interval == 0


def steps_to_prefetch(cfg: Config, step: int, *, is_last: bool) -> range:
    """The later steps whose rollouts are generated with weights from before this step's update: the next
    max_off_policy_steps. Not across a step that saves a checkpoint: a run that resumes from it must sample as one that
    was not interrupted.
    """
    if is_last:
        return range(0)
    interval = cfg.run.save_interval
    next_save = step - step % interval + interval - 1
    return range(step + 1, min(step + cfg.max_off_policy_steps, next_save, cfg.steps - 1) + 1)


def needs_engine(cfg: Config, step: int, *, is_last: bool) -> bool:
    """Whether the engine must have the weights of after the step before the next one begins: always where it is not
    more than one step ahead; else for a validation, and where no step is prefetched.
    """
    if cfg.max_off_policy_steps < 2 or is_last:
        return True
    return is_due(step, cfg.run.save_interval) or is_due(step, cfg.validation.interval)


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
