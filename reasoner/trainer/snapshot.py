"""The state of a checkpoint in the host's memory: copies, if training is to go on while it is written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from torch import Tensor

from reasoner.models.lora import PolicyWeights, policy_weights, trained_parameters
from reasoner.models.saving import layer_of
from reasoner.models.sharding import host_state
from reasoner.rl.optimizers import optimizer_state
from reasoner.trainer.trainer import Trainer

MOST_COPIED = 2**30  # bytes of a state on a CPU: the memory of a larger one is worth more than the seconds of its write


@dataclass(frozen=True, slots=True, eq=False)
class Snapshot:
    """Whole tensors by name, of the part of the layers that this rank writes, and the trainer's numbers."""

    model: PolicyWeights
    optimizer: Mapping[str, Tensor]
    critic: Mapping[str, Tensor] | None = None
    reference: Mapping[str, Tensor] | None = None  # if it changes
    numbers: Mapping[str, object] | None = None
    part: int = 0
    num_parts: int = 1


def snapshot(trainer: Trainer, *, weights_only: bool = False, copies: bool = False) -> Snapshot:
    """The trainer as it stands, or the policy's weights alone: on a CPU the trainer's own tensors, unless `copies`. A
    collective operation if its models are sharded; then each rank has every N-th layer, otherwise all of them.
    """
    world, follows = trainer.world, trainer.cfg.algo.ref_sync_steps > 0
    part, num_parts = (world.rank, world.size) if trainer.is_sharded else (0, 1)

    def keeps(name: str) -> bool:
        """Whether this rank's part has the tensor of a name; what belongs to no layer is in the last one."""
        return int(layer_of(name) or -1) % num_parts == part

    if weights_only:
        weights = policy_weights(trainer.model, keeps, copies=copies)
        return Snapshot(weights, {}, part=part, num_parts=num_parts)
    moments = optimizer_state(trainer.optimizer, trained_parameters(trainer.model))
    followed = trainer.reference if follows else None
    return Snapshot(
        policy_weights(trainer.model, keeps, copies=copies),
        host_state(moments, keeps, copies=copies),
        None if trainer.critic is None else host_state(trainer.critic.state(), keeps, copies=copies),
        None if followed is None else host_state(followed.state_dict(keep_vars=True), keeps, copies=copies),
        trainer.state(),
        part,
        num_parts,
    )


def is_copied(trainer: Trainer) -> bool:
    """Whether a run copies the state of a checkpoint and goes on while it is written: on a GPU always."""
    return trainer.model.device.type != "cpu" or trainer.is_sharded or checkpoint_bytes(trainer) <= MOST_COPIED


def checkpoint_bytes(trainer: Trainer) -> int:
    """Bytes of a checkpoint: trained weights in 4 bytes, two moments in 4 each, a reference that follows."""
    models = 1 if trainer.critic is None or trainer.critic.shared else 2
    reference = trainer.reference if trainer.cfg.algo.ref_sync_steps else None
    tensors = reference.state_dict().values() if reference is not None else ()  # tied ones are written twice
    num_bytes: int = sum(tensor.numel() * tensor.element_size() for tensor in tensors)
    return 12 * models * num_trained(trainer) + num_bytes


def num_trained(trainer: Trainer) -> int:
    """The number of trained parameters of the model."""
    return sum(parameter.numel() for _, parameter in trained_parameters(trainer.model))
