"""Supervised finetuning: its run and its loop, with validation on examples that are not trained on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from data import Problem
from reasoner.config.resolve import RunSettings, with_values
from reasoner.config.schema import Config
from reasoner.rl.batch import Batch
from reasoner.rl.passes import ModelPasses
from reasoner.sft.batches import backward_likelihood, batch_likelihood, collate_examples, num_steps, rows_of_step
from reasoner.sft.dataset import ExampleSplit, load_examples
from reasoner.sft.examples import Example
from reasoner.trainer.run import TrainingRun
from reasoner.trainer.setup import RunContext, StageData, TrainingStage
from reasoner.trainer.summary import sft_plan
from reasoner.trainer.trainer import Trainer

WARMUP_SHARE = 0.03  # of the steps, unless optim.warmup_steps is set
_ORIGIN = "reasoner sft"  # of settings that follow from the number of examples


def finetune(run: TrainingRun, split: ExampleSplit) -> None:
    """Train until every example has come sft.epochs times, then evaluate on the held-out problems."""
    generator, trainer = run.generator, run.trainer
    run.validator.measure = likelihood_validation(trainer, split.validation)
    run.validate_before_first_step()
    for step, timer in run.steps():
        with timer.phase("time/train"):
            with run.save_if_interrupted():
                batch = batch_of_step(split.training, step, run.cfg).to(trainer.model.device)
            generator.sleep()  # until the next validation, which needs the new weights
            update = train_on_examples(trainer, batch)
            trainer.free_gradients()

        tokens_of_step = int(batch.lengths.sum())
        num_tokens = run.num_tokens + tokens_of_step
        metrics = {"step": step, "num_tokens": num_tokens, **update}
        if run.is_validation_due(step, num_tokens):
            with timer.phase("time/weight_sync"):
                generator.update_weights(trainer.model, version=step + 1)  # wakes the engine up
            metrics |= run.validate_if_due(step, num_tokens)
        run.record(step, metrics, timer.times(tokens_of_step))
        run.respond_to_alarms()
    run.evaluate_heldout()


def batch_of_step(examples: Sequence[Example], step: int, cfg: Config) -> Batch:
    return collate_examples(rows_of_step(examples, step, num=cfg.sft.rows, epochs=cfg.sft.epochs, seed=cfg.seed))


def train_on_examples(trainer: Trainer, batch: Batch) -> dict[str, float]:
    """Take the optimiser step of a batch of examples. Returns its metrics (names: docs/METRICS.md)."""
    with trainer.gradient():
        likelihood = backward_likelihood(passes_of(trainer), batch, trainer.progress.counter("trained"))
    return {
        "loss": likelihood.loss,
        "token_accuracy": likelihood.token_accuracy,
        "entropy": likelihood.mean_entropy,
        **trainer.single_update(),
    }


def passes_of(trainer: Trainer) -> ModelPasses:
    """The passes of the policy at temperature 1: a likelihood is not that of a sampler."""
    return replace(trainer.passes, temperature=1.0)


# ----------------------------------------------------------------------------------------------------- data


def load_data(context: RunContext) -> StageData:
    """The examples of sft.data, split by problem. ValueError for examples that cannot be used."""
    resolved, tokenizer, template = context.resolved, context.tokenizer, context.template
    if not context.resuming:  # a run that is resumed keeps its examples, whatever becomes of its validation
        resolved = without_unused_validation(resolved)
    sft, runs = resolved.config.sft, Path(resolved.config.run.dir)
    split = load_examples(sft, tokenizer, template, context=context.context, runs=runs)
    resolved = with_length(resolved, len(split.training))
    return StageData(
        examples=split,
        resolved=resolved,
        fingerprints={"sft.data": split.fingerprint},
        plan=sft_plan(resolved.config, tokenizer, template, split),
        contents={
            "source": sft.data,
            "sha256": split.fingerprint,
            "training_examples": len(split.training),
            "validation_examples": len(split.validation),
            "left_out": dict(split.left_out),
            "loss_share": split.loss_share,
        },
        problems=[Problem("", question, "") for question in dict.fromkeys(one.question for one in split.training)],
    )


def with_length(resolved: RunSettings, num_examples: int) -> RunSettings:
    """The settings with the number of steps that the examples take, and a warm-up of WARMUP_SHARE of them unless
    optim.warmup_steps was set.
    """
    cfg = resolved.config
    steps = num_steps(num_examples, rows=cfg.sft.rows, epochs=cfg.sft.epochs)
    values = {"steps": steps}
    if resolved.origin["optim.warmup_steps"] in ("default", _ORIGIN):
        values["optim.warmup_steps"] = round(WARMUP_SHARE * steps)
    return with_values(resolved, values, origin=_ORIGIN)


def without_unused_validation(resolved: RunSettings) -> RunSettings:
    """The settings of a new run. Without validation in the run no examples are left out for it."""
    cfg = resolved.config
    if cfg.validation.interval or not cfg.sft.validation_share:
        return resolved
    return with_values(resolved, {"sft.validation_share": 0.0}, origin=_ORIGIN)


def likelihood_validation(trainer: Trainer, examples: Sequence[Example]) -> Callable[[], dict[str, float]]:
    """What measures the likelihood of examples of problems that are not trained on (names: docs/METRICS.md)."""
    batch = collate_examples(examples).to(trainer.model.device) if examples else None

    def measure() -> dict[str, float]:
        if batch is None:
            return {}
        likelihood = batch_likelihood(passes_of(trainer), batch)
        return {"validation/loss": likelihood.loss, "validation/token_accuracy": likelihood.token_accuracy}

    return measure


SFT = TrainingStage(load_data=load_data, train=finetune, place="sft")
