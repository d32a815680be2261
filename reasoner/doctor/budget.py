"""The size of a run, computed from its settings: completions, validations, checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from reasoner.config.schema import Config


@dataclass(frozen=True, slots=True)
class RunBudget:
    """The number of completions and events of a run that `max_train_tokens` does not end early."""

    steps: int
    completions_per_step: int
    validations: int  # the one before the first step included
    completions_per_validation: int  # the greedy one of each problem included
    heldout_completions: int  # of the final table, for the models before and after training together
    checkpoints: int  # written, not all of them kept


def run_budget(cfg: Config) -> RunBudget:
    """The size of the run if each set has enough problems and no group is replaced by dynamic sampling."""
    evals, validation = cfg.eval, cfg.validation
    return RunBudget(
        steps=cfg.steps,
        completions_per_step=cfg.data.prompts_per_step * cfg.algo.group_size,
        validations=1 + _times(cfg.steps, validation.interval) if validation.interval else 0,
        completions_per_validation=validation.problems * (validation.samples + 1),
        heldout_completions=2 * evals.heldout_problems * (evals.samples + 1),
        checkpoints=_times(cfg.steps, cfg.run.save_interval),
    )


def _times(steps: int, every: int) -> int:
    """The number of events in a run when one falls on every `every` steps and one on the last step."""
    return -(-steps // every)
