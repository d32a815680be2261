"""The critic's own epochs over a batch."""

from __future__ import annotations

from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch
from reasoner.rl.critic import Critic, explained_variance
from reasoner.trainer.schedule import minibatches
from reasoner.trainer.step_metrics import CriticUpdate


def update_critic(
    critic: Critic, algorithm: Algorithm, batch: Batch, *, step: int, lr_factor: float, alone: bool
) -> CriticUpdate:
    """Run the critic's own epochs over the batch: critic.epochs of critic.minibatches, by default those of the policy.

    A critic on the policy's backbone has epochs of its own only while it trains `alone`: otherwise its loss is a part
    of the policy's.
    """
    variance, cfg = explained_variance(batch), critic.cfg
    if critic.shared and not alone:
        return CriticUpdate(variance)
    num_skipped, loss = 0, 0.0
    for epoch in range(cfg.critic.epochs or algorithm.epochs):
        parts = cfg.critic.minibatches or algorithm.minibatches
        rows = minibatches(batch, parts, cfg, step=step, epoch=epoch)
        updates = [critic.update(minibatch, lr_factor=lr_factor) for minibatch in rows]
        loss = sum(loss for loss, _ in updates) / len(updates)
        num_skipped += sum(not is_finite for _, is_finite in updates)
    return CriticUpdate(variance, loss, num_skipped)
