"""Reinforcement learning: generate rollouts, grade them, update the policy on them, sync the weights; repeat.

Shapes: P prompts, G completions of each, N = P * G rows, T completion positions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from data import load
from data.registry import fingerprint
from reasoner.config.schema import Config
from reasoner.models.folder import model_fingerprint
from reasoner.models.resolve import resolve_model
from reasoner.rl.batch import Batch
from reasoner.rl.critic import explained_variance
from reasoner.rl.token_stats import TokenStats
from reasoner.rollouts.control_rewards import with_wrong_golds
from reasoner.rollouts.reward_functions import load_reward_functions, source_fingerprint
from reasoner.rollouts.reward_models import parse_reward_models
from reasoner.runs import rollouts as store
from reasoner.tools.names import function_tools
from reasoner.trainer.components import with_teacher_prompts
from reasoner.trainer.parity import parity_check
from reasoner.trainer.rollout_generator import StepRollouts
from reasoner.trainer.run import TrainingRun
from reasoner.trainer.schedule import is_due, learning_rate_factor, minibatches, needs_engine, steps_to_prefetch
from reasoner.trainer.setup import RunContext, StageData, TrainingStage
from reasoner.trainer.step_metrics import (
    CriticUpdate,
    StepUpdate,
    generation_metrics,
    grading_times,
    rollout_metrics,
    stored_advantages,
)
from reasoner.trainer.summary import run_plan
from reasoner.trainer.trainer import Trainer
from reasoner.types import Prompt, RolloutGroup


def train(run: TrainingRun, _: Sequence[Prompt]) -> None:
    """Train until the run's last step, then evaluate on the held-out problems."""
    cfg, generator, trainer = run.cfg, run.generator, run.trainer
    run.validate_before_first_step()
    with ThreadPoolExecutor(1) as writer:  # of the rollouts, beside the update of the engine's weights
        for step, timer in run.steps():
            with timer.phase("time/generate"), run.save_if_interrupted():
                rollouts = generator.generate(step)  # graded groups of G completions
            num_tokens = run.num_tokens + rollouts.num_tokens
            is_last = run.is_last(step, num_tokens)
            is_synced = needs_engine(cfg, step, is_last=is_last)

            with timer.phase("time/train"), generator.prefetching(steps_to_prefetch(cfg, step, is_last=is_last)):
                batch = trainer.prepare_batch(rollouts.groups)  # tokens, rewards [N], log-probabilities [N, T]
                batch = trainer.compute_advantages(batch)  # [N, T]
                token_stats = TokenStats(keeps_tokens=cfg.run.token_stats)
                update = train_step(trainer, batch, token_stats, tokens_before=run.num_tokens)
                trainer.free_gradients()
            advantages = stored_advantages(batch, rollouts.replaced)
            rows = writer.submit(_write_rollouts, run, step, rollouts.all, advantages, token_stats)

            with timer.phase("time/weight_sync"):
                generator.update_weights(trainer.model, version=step + 1, is_deferred=not is_synced)

            metrics = {"step": step, "num_tokens": num_tokens, **rollout_metrics(rollouts.all, run.world)}
            metrics |= update | generation_metrics(step, rollouts, generator)
            if is_synced and (step == 0 or is_due(step, cfg.run.parity_interval)):
                metrics |= _parity(run, rollouts)
            metrics |= run.validate_if_due(step, num_tokens)
            times = timer.times(rollouts.num_tokens) | grading_times(rollouts.all)
            run.record(step, metrics, times, rows=rows.result(), example=rollouts.groups[0].completions[0].text)
            run.respond_to_alarms()
    run.evaluate_heldout()


def train_step(
    trainer: Trainer, batch: Batch, token_stats: TokenStats | None = None, *, tokens_before: float = 0
) -> dict[str, float]:
    """Take all optimiser steps on a batch with advantages. Returns the metrics (names: docs/METRICS.md).

    `token_stats` may store values of every token. `tokens_before` is the number of tokens that the run sampled before
    this batch: with max_train_tokens the learning rate follows it.
    """
    lr_factor = learning_rate_factor(trainer.cfg, trainer.steps_done, tokens_before)
    update = StepUpdate(token_stats or TokenStats(), lr_factor)
    sampled, batch = batch, trainer.weigh_tokens(batch)
    if trainer.critic is not None:
        update.critic = update_critic(trainer, batch, update.lr_factor)
    for minibatch in trainer.minibatches(batch):  # of every epoch; most algorithms have a single one
        with trainer.gradient():
            accumulate_gradient(trainer, minibatch, update)
        trainer.update_policy(minibatch, update)
    trainer.steps_done += 1
    update.token_stats.combine(trainer.world)
    trainer.adapt_to_reference(sampled, update)
    return update.metrics(trainer.cfg.optim.lr * update.lr_factor)


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


def accumulate_gradient(trainer: Trainer, batch: Batch, update: StepUpdate) -> None:
    """Accumulate the gradient of the policy's loss in the parameters."""
    index, on_microbatch = trainer.rows_with_gradient(batch), trainer.progress.counter("trained")
    with trainer.policy_loss.passes_of_teacher():
        for prompts, rows in trainer.passes.gradient_microbatches(batch, index, on_microbatch):
            loss = trainer.policy_loss.of_microbatch(update.token_stats, prompts, rows)
            loss.backward()  # type: ignore[no-untyped-call]


def _parity(run: TrainingRun, rollouts: StepRollouts) -> dict[str, float]:
    """Compare the log-probabilities of engine and policy on short completions of the step's prompts."""
    generator, prompts = run.generator, [group.prompt for group in rollouts.all]
    with run.engine_may_fail("parity check"):
        gap = parity_check(
            generator.engine, run.trainer.model, prompts, generator.sampling, run.cfg.engine.dtype, generator.world
        )
        return {"parity/logprob_diff_max": gap}
    return {}


def _write_rollouts(
    run: TrainingRun, step: int, groups: Sequence[RolloutGroup], advantages: Sequence[float], token_stats: TokenStats
) -> Sequence[Mapping[str, object]]:
    """Write the step's rollouts, and return them as rows; only the first rank does."""
    if not run.world.is_first:
        return []
    return store.write_step(run.run_dir, step, groups, advantages, token_stats.tokens)


def load_data(context: RunContext) -> StageData:
    """The prompts of data.train."""
    cfg = context.cfg
    problems = load(cfg.data.train, memory_mib=cfg.verify.memory_mib)
    prompts = with_wrong_golds(context.render(problems), cfg.data.wrong_golds, cfg.seed)
    prompts = with_teacher_prompts(prompts, cfg, context.template, context.tokenizer)
    return StageData(
        examples=prompts,
        resolved=context.resolved,
        fingerprints={"data.train": fingerprint(problems, with_columns=True)} | learning_fingerprints(cfg),
        plan=run_plan(context.resolved, context.algorithm, prompts, is_new=not context.resuming),
        prompts=prompts,
        problems=[prompt.problem for prompt in prompts],
    )


def learning_fingerprints(cfg: Config) -> dict[str, str]:
    """Digests of what a run learns from besides its problems: of the reward models, separated by commas, of the
    teacher, and of the files of the user's functions, where there are some.
    """
    teacher, runs = [cfg.teacher.model] if cfg.teacher.loaded else [], Path(cfg.run.dir)
    models = {"reward.model": parse_reward_models(cfg.reward.model), "teacher.model": teacher}
    prints = {
        key: ",".join(model_fingerprint(resolve_model(name, runs=runs)) for name in own) for key, own in models.items()
    }
    prints["reward.functions"] = source_fingerprint(one.function for one in load_reward_functions(cfg.reward.functions))
    prints["tools.names"] = source_fingerprint(function_tools(cfg.tools.names).values())
    return {key: value for key, value in prints.items() if value}


RL = TrainingStage(load_data=load_data, train=train, place="console")
