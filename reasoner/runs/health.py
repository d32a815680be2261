"""What goes wrong in a run without ending it: every check is a row of CHECKS, asked of the metrics after each step.

Alarms are a function of the lines of metrics.jsonl and of nothing else, so a run that goes on comes to the same ones.
They stand in RUN/alarms.jsonl. docs/HEALTH.md has the table for its reader.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from reasoner.runs.io import write_text

Lines = Sequence[Mapping[str, float]]
Found = tuple[float, float] | None  # a value, and the limit that it has passed

_QUIET = 10  # steps in which an alarm must not have rung, to be told again
_GRAM = 8  # tokens of a window of `repeats`
_PAST = 10  # steps back that the newest ones are compared with


@dataclass(frozen=True, slots=True)
class Alarm:
    name: str
    step: int  # the step, as in metrics.jsonl, after which it began to ring
    since: int  # the first step that it was found in: its cause lies there, or before
    value: float
    limit: float
    when: str
    meaning: str
    help: str

    @property
    def text(self) -> str:
        """One paragraph for the console."""
        found = f"{self.name} at step {self.step}: {self.when} ({self.value:.3g}, limit {self.limit:.3g})"
        return f"ALARM  {found}. {self.meaning} What helps: {self.help}"


@dataclass(frozen=True, slots=True)
class Check:
    name: str
    when: str  # it rings
    meaning: str
    help: str
    window: int  # newest steps that it looks at; it is silent until there are so many
    find: Callable[[Lines, Lines], Found]  # of those steps, and of all before them

    def of(self, history: Lines) -> Alarm | None:
        """The alarm that rings after the newest step."""
        recent, before = history[-self.window :], history[: -self.window]
        found = self.find(recent, before) if len(recent) == self.window else None
        if found is None:
            return None
        step, since = int(recent[-1]["step"]), int(recent[0]["step"])
        return Alarm(self.name, step, since, *found, self.when, self.meaning, self.help)


def ringing(history: Lines) -> list[Alarm]:
    """What is wrong after the newest of the steps."""
    return [alarm for check in CHECKS if (alarm := check.of(history))]


def alarms(history: Lines) -> list[Alarm]:
    """What has begun to ring with the newest of the steps: it was silent after each of the ten before."""

    def was_ringing(check: Check) -> bool:
        return any(check.of(history[:-ago]) for ago in range(1, _QUIET + 1))

    return [alarm for check in CHECKS if (alarm := check.of(history)) and not was_ringing(check)]


def replay(history: Lines) -> list[Alarm]:
    """All alarms of a run with these steps, in order: `alarms` after each of them; every check is made once a step."""
    found: list[Alarm] = []
    rang: dict[str, int] = {}  # the number of steps after which a check rang last
    for end in range(1, len(history) + 1):
        for alarm in ringing(history[:end]):
            if alarm.name not in rang or end - rang[alarm.name] > _QUIET:
                found.append(alarm)
            rang[alarm.name] = end
    return found


# ---------------------------------------------------------------------------------------------------- finding
# A value that a line lacks is not known, nor is one that is not finite (the file leaves it out). What is made of
# nothing known is nan, which passes no limit; in max and min the known argument comes first, and so it stays.


def _known(lines: Lines, name: str) -> list[float]:
    return [line[name] for line in lines if math.isfinite(line.get(name, math.nan))]


def _mean(lines: Lines, name: str) -> float:
    return fmean(_known(lines, name) or [math.nan])


def _median(lines: Lines, name: str) -> float:
    return median(_known(lines, name) or [math.nan])


def _over(value: float, limit: float) -> Found:
    return (value, limit) if value > limit else None


def _under(value: float, limit: float) -> Found:
    return (value, limit) if value < limit else None


def _mean_over(name: str, limit: float) -> Callable[[Lines, Lines], Found]:
    return lambda recent, before: _over(_mean(recent, name), limit)


def _always_zero(name: str) -> Callable[[Lines, Lines], Found]:
    def find(recent: Lines, before: Lines) -> Found:
        known = _known(recent, name)
        return (0.0, 0.0) if len(known) == len(recent) and not any(known) else None

    return find


def _not_finite(recent: Lines, before: Lines) -> Found:
    """A line that tells of updates always has a loss and a norm, unless these were not finite."""
    (line,) = recent
    if "skipped_updates" not in line:
        return None
    lost = sum(not math.isfinite(line.get(name, math.nan)) for name in ("loss", "grad_norm"))
    return _over(line["skipped_updates"] + lost, 0.0)


def _first(lines: Lines, name: str) -> float:
    """What the run began with. 0 stands where no token was computed, so it is not it."""
    return next((line[name] for line in lines if 0 < line.get(name, 0.0) < math.inf), math.nan)


def _gap(name: str, *, of: str, least: float, most: float) -> Callable[[Lines, Lines], Found]:
    """The first step samples with the very weights that it learns from: its gap `of` is rounding, whatever the
    precision. Ten times that is something else. Where it is not known, `most` is the limit.
    """

    def find(recent: Lines, before: Lines) -> Found:
        first = _first((*before[:_PAST], *recent), of)
        return _over(_mean(recent, name), most if math.isnan(first) else min(most, max(least, 10 * first)))

    return find


def _unless_behind(find: Callable[[Lines, Lines], Found]) -> Callable[[Lines, Lines], Found]:
    """A sampler that is meant to be behind the learner (the setting `ahead`) differs from it."""
    return lambda recent, before: None if any(line.get("sampler/behind") for line in recent) else find(recent, before)


def _entropy(recent: Lines, before: Lines) -> Found:
    computed = [line for line in recent if line.get("entropy", 0.0) > 0]
    return _under(_mean(computed, "entropy"), max(0.005, 0.05 * _first(before, "entropy")))


def _kl(recent: Lines, before: Lines) -> Found:
    """Medians: one unlikely token can lift a step's mean fivefold."""
    return _over(_median(recent, "kl"), min(2.0, max(0.3, 5 * _median(before[-_PAST:], "kl"))))


class _Answers(NamedTuple):
    """What the completions of some steps are like, on average."""

    tokens: float
    right: float
    well_formed: float

    @classmethod
    def of(cls, lines: Lines) -> _Answers:
        return cls(*(_mean(lines, name) for name in ("completions/mean_length", "correct", "format")))


def _became(judge: Callable[[_Answers, _Answers], Found]) -> Callable[[Lines, Lines], Found]:
    """`judge` of the recent steps against the first three of the run, then against as many as they are a while ago."""

    def find(recent: Lines, before: Lines) -> Found:
        pasts = (before[:3], before[:-_PAST][-len(recent) :])
        found = (judge(_Answers.of(recent), _Answers.of(past)) for past in pasts if len(past) >= 3)
        return next(filter(None, found), None)

    return find


def _longer(now: _Answers, then: _Answers) -> Found:
    return _over(now.tokens, 2 * then.tokens) if now.right <= then.right else None


def _shorter(now: _Answers, then: _Answers) -> Found:
    return _under(now.tokens, 2 / 3 * then.tokens) if now.right < 0.75 * then.right else None


def _form_alone(now: _Answers, then: _Answers) -> Found:
    return _under(now.right, 2 / 3 * then.right) if now.well_formed > then.well_formed + 0.1 else None


# ------------------------------------------------------------------------------------------------------ table

CHECKS = (
    Check(
        "not finite",
        "an update was left out, or the loss or the gradient's norm was not finite",
        "Numbers overflowed in the learner; the weights may be damaged by the updates before.",
        "A lower --optim.lr, --optim.dtype float32; a checkpoint from before.",
        1,
        _not_finite,
    ),
    Check(
        "grading fails",
        "more than 1 % of the completions could not be graded",
        "The grader ran out of time or memory, or refused; such answers count as wrong, and that is learnt from.",
        "The rollouts with the verdicts timed_out, crashed and refused; --verify.seconds, --verify.memory_mib.",
        1,
        _mean_over("grading/failed", 0.01),
    ),
    Check(
        "sampler mismatch",
        "log p of engine and learner differ by 0.05 on average, or by 0.001 and ten times the first step's",
        "The engine does not sample from the policy that learns: other weights, another temperature or precision.",
        "The same dtype on both sides, --sampling.top_p 1, --algo.importance token; another --engine.name to compare.",
        1,
        _unless_behind(_gap("sampler/logprob_gap_mean", of="sampler/logprob_gap_mean", least=1e-3, most=0.05)),
    ),
    Check(
        "stale weights",
        "after handing over, one token's log p differs by over 0.01 and ten times the first step's largest gap",
        "The engine did not take the new weights, or not all of them, and goes on with old ones.",
        "Another --engine.name; where only vLLM is affected, its version and how it names the model's weights.",
        1,
        _gap("probe/logprob_gap_max", of="sampler/logprob_gap_max", least=1e-2, most=math.inf),
    ),
    Check(
        "entropy collapse",
        "mean entropy of three steps under 5 % of the first step's, or under 0.005 nats a token",
        "The policy writes nearly the same every time: nothing is left to choose among, and groups become flat.",
        "A lower --optim.lr, a higher --algo.clip_high, --algo.entropy 0.001, a higher --algo.beta.",
        3,
        _entropy,
    ),
    Check(
        "longer for nothing",
        "completions of five steps twice as long as at first or ten steps before, and no more of them right",
        "Length grows without paying: padding, rambling, or a reward that can be had by writing more.",
        "Read the longest rollouts; --reward.overlong 1; --algo.name dr_grpo, which does not favour long wrong ones.",
        5,
        _became(_longer),
    ),
    Check(
        "shrinking answers",
        "completions of five steps a third shorter than at first or ten steps before, and a quarter fewer right",
        "The policy stops thinking and guesses: short guesses are safer for it than long attempts.",
        "With a critic --critic.lam 1; a lower --optim.lr, a lower --reward.format, a higher --algo.beta.",
        5,
        _became(_shorter),
    ),
    Check(
        "cut off",
        "over 30 % of the completions of three steps end at sampling.max_tokens",
        "What is cut off is graded as it stands, mostly as wrong: the policy learns to be short, not to be right.",
        "A higher --sampling.max_tokens; or --reward.overlong 1, which makes room a soft limit.",
        3,
        _mean_over("completions/clipped_ratio", 0.3),
    ),
    Check(
        "repetition",
        "over 15 % of the completions of five steps say most of what they say three times or more",
        "Completions run in loops; text is there, thought is not.",
        "--reward.repetition 1, a lower --optim.lr, a higher --algo.beta or --sampling.temperature.",
        5,
        _mean_over("repetition", 0.15),
    ),
    Check(
        "form without substance",
        "form of eight steps 10 points better than at first or ten steps before, and a third fewer right",
        "The policy takes the reward of the form and gives up on answers.",
        "A lower --reward.format; read the rollouts that are well-formed and wrong.",
        8,
        _became(_form_alone),
    ),
    Check(
        "KL spike",
        "median KL of three steps over 0.3 and five times that of the ten before, or over 2 nats a token",
        "The policy has left its reference in a few steps: an update was too large.",
        "A lower --optim.lr, a higher --algo.beta, a smaller --algo.clip_high; a checkpoint from before.",
        3,
        _kl,
    ),
    Check(
        "no signal",
        "over 90 % of the groups of five steps have equal rewards",
        "Such groups teach nothing: the questions are too easy or too hard for the model, or it always says the same.",
        "Other problems (--data.train), a larger --algo.group, a higher --sampling.temperature, --algo.name dapo.",
        5,
        _mean_over("frac_reward_zero_std", 0.9),
    ),
    Check(
        "no reward",
        "every reward of five steps is zero",
        "Nothing is paid for, so nothing can be learnt: often the prompt and the form that is graded do not fit.",
        "Read some rollouts and their verdicts; another --prompt.style, a --reward.format above 0, easier problems.",
        5,
        _always_zero("reward/mean"),
    ),
    Check(
        "never right",
        "not one completion of twenty steps is right",
        "Right answers are not found or not recognised; what is learnt is the form alone.",
        "Read some answers beside the gold ones; another --prompt.style or --model, easier problems (--data.train).",
        20,
        _always_zero("correct"),
    ),
)


# ------------------------------------------------------------------------------------------------- repetition


def repetition(completions: Sequence[Sequence[int]]) -> float:
    """The share of the completions, given as token ids, that repeat themselves."""
    return sum(map(repeats, completions)) / len(completions)


def repeats(token_ids: Sequence[int]) -> bool:
    """Its windows of eight tokens are, on average, there more than twice.

    Whoever works a sum and then checks it says some things twice. Saying most of them three times is a loop.
    """
    windows = list(zip(*(token_ids[start:] for start in range(_GRAM)), strict=False))
    return len(windows) > 2 * len(set(windows))


# ---------------------------------------------------------------------------------------------------- storage


def read_alarms(run_dir: Path) -> list[Alarm]:
    """Those that a run has told, the oldest first. ValueError for a damaged file."""
    path = run_dir / "alarms.jsonl"
    if not path.is_file():
        return []
    try:
        return [Alarm(**json.loads(line)) for line in path.read_text("utf-8").splitlines()]
    except (ValueError, TypeError) as error:
        raise ValueError(f"{path} is damaged: {error}") from error


def record(run_dir: Path, found: Sequence[Alarm]) -> None:
    """Add alarms to the run's; the file is whole or as it was."""
    if found:
        rewrite(run_dir, [*read_alarms(run_dir), *found])


def forget(run_dir: Path, start: int) -> None:
    """Leave the alarms of the first `start` steps, where a run goes on after them."""
    if found := read_alarms(run_dir):
        rewrite(run_dir, [alarm for alarm in found if alarm.step < start])


def rewrite(run_dir: Path, found: Sequence[Alarm]) -> None:
    """Put these alarms in the place of the run's; the file is whole or as it was."""
    text = "".join(json.dumps(asdict(alarm)) + "\n" for alarm in found)
    write_text(run_dir / "alarms.jsonl", text)
