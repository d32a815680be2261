"""What the trainers of all stages have: a model, its optimiser, and the position in the schedule."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, ClassVar, TypeVar

import torch
from transformers import PreTrainedModel

from reasoner.config.schema import Config
from reasoner.distributed.gradients import sum_gradients
from reasoner.distributed.world import ALONE, World
from reasoner.models.folder import BaseModel
from reasoner.models.lora import trained_parameters
from reasoner.models.recompute import recompute_layers
from reasoner.models.sharding import distribute
from reasoner.progress import Progress
from reasoner.rl.critic import Critic
from reasoner.rl.optimizers import clip_gradients, make_adamw, step_optimizer
from reasoner.runtime import deterministic_kernels
from reasoner.trainer.schedule import learning_rate_factor

T = TypeVar("T")


class ModelTrainer:
    """A model and its optimiser. Every rank of `world` has them; the passes through the model are divided."""

    STATE: ClassVar[tuple[str, ...]] = ("steps_done", "lr_scale")  # numbers that a checkpoint stores

    # Only a policy has these; a checkpoint stores them where they are.
    reference: PreTrainedModel | None = None
    critic: Critic | None = None
    base_model: BaseModel | None = None  # that the model's LoRA adapter belongs to

    def __init__(self, model: PreTrainedModel, cfg: Config, world: World = ALONE) -> None:
        self.model = model
        self.cfg = cfg
        self.world = world
        optim = cfg.optim
        if optim.recompute:
            recompute_layers(model.base_model)
        self.distributed = distribute(model, optim.sharding, world)
        self.optimizer = make_adamw(
            [parameter for _, parameter in trained_parameters(model)],
            optim.state_dtype,
            lr=optim.lr,
            betas=(optim.beta1, optim.beta2),
            weight_decay=optim.weight_decay,
            fused=True,
        )
        self.steps_done = 0  # training steps of the run: the run's position, and that of the schedules
        self.lr_scale = 1.0  # factor of the learning rate, halved by each rollback
        self.on_microbatch: Callable[[str, int, int], object] = Progress().count  # (kind of pass, rows done, all rows)

    @property
    def is_sharded(self) -> bool:
        """Whether the ranks hold shards of the models."""
        return self.distributed.sharding != "replicated"

    def step_on(self, backward: Callable[[], T], cfg: Config) -> tuple[T, dict[str, float]]:
        """Take a training step of one update on the gradient that `backward` accumulates, each rank that of its own
        rows. `cfg` has the length of the run, which the data decide after the trainer is built. Returns (what
        `backward` returns, the step's metrics); a gradient that is not finite changes nothing.
        """
        lr_factor = self.lr_scale * learning_rate_factor(cfg, self.steps_done, 0)
        self.optimizer.zero_grad()
        with deterministic_kernels(self.cfg.optim.deterministic):
            result = backward()
        self._sum_gradients()
        norm = self._apply_gradient(lr_factor)
        self.steps_done += 1
        lr, skipped = self.cfg.optim.lr * lr_factor, float(norm is None)
        return result, {"grad_norm": norm or 0.0, "lr": lr, "skipped_updates": skipped}

    def free_gradients(self) -> None:
        """Free the memory of the gradients, which the next update computes anew: the engine can use it until then."""
        self.optimizer.zero_grad()

    def _sum_gradients(self) -> None:
        """Sum the gradient of this optimiser step over the ranks: each has that of its own rows."""
        sum_gradients([parameter for _, parameter in trained_parameters(self.model)], self.world)

    def _zero_gradients(self) -> None:
        """Give every trained parameter a gradient of 0: AdamW would leave one without a gradient as it is."""
        for _, parameter in trained_parameters(self.model):
            parameter.grad = torch.zeros_like(parameter)

    def _apply_gradient(self, lr_factor: float) -> float | None:
        """Clip the gradient and step the optimiser. Returns its norm before clipping, or None if it is not finite."""
        norm = clip_gradients(self.model.parameters(), self.cfg.optim.max_grad_norm)
        if not torch.isfinite(norm):
            self.free_gradients()
            return None
        step_optimizer(self.optimizer, self.cfg.optim.lr * lr_factor)
        return float(norm)

    def state(self) -> dict[str, object]:
        """The numbers, besides weights and optimiser state, that a checkpoint stores."""
        return {name: getattr(self, name) for name in self.STATE}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Load what state() returned."""
        for name in self.STATE:
            setattr(self, name, state[name])
