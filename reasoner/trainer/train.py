"""The loop: sample G answers a question, grade them, push the policy toward the better ones; repeat."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path

import torch
from transformers import PreTrainedTokenizerBase

from data import Problem, load, sample_indices
from reasoner.config.resolve import Resolved, to_dict
from reasoner.config.schema import Config
from reasoner.console import log
from reasoner.evals.before_after import next_commands
from reasoner.inference.factory import make_engine
from reasoner.models.loading import context_length, load_policy, load_tokenizer
from reasoner.rl.algorithms import Algorithm
from reasoner.rl.batch import Batch, collate
from reasoner.rl.process_rewards import step_rewards
from reasoner.rl.token_stats import TokenStats
from reasoner.rollouts.control_rewards import ControlContext, apply_control, shuffled_answers
from reasoner.rollouts.dataset import filter_prompts
from reasoner.rollouts.generate import generate_groups, penalise_truncated, sample_until_full
from reasoner.rollouts.prefetch import RolloutPrefetcher
from reasoner.runs import rollouts as store
from reasoner.runs.health import new_alarms, repetition
from reasoner.runs.metrics import MetricsLogger
from reasoner.runs.run_dir import read_settings
from reasoner.trainer import checkpoint, records
from reasoner.trainer.fingerprints import check_unchanged, fingerprints_of
from reasoner.trainer.parity import max_logprob_diff
from reasoner.trainer.policy_trainer import PolicyTrainer
from reasoner.trainer.preflight import preflight
from reasoner.trainer.rollback import respond_to_alarms
from reasoner.trainer.shutdown import GracefulShutdown
from reasoner.trainer.summary import log_run_summary
from reasoner.trainer.trackers import TrackedRun, Tracking
from reasoner.trainer.validation import Validator, report
from reasoner.types import Prompt, RolloutGroup, SamplingParams
from verifiers import VerifierPool
from verifiers.reflection import rates
from verifiers.score import UNJUDGED

PROBED = 4  # prompts of a probe, and how many tokens of two completions of each
PROBED_TOKENS = 16
_ROLLED_BACK = 1_000_033  # added to the seed for each rollback: other samples to the same questions
_REFILLS = 1_000_003  # added to the seed: which questions replace those without a signal is drawn by itself


def train(resolved: Resolved, run_dir: Path, *, resuming: bool = False) -> None:
    """Run or go on with the run in the folder: rollouts, metrics and checkpoints into it, progress to standard error,
    and the table before against after to standard output. A run that goes on ends with the very bytes of one that was
    never interrupted.

    ValueError, before anything is written, for what the user can put right; Stopped after a signal.
    """
    cfg = resolved.config
    device = device_of(cfg)
    parts = preflight(cfg, run_dir)
    algorithm, asked, base = parts.algorithm, parts.template, parts.model_folder
    assert base is not None  # it has been downloaded
    whole = records.resume_point(run_dir, log) if resuming else None
    start_from = whole or base
    tokenizer = load_tokenizer(start_from)
    policy = load_policy(start_from, device=device)
    reference = load_policy(base, device=device).requires_grad_(False) if cfg.algo.beta > 0 else None
    context = context_length(policy)

    def prompts_of(problems: Sequence[Problem]) -> list[Prompt]:
        limits = {"max_tokens": cfg.sampling.max_tokens, "max_prompt_tokens": cfg.data.max_prompt_tokens}
        return filter_prompts(problems, asked, tokenizer, context=context, **limits)

    training = load(cfg.data.train)
    selected = load(cfg.validation.data, limit=cfg.validation.problems) if cfg.validation.interval else []
    fingerprints = fingerprints_of(base, asked, training, selected)
    if resuming:
        stored = read_settings(run_dir)
        check_unchanged(stored, fingerprints, to_dict(cfg), log)
        fingerprints = stored.get("fingerprints", {}) | fingerprints
    prompts = prompts_of(training)
    selection = prompts_of(selected) if selected else []
    heldout = prompts_of(load(cfg.eval.heldout, limit=cfg.eval.heldout_problems)) if cfg.eval.heldout_problems else []
    wrong = shuffled_answers(prompts, cfg.seed) if cfg.control == "wrong-gold" else {}
    learner = PolicyTrainer(policy, reference, algorithm, cfg)
    start = checkpoint.load(whole, learner) if whole else 0
    checkpoint.check_room(run_dir, learner, keep=cfg.run.keep_last)
    sampling = SamplingParams(
        cfg.algo.group_size, cfg.sampling.temperature, cfg.sampling.top_p, 0, cfg.sampling.max_tokens, asked.stop
    )

    with store.lock_run_dir(run_dir):
        if resuming:
            records.repair(run_dir, start, log)
        store.open_run(run_dir, to_dict(cfg), resolved.origin, resuming=resuming, fingerprints=fingerprints)
        tokenizer.backend_tokenizer.save(str(run_dir / "tokenizer.json"))
        if resolved.note:
            log(resolved.note)
        log_run_summary(cfg, algorithm, policy, prompts, run_dir, start)
        engine = make_engine(cfg.engine, start_from, max_model_len=context, seed=cfg.seed)
        engine.update_weights(learner.policy_state(), version=start)
        with (
            VerifierPool(cfg.verify.workers, cfg.verify.seconds, cfg.verify.memory_mib) as pool,
            MetricsLogger(run_dir, steps=cfg.steps, start=start) as logger,
            Tracking(
                parts.trackers, TrackedRun(run_dir.name, "reasoner", to_dict(cfg), run_dir, start), log=logger.log
            ) as tracking,
            GracefulShutdown(logger.log) as stopping,
            RolloutPrefetcher() as ahead,
        ):

            def ask(step: int, some: Sequence[Prompt]) -> list[RolloutGroup]:
                seed = cfg.seed + _ROLLED_BACK * learner.attempt
                progress = logger.progress
                drawn = generate_groups(
                    engine, pool, some, sampling, cfg.reward, run_seed=seed, step=step, progress=progress
                )
                drawn = penalise_truncated(drawn, cfg.algo.missing_eos_penalty)
                return apply_control(drawn, cfg.control, ControlContext(pool, wrong, seed, step))

            def draw(step: int) -> tuple[list[RolloutGroup], list[RolloutGroup]]:
                turns = _turns(prompts, step, algorithm, cfg)
                return sample_until_full(partial(ask, step), turns, dynamic_sampling=algorithm.dynamic_sampling)

            learner.on_microbatch = logger.progress.count
            looks = Validator(engine, pool, selection, sampling, cfg, run_dir, logger)
            probed = replace(sampling, num_samples=2, max_tokens=PROBED_TOKENS)

            def keep(steps_done: int) -> Path:
                return checkpoint.save(
                    run_dir, steps_done, learner, tokenizer, keep=cfg.run.keep_last, every=cfg.run.save_interval
                )

            if not start:
                with stopping.leaves():
                    looks.before()
                if cfg.run.on_alarm == "rollback":
                    keep(0)
            while not _is_over(logger.steps_done, logger.num_tokens(), cfg):
                step, clock = logger.steps_done, Clock()
                logger.progress.begin(f"step {step}")

                # ask, sample, grade: which problems, and every seed, is a function of (seed, step)
                with _saved(step, keep, logger), stopping.leaves():
                    groups, flat = ahead.take(step, draw)
                drawn = [*groups, *flat]
                spent = logger.num_tokens() + num_tokens(drawn)
                is_last = _is_over(step + 1, spent, cfg)
                clock.lap("time/generate")

                # credit and learn
                if cfg.max_off_policy_steps and not (is_last or due(step, cfg.run.save_interval)):
                    ahead.begin(step + 1, draw)
                else:
                    engine.sleep()
                batch, token_stats, learned = learn(learner, groups, tokenizer, tokens_before=logger.num_tokens())
                if learned["skipped_updates"]:
                    logger.log(f"a gradient was not finite: see {checkpoint.dump(run_dir, step, batch)}")
                engine.wake_up()
                clock.lap("time/train")

                # hand over the new weights
                ahead.settle()
                engine.update_weights(learner.policy_state(), version=step + 1)
                clock.lap("time/weight_sync")

                # record: rollouts before metrics, the checkpoint last; is it still well?
                metrics = {"step": step, "num_tokens": spent, **summarise(drawn), **learned}
                if learner.attempt:
                    metrics["rollbacks"] = learner.attempt
                if algorithm.dynamic_sampling:
                    metrics["dynamic_sampling/replaced"] = len(drawn) - cfg.data.prompts_per_step
                if cfg.max_off_policy_steps:
                    metrics["rollouts/policy_age"] = step - groups[0].completions[0].policy_version
                if step == 0 or due(step, cfg.run.parity_interval):
                    metrics["parity/logprob_diff_max"] = max_logprob_diff(
                        engine, policy, [group.prompt for group in drawn[:PROBED]], probed
                    )
                if due(step, cfg.validation.interval) or is_last:
                    metrics |= looks.after(step + 1, learner, tokenizer)
                rows = store.write_step(run_dir, step, drawn, credited(batch, flat), token_stats.tokens)
                logger.write(metrics, clock.laps(drawn), example=groups[0].completions[0].text)
                tracking.told(step, metrics, rows)
                begun = new_alarms(logger.history)
                logger.alarm(begun)
                if due(step, cfg.run.save_interval) or is_last:
                    keep(step + 1)
                if begun:
                    respond_to_alarms(begun, cfg.run.on_alarm, run_dir, learner, logger, engine, keep)
            logger.log(f"{logger.steps_done - start} steps in {logger.minutes():.1f} minutes")

            if heldout:
                with stopping.leaves():
                    report(run_dir, engine, heldout, sampling, learner, base, cfg, logger.progress)
        print(next_commands(run_dir))
        engine.close()


def _is_over(steps_done: int, spent: float, cfg: Config) -> bool:
    return steps_done >= cfg.steps or 0 < cfg.max_train_tokens <= spent


def learn(
    learner: PolicyTrainer,
    groups: Sequence[RolloutGroup],
    tokenizer: PreTrainedTokenizerBase,
    *,
    tokens_before: float = 0,
) -> tuple[Batch, TokenStats, dict[str, float]]:
    """Give the groups credit and update on them: (batch, what was seen of its tokens, what the update says).

    `tokens_before` is the number of tokens that the run has sampled before these.
    """
    steps = None
    if learner.algorithm.returns == "process":
        # Whether an equation holds is mathematics: a control arm must not learn it, and has its outcome alone.
        gated, is_control = learner.algorithm.step_credit == "gated", bool(learner.cfg.control)
        steps = step_rewards(groups, tokenizer.backend_tokenizer, gated=gated, outcome_only=is_control)
    batch = learner.credit(learner.annotate(collate(groups, steps).to(learner.policy.device)))
    token_stats = TokenStats(keeps_tokens=learner.cfg.run.token_stats)
    return batch, token_stats, learner.update(batch, token_stats, tokens_before=tokens_before)


@contextmanager
def _saved(step: int, keep: Callable[[int], object], logger: MetricsLogger) -> Iterator[None]:
    """A block in which the learner stands as it is after `step` steps: whatever ends it, they are saved."""
    try:
        yield
    except BaseException as error:
        try:
            if step and not checkpoint.folder(logger.run_dir, step).is_dir():
                keep(step)
        except OSError as fault:
            logger.log(str(fault))
        if isinstance(error, Exception):
            raise RuntimeError(f"sampling of step {step} failed: {type(error).__name__}: {error}") from error
        raise


def _turns(prompts: Sequence[Prompt], step: int, algorithm: Algorithm, cfg: Config) -> list[list[Prompt]]:
    """The questions of a step, and of each round that may replace those without a signal."""
    count, rounds = cfg.data.prompts_per_step, cfg.algo.dynamic_sampling_max_rounds if algorithm.dynamic_sampling else 0
    picked = [sample_indices(len(prompts), step, count, cfg.seed)]
    picked += [sample_indices(len(prompts), step * rounds + turn, count, cfg.seed + _REFILLS) for turn in range(rounds)]
    return [[prompts[i] for i in indices] for indices in picked]


def num_tokens(groups: Sequence[RolloutGroup]) -> int:
    return sum(len(completion.token_ids) for group in groups for completion in group.completions)


def credited(batch: Batch, flat: Sequence[RolloutGroup]) -> list[float]:
    """The advantage of each completion's first token, which is that of the whole; 0 in groups that were replaced."""
    return [*batch.advantages[:, 0].tolist(), *(0.0 for group in flat for _ in group.completions)]


def due(step: int, every: int) -> bool:
    """After this step, something that happens every so many steps happens."""
    return every > 0 and (step + 1) % every == 0


def summarise(groups: Sequence[RolloutGroup]) -> dict[str, float]:
    """What the step's completions are like (names: reasoner.runs.metrics.METRICS)."""
    scores = [score for group in groups for score in group.scores]
    completions = [completion for group in groups for completion in group.completions]
    reflection = rates(group.prompt.prefill + c.text for group in groups for c in group.completions)
    size = len(scores)
    found = {
        "reward/mean": sum(s.reward for s in scores) / size,
        "correct": sum(s.correct for s in scores) / size,
        "well_formed": sum(s.well_formed for s in scores) / size,
        "completions/mean_length": sum(len(c.token_ids) for c in completions) / size,
        "completions/clipped_ratio": sum(c.finish == "length" for c in completions) / size,
        "reflection/self_check_rate": reflection.self_check_rate,
        "frac_reward_zero_std": sum(group.has_zero_variance for group in groups) / len(groups),
        "repetition": repetition([completion.token_ids for completion in completions]),
        "grading/failed": sum(s.verdict in UNJUDGED for s in scores) / size,
    }
    errors_caught = reflection.errors_caught_share
    return found if errors_caught is None else found | {"reflection/errors_caught": errors_caught}


class Clock:
    """Seconds of the parts of a step."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self._laps[name], self._last = now - self._last, now

    def laps(self, drawn: Sequence[RolloutGroup]) -> dict[str, float]:
        seconds = self._last - self._began
        slowest = max(score.seconds for group in drawn for score in group.scores)
        rest = {"time/step": seconds, "time/grade_max": slowest, "tokens_per_second": num_tokens(drawn) / seconds}
        return self._laps | rest


def device_of(cfg: Config) -> torch.device:
    if cfg.threads:
        torch.set_num_threads(cfg.threads)
    torch.manual_seed(cfg.seed)
    # Sums in a fixed order: the same gradient to the last bit. Some kernels of a GPU have no such form, and say so.
    os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
    torch.use_deterministic_algorithms(True, warn_only=torch.cuda.is_available())
    torch.utils.deterministic.fill_uninitialized_memory = False  # type: ignore[attr-defined]
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
