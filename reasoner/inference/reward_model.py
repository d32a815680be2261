"""Score the completions of a run with a reward model, by token ids: re-tokenised text may have other ids, and another
score.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import torch

from reasoner.config.schema import Config
from reasoner.models.loading import context_length
from reasoner.models.resolve import resolve_model
from reasoner.models.reward_model import load_reward_model
from reasoner.rl.batch import collate_rows
from reasoner.rl.passes import RewardModelPasses
from reasoner.rollouts.reward_models import parse_reward_models
from reasoner.types import Prompt, RolloutGroup


class RewardModel:
    """A frozen reward model. `dtype` is the precision that it computes in; its weights are held in the same one."""

    def __init__(self, folder: Path, *, device: torch.device, dtype: str, micro_batch_tokens: int) -> None:
        self.model = load_reward_model(folder, device=device, dtype=getattr(torch, dtype))
        self.context = context_length(self.model)
        self.passes = RewardModelPasses(self.model, dtype, micro_batch_tokens)

    def scores(self, groups: Sequence[RolloutGroup]) -> list[float]:
        """The score of each completion at its last token, in order, less the mean in the model's config."""
        rows = [(group.prompt.token_ids, own.token_ids) for group in groups for own in group.completions]
        scores: list[float] = self.passes.rewards(collate_rows(rows)).tolist()
        return scores


def load_reward_models(cfg: Config, prompts: Sequence[Prompt], device: torch.device) -> dict[str, RewardModel]:
    """Load the models of reward.model, by name. ValueError for one whose context the run's completions can exceed."""
    longest = max((len(prompt.token_ids) for prompt in prompts), default=0) + cfg.sampling.max_tokens
    dtype, tokens = cfg.optim.dtype, cfg.optim.micro_batch_tokens
    models = {}
    for name in parse_reward_models(cfg.reward.model):
        folder = resolve_model(name, runs=Path(cfg.run.dir))
        models[name] = RewardModel(folder, device=device, dtype=dtype, micro_batch_tokens=tokens)
        if models[name].context < longest:
            raise ValueError(
                f"the reward model {name!r} reads {models[name].context} tokens; the longest prompt with "
                f"sampling.max_tokens has {longest}: lower sampling.max_tokens or data.max_prompt_tokens"
            )
    return models
