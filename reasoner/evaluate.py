"""Evaluation: n completions of every problem, and what they say with how much certainty."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial

from reasoner.aha import ReflectionRates, rates
from reasoner.engines import Engine
from reasoner.metrics import Estimate, cons_at_k, estimate, pass_at_k, se_run, vote_classes
from reasoner.rollout import rollout
from reasoner.types import Group, Prompt, Sampling
from verifiers import RewardWeights, Score, Verdict, VerifierPool

_CHUNK = 512  # completions sampled at once: memory stays bounded and progress is seen


@dataclass(frozen=True, slots=True)
class Evaluation:
    """The figures of one model on one set under one way of sampling."""

    label: str
    problems: int
    samples: int  # of each problem
    temperature: float
    pass_at: dict[int, Estimate]
    cons_at: dict[int, Estimate]
    well_formed: float
    right_given_well_formed: float
    lenient: float  # right under the last-answer-anywhere extraction
    response_tokens: float
    response_tokens_right: float
    response_tokens_wrong: float
    truncated: float
    timed_out: float
    reflection: ReflectionRates
    cells: dict[str, Estimate]  # pass@1 by family, and by family and level
    groups: tuple[Group, ...] = field(repr=False)

    @property
    def pass_at_1(self) -> Estimate:
        return self.pass_at[1]

    @property
    def se_run(self) -> float | None:
        """Standard error of pass@1 for new samples of the same problems; None where one sample of each cannot tell."""
        if self.samples == 1:
            return None
        return se_run([self.samples] * self.problems, [_num_right(group) for group in self.groups])

    def figures(self) -> dict[str, object]:
        """Everything but the completions, for a JSON file."""
        plain = {name: getattr(self, name) for name in self.__dataclass_fields__ if name not in _NESTED}
        return plain | {
            "se_run": self.se_run,
            "pass_at": {str(k): asdict(v) for k, v in self.pass_at.items()},
            "cons_at": {str(k): asdict(v) for k, v in self.cons_at.items()},
            "cells": {name: asdict(v) for name, v in self.cells.items()},
            "reflection": asdict(self.reflection) | {"caught_share": self.reflection.caught_share},
        }


_NESTED = ("pass_at", "cons_at", "cells", "reflection", "groups")


def evaluate(
    engine: Engine,
    pool: VerifierPool,
    prompts: Sequence[Prompt],
    sampling: Sampling,
    *,
    seed: int,
    label: str,
    pass_at: Sequence[int] = (1,),
    cons_at: Sequence[int] = (),
    progress: Callable[[int, int], None] | None = None,
) -> Evaluation:
    """Sample, grade, estimate. One set of `sampling.num` completions serves every metric.

    The seeds do not depend on how many samples are asked for: more extend the earlier ones. ValueError, before anything
    is sampled, for a k above the number of samples.
    """
    if not prompts:
        raise ValueError("there is no problem to evaluate on")
    for name, ks in (("pass", pass_at), ("cons", cons_at)):
        for k in ks:
            if not 1 <= k <= sampling.num:
                raise ValueError(
                    f"{name}@{k} needs at least {k} samples of each problem, and {sampling.num} are asked for"
                )
    per_chunk = max(1, _CHUNK // sampling.num)
    groups: list[Group] = []
    for start in range(0, len(prompts), per_chunk):
        chunk = prompts[start : start + per_chunk]
        groups += rollout(engine, pool, chunk, sampling, RewardWeights(), run_seed=seed, step=f"eval {label}")
        if progress is not None:
            progress(len(groups), len(prompts))
    return summarise(groups, sampling, pool, label=label, pass_at=pass_at, cons_at=cons_at)


def summarise(
    groups: Sequence[Group],
    sampling: Sampling,
    pool: VerifierPool,
    *,
    label: str,
    pass_at: Sequence[int],
    cons_at: Sequence[int],
) -> Evaluation:
    """The figures of graded groups; the pool says which answers are one answer in a vote."""
    right = [_num_right(group) for group in groups]
    n = sampling.num
    first = [c / n for c in right]
    rows = [(c, s) for group in groups for c, s in zip(group.completions, group.scores, strict=True)]
    lengths = {ok: [len(c.token_ids) for c, s in rows if s.correct is ok] for ok in (True, False)}
    well_formed = [s for _, s in rows if s.format_ok]
    votes = [_votes(group, pool) for group in groups] if cons_at else []
    return Evaluation(
        label=label,
        problems=len(groups),
        samples=n,
        temperature=sampling.temperature,
        pass_at={k: estimate([float(pass_at_k(n, c, k)) for c in right]) for k in sorted({1, *pass_at})},
        cons_at={k: estimate([float(cons_at_k(*vote, k)) for vote in votes]) for k in sorted(set(cons_at))},
        well_formed=len(well_formed) / len(rows),
        right_given_well_formed=_mean([float(s.correct) for s in well_formed]),
        lenient=_mean([float(s.lenient) for _, s in rows]),
        response_tokens=_mean(lengths[True] + lengths[False]),
        response_tokens_right=_mean(lengths[True]),
        response_tokens_wrong=_mean(lengths[False]),
        truncated=_mean([float(c.finish == "length") for c, _ in rows]),
        timed_out=_mean([float(s.verdict in (Verdict.TIMED_OUT, Verdict.CRASHED)) for _, s in rows]),
        reflection=rates(group.prompt.prefill + c.text for group in groups for c in group.completions),
        cells=_cells(groups, first),
        groups=tuple(groups),
    )


def _num_right(group: Group) -> int:
    return sum(score.correct for score in group.scores)


def _votes(group: Group, pool: VerifierPool) -> tuple[int, list[int], int]:
    """Class sizes of the group's answers: equal answers are one vote, however they are written."""
    same = partial(pool.same, rule=group.prompt.problem.verifier)
    return vote_classes([_ballot(s) for s in group.scores], [s.correct for s in group.scores], same)


def _ballot(score: Score) -> str | None:
    """What a response votes for; nothing where the grader could not read it."""
    return score.extracted if score.verdict in (Verdict.CORRECT, Verdict.WRONG) else None


def _cells(groups: Sequence[Group], scores: Sequence[float]) -> dict[str, Estimate]:
    by_cell: dict[str, list[float]] = {}
    for group, score in zip(groups, scores, strict=True):
        problem = group.prompt.problem
        subject = problem.subject or problem.source
        by_cell.setdefault(subject, []).append(score)
        if problem.level is not None:
            by_cell.setdefault(f"{subject} {problem.level}", []).append(score)
    return {name: estimate(by_cell[name]) for name in sorted(by_cell)}


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
