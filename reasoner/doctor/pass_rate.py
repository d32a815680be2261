"""Pass rate, format and length of the untrained model's responses, and whether training has something to learn from."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import comb

from transformers import PreTrainedTokenizerBase

from reasoner.config.schema import Config
from reasoner.doctor.findings import Finding, Severity
from reasoner.evals.estimators import Estimate, estimate
from reasoner.rollouts.prompts import Template
from reasoner.types import RolloutGroup
from verifiers.score import UNJUDGED

_GROUPS = (4, 8, 16, 32, 64)  # group sizes that the share of non-zero-variance groups is reported for, if sampled
_FEW = 0.5  # share of non-zero-variance groups below which a larger group is suggested
_RARE = 0.1  # share of well-formed, of truncated, and of wrong responses that decides a severity


@dataclass(frozen=True, slots=True)
class ResponseStats:
    """Statistics of all sampled responses."""

    problems: int
    samples: int  # of all problems
    correct: Estimate
    lenient: Estimate
    well_formed: Estimate
    never_correct: int  # problems without a correct response
    always_correct: int  # problems with only correct responses
    group_size: int  # of the run, or as many samples as each problem has
    informative_share: dict[int, Estimate]  # by G: share of groups with unequal rewards
    mixed_share: dict[int, Estimate]  # by G: share of groups with both correct and wrong answers
    mean_length: float
    mean_correct_length: float | None  # mean tokens of the correct responses
    correct_length_p99: int | None  # 99th percentile of their tokens
    max_length: int
    truncated: float  # share
    with_stop_text: float  # share
    ungraded: float  # share that could not be graded


def response_stats(groups: Sequence[RolloutGroup], template: Template, cfg: Config) -> ResponseStats:
    """Compute the statistics of `groups`: all responses to a problem in one group; groups may differ in size."""
    scores = [[*one.scores] for one in groups]
    rows = [(c, s) for one in groups for c, s in zip(one.completions, one.scores, strict=True)]
    correct_lengths = sorted(len(c.token_ids) for c, s in rows if s.correct)
    most = min(len(own) for own in scores)
    sizes = sorted({min(cfg.algo.group_size, most), *(size for size in _GROUPS if size <= most)})
    rewards = [[score.reward for score in own] for own in scores]
    verdicts = [[float(score.correct) for score in own] for own in scores]
    rates = [sum(own) / len(own) for own in verdicts]
    return ResponseStats(
        problems=len(groups),
        samples=len(rows),
        correct=estimate(rates),
        lenient=estimate([sum(s.lenient for s in own) / len(own) for own in scores]),
        well_formed=estimate([sum(s.well_formed for s in own) / len(own) for own in scores]),
        never_correct=rates.count(0.0),
        always_correct=rates.count(1.0),
        group_size=min(cfg.algo.group_size, most),
        informative_share={size: informative_share(rewards, size) for size in sizes},
        mixed_share={size: informative_share(verdicts, size) for size in sizes},
        mean_length=sum(len(c.token_ids) for c, _ in rows) / len(rows),
        mean_correct_length=sum(correct_lengths) / len(correct_lengths) if correct_lengths else None,
        correct_length_p99=correct_lengths[int(0.99 * (len(correct_lengths) - 1))] if correct_lengths else None,
        max_length=max(len(c.token_ids) for c, _ in rows),
        truncated=sum(c.finish == "length" for c, _ in rows) / len(rows),
        with_stop_text=sum(any(stop in c.text for stop in template.stop) for c, _ in rows) / len(rows),
        ungraded=sum(s.verdict in UNJUDGED for _, s in rows) / len(rows),
    )


def informative_share(rewards: Sequence[Sequence[float]], group: int) -> Estimate:
    """[problems][n] rewards, n from G -> the expected share of groups of that size whose rewards are not all equal.

    For a problem with n_v samples of reward v: the share of its subsets of G samples that are not all equal,
    1 - sum_v C(n_v, G) / C(n, G), an unbiased estimate of the probability for new samples.
    """
    return estimate(
        [1 - sum(comb(count, group) for count in Counter(own).values()) / comb(len(own), group) for own in rewards]
    )


def response_findings(
    stats: ResponseStats, template: Template, tokenizer: PreTrainedTokenizerBase, cfg: Config, max_room: int
) -> Iterator[Finding]:
    """The findings on the responses. `max_room`: tokens that the context leaves beside the longest prompt."""
    yield _pass_rate(stats)
    yield _format(stats, cfg, bool(tokenizer.chat_template) and not template.chat)
    yield _variance(stats, cfg)
    yield _lengths(stats, cfg, max_room)
    if template.stop and not stats.with_stop_text:
        text = f"none of {stats.samples:,} responses contains {' or '.join(map(repr, template.stop))}"
        yield Finding(Severity.WARNING, "stop", text)
    if stats.ungraded:
        text = f"{stats.ungraded:.1%} of the responses could not be graded within {cfg.verify.seconds:g} s"
        yield Finding(Severity.WARNING, "grading", text, f"--verify.seconds {2 * cfg.verify.seconds:g}")


def _pass_rate(stats: ResponseStats) -> Finding:
    text = (
        f"{str(stats.correct).strip()} correct in {stats.samples:,} responses to {stats.problems} of the first "
        f"problems; {stats.never_correct} never correct, {stats.always_correct} always"
    )
    if not stats.correct.value:
        return Finding(Severity.WARNING, "pass rate", f"{text}: only the format can be learnt")
    severity = Severity.WARNING if stats.correct.value > 1 - _RARE else Severity.OK
    return Finding(severity, "pass rate", text + (": little is left to learn" if severity is Severity.WARNING else ""))


def _format(stats: ResponseStats, cfg: Config, has_chat: bool) -> Finding:
    text = f"{str(stats.well_formed).strip()} well-formed; correct in any form: {stats.lenient.value:.1%}"
    if stats.well_formed.value >= _RARE:
        return Finding(Severity.OK, "format", text)
    style = "chat" if has_chat else "none"
    suggestion = f"--prompt {style}" if style != cfg.prompt.style else ""
    return Finding(Severity.WARNING, "format", text, suggestion)


def _variance(stats: ResponseStats, cfg: Config) -> Finding:
    """The share of non-zero-variance groups, and a group size at which it is large enough."""
    own = stats.group_size
    share, by_answer = stats.informative_share[own], stats.mixed_share[own]
    others = ", ".join(f"{size}: {value.value:.0%}" for size, value in stats.informative_share.items() if size != own)
    text = f"{str(share).strip()} of groups of {own} have unequal rewards "
    text += f"({by_answer.value:.0%} correct and wrong answers)" + (f"; of {others}" if others else "")
    if share.value >= _FEW:
        return Finding(Severity.OK, "variance", text)
    enough = max(_FEW, 1.5 * share.value)
    better = [size for size, value in stats.informative_share.items() if size > own and value.value >= enough]
    if not better:
        severity = Severity.WARNING if stats.informative_share[max(stats.informative_share)].value else Severity.ERROR
        hint = "easier problems" if stats.correct.value < _FEW else "harder problems"
        text += f": {hint} may help, or a group that is larger than these (a higher --num-samples measures it)"
        return Finding(severity, "variance", text)
    fewer = max(1, cfg.data.prompts_per_step * own // better[0])
    return Finding(Severity.WARNING, "variance", text, f"--algo.group_size {better[0]} --data.prompts_per_step {fewer}")


def _lengths(stats: ResponseStats, cfg: Config, max_room: int) -> Finding:
    """Lengths against sampling.max_tokens: suggest more where correct responses need it, less where only wrong
    ones use it.
    """
    limit = cfg.sampling.max_tokens
    correct = f", correct ones {stats.mean_correct_length:.0f}" if stats.mean_correct_length is not None else ""
    text = (
        f"{stats.mean_length:.0f} tokens on average{correct}, {stats.max_length} at most; "
        f"{stats.truncated:.1%} truncated at {limit}"
    )
    if stats.truncated <= _RARE:
        return Finding(Severity.OK, "responses", text)
    if stats.correct_length_p99 is not None and stats.correct_length_p99 < limit / 2:
        text += f"; 99 of 100 correct ones end within {stats.correct_length_p99}"
        enough = 32 * -(-int(1.5 * stats.correct_length_p99) // 32)  # a multiple of 32
        return Finding(Severity.WARNING, "responses", text, f"--sampling.max_tokens {enough}")
    larger = min(2 * limit, max_room)
    return Finding(Severity.WARNING, "responses", text, f"--sampling.max_tokens {larger}" if larger > limit else "")
