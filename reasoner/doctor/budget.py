"""What a run will do, counted from its settings alone."""

from __future__ import annotations

from dataclasses import dataclass

from reasoner.config.schema import Config


@dataclass(frozen=True, slots=True)
class Extent:
    """Completions and events of a run that is not ended by `tokens`."""

    steps: int
    per_step: int  # completions
    looks: int  # at the selection problems, the one before any step included
    per_look: int  # completions
    heldout: int  # completions of the table, before and after together
    saves: int  # checkpoints written

    @property
    def completions(self) -> int:
        """Of all steps."""
        return self.steps * self.per_step


def extent(cfg: Config) -> Extent:
    """The most that the run can come to: sets with fewer problems than asked for, and refills, are not known here."""
    evals = cfg.eval
    return Extent(
        steps=cfg.steps,
        per_step=cfg.data.prompts_per_step * cfg.algo.group,
        looks=1 + _times(cfg.steps, evals.every) if evals.every else 0,
        per_look=evals.selection_problems * (evals.selection_samples + 1),
        heldout=2 * evals.heldout_problems * (evals.samples + 1),
        saves=_times(cfg.steps, cfg.run.save_every),
    )


def _times(steps: int, every: int) -> int:
    """How often something happens that happens every so many steps and after the last one."""
    return -(-steps // every)


def plan(cfg: Config) -> list[str]:
    """The lines of a dry run."""
    run = extent(cfg)
    ended = f", or until {cfg.tokens:,} tokens" if cfg.tokens else ""
    looks = f"{run.looks} looks of {run.per_look:,} completions" if run.looks else "no look on the way"
    table = f"{run.heldout:,} completions for the table at the end" if run.heldout else "no table at the end"
    return [
        f"completions: {run.per_step:,} a step ({cfg.data.prompts_per_step} questions x {cfg.algo.group}) of at most "
        f"{cfg.sampling.max_tokens:,} tokens; {run.completions:,} in {run.steps:,} steps{ended}",
        f"evaluation: {looks}, {table}",
        f"checkpoints: {run.saves} written, {min(cfg.run.keep, run.saves)} kept, 12 bytes a parameter each; "
        "and the best policy, 4",
    ]
