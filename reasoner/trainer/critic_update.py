"""The critic's own epochs over a batch."""

from __future__ import annotations

from reasoner.rl.batch import Batch
from reasoner.rl.critic import explained_variance
from reasoner.trainer.schedule import minibatches
from reasoner.trainer.step_metrics import CriticUpdate
from reasoner.trainer.trainer import Trainer


def update_critic(trainer: Trainer, batch: Batch, lr_factor: float) -> CriticUpdate:
    """Run the critic's own epochs over the batch: critic.epochs of critic.minibatches, by default those of the policy.

    A critic on the policy's backbone has epochs of its own only while it trains alone: otherwise its loss is a part of
    the policy's.
    """
    cfg, algorithm, critic = trainer.cfg, trainer.algorithm, trainer.critic
    assert critic is not None, "an update of a critic without one"
    variance, num_skipped, loss = explained_variance(batch), 0, 0.0
    if critic.shared and not trainer.is_warming_up:
        return CriticUpdate(variance)
    for epoch in range(cfg.critic.epochs or algorithm.epochs):
        parts = cfg.critic.minibatches or algorithm.minibatches
        rows = minibatches(batch, parts, cfg, step=trainer.steps_done, epoch=epoch)
        updates = [critic.update(minibatch, lr_factor=lr_factor) for minibatch in rows]
        loss = sum(loss for loss, _ in updates) / len(updates)
        num_skipped += sum(not is_finite for _, is_finite in updates)
    return CriticUpdate(variance, loss, num_skipped)
