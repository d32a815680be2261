"""The training loop: generate rollouts, grade them, update the policy on them, sync the weights; repeat."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from reasoner.config.resolve import RunSettings
from reasoner.console import print_result
from reasoner.distributed.world import ALONE, World
from reasoner.evals.before_after import next_commands
from reasoner.rollouts.reward_functions import RewardFunction
from reasoner.trainer.policy_run import PolicyRun
from reasoner.trainer.setup import open_training_run
from reasoner.trainer.step_metrics import StepTimer, grading_times


def train(
    resolved: RunSettings,
    run_dir: Path,
    *,
    resuming: bool = False,
    reward_functions: Sequence[RewardFunction] = (),
    world: World = ALONE,
) -> None:
    """Run training, or resume it, in `run_dir`: rollouts, metrics and checkpoints go there, progress to standard error,
    the table of held-out results before and after to standard output. A resumed run ends with the same bytes as one
    that was never interrupted.

    `reward_functions` add to the graded reward of each completion. Every rank of `world` calls this; the first writes.

    ValueError, before anything is written, for settings that cannot be run; RunInterrupt after SIGINT or SIGTERM. With
    several ranks an error in the loop is a RankError.
    """
    with (
        open_training_run(resolved, run_dir, resuming=resuming, reward_functions=reward_functions, world=world) as run,
        world.name_errors(lambda: f"step {run.step}"),
    ):
        training_loop(run)
    print_result(next_commands(run_dir, resolved.config.steps))


def training_loop(run: PolicyRun) -> None:
    """Train until the run's last step, then evaluate on the held-out problems."""
    generator, trainer = run.generator, run.trainer
    run.validate_before_first_step()
    timer = None
    while not run.is_finished:
        step, timer = run.step, StepTimer(previous=timer)

        with run.save_if_interrupted():
            rollouts = generator.generate(step)
        generator.update_pass_rates(rollouts)
        timer.lap("time/generate")

        with generator.prefetching(run.steps_to_prefetch(step, rollouts)):
            batch = trainer.prepare_batch(rollouts.groups)
            token_stats = run.new_token_stats()
            update = trainer.train_step(batch, token_stats, tokens_before=run.num_tokens)
            trainer.free_gradients()
        timer.lap("time/train")

        is_deferred = not run.needs_engine(step, rollouts)
        generator.update_weights(trainer.policy, version=step + 1, is_deferred=is_deferred)
        timer.lap("time/weight_sync")

        metrics = run.step_metrics(step, rollouts, update)
        metrics |= run.validate_if_due(step, metrics["num_tokens"])
        times = timer.times(rollouts.num_tokens) | grading_times(rollouts.all)
        rows = run.write_rollouts(step, rollouts, batch, token_stats)
        run.record(step, batch, metrics, times, rows=rows, example=rollouts.groups[0].completions[0].text)
        run.respond_to_alarms()
    run.evaluate_heldout()
