"""Training of a reward model in a run folder: metrics, checkpoints, exact resume, and a report on held-out problems.

The optimiser, the schedule and the checkpoints are those of the policy trainer, which trains any transformers model.
The last checkpoint is the finished model, normalised; those before it are in the loss's own unit.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import torch
from torch import Tensor
from transformers import PreTrainedTokenizerBase

from reasoner.config.learning import AlgoConfig
from reasoner.config.resolve import RunSettings, to_dict
from reasoner.config.schema import Config
from reasoner.console import clock, log, print_result, speed
from reasoner.models.folder import model_fingerprint
from reasoner.models.loading import context_length, load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.models.reward_model import load_reward_model
from reasoner.preferences.batches import backward_preferences, collate_comparisons, comparisons_of_step
from reasoner.preferences.dataset import Comparison, Split, comparisons_of, num_pairs, read_rows, split_by_problem
from reasoner.preferences.evaluation import evaluate_scores
from reasoner.preferences.loss import share_in_order
from reasoner.preferences.report import report_text, report_values
from reasoner.preferences.reward_model import check_pad, fold_normalization, new_reward_model, reward_std
from reasoner.preferences.scoring import score_comparisons
from reasoner.preferences.text_rows import TextEncoder
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rl.reward_model_passes import RewardModelPasses
from reasoner.rollouts.prompts import load_template
from reasoner.runs import rollouts as store
from reasoner.runs.io import write_text
from reasoner.runs.json_files import append_line
from reasoner.runs.metrics import metrics_prefix, truncate_logs
from reasoner.runs.run_dir import read_settings
from reasoner.runtime import setup_torch
from reasoner.trainer import checkpoint
from reasoner.trainer.launch import resolve_resumed_run
from reasoner.trainer.policy_trainer import PolicyTrainer
from reasoner.trainer.run import is_due
from reasoner.trainer.schedule import learning_rate_factor
from reasoner.trainer.shutdown import GracefulShutdown, RunInterrupt


@dataclass(frozen=True, slots=True)
class RewardModelRun:
    """The components of a run that trains a reward model."""

    cfg: Config
    run_dir: Path
    trainer: PolicyTrainer  # its policy is the reward model
    tokenizer: PreTrainedTokenizerBase
    split: Split

    @property
    def passes(self) -> RewardModelPasses:
        """The passes of the reward model."""
        return RewardModelPasses(self.trainer.policy, self.cfg.optim.dtype, self.cfg.optim.micro_batch_tokens)

    def train_step(self) -> dict[str, float]:
        """Take the next optimiser step. Returns its metrics (names: docs/METRICS.md)."""
        cfg, trainer, step = self.cfg, self.trainer, self.trainer.steps_done
        batch, pairs = collate_comparisons(
            comparisons_of_step(self.split.training, step, min(cfg.rm.prompts, len(self.split.training)), cfg.seed)
        )
        factor = learning_rate_factor(cfg, step, 0)
        batch = batch.to(trainer.policy.device)
        backward = partial(backward_preferences, self.passes, batch, pairs, center=cfg.rm.center)
        update, norm = trainer.step_on(backward, lr_factor=factor)
        trainer.steps_done += 1
        scores: Tensor = update.scores.cpu().double()
        return {
            "step": step,
            "loss": update.loss,
            "reward_model/accuracy": share_in_order(scores, pairs),
            "reward_model/margin": float((pairs.weights * (scores[pairs.chosen] - scores[pairs.rejected])).sum()),
            "reward_model/score_mean": float(scores.mean()),
            "reward_model/score_std": float(scores.std(correction=0)),
            "grad_norm": norm or 0.0,
            "lr": cfg.optim.lr * factor,
            "skipped_updates": float(norm is None),
            "num_tokens": int(batch.lengths.sum()),
        }

    def save(self) -> None:
        """Save a checkpoint of the trainer as it stands."""
        keep, every = self.cfg.run.keep_last, self.cfg.run.save_interval
        checkpoint.save(self.run_dir, self.trainer.steps_done, self.trainer, self.tokenizer, keep=keep, every=every)


def train_reward_model(resolved: RunSettings, run_dir: Path, *, resuming: bool = False) -> None:
    """Train a reward model, or resume its training, in `run_dir`. A resumed run ends with the same bytes as one that
    was never interrupted. The report on held-out problems goes to standard output and to report.txt.

    ValueError, before anything is written, for settings or preferences that cannot be used; RunInterrupt after SIGINT
    or SIGTERM.
    """
    with open_reward_model_run(resolved, run_dir, resuming=resuming) as run, GracefulShutdown(log) as shutdown:
        training_loop(run, shutdown)
        write_report(run)


def training_loop(run: RewardModelRun, shutdown: GracefulShutdown) -> None:
    """Train until the preferences have come rm.epochs times, then normalise the model."""
    cfg, trainer, began, first = run.cfg, run.trainer, time.monotonic(), run.trainer.steps_done
    while trainer.steps_done < cfg.steps:
        start = time.monotonic()
        metrics = run.train_step()
        is_last = trainer.steps_done == cfg.steps
        if is_last and cfg.rm.normalize:
            normalize(run)
        seconds, num_tokens = time.monotonic() - start, metrics.pop("num_tokens")
        times = {"step": metrics["step"], "time/train": seconds, "tokens_per_second": num_tokens / seconds}
        append_line(run.run_dir / "times.jsonl", times)
        append_line(run.run_dir / "metrics.jsonl", metrics)
        left = (time.monotonic() - began) / (trainer.steps_done - first) * (cfg.steps - trainer.steps_done)
        log(
            f"step {metrics['step']} ({trainer.steps_done}/{cfg.steps} done)  loss {metrics['loss']:.3f}  "
            f"accuracy {metrics['reward_model/accuracy']:.1%}  margin {metrics['reward_model/margin']:.2f}  "
            f"gradient norm {metrics['grad_norm']:.2f}  {speed(times['tokens_per_second'])}  {clock(left)} left"
        )
        if is_due(int(metrics["step"]), cfg.run.save_interval) or is_last:
            run.save()
        try:
            shutdown.check()
        except RunInterrupt:
            if not checkpoint.folder(run.run_dir, trainer.steps_done).is_dir():
                run.save()
            raise


def normalize(run: RewardModelRun) -> None:
    """Fold mean and standard deviation of the scores over the training completions into the model."""
    flat = torch.tensor([score for own in score_comparisons(run.passes, run.split.training) for score in own])
    fold_normalization(run.trainer.policy, mean=float(flat.mean()), std=float(flat.std(correction=0)))


def write_report(run: RewardModelRun) -> None:
    """Print the report on the held-out problems, and write it to report.txt and report.json."""
    if not run.split.heldout:
        log("no problem is held out (rm.heldout_share 0): no report")
        return
    scores = score_comparisons(run.passes, run.split.heldout)
    report = evaluate_scores(run.split.heldout, scores, std=reward_std(run.trainer.policy))
    write_text(run.run_dir / "report.txt", report_text(report) + "\n")
    store.write_json(run.run_dir / "report.json", report_values(report))
    print_result(report_text(report))


# --------------------------------------------------------------------------------------------------- set-up


@contextmanager
def open_reward_model_run(resolved: RunSettings, run_dir: Path, *, resuming: bool) -> Iterator[RewardModelRun]:
    """Build the run from its settings, or from its newest checkpoint, and lock its folder.

    ValueError, before anything is written, for settings or preferences that cannot be used.
    """
    cfg = resolved.config
    device = setup_torch(threads=cfg.threads, seed=cfg.seed)
    base = resolve_model(cfg.model, runs=Path(cfg.run.dir))
    start = _resume_point(run_dir) if resuming else None
    tokenizer = load_tokenizer(start or base)
    model = (
        new_reward_model(base, tokenizer, device=device) if start is None else load_reward_model(start, device=device)
    )
    check_pad(model)
    model.requires_grad_(True)
    split = load_preferences(cfg, tokenizer, context_length(model))
    steps = max(1, cfg.rm.epochs * len(split.training) // cfg.rm.prompts)
    cfg = replace(cfg, steps=steps, algo=AlgoConfig(name="reinforce", beta=0.0))  # no reference and no critic
    trainer = PolicyTrainer(model, None, resolve_algorithm(cfg.algo), cfg, tokenizer)
    fingerprints = {"model": model_fingerprint(base), "rm.data": fingerprint(cfg.rm.data)}
    if resuming:
        _check_unchanged(run_dir, fingerprints)
    steps_done = 0 if start is None else checkpoint.load(start, trainer)
    with store.lock_run_dir(run_dir):
        if resuming:
            truncate_logs(run_dir, steps_done, last_validation=steps_done)
        store.open_run(
            run_dir, to_dict(cfg), resolved.origin, resuming=resuming, fingerprints=fingerprints, stage=cfg.stage
        )
        store.write_json(run_dir / "data.json", _contents(cfg.rm.data, fingerprints["rm.data"], split))
        tokenizer.backend_tokenizer.save(str(run_dir / "tokenizer.json"))
        run = RewardModelRun(cfg, run_dir, trainer, tokenizer, split)
        _log_summary(run)
        yield run


def load_preferences(cfg: Config, tokenizer: PreTrainedTokenizerBase, context: int) -> Split:
    """The run's preferences, split by problem. ValueError if there are none."""
    encode = TextEncoder(tokenizer, load_template(cfg.prompt.style).stop)
    comparisons = comparisons_of(read_rows(Path(cfg.rm.data)), encode)
    limit = min(cfg.rm.max_tokens or context, context)
    return split_by_problem(comparisons, share=cfg.rm.heldout_share, seed=cfg.seed, max_tokens=limit)


def heldout_comparisons(folder: Path, tokenizer: PreTrainedTokenizerBase, context: int) -> Sequence[Comparison]:
    """The comparisons that the run of a reward model's checkpoint held out. ValueError for a folder of no such run."""
    run_dir = folder.parent.parent
    if folder.parent.name != "checkpoints" or not (run_dir / "data.json").is_file():
        raise ValueError(
            f"{folder} is no checkpoint of a run that trained a reward model; name preferences with --data"
        )
    resolved, _ = resolve_resumed_run(str(run_dir), {}, origin="", runs=run_dir.parent, stage="reward-model")
    cfg = resolved.config
    if fingerprint(cfg.rm.data) != read_settings(run_dir)["fingerprints"]["rm.data"]:
        raise ValueError(f"{cfg.rm.data} has changed since {run_dir} was trained on it; name preferences with --data")
    return load_preferences(cfg, tokenizer, context).heldout


def fingerprint(path: str) -> str:
    """SHA-256 of a file."""
    with Path(path).open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _resume_point(run_dir: Path) -> Path | None:
    """The newest undamaged checkpoint that the metrics reach; None before the first."""
    checkpoint.clean_partial(run_dir)
    num_steps = len(metrics_prefix(run_dir))
    paths = checkpoint.valid_checkpoints(run_dir, log)
    return next((path for path in paths if checkpoint.step_of(path) <= num_steps), None)


def _check_unchanged(run_dir: Path, now: dict[str, str]) -> None:
    then = read_settings(run_dir).get("fingerprints", {})
    for name, value in now.items():
        if then.get(name, value) != value:
            raise ValueError(f"{name} has changed since {run_dir} began; restore the old content, or start a new run")


def _contents(source: str, sha256: str, split: Split) -> dict[str, object]:
    """What the model was trained on, for data.json."""
    sides: dict[str, tuple[Comparison, ...]] = {"training": split.training, "heldout": split.heldout}
    counts = {
        f"{side}_{what}": count
        for side, own in sides.items()
        for what, count in (
            ("problems", len({one.problem_id for one in own})),
            ("prompts", len(own)),
            ("pairs", num_pairs(own)),
        )
    }
    return {"source": source, "sha256": sha256, **counts, "left_out": {"too long": split.too_long}}


def _log_summary(run: RewardModelRun) -> None:
    cfg, split = run.cfg, run.split
    training, heldout = (f"{num_pairs(own):,} pairs of {len(own):,} prompts" for own in (split.training, split.heldout))
    parameters = sum(parameter.numel() for parameter in run.trainer.policy.parameters())
    lines = {
        "model": f"{cfg.model}, {parameters / 1e6:.1f}M parameters on {run.trainer.policy.device}",
        "preferences": f"{cfg.rm.data}: {training}; held out {heldout}; left out as too long {split.too_long:,}",
        "steps": f"{run.trainer.steps_done} of {cfg.steps} done; {cfg.rm.prompts} prompts a step, lr {cfg.optim.lr:g}",
        "run folder": str(run.run_dir),
    }
    for name, line in lines.items():
        log(f"{name + ':':<15}{line}")
