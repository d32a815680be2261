"""Run a stage of training: reinforcement learning, supervised finetuning, or the training of a reward model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reasoner.config.resolve import RunSettings
from reasoner.distributed.world import ALONE, World
from reasoner.rollouts.reward_functions import RewardFunction
from reasoner.trainer.callbacks import Callbacks
from reasoner.trainer.reward_model import REWARD_MODEL
from reasoner.trainer.setup import open_training_run
from reasoner.trainer.supervised import SFT
from reasoner.trainer.train import RL

STAGES = {"rl": RL, "sft": SFT, "reward-model": REWARD_MODEL}  # by Config.stage


def run_stage(
    resolved: RunSettings,
    run_dir: Path,
    *,
    resuming: bool = False,
    reward_functions: Sequence[RewardFunction] = (),
    callbacks: Callbacks | None = None,
    world: World = ALONE,
) -> None:
    """Train, or resume training, in `run_dir`: metrics, checkpoints and rollouts go there, progress to standard error,
    the results on held-out problems to standard output. A resumed run ends with the same bytes as one that was never
    interrupted.

    `reward_functions` add to the graded reward of each completion. Every rank of `world` calls this; the first writes.

    ValueError, before anything is written, for settings or data that cannot be used; RunInterrupt after SIGINT or
    SIGTERM. With several ranks an error in the loop is a RankError.
    """
    stage = STAGES[resolved.config.stage]
    opening = open_training_run(
        stage, resolved, run_dir, resuming=resuming, reward_functions=reward_functions, world=world
    )
    with (
        opening as (run, examples),
        world.name_errors(lambda: f"step {run.step}"),
        run.calling(callbacks or Callbacks()),
    ):
        stage.train(run, examples)
