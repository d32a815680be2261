"""The size of a run, computed from its settings: completions, validations, checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from reasoner.config.schema import Config


@dataclass(frozen=True, slots=True)
class RunBudget:
    """The number of completions and events of a run that `tokens` does not end early."""

    steps: int
    per_step: int  # completions of a step
    looks: int  # validations, the one before the first step included
    per_look: int  # completions of a validation, the greedy one of each problem included
    heldout: int  # completions of the final table, for the models before and after training together
    saves: int  # checkpoints written

    @property
    def completions(self) -> int:
        """Completions of all training steps."""
        return self.steps * self.per_step


def run_budget(cfg: Config) -> RunBudget:
    """The size of the run if each set has enough problems and no group is replaced by dynamic sampling."""
    evals, validation = cfg.eval, cfg.validation
    return RunBudget(
        steps=cfg.steps,
        per_step=cfg.data.prompts_per_step * cfg.algo.group_size,
        looks=1 + _times(cfg.steps, validation.interval) if validation.interval else 0,
        per_look=validation.problems * (validation.samples + 1),
        heldout=2 * evals.heldout_problems * (evals.samples + 1),
        saves=_times(cfg.steps, cfg.run.save_interval),
    )


def _times(steps: int, every: int) -> int:
    """The number of events in a run when one falls on every `every` steps and one on the last step."""
    return -(-steps // every)


def plan(cfg: Config) -> list[str]:
    """Describe the size of the run in lines of text, for --dry-run."""
    run = run_budget(cfg)
    ended = f", or until {cfg.max_train_tokens:,} tokens" if cfg.max_train_tokens else ""
    validations = f"{run.looks} validations of {run.per_look:,} completions" if run.looks else "no validation"
    table = f"{run.heldout:,} completions for the final table" if run.heldout else "no final table"
    return [
        f"completions: {run.per_step:,} a step ({cfg.data.prompts_per_step} questions x {cfg.algo.group_size}) of at most "
        f"{cfg.sampling.max_tokens:,} tokens; {run.completions:,} in {run.steps:,} steps{ended}",
        f"evaluation: {validations}, {table}",
        f"checkpoints: {run.saves} written, {min(cfg.run.keep_last, run.saves)} kept, 12 bytes a parameter each; "
        "and the best policy, 4 bytes a parameter",
    ]
