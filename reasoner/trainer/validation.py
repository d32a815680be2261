"""What a run measures on its way: the validation problems every so many steps, the held-out ones at its end."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from transformers import PreTrainedTokenizerBase

from reasoner.config.schema import Config
from reasoner.evals.before_after import HeldOutEvals, example_answers, table, write_eval
from reasoner.evals.result import EvalResult, MetricKs, evaluate
from reasoner.models.loading import load_policy
from reasoner.progress import Progress
from reasoner.runs import rollouts as store
from reasoner.runs.metrics import MetricsLogger
from reasoner.trainer import checkpoint
from reasoner.trainer.policy_trainer import PolicyTrainer
from reasoner.types import Engine, Prompt, SamplingParams
from verifiers import VerifierPool

SELECTED = "validation/pass@1"  # the metric that chooses the best policy


@dataclass(frozen=True, slots=True)
class Validator:
    """The looks at the validation problems, sampled and greedy. The seeds are the same every time: what differs is the
    model. No problems, no looks.
    """

    engine: Engine
    pool: VerifierPool
    prompts: Sequence[Prompt]
    sampling: SamplingParams
    cfg: Config
    run_dir: Path
    logger: MetricsLogger

    def before(self) -> None:
        """Before any step."""
        if self.prompts:
            sampled, greedy = self._look(0)
            self.logger.log(f"0 steps done  {_line(sampled, greedy)}")

    def after(self, steps_done: int, learner: PolicyTrainer, tokenizer: PreTrainedTokenizerBase) -> dict[str, float]:
        """As metrics of the step; the policy is kept where it is the best so far."""
        if not self.prompts:
            return {}
        sampled, greedy = self._look(steps_done)
        if sampled.pass_at_1.value > self._best_score():
            checkpoint.save_best(self.run_dir, steps_done, learner, tokenizer, score=sampled.pass_at_1.value)
        return selected(sampled, greedy)

    def _best_score(self) -> float:
        """Of the best policy that was kept; where that was lost, of the best look so far; -1 before the first."""
        score = checkpoint.best_score(self.run_dir)
        looks = [line[SELECTED] for line in self.logger.history if SELECTED in line]
        return max(looks, default=-1.0) if score is None else score

    def _look(self, steps_done: int) -> tuple[EvalResult, EvalResult]:
        num = self.cfg.validation.samples
        ks = MetricKs(cons_at=(num,))
        progress, title = self.logger.progress, f"validation problems after step {steps_done}"
        asked = (self.engine, self.pool, self.prompts, self.sampling, self.cfg, progress)
        sampled, greedy = _both_ways(*asked, title=title, num=num, stream="eval selection", ks=ks)
        self.logger.evaluated(steps_done, sampled=sampled.to_dict(), greedy=greedy.to_dict())
        return sampled, greedy


def selected(sampled: EvalResult, greedy: EvalResult) -> dict[str, float]:
    """A look at the validation problems as metrics of the journal."""
    cons = next(value for name, value in sampled.metrics.items() if name.startswith("cons@"))
    return {
        SELECTED: sampled.pass_at_1.value,
        "validation/cons@k": cons.value,
        "validation/greedy": greedy.pass_at_1.value,
        "validation/well_formed": sampled.well_formed,
    }


def _line(sampled: EvalResult, greedy: EvalResult) -> str:
    figures = "  ".join(f"{name} {value}" for name, value in sampled.metrics.items())
    tokens = sampled.health["tokens"] or 0.0
    return (
        f"validation problems: {figures}  greedy {greedy.pass_at_1}  well-formed {sampled.well_formed:.1%}  "
        f"tokens {tokens:.0f}"
    )


def measure(
    engine: Engine,
    pool: VerifierPool,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    cfg: Config,
    progress: Progress,
    title: str,
) -> HeldOutEvals:
    """A model on problems it was not chosen by: sampled at the training temperature, and greedy.

    The seeds are those of `reasoner eval`, which gives the same figures for the checkpoint.
    """
    num = cfg.eval.samples
    print(f"held-out problems: {len(prompts)} x {num} samples, and greedy", file=sys.stderr, flush=True)
    ks = MetricKs(pass_at=(1, num), cons_at=(num,))
    asked = (engine, pool, prompts, sampling, cfg, progress)
    return HeldOutEvals(*_both_ways(*asked, title=f"held-out problems, {title}", num=num, stream="eval", ks=ks))


def _both_ways(
    engine: Engine,
    pool: VerifierPool,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    cfg: Config,
    progress: Progress,
    *,
    title: str,
    num: int,
    stream: str,
    ks: MetricKs,
) -> tuple[EvalResult, EvalResult]:
    sampled, greedy = replace(sampling, num_samples=num), replace(sampling, num_samples=1, temperature=0.0)

    def found(way: SamplingParams, ks: MetricKs, name: str) -> EvalResult:
        progress.begin(f"{title}, {name}")
        names = {"label": stream, "stream": stream}
        return evaluate(lambda: engine, pool, prompts, way, seed=cfg.seed, **names, ks=ks, progress=progress)

    return found(sampled, ks, "sampled"), found(greedy, MetricKs(), "greedy")


def report(
    run_dir: Path,
    engine: Engine,
    heldout: Sequence[Prompt],
    sampling: SamplingParams,
    learner: PolicyTrainer,
    base: Path,
    cfg: Config,
    progress: Progress,
) -> None:
    """Measure the trained policy and the model it began as on the held-out problems; print and keep the comparison."""
    with VerifierPool(cfg.verify.workers, cfg.verify.seconds, cfg.verify.memory_mib) as pool:
        after = measure(engine, pool, heldout, sampling, cfg, progress, "the trained model")
        engine.update_weights(load_policy(base, device=learner.policy.device).state_dict().items(), version=0)
        before = measure(engine, pool, heldout, sampling, cfg, progress, "the model before training")
    text = f"{table(before, after)}\n\n{example_answers(before, after)}\n"
    (run_dir / "report.txt").write_text(text)
    figures = {"before": before.to_dict(), "after": after.to_dict()}
    store.write_json(run_dir / "report.json", figures)
    for name, measured in (("before", before), ("after", after)):
        write_eval(run_dir / "heldout" / name, measured, cfg, engine.name)
    print(f"\n{text}", flush=True)
