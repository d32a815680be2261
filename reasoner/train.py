"""The loop: sample G answers a question, grade them, push the policy toward the better ones; repeat."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import torch

from data import load, pick
from reasoner import checkpoint, store
from reasoner.aha import rates
from reasoner.config import Config
from reasoner.engines import Engine, make_engine
from reasoner.evals.evaluation import Evaluation, Ks, evaluate
from reasoner.journal import Journal
from reasoner.locate import locate
from reasoner.models import context_length, load_policy, load_tokenizer
from reasoner.parity import probe
from reasoner.plan import announce, askable
from reasoner.prompts import template
from reasoner.report import Measured, keep, next_commands, table, traces
from reasoner.rl.algorithms import resolve
from reasoner.rl.batch import collate
from reasoner.rl.learner import Learner
from reasoner.rl.tally import Tally
from reasoner.rollout import rollout
from reasoner.settings import Resolved, to_dict
from reasoner.track import TrackedRun, Tracking, check_trackers
from reasoner.types import Group, Prompt, Sampling
from verifiers import VerifierPool
from verifiers.score import UNJUDGED

_PROBED = 8  # prompts of a parity probe


def train(resolved: Resolved, run_dir: Path, *, resuming: bool = False) -> None:
    """Run or go on with the run in the folder: rollouts, metrics and checkpoints into it, progress to standard error,
    and the table before against after to standard output. ValueError, before anything is written, for what the user
    can put right.
    """
    cfg = resolved.config
    device = _device(cfg)
    algorithm = resolve(cfg.algo)
    asked = template(cfg.prompt.style)
    trackers = [name for name in cfg.run.track.split(",") if name]
    check_trackers(trackers)
    base = locate(cfg.model, runs=Path(cfg.run.dir))
    start_from = checkpoint.last(run_dir) if resuming else base
    tokenizer = load_tokenizer(start_from)
    policy = load_policy(start_from, device=device)
    reference = load_policy(base, device=device).requires_grad_(False) if cfg.algo.beta > 0 else None
    context = context_length(policy)
    prompts = askable(load(cfg.data.train), asked, tokenizer, cfg, context)
    selection = (
        askable(load(cfg.eval.selection, limit=cfg.eval.selection_problems), asked, tokenizer, cfg, context)
        if cfg.eval.every
        else []
    )
    heldout = (
        askable(load(cfg.eval.heldout, limit=cfg.eval.heldout_problems), asked, tokenizer, cfg, context)
        if cfg.eval.heldout_problems
        else []
    )
    learner = Learner(policy, reference, algorithm, cfg)
    start = checkpoint.load(start_from, learner) if resuming else 0

    checkpoint.check_room(run_dir, learner, keep=cfg.run.keep)
    store.open_run(run_dir, to_dict(cfg), resolved.origin, resuming=resuming)
    tokenizer.backend_tokenizer.save(str(run_dir / "tokenizer.json"))
    announce(cfg, policy, prompts, run_dir, start)
    sampling = Sampling(
        cfg.algo.group, cfg.sampling.temperature, cfg.sampling.top_p, 0, cfg.sampling.max_tokens, asked.stop
    )
    engine = make_engine(cfg.engine, start_from, max_model_len=context, seed=cfg.seed)

    with (
        store.held(run_dir),
        VerifierPool(cfg.verify.workers, cfg.verify.seconds, cfg.verify.memory_mib) as pool,
        Journal(run_dir, steps=cfg.steps, start=start) as journal,
        Tracking(
            trackers, TrackedRun(run_dir.name, "reasoner", to_dict(cfg), run_dir, start), say=journal.say
        ) as tracking,
    ):
        if selection and not resuming:
            sampled, greedy = _look(engine, pool, selection, sampling, cfg)
            journal.evaluated(0, sampled=sampled.figures(), greedy=greedy.figures())
            journal.say(f"step 0  {_selection_line(sampled, greedy)}")
        for step in range(start, cfg.steps):
            clock = Clock()

            # ask, sample, grade: which problems, and every seed, is a function of (seed, step)
            chosen = [prompts[i] for i in pick(len(prompts), step, cfg.data.prompts_per_step, cfg.seed)]
            groups = rollout(engine, pool, chosen, sampling, cfg.reward, run_seed=cfg.seed, step=step)
            clock.lap("time/sample")

            # credit and learn
            engine.pause()
            batch = collate(groups).to(device)
            credited = learner.credit(batch)
            tally = Tally(keeps_tokens=cfg.run.token_figures)
            learned = learner.update(learner.annotate(credited), tally)
            engine.resume()
            clock.lap("time/learn")

            # hand over the new weights
            engine.load_weights(learner.weights(), version=step + 1)
            clock.lap("time/sync")

            # record: rollouts before metrics, the checkpoint last
            metrics = {"step": step, **summarise(groups), **learned, **clock.laps()}
            metrics["tokens_per_second"] = (
                sum(len(c.token_ids) for g in groups for c in g.completions) / metrics["time/step"]
            )
            if step == start or due(step, cfg.run.probe_every):
                metrics["probe/logprob_gap_max"] = probe(engine, policy, chosen[:_PROBED], sampling)
            if selection and (due(step, cfg.eval.every) or step + 1 == cfg.steps):
                sampled, greedy = _look(engine, pool, selection, sampling, cfg)
                metrics |= selected(sampled, greedy)
                if sampled.pass_at_1.value > checkpoint.best_score(run_dir):
                    checkpoint.save_best(run_dir, step + 1, learner, tokenizer, score=sampled.pass_at_1.value)
                journal.evaluated(step + 1, sampled=sampled.figures(), greedy=greedy.figures())
            rows = store.append(run_dir, step, groups, learner.advantages(batch).tolist(), tally.tokens)
            journal.write(metrics, example=groups[0].completions[0].text)
            tracking.log(step, metrics)
            tracking.rollouts(step, rows)
            if due(step, cfg.run.save_every) or step + 1 == cfg.steps:
                checkpoint.save(run_dir, step + 1, learner, tokenizer, keep=cfg.run.keep)
        minutes = journal.minutes()
        journal.say(f"{cfg.steps - start} steps in {minutes:.1f} minutes")

    if heldout:
        _report(run_dir, engine, heldout, sampling, learner, base, cfg, minutes)
    print(next_commands(run_dir))
    engine.close()


def due(step: int, every: int) -> bool:
    """After this step, something that happens every so many steps happens."""
    return every > 0 and (step + 1) % every == 0


def summarise(groups: Sequence[Group]) -> dict[str, float]:
    """What the step's completions are like (names: reasoner.journal.METRICS)."""
    scores = [score for group in groups for score in group.scores]
    completions = [completion for group in groups for completion in group.completions]
    reflection = rates(group.prompt.prefill + c.text for group in groups for c in group.completions)
    size = len(scores)
    found = {
        "reward/mean": sum(s.reward for s in scores) / size,
        "correct": sum(s.correct for s in scores) / size,
        "format": sum(s.format_ok for s in scores) / size,
        "completions/mean_length": sum(len(c.token_ids) for c in completions) / size,
        "completions/clipped_ratio": sum(c.finish == "length" for c in completions) / size,
        "self_check": reflection.checks,
        "frac_reward_zero_std": sum(group.is_flat for group in groups) / len(groups),
        "grading/failed": sum(s.verdict in UNJUDGED for s in scores) / size,
    }
    return found if reflection.caught_share is None else found | {"caught": reflection.caught_share}


class Clock:
    """Seconds of the parts of a step."""

    def __init__(self) -> None:
        self._began = self._last = time.monotonic()
        self._laps: dict[str, float] = {}

    def lap(self, name: str) -> None:
        now = time.monotonic()
        self._laps[name], self._last = now - self._last, now

    def laps(self) -> dict[str, float]:
        return self._laps | {"time/step": self._last - self._began}


def _device(cfg: Config) -> torch.device:
    if cfg.threads:
        torch.set_num_threads(cfg.threads)
    torch.manual_seed(cfg.seed)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")


def _look(
    engine: Engine, pool: VerifierPool, prompts: Sequence[Prompt], sampling: Sampling, cfg: Config
) -> tuple[Evaluation, Evaluation]:
    """The selection problems, sampled and greedy. The seeds are the same at every look: what differs is the model."""
    num = cfg.eval.selection_samples
    return _both_ways(engine, pool, prompts, sampling, cfg, num=num, stream="eval selection", ks=Ks(cons_at=(num,)))


def measure(engine: Engine, pool: VerifierPool, prompts: Sequence[Prompt], sampling: Sampling, cfg: Config) -> Measured:
    """A model on problems it was not chosen by: sampled at the training temperature, and greedy.

    The seeds are those of `reasoner eval`, which gives the same figures for the checkpoint.
    """
    num = cfg.eval.samples
    print(f"held-out problems: {len(prompts)} x {num} samples, and greedy", file=sys.stderr, flush=True)
    ks = Ks(pass_at=(1, num), cons_at=(num,))
    return Measured(*_both_ways(engine, pool, prompts, sampling, cfg, num=num, stream="eval", ks=ks))


def _both_ways(
    engine: Engine,
    pool: VerifierPool,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    cfg: Config,
    *,
    num: int,
    stream: str,
    ks: Ks,
) -> tuple[Evaluation, Evaluation]:
    sampled, greedy = replace(sampling, num=num), replace(sampling, num=1, temperature=0.0)

    def found(way: Sampling, ks: Ks) -> Evaluation:
        return evaluate(lambda: engine, pool, prompts, way, seed=cfg.seed, label=stream, stream=stream, ks=ks)

    return found(sampled, ks), found(greedy, Ks())


def selected(sampled: Evaluation, greedy: Evaluation) -> dict[str, float]:
    """A look at the selection problems as metrics of the journal."""
    cons = next(value for name, value in sampled.metrics.items() if name.startswith("cons@"))
    return {
        "eval/selection/pass@1": sampled.pass_at_1.value,
        "eval/selection/cons@k": cons.value,
        "eval/selection/greedy": greedy.pass_at_1.value,
        "eval/selection/format": sampled.well_formed,
    }


def _selection_line(sampled: Evaluation, greedy: Evaluation) -> str:
    figures = "  ".join(f"{name} {value}" for name, value in sampled.metrics.items())
    tokens = sampled.health["tokens"] or 0.0
    return (
        f"selection problems: {figures}  greedy {greedy.pass_at_1}  well-formed {sampled.well_formed:.1%}  "
        f"tokens {tokens:.0f}"
    )


def _report(
    run_dir: Path,
    engine: Engine,
    heldout: Sequence[Prompt],
    sampling: Sampling,
    learner: Learner,
    base: Path,
    cfg: Config,
    minutes: float,
) -> None:
    """Measure the trained policy and the model it began as on the held-out problems; print and keep the comparison."""
    with VerifierPool(cfg.verify.workers, cfg.verify.seconds, cfg.verify.memory_mib) as pool:
        after = measure(engine, pool, heldout, sampling, cfg)
        engine.load_weights(load_policy(base, device=learner.policy.device).state_dict().items(), version=0)
        before = measure(engine, pool, heldout, sampling, cfg)
    text = f"{table(before, after)}\n\n{traces(before, after)}\n"
    (run_dir / "report.txt").write_text(text)
    figures = {"before": before.figures(), "after": after.figures(), "minutes": minutes}
    store.write_json(run_dir / "report.json", figures)
    for name, measured in (("before", before), ("after", after)):
        keep(run_dir / "heldout" / name, measured, cfg, engine.name)
    print(f"\n{text}", flush=True)
