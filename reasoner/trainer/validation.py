"""Evaluation by a run itself: on the validation problems every few steps, on the held-out problems at its end."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain, islice
from pathlib import Path

import torch

from reasoner.config.schema import Config
from reasoner.console import log, print_result
from reasoner.evals.before_after import example_answers, table, write_eval
from reasoner.evals.result import EvalResult, MetricKs, sample_and_score
from reasoner.evals.sampling import Sampler, engine_batches
from reasoner.evals.tables import Ways, to_dicts
from reasoner.models.loading import load_meta_model, load_policy
from reasoner.models.resolve import full_folder
from reasoner.models.shard_on_load import mesh_of_shards
from reasoner.runs.json_files import write_json
from reasoner.runs.metric_names import METRICS
from reasoner.trainer.metrics_logger import MetricsLogger
from reasoner.trainer.rollout_generator import RolloutGenerator
from reasoner.types import EvalSample, Prompt, SamplingParams

BEST_BY = "validation/pass@1"  # the metric that chooses the best checkpoint
_VALIDATION_STREAM = "eval selection"  # of the seeds; a change of this text would change the samples of every run


@dataclass(slots=True)
class Validator:
    """Validation during training, sampled and greedy, with the same seeds every time. Does nothing without prompts."""

    generator: RolloutGenerator
    prompts: Sequence[Prompt]
    cfg: Config
    logger: MetricsLogger
    measure: Callable[[], Mapping[str, float]] = dict  # further metrics of the policy at each validation

    def validate(self, steps_done: int) -> dict[str, float]:
        """Evaluate the engine's weights and record the results. Returns them as metrics of the step."""
        if not self.prompts:
            return {}
        num = self.cfg.validation.samples
        sampled, greedy = _evaluate(
            self.generator,
            self.prompts,
            title=f"validation problems, {steps_done} steps done",
            num_samples=num,
            seed=self.cfg.seed,
            stream=_VALIDATION_STREAM,
            ks=MetricKs(cons_at=(num,)),
        ).values()
        measures = self.measure()
        self.logger.log_validation(steps_done, sampled=sampled.to_dict(), greedy=greedy.to_dict(), measures=measures)
        if not steps_done:
            metrics = "  ".join(f"{name} {value}" for name, value in sampled.metrics.items())
            rest = "".join(f"  {METRICS[name].label} {value:.4f}" for name, value in measures.items())
            self.logger.log(
                f"0 steps done  validation problems: {metrics}  greedy {greedy.pass_at_1}  "
                f"well-formed {sampled.well_formed:.1%}  tokens {sampled.health['tokens'] or 0:.0f}{rest}"
            )
        return {
            BEST_BY: sampled.pass_at_1.value,
            "validation/cons@k": sampled.metrics[f"cons@{num}"].value,
            "validation/greedy": greedy.pass_at_1.value,
            "validation/well_formed": sampled.well_formed,
            **measures,
        }


def evaluate_heldout(
    run_dir: Path, generator: RolloutGenerator, prompts: Sequence[Prompt], base: Path, cfg: Config
) -> None:
    """Evaluate the engine's weights and then those of the model before training; print and write the comparison.

    report.json is the last file written, and an earlier one is removed first: with it the evaluation is complete. The
    engine has the weights of `base` afterwards. A collective operation; the first rank writes.
    """
    if generator.world.is_first:
        discard_heldout(run_dir)
    after = _heldout_evals(generator, prompts, cfg, "the trained model")
    device = torch.device("cpu")
    mesh = mesh_of_shards(cfg.optim.sharding, generator.world, device)
    if mesh is None and generator.engine.name == "remote" and not generator.world.is_first:
        first = load_meta_model(full_folder(base))  # the first rank alone sends weights
    else:  # rounded before an engine in bfloat16 does it: the memory of a machine holds one for each of its ranks
        dtype = torch.bfloat16 if cfg.engine.dtype == "bfloat16" else torch.float32
        first = load_policy(base, device=device, dtype=dtype, mesh=mesh)
    generator.update_weights(first, version=0)
    del first  # not kept while the engine samples
    before = _heldout_evals(generator, prompts, cfg, "the model before training")
    if not generator.world.is_first:
        return
    text = f"{table(before, after)}\n\n{example_answers(before, after)}\n"
    for name, evals in (("before", before), ("after", after)):
        write_eval(run_dir / "heldout" / name, evals, cfg, generator.engine.name)
    (run_dir / "report.txt").write_text(text)
    write_json(run_dir / "report.json", {"before": to_dicts(before), "after": to_dicts(after)})
    print_result(f"\n{text}")


def discard_heldout(run_dir: Path) -> None:
    """Remove the results on the held-out problems, if there are any: they are those of another policy."""
    for name in ("report.json", "report.txt"):
        (run_dir / name).unlink(missing_ok=True)
    shutil.rmtree(run_dir / "heldout", ignore_errors=True)


def _heldout_evals(generator: RolloutGenerator, prompts: Sequence[Prompt], cfg: Config, model: str) -> Ways:
    """Evaluate on the held-out problems, with the seeds of `reasoner eval`, so that it gives the same results."""
    num = cfg.eval.samples
    log(f"held-out problems: {len(prompts)} x {num} samples, and greedy")
    title, ks = f"held-out problems, {model}", MetricKs(pass_at=(1, num), cons_at=(num,))
    return _evaluate(generator, prompts, title=title, num_samples=num, seed=cfg.seed, stream="eval", ks=ks)


def _evaluate(
    generator: RolloutGenerator,
    prompts: Sequence[Prompt],
    *,
    title: str,
    num_samples: int,
    seed: int,
    stream: str,
    ks: MetricKs,
) -> Ways:
    """Evaluate sampled, at the training temperature, and greedy. Each rank samples and grades its share of the calls of
    the engine: what is sampled together, which decides the last digits, does not depend on the number of ranks.
    """
    results = {}
    sampled = replace(generator.sampling, num_samples=num_samples)
    greedy = replace(generator.sampling, num_samples=1, temperature=0.0)
    for name, sampling, own_ks in (("sampled", sampled, ks), ("greedy", greedy, MetricKs())):
        generator.progress.begin(f"{title}, {name}")
        batches = engine_batches(prompts, sampling.num_samples)
        own_samples = partial(_graded_samples, generator, sampling, seed, stream, own_ks)
        rows = list(chain(*generator.eval_world.stripe(batches, own_samples, f"{title} of the other ranks")))
        classes = tuple(votes for _, votes in rows) if own_ks.cons_at else ()
        results[name] = EvalResult(stream, sampling.temperature, own_ks, tuple(one for one, _ in rows), classes)
    return results


def _graded_samples(
    generator: RolloutGenerator,
    sampling: SamplingParams,
    seed: int,
    stream: str,
    ks: MetricKs,
    batches: Sequence[Sequence[Prompt]],
) -> list[list[tuple[EvalSample, tuple[int | None, ...]]]]:
    """(graded responses, their votes) of each prompt, by batch; no votes without cons@k."""
    result = sample_and_score(
        Sampler(lambda: generator.engine),
        generator.pool,
        list(chain(*batches)),
        sampling,
        seed=seed,
        label=stream,
        stream=stream,
        ks=ks,
        progress=generator.progress,
    )
    rows = zip(result.samples, result.classes or ((),) * len(result.samples), strict=True)
    return [list(islice(rows, len(batch))) for batch in batches]
