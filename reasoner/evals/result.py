"""Metrics of one model on one data set, computed from graded responses, with their uncertainty."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from fractions import Fraction
from functools import cached_property, partial

from data import Problem
from reasoner.evals.estimators import (
    Estimate,
    check_k,
    class_sizes,
    cons_at_k,
    estimate,
    is_tied,
    pass_at_k,
    se_run,
    vote_labels,
    vote_share,
)
from reasoner.evals.response_cache import ResponseCache
from reasoner.evals.sampling import Sampler, generate_responses
from reasoner.progress import Progress
from reasoner.types import EvalSample, Prompt, Response, SamplingParams
from verifiers import Score, Verdict, VerifierPool
from verifiers.extract import num_answers
from verifiers.reflection import ReflectionRates, rates, reflect
from verifiers.score import UNJUDGED

VOTING = (Verdict.CORRECT, Verdict.WRONG, Verdict.UNPARSABLE)  # the verdicts of the responses that vote
_AT_ONCE = 256  # responses graded between two updates of the progress


@dataclass(frozen=True, slots=True)
class MetricKs:
    """The values of k of the metrics to compute besides pass@1."""

    pass_at: tuple[int, ...] = ()
    cons_at: tuple[int, ...] = ()

    def check(self, samples: int) -> None:
        """Raise ValueError for a k above the number of samples of each problem."""
        for name, ks in (("pass@", self.pass_at), ("cons@", self.cons_at)):
            for k in ks:
                check_k(name, k, samples)

    @property
    def largest(self) -> int:
        """The largest k: the number of samples of each problem that is needed."""
        return max([1, *self.pass_at, *self.cons_at])


@dataclass(frozen=True)
class EvalResult:
    """Metrics of one model on one data set under one way of sampling. Shares are of all responses unless stated."""

    label: str
    temperature: float | None  # None where responses were read from a file that does not say
    ks: MetricKs
    samples: tuple[EvalSample, ...] = field(repr=False)
    classes: tuple[tuple[int | None, ...], ...] = field(repr=False)  # [problems][n] of the votes; () without cons@k

    @property
    def num_problems(self) -> int:
        """The number of problems."""
        return len(self.samples)

    @property
    def num_samples(self) -> int:
        """The smallest number of responses of a problem."""
        return min(len(one.responses) for one in self.samples)

    @cached_property
    def votes(self) -> list[tuple[int, list[int], int]]:
        """(correct, others, abstained) class sizes of each problem; empty without cons@k."""
        return [class_sizes(labels) for labels in self.classes]

    @cached_property
    def per_problem(self) -> dict[str, list[float]]:
        """The value of every metric on every problem, in the order of the problems."""
        counts = [(len(one.responses), one.num_correct) for one in self.samples]
        exact: dict[str, list[Fraction]] = {
            f"pass@{k}": [pass_at_k(n, c, k) for n, c in counts] for k in sorted({1, *self.ks.pass_at})
        }
        exact |= {f"cons@{k}": [cons_at_k(*vote, k) for vote in self.votes] for k in sorted({*self.ks.cons_at})}
        return {name: [float(value) for value in values] for name, values in exact.items()}

    @cached_property
    def metrics(self) -> dict[str, Estimate]:
        """Estimates by the names pass@k and cons@k; pass@1 is always among them."""
        return {name: estimate(values) for name, values in self.per_problem.items()}

    @property
    def pass_at_1(self) -> Estimate:
        return self.metrics["pass@1"]

    @cached_property
    def lenient(self) -> Estimate:
        """pass@1 under lenient extraction: the last answer anywhere in the response counts, whatever its form."""
        return estimate([_mean([float(s.lenient) for s in one.scores]) for one in self.samples])

    @property
    def se_run(self) -> float | None:
        """Standard error of pass@1 for new samples of the same problems; None for a single sample of each."""
        if self.num_samples == 1:
            return None
        return se_run([len(one.responses) for one in self.samples], [one.num_correct for one in self.samples])

    @property
    def vote_share(self) -> float | None:
        """The mean share of samples in the largest class of the vote."""
        return _mean([vote_share(*vote) for vote in self.votes]) if self.votes else None

    @property
    def ties(self) -> float | None:
        """The share of problems on which two or more answers have the most votes."""
        return _mean([float(is_tied(correct, others)) for correct, others, _ in self.votes]) if self.votes else None

    @cached_property
    def well_formed(self) -> float:
        return _mean([float(score.well_formed) for score in self._scores])

    @cached_property
    def correct_given_well_formed(self) -> float | None:
        """The share of the well-formed responses that are correct; None where there is none."""
        correct = [float(score.correct) for score in self._scores if score.well_formed]
        return _mean(correct) if correct else None

    @cached_property
    def health(self) -> dict[str, float | None]:
        """Sanity checks of a score: shares of responses that were truncated, have no answer, several different answers,
        or could not be graded; and mean lengths in tokens.
        """
        rows = [(r, s) for one in self.samples for r, s in zip(one.responses, one.scores, strict=True)]
        lengths = {ok: [r.tokens for r, s in rows if s.correct is ok and r.tokens is not None] for ok in (True, False)}
        finishes = [r.finish for r, _ in rows if r.finish is not None]
        return {
            "truncated": _mean([float(f == "length") for f in finishes]) if finishes else None,
            "no_answer": _mean([float(s.extracted is None) for _, s in rows]),
            "several_answers": _mean([float(num_answers(r.own_text) > 1) for r, _ in rows]),
            "grading_failed": _mean([float(s.verdict in UNJUDGED) for _, s in rows]),
            "tokens": _mean(lengths[True] + lengths[False]) if any(lengths.values()) else None,
            "tokens_correct": _mean(lengths[True]) if lengths[True] else None,
            "tokens_wrong": _mean(lengths[False]) if lengths[False] else None,
        }

    @cached_property
    def reflection(self) -> ReflectionRates:
        return rates([reflect(response.own_text) for one in self.samples for response in one.responses])

    @cached_property
    def cells(self) -> dict[str, Estimate]:
        """pass@1 by subject, and by subject and level."""
        by_cell: dict[str, list[float]] = {}
        for one, score in zip(self.samples, self.per_problem["pass@1"], strict=True):
            subject = one.problem.subject or one.problem.source
            by_cell.setdefault(subject, []).append(score)
            if one.problem.level is not None:
                by_cell.setdefault(f"{subject} {one.problem.level}", []).append(score)
        return {name: estimate(by_cell[name]) for name in sorted(by_cell)}

    @property
    def _scores(self) -> list[Score]:
        return [score for one in self.samples for score in one.scores]

    def to_dict(self) -> dict[str, object]:
        """Return all metrics, without the responses, as a JSON object."""
        return {
            "label": self.label,
            "problems": self.num_problems,
            "samples": self.num_samples,
            "temperature": self.temperature,
            "metrics": {name: asdict(value) for name, value in self.metrics.items()},
            "se_run": self.se_run,
            "lenient": asdict(self.lenient),
            "well_formed": self.well_formed,
            "correct_given_well_formed": self.correct_given_well_formed,
            "vote_share": self.vote_share,
            "ties": self.ties,
            "health": self.health,
            "reflection": asdict(self.reflection) | {"errors_caught_share": self.reflection.errors_caught_share},
            "cells": {name: asdict(value) for name, value in self.cells.items()},
        }


def sample_and_score(
    sampler: Sampler,
    pool: VerifierPool,
    prompts: Sequence[Prompt],
    sampling: SamplingParams,
    *,
    seed: int,
    label: str,
    ks: MetricKs = MetricKs(),
    stream: str = "eval",
    cache: ResponseCache | None = None,
    progress: Progress | None = None,
) -> EvalResult:
    """Sample, grade and estimate. All metrics use the same `sampling.num_samples` responses to each prompt.

    ValueError, before sampling, for a k above the number of samples.
    """
    if not prompts:
        raise ValueError("there are no problems to evaluate on")
    ks.check(sampling.num_samples)
    responses = generate_responses(sampler, prompts, sampling, seed=seed, stream=stream, cache=cache, progress=progress)
    rows = [(prompt.problem, prompt.text, own) for prompt, own in zip(prompts, responses, strict=True)]
    extract, temperature = prompts[0].extract, sampling.temperature
    return score_responses(rows, pool, extract=extract, label=label, temperature=temperature, ks=ks, progress=progress)


def score_responses(
    rows: Sequence[tuple[Problem, str, tuple[Response, ...]]],
    pool: VerifierPool,
    *,
    extract: str,
    label: str,
    temperature: float | None,
    ks: MetricKs,
    progress: Progress | None = None,
) -> EvalResult:
    """Grade stored responses and estimate the metrics. `rows`: (problem, prompt, responses). No model is needed.

    ValueError for a k above the number of responses of a problem.
    """
    ks.check(min(len(responses) for _, _, responses in rows))
    items = [(response, problem) for problem, _, responses in rows for response in responses]
    scores = iter(_scores(items, pool, extract, progress or Progress()))
    samples = tuple(
        EvalSample(problem, prompt, responses, tuple(next(scores) for _ in responses))
        for problem, prompt, responses in rows
    )
    classes = tuple(_classes(one, pool) for one in samples) if ks.cons_at else ()
    return EvalResult(label, temperature, ks, samples, classes)


def _scores(
    items: Sequence[tuple[Response, Problem]], pool: VerifierPool, extract: str, progress: Progress
) -> list[Score]:
    scores: list[Score] = []
    for start in range(0, len(items), _AT_ONCE):
        some = items[start : start + _AT_ONCE]
        texts, states = [(one.own_text, problem) for one, problem in some], [one.state for one, _ in some]
        scores += pool.score(texts, extract=extract, states=states)
        progress.count("graded", len(scores), len(items))
    return scores


def _classes(one: EvalSample, pool: VerifierPool) -> tuple[int | None, ...]:
    """The class that each response to a problem votes for. Equal answers are one class, however they are written."""
    same = partial(pool.same, verifier=one.problem.verifier)
    return tuple(vote_labels([_ballot(s) for s in one.scores], [s.correct for s in one.scores], same))


def _ballot(score: Score) -> str | None:
    """The answer that a response votes for, as its text where it cannot be read: a vote does not depend on the gold, of
    whose kind it depends whether such an answer is unparsable or wrong. None without an answer that was judged.
    """
    return score.extracted if score.verdict in VOTING else None


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values) if values else 0.0
