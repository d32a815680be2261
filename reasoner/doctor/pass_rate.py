"""What the model's responses let one expect: is there something to learn from, in the form and the room given?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from transformers import PreTrainedTokenizerBase

from reasoner.config.schema import Config
from reasoner.doctor.findings import Line, Mark
from reasoner.doctor.signal import informative_share
from reasoner.evals.estimators import Estimate, estimate
from reasoner.rollouts.prompts import Template
from reasoner.types import Group
from verifiers.score import UNJUDGED

_GROUPS = (4, 8, 16, 64)  # sizes that a share is told for
_FEW = 0.5  # groups with a signal
_RARE = 0.1  # well-formed responses, truncated ones, and what is left to learn


@dataclass(frozen=True, slots=True)
class Answers:
    """Figures of all responses."""

    problems: int
    samples: int  # in all
    correct: Estimate
    lenient: Estimate
    formed: Estimate
    never: int  # problems without a right response
    always: int
    signal: dict[int, Estimate] = field(repr=False)  # by G: the share of groups with unequal rewards
    signal_by_answer: dict[int, Estimate] = field(repr=False)  # those with right and wrong ones
    mean_length: float
    right_length: float | None
    right_longest: int | None  # of 99 in 100 right ones
    longest: int
    truncated: float
    marked: float  # share that wrote a stop marker
    unjudged: float

    def figures(self) -> dict[str, object]:
        return asdict(self)


def answers(groups: Sequence[Group], asked: Template, cfg: Config) -> Answers:
    """`groups`: all responses to a question in one; they may be of different sizes."""
    scores = [[*one.scores] for one in groups]
    rows = [(c, s) for one in groups for c, s in zip(one.completions, one.scores, strict=True)]
    right = sorted(len(c.token_ids) for c, s in rows if s.correct)
    sizes = sorted({*_GROUPS, cfg.algo.group})
    rewards = [[score.reward for score in own] for own in scores]
    verdicts = [[float(score.correct) for score in own] for own in scores]
    rates = [sum(own) / len(own) for own in verdicts]
    return Answers(
        problems=len(groups),
        samples=len(rows),
        correct=estimate(rates),
        lenient=estimate([sum(s.lenient for s in own) / len(own) for own in scores]),
        formed=estimate([sum(s.format_ok for s in own) / len(own) for own in scores]),
        never=rates.count(0.0),
        always=rates.count(1.0),
        signal={size: informative_share(rewards, size) for size in sizes},
        signal_by_answer={size: informative_share(verdicts, size) for size in sizes},
        mean_length=sum(len(c.token_ids) for c, _ in rows) / len(rows),
        right_length=sum(right) / len(right) if right else None,
        right_longest=right[int(0.99 * (len(right) - 1))] if right else None,
        longest=max(len(c.token_ids) for c, _ in rows),
        truncated=sum(c.finish == "length" for c, _ in rows) / len(rows),
        marked=sum(any(stop in c.text for stop in asked.stop) for c, _ in rows) / len(rows),
        unjudged=sum(s.verdict in UNJUDGED for _, s in rows) / len(rows),
    )


def answer_lines(
    found: Answers, asked: Template, tokenizer: PreTrainedTokenizerBase, cfg: Config, most: int
) -> Iterator[Line]:
    """`most`: tokens that the context leaves beside the longest prompt."""
    yield _right(found)
    yield _form(found, cfg, bool(tokenizer.chat_template) and not asked.chat)
    yield _signal(found, cfg)
    yield _room(found, cfg, most)
    if asked.stop and not found.marked:
        text = f"none of {found.samples:,} responses wrote {' or '.join(map(repr, asked.stop))}"
        yield Line(Mark.LOOK, "stop", text)
    if found.unjudged:
        text = f"{found.unjudged:.1%} of the responses could not be judged in {cfg.verify.seconds:g} s"
        yield Line(Mark.LOOK, "grading", text, f"--verify.seconds {2 * cfg.verify.seconds:g}")


def _right(found: Answers) -> Line:
    text = (
        f"{_percent(found.correct)} right in {found.samples:,} responses to {found.problems} of the first questions; "
        f"{found.never} never right, {found.always} always"
    )
    if not found.correct.value:
        return Line(Mark.LOOK, "pass rate", f"{text}: only the form can be learnt")
    mark = Mark.LOOK if found.correct.value > 1 - _RARE else Mark.OK
    return Line(mark, "pass rate", text + (": little is left to learn" if mark is Mark.LOOK else ""))


def _form(found: Answers, cfg: Config, has_chat: bool) -> Line:
    text = f"{_percent(found.formed)} in the form asked for; right in any form: {found.lenient.value:.1%}"
    if found.formed.value >= _RARE:
        return Line(Mark.OK, "form", text)
    style = "chat" if has_chat else "none"
    proposed = f"--prompt {style}" if style != cfg.prompt.style else ""
    return Line(Mark.LOOK, "form", text, proposed)


def _signal(found: Answers, cfg: Config) -> Line:
    """The share of groups that teach, and a size of group at which enough of them do."""
    own = cfg.algo.group
    share, by_answer = found.signal[own], found.signal_by_answer[own]
    others = ", ".join(f"{size}: {value.value:.0%}" for size, value in found.signal.items() if size != own)
    text = (
        f"{_percent(share)} of groups of {own} have unequal rewards ({by_answer.value:.0%} right and wrong answers); "
        f"of {others}"
    )
    if share.value >= _FEW:
        return Line(Mark.OK, "signal", text)
    enough = max(_FEW, 1.5 * share.value)
    better = [size for size, value in found.signal.items() if size > own and value.value >= enough]
    if not better:
        mark = Mark.LOOK if found.signal[max(found.signal)].value else Mark.NO
        hint = "easier problems" if found.correct.value < _FEW else "harder problems"
        return Line(mark, "signal", f"{text}: no size of group helps, {hint} may")
    fewer = max(1, cfg.data.prompts_per_step * own // better[0])
    return Line(Mark.LOOK, "signal", text, f"--algo.group {better[0]} --data.prompts_per_step {fewer}")


def _room(found: Answers, cfg: Config, most: int) -> Line:
    """Lengths against the limit: more room where right responses need it, less where only wrong ones take it."""
    limit = cfg.sampling.max_tokens
    right = f", right ones {found.right_length:.0f}" if found.right_length is not None else ""
    text = (
        f"{found.mean_length:.0f} tokens on average{right}, {found.longest} at most; {found.truncated:.1%} cut off "
        f"at {limit}"
    )
    if found.truncated <= _RARE:
        return Line(Mark.OK, "responses", text)
    if found.right_longest is not None and found.right_longest < limit / 2:
        text += f"; 99 of 100 right ones end within {found.right_longest}"
        return Line(Mark.LOOK, "responses", text, f"--sampling.max_tokens {_rounded(1.5 * found.right_longest)}")
    larger = min(2 * limit, most)
    return Line(Mark.LOOK, "responses", text, f"--sampling.max_tokens {larger}" if larger > limit else "")


def _rounded(tokens: float) -> int:
    """Up to a multiple of 32."""
    return 32 * -(-int(tokens) // 32)


def _percent(share: Estimate) -> str:
    return f"{100 * share.value:.1f} % [{100 * share.low:.0f}, {100 * share.high:.0f}]"
