"""The tensors of a checkpoint, in whole tensors, whichever way the ranks hold the models."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from reasoner.models.lora import PolicyWeights, policy_weights, trained_parameters
from reasoner.models.sharding import gather_state, whole_state
from reasoner.rl.optimizers import optimizer_state
from reasoner.trainer.trainer import Trainer


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Whole tensors by name: the trainer's own, or copies of its shards in the host's memory, which only the first rank
    has.
    """

    model: PolicyWeights
    optimizer: Mapping[str, Tensor]
    critic: Mapping[str, Tensor] | None = None
    reference: Mapping[str, Tensor] | None = None  # if it changes


def snapshot(trainer: Trainer) -> Snapshot:
    """The tensors of a checkpoint of the trainer as it stands. A collective operation if its models are sharded."""
    keeps, follows = trainer.world.is_first, trainer.cfg.algo.ref_sync_steps > 0
    moments = optimizer_state(trainer.optimizer, trained_parameters(trainer.model))
    return Snapshot(
        policy_weights(trainer.model, keeps=keeps),
        gather_state(moments, keeps=keeps),
        None if trainer.critic is None else gather_state(trainer.critic.state(), keeps=keeps),
        whole_state(trainer.reference, keeps=keeps) if trainer.reference is not None and follows else None,
    )
