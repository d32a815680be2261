"""The critic's own epochs over a batch."""

from __future__ import annotations

from reasoner.rl.algorithms import Algorithm, critic_passes
from reasoner.rl.batch import Batch
from reasoner.rl.critic import Critic, explained_variance
from reasoner.trainer.schedule import minibatches


def update_critic(
    critic: Critic,
    algorithm: Algorithm,
    batch: Batch,
    *,
    step: int,
    lr_factor: float,
    alone: bool,
) -> dict[str, float]:
    """Run the critic's own epochs over the batch. Returns its metrics; the loss is the mean over the last pass of those
    before each update, skipped_updates the number of updates left out because their gradient was not finite.

    A critic on the policy's backbone has epochs of its own only while it trains `alone`: otherwise its loss is a part
    of the policy's.
    """
    cfg = critic.cfg
    metrics = {"critic/explained_variance": explained_variance(batch), "skipped_updates": 0.0}
    if alone or not critic.shared:
        epochs, parts = critic_passes(algorithm, cfg.critic)
        for epoch in range(epochs):
            rows = minibatches(batch, parts, cfg, step=step, epoch=epoch)
            updates = [critic.update(minibatch, lr_factor=lr_factor) for minibatch in rows]
            metrics["critic/loss"] = sum(loss for loss, _ in updates) / len(updates)
            metrics["skipped_updates"] += sum(not is_finite for _, is_finite in updates)
    return metrics
