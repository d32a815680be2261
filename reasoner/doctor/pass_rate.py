"""Pass rate, format and length of the untrained model's responses, and whether training has something to learn from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from transformers import PreTrainedTokenizerBase

from reasoner.config.schema import Config
from reasoner.doctor.findings import Finding, Severity
from reasoner.doctor.signal import informative_share
from reasoner.evals.estimators import Estimate, estimate
from reasoner.rollouts.prompts import Template
from reasoner.types import RolloutGroup
from verifiers.score import UNJUDGED

_GROUPS = (4, 8, 16, 64)  # group sizes that the share of non-zero-variance groups is reported for
_FEW = 0.5  # share of non-zero-variance groups below which a larger group is proposed
_RARE = 0.1  # share of well-formed, of truncated, and of wrong responses that decides a mark


@dataclass(frozen=True, slots=True)
class Answers:
    """Figures of all sampled responses."""

    problems: int
    samples: int  # of all problems
    correct: Estimate
    lenient: Estimate
    formed: Estimate
    never: int  # problems without a correct response
    always: int  # problems with only correct responses
    signal: dict[int, Estimate] = field(repr=False)  # by G: share of groups with unequal rewards
    signal_by_answer: dict[int, Estimate] = field(repr=False)  # by G: share of groups with correct and wrong answers
    mean_length: float
    right_length: float | None  # mean tokens of the correct responses
    right_longest: int | None  # 99th percentile of their tokens
    longest: int
    truncated: float  # share
    marked: float  # share that contains a stop text
    unjudged: float  # share that could not be graded

    def figures(self) -> dict[str, object]:
        return asdict(self)


def answers(groups: Sequence[RolloutGroup], template: Template, cfg: Config) -> Answers:
    """Compute the figures. `groups`: all responses to a problem in one group; groups may differ in size."""
    scores = [[*one.scores] for one in groups]
    rows = [(c, s) for one in groups for c, s in zip(one.completions, one.scores, strict=True)]
    right = sorted(len(c.token_ids) for c, s in rows if s.correct)
    sizes = sorted({*_GROUPS, cfg.algo.group_size})
    rewards = [[score.reward for score in own] for own in scores]
    verdicts = [[float(score.correct) for score in own] for own in scores]
    rates = [sum(own) / len(own) for own in verdicts]
    return Answers(
        problems=len(groups),
        samples=len(rows),
        correct=estimate(rates),
        lenient=estimate([sum(s.lenient for s in own) / len(own) for own in scores]),
        formed=estimate([sum(s.well_formed for s in own) / len(own) for own in scores]),
        never=rates.count(0.0),
        always=rates.count(1.0),
        signal={size: informative_share(rewards, size) for size in sizes},
        signal_by_answer={size: informative_share(verdicts, size) for size in sizes},
        mean_length=sum(len(c.token_ids) for c, _ in rows) / len(rows),
        right_length=sum(right) / len(right) if right else None,
        right_longest=right[int(0.99 * (len(right) - 1))] if right else None,
        longest=max(len(c.token_ids) for c, _ in rows),
        truncated=sum(c.finish == "length" for c, _ in rows) / len(rows),
        marked=sum(any(stop in c.text for stop in template.stop) for c, _ in rows) / len(rows),
        unjudged=sum(s.verdict in UNJUDGED for _, s in rows) / len(rows),
    )


def answer_lines(
    answers: Answers, template: Template, tokenizer: PreTrainedTokenizerBase, cfg: Config, most: int
) -> Iterator[Finding]:
    """The lines on the responses. `most`: tokens that the context leaves beside the longest prompt."""
    yield _right(answers)
    yield _form(answers, cfg, bool(tokenizer.chat_template) and not template.chat)
    yield _signal(answers, cfg)
    yield _room(answers, cfg, most)
    if template.stop and not answers.marked:
        text = f"none of {answers.samples:,} responses contains {' or '.join(map(repr, template.stop))}"
        yield Finding(Severity.LOOK, "stop", text)
    if answers.unjudged:
        text = f"{answers.unjudged:.1%} of the responses could not be graded within {cfg.verify.seconds:g} s"
        yield Finding(Severity.LOOK, "grading", text, f"--verify.seconds {2 * cfg.verify.seconds:g}")


def _right(answers: Answers) -> Finding:
    text = (
        f"{_percent(answers.correct)} correct in {answers.samples:,} responses to {answers.problems} of the first "
        f"problems; {answers.never} never correct, {answers.always} always"
    )
    if not answers.correct.value:
        return Finding(Severity.LOOK, "pass rate", f"{text}: only the format can be learnt")
    mark = Severity.LOOK if answers.correct.value > 1 - _RARE else Severity.OK
    return Finding(mark, "pass rate", text + (": little is left to learn" if mark is Severity.LOOK else ""))


def _form(answers: Answers, cfg: Config, has_chat: bool) -> Finding:
    text = f"{_percent(answers.formed)} well-formed; correct in any form: {answers.lenient.value:.1%}"
    if answers.formed.value >= _RARE:
        return Finding(Severity.OK, "form", text)
    style = "chat" if has_chat else "none"
    proposed = f"--prompt {style}" if style != cfg.prompt.style else ""
    return Finding(Severity.LOOK, "form", text, proposed)


def _signal(answers: Answers, cfg: Config) -> Finding:
    """The share of non-zero-variance groups, and a group size at which it is large enough."""
    own = cfg.algo.group_size
    share, by_answer = answers.signal[own], answers.signal_by_answer[own]
    others = ", ".join(f"{size}: {value.value:.0%}" for size, value in answers.signal.items() if size != own)
    text = (
        f"{_percent(share)} of groups of {own} have unequal rewards ({by_answer.value:.0%} correct and wrong answers); "
        f"of {others}"
    )
    if share.value >= _FEW:
        return Finding(Severity.OK, "signal", text)
    enough = max(_FEW, 1.5 * share.value)
    better = [size for size, value in answers.signal.items() if size > own and value.value >= enough]
    if not better:
        mark = Severity.LOOK if answers.signal[max(answers.signal)].value else Severity.NO
        hint = "easier problems" if answers.correct.value < _FEW else "harder problems"
        return Finding(mark, "signal", f"{text}: no larger group helps, {hint} may")
    fewer = max(1, cfg.data.prompts_per_step * own // better[0])
    return Finding(Severity.LOOK, "signal", text, f"--algo.group_size {better[0]} --data.prompts_per_step {fewer}")


def _room(answers: Answers, cfg: Config, most: int) -> Finding:
    """Lengths against sampling.max_tokens: more is proposed where correct responses need it, less where only wrong ones
    use it.
    """
    limit = cfg.sampling.max_tokens
    right = f", correct ones {answers.right_length:.0f}" if answers.right_length is not None else ""
    text = (
        f"{answers.mean_length:.0f} tokens on average{right}, {answers.longest} at most; "
        f"{answers.truncated:.1%} truncated at {limit}"
    )
    if answers.truncated <= _RARE:
        return Finding(Severity.OK, "responses", text)
    if answers.right_longest is not None and answers.right_longest < limit / 2:
        text += f"; 99 of 100 correct ones end within {answers.right_longest}"
        return Finding(
            Severity.LOOK, "responses", text, f"--sampling.max_tokens {_rounded(1.5 * answers.right_longest)}"
        )
    larger = min(2 * limit, most)
    return Finding(Severity.LOOK, "responses", text, f"--sampling.max_tokens {larger}" if larger > limit else "")


def _rounded(tokens: float) -> int:
    """Round up to a multiple of 32."""
    return 32 * -(-int(tokens) // 32)


def _percent(share: Estimate) -> str:
    return f"{100 * share.value:.1f} % [{100 * share.low:.0f}, {100 * share.high:.0f}]"
