"""The size of a run, computed from its settings: completions, validations, checkpoints."""

from __future__ import annotations

from dataclasses import dataclass

from data.mixture import shares
from data.spec import split_mixture
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

    @property
    def completions(self) -> int:
        """Completions of all training steps."""
        return self.steps * self.completions_per_step


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


def plan(cfg: Config) -> list[str]:
    """Describe the size of a run of any stage in lines of text, for --dry-run."""
    return {"rl": _rl_plan, "sft": _sft_plan, "reward-model": _reward_model_plan}[cfg.stage](cfg)


def _sft_plan(cfg: Config) -> list[str]:
    sft, validation, run = cfg.sft, cfg.validation, run_budget(cfg)
    each = f"{run.completions_per_validation:,} completions every {validation.interval} steps"
    return [
        f"examples: {sft.rows} a step, {sft.epochs} epochs of {sft.data}; their number, and so that of the steps, is "
        "known when a run has read them",
        f"evaluation: {each if validation.interval else 'no validation'}, {_final_table(run)}",
        _checkpoint_plan(cfg),
    ]


def _reward_model_plan(cfg: Config) -> list[str]:
    rm = cfg.rm
    return [
        f"preferences: {rm.prompts} prompts a step, {rm.epochs} epochs of {rm.data}; {rm.heldout_share:.0%} of the "
        "problems are held out for the report",
        _checkpoint_plan(cfg),
    ]


def _checkpoint_plan(cfg: Config) -> str:
    every, keep = cfg.run.save_interval, cfg.run.keep_last
    return f"checkpoints: one every {every} steps and after the last, {keep} kept, 12 bytes a parameter each"


def _final_table(run: RunBudget) -> str:
    number = run.heldout_completions
    return f"{number:,} completions for the final table" if number else "no final table"


def _rl_plan(cfg: Config) -> list[str]:
    run = run_budget(cfg)
    limit = f", or until {cfg.max_train_tokens:,} tokens" if cfg.max_train_tokens else ""
    validations = (
        f"{run.validations} validations of {run.completions_per_validation:,} completions"
        if run.validations
        else "no validation"
    )
    parts = shares(split_mixture(cfg.data.train))
    return [
        *(["mixture: " + ", ".join(f"{share:.1%} {name}" for name, share in parts.items())] if parts else []),
        f"completions: {run.completions_per_step:,} a step ({cfg.data.prompts_per_step} prompts x "
        f"{cfg.algo.group_size}) of at most {cfg.sampling.max_tokens:,} tokens; {run.completions:,} in "
        f"{run.steps:,} steps{limit}",
        f"evaluation: {validations}, {_final_table(run)}",
        f"checkpoints: {run.checkpoints} written, {min(cfg.run.keep_last, run.checkpoints)} kept, 12 bytes a parameter "
        "each; and the best policy, 4 bytes a parameter",
    ]
