"""The health checks of a run and their alarms: CHECKS is a table of conditions on the metrics of the newest steps (also
in docs/DOCTOR.md); alarms are in RUN/alarms.jsonl.

Alarms are a function of the lines of metrics.jsonl alone, so a resumed run raises the same ones.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from reasoner.runs.io import write_bytes
from reasoner.runs.json_files import COUNT, NUMBER, TEXT, Torn, checked_line, read_lines

Lines = Sequence[Mapping[str, float]]  # the metrics of consecutive steps
Violation = tuple[float, float] | None  # a value and the limit that it exceeds; None where it does not

_QUIET = 10  # steps for which a check must have passed before its alarm is raised again
_PAST = 10  # steps back that the newest ones are compared with


@dataclass(frozen=True, slots=True)
class Alarm:
    """A health check that failed, with the value and the limit that it exceeded."""

    name: str
    step: int  # the step, as in metrics.jsonl, after which the check failed
    since: int  # the first step that the check looked at: the cause lies there, or before
    value: float
    limit: float
    when: str
    meaning: str
    help: str

    @property
    def text(self) -> str:
        event = f"{self.name} at step {self.step}: {self.when} ({self.value:.3g}, limit {self.limit:.3g})"
        return f"ALARM  {event}. {self.meaning} What helps: {self.help}"


@dataclass(frozen=True, slots=True)
class Check:
    """A condition on the newest steps of a run. A check that fails raises an alarm."""

    name: str
    when: str  # the condition under which the check fails, in words
    meaning: str
    help: str
    window: int  # number of newest steps that it looks at; it passes until there are so many
    find: Callable[[Lines, Lines], Violation]  # takes those steps, and all before them

    def of(self, history: Lines) -> Alarm | None:
        """The alarm of this check after the newest step; None where the check passes."""
        recent, before = history[-self.window :], history[: -self.window]
        violation = self.find(recent, before) if len(recent) == self.window else None
        if violation is None:
            return None
        step, since = int(recent[-1]["step"]), int(recent[0]["step"])
        return Alarm(self.name, step, since, *violation, self.when, self.meaning, self.help)


# A metric that a line lacks or that is not finite (the file leaves it out) is unknown. A mean or median of no known
# value is nan, which exceeds no limit. In max and min the known argument comes first, so that nan is not returned.


def _known_values(lines: Lines, name: str) -> list[float]:
    return [line[name] for line in lines if math.isfinite(line.get(name, math.nan))]


def _mean(lines: Lines, name: str) -> float:
    return fmean(_known_values(lines, name) or [math.nan])


def _median(lines: Lines, name: str) -> float:
    return median(_known_values(lines, name) or [math.nan])


def _over(value: float, limit: float) -> Violation:
    return (value, limit) if value > limit else None


def _under(value: float, limit: float) -> Violation:
    return (value, limit) if value < limit else None


def _mean_over(name: str, limit: float) -> Callable[[Lines, Lines], Violation]:
    return lambda recent, before: _over(_mean(recent, name), limit)


def _never_over(name: str, limit: float) -> Callable[[Lines, Lines], Violation]:
    return lambda recent, before: _under(max(_known_values([*before, *recent], name), default=math.nan), limit)


def _always_zero(name: str) -> Callable[[Lines, Lines], Violation]:
    def find(recent: Lines, before: Lines) -> Violation:
        known = _known_values(recent, name)
        return (0.0, 0.0) if len(known) == len(recent) and not any(known) else None

    return find


def _not_finite(recent: Lines, before: Lines) -> Violation:
    """A line with skipped_updates always has loss and grad_norm, unless these were not finite."""
    (line,) = recent
    if "skipped_updates" not in line:
        return None
    lost = sum(not math.isfinite(line.get(name, math.nan)) for name in ("loss", "grad_norm"))
    return _over(line["skipped_updates"] + lost, 0.0)


def _first_positive(lines: Lines, name: str) -> float:
    """The first positive finite value of the metric. 0 is skipped: it means that no token was computed."""
    return next((line[name] for line in lines if 0 < line.get(name, 0.0) < math.inf), math.nan)


def _gap(name: str, *, of: str, least: float, most: float) -> Callable[[Lines, Lines], Violation]:
    """A check that the metric stays under ten times the first step's value of the metric `of`, within [least, most].

    The first step samples with the weights that it trains, so its gap is rounding alone, whatever the precision.
    Where it is unknown, the limit is `most`.
    """

    def find(recent: Lines, before: Lines) -> Violation:
        first = _first_positive((*before[:_PAST], *recent), of)
        return _over(_mean(recent, name), most if math.isnan(first) else min(most, max(least, 10 * first)))

    return find


def _unless_behind(find: Callable[[Lines, Lines], Violation]) -> Callable[[Lines, Lines], Violation]:
    """The check, passed where the sampler has older weights on purpose (max_off_policy_steps): they then differ."""
    return lambda recent, before: (
        None if any(line.get("rollouts/policy_age") for line in recent) else find(recent, before)
    )


def _entropy(recent: Lines, before: Lines) -> Violation:
    """Of rollouts: examples that a model learns by heart have none in the end, as they should."""
    computed = [line for line in recent if line.get("entropy", 0.0) > 0 and "correct" in line]
    return _under(_mean(computed, "entropy"), max(0.005, 0.05 * _first_positive(before, "entropy")))


def _kl(recent: Lines, before: Lines) -> Violation:
    """Medians are compared because one unlikely token can raise a step's mean fivefold."""
    return _over(_median(recent, "kl"), min(2.0, max(0.3, 5 * _median(before[-_PAST:], "kl"))))


class _Completions(NamedTuple):
    """Averages over the completions of some steps."""

    tokens: float
    correct: float
    well_formed: float
    model_reward: float  # score of the reward models; nan without any

    @classmethod
    def of(cls, lines: Lines) -> _Completions:
        names = ("completions/mean_length", "correct", "well_formed", "reward/model")
        return cls(*(_mean(lines, name) for name in names))


def _change(judge: Callable[[_Completions, _Completions], Violation]) -> Callable[[Lines, Lines], Violation]:
    """Compare the recent steps with the run's first three, then with as many steps that ended ten steps earlier."""

    def find(recent: Lines, before: Lines) -> Violation:
        pasts = (before[:3], before[:-_PAST][-len(recent) :])
        violations = (judge(_Completions.of(recent), _Completions.of(past)) for past in pasts if len(past) >= 3)
        return next(filter(None, violations), None)

    return find


def _longer(now: _Completions, then: _Completions) -> Violation:
    return _over(now.tokens, 2 * then.tokens) if now.correct <= then.correct else None


def _shorter(now: _Completions, then: _Completions) -> Violation:
    return _under(now.tokens, 2 / 3 * then.tokens) if now.correct < 0.75 * then.correct else None


def _form_alone(now: _Completions, then: _Completions) -> Violation:
    return _under(now.correct, 2 / 3 * then.correct) if now.well_formed > then.well_formed + 0.1 else None


def _proxy_alone(now: _Completions, then: _Completions) -> Violation:
    fifth_less = min(0.8 * then.correct, then.correct - 0.03)
    return _under(now.correct, fifth_less) if now.model_reward > then.model_reward else None


CHECKS = (
    Check("non-finite loss or gradient", "an update was left out, or the loss or the gradient's norm was not finite",
        "Numbers overflowed in the trainer; the updates before may have damaged the weights.",
        "A lower --optim.lr, --optim.dtype float32; a checkpoint from before.", 1, _not_finite),
    Check("grading failures", "more than 1 % of the completions could not be graded",
        "The grader ran out of time or memory, or refused the response. Such completions are trained on as wrong ones.",
        "The rollouts with the verdicts timed_out, crashed and refused; --verify.seconds, --verify.memory_mib.", 1,
        _mean_over("grading/failed", 0.01)),
    Check("training-inference mismatch",
        "log p of engine and trainer differ by 0.05 on average, or by 0.001 and ten times the first step's",
        "The engine does not sample from the policy that is trained: other weights, another temperature or precision.",
        "The same dtype on both sides, --algo.importance_sampling token; another --engine.name to compare.", 1,
        _unless_behind(_gap("sampling/logprob_diff_mean", of="sampling/logprob_diff_mean", least=1e-3, most=0.05))),
    Check("stale weights",
        "after the weight sync, one token's log p differs by over 0.01 and ten times the first step's largest gap",
        "The engine did not take the new weights, or not all of them, and samples with old ones.",
        "Another --engine.name; where only vLLM is affected, its version and how it names the model's weights.", 1,
        _gap("parity/logprob_diff_max", of="sampling/logprob_diff_max", least=1e-2, most=math.inf)),
    Check("entropy collapse", "mean entropy of three steps under 5 % of the first step's, or under 0.005 nats a token",
        "The policy is nearly deterministic: the completions of a group are alike, and groups have zero variance.",
        "A lower --optim.lr, --algo.entropy_coef 0.001, a higher --algo.beta; with several updates a step a higher "
        "--algo.clip_high.", 3, _entropy),
    Check("length growth",
        "completions of five steps twice as long as at first or ten steps before, and no more of them correct",
        "Length grows without a gain in accuracy: padding, or a reward that longer completions get for their length.",
        "Read the longest rollouts; --reward.overlong 1; --algo.name dr_grpo, which does not favour long wrong ones.",
        5, _change(_longer)),
    Check("length collapse",
        "completions of five steps a third shorter than at first or ten steps before, and a quarter fewer correct",
        "The policy stops reasoning and guesses: short guesses have a higher expected reward than long attempts.",
        "With a critic --critic.lam 1; a lower --optim.lr, a lower --reward.format, a higher --algo.beta.", 5,
        _change(_shorter)),
    Check("truncation", "over 30 % of the completions of three steps end at sampling.max_tokens",
        "Truncated completions are graded as they stand, mostly as wrong: the policy is trained to be short.",
        "A higher --sampling.max_tokens; or --reward.overlong 1, a penalty that begins before the limit.", 3,
        _mean_over("completions/clipped_ratio", 0.3)),
    Check("repetition", "in over 15 % of the completions of five steps most 8-token windows occur three times or more",
        "Completions repeat themselves.",
        "--reward.repetition 1, a lower --optim.lr, a higher --algo.beta or --sampling.temperature.", 5,
        _mean_over("repetition", 0.15)),
    Check("format reward hacking",
        "10 points more of eight steps well-formed than at first or ten steps before, and a third fewer correct",
        "The policy is trained towards the format reward alone, and accuracy falls.",
        "A lower --reward.format; read the rollouts that are well-formed and wrong.", 8, _change(_form_alone)),
    Check("reward model over-optimisation",
        "reward models score five steps higher than at first or ten before, and a fifth (3 points) fewer are correct",
        "The policy exploits the reward model: its score is no longer a measure of what it was trained to predict.",
        "A lower weight in --reward.model, a --reward.correct above 0, a higher --algo.beta, fewer steps; a checkpoint "
        "from before.", 5, _change(_proxy_alone)),
    Check("KL spike",
        "median KL of three steps over 0.3 and five times that of the ten before, or over 2 nats a token",
        "The policy moved far from its reference within a few steps: an update was too large.",
        "A lower --optim.lr, a higher --algo.beta, with several updates a step a smaller --algo.clip_high; a "
        "checkpoint from before.", 3, _kl),
    Check("critic without effect",
        "twenty steps, and in none did the values explain 5 % of the variance of the returns",
        "The critic predicts no better than one number for all tokens: its baseline takes no noise out of the update.",
        "A higher --critic.lr, more --critic.epochs or --critic.minibatches; --critic.warmup_steps 10.", 20,
        _never_over("critic/explained_variance", 0.05)),
    Check("zero-variance groups", "over 90 % of the groups of five steps have equal rewards",
        "Such groups have no advantage: the problems are too easy or too hard, or a group's completions are alike.",
        "Other problems (--data.train), a larger --algo.group_size, a higher --sampling.temperature, --algo.name dapo.",
        5, _mean_over("frac_reward_zero_std", 0.9)),
    Check("all rewards zero", "every reward of five steps is zero",
        "Without a reward there is no advantage: often the prompt does not ask for the form that is graded.",
        "Read some rollouts and their verdicts; another --prompt.style, a --reward.format above 0, easier problems.",
        5, _always_zero("reward/mean")),
    Check("no correct completion", "not one completion of twenty steps is correct",
        "The model does not solve these problems, or the grader does not recognise its answers; only form is trained, "
        "and what the model could do before may be lost.",
        "Read some answers beside the gold ones; another --prompt.style or --model, easier problems (--data.train).",
        20, _always_zero("correct")),
)  # fmt: skip


def active_alarms(history: Lines) -> list[Alarm]:
    """The alarms of the checks that fail after the newest of the steps, new or not."""
    return [alarm for check in CHECKS if (alarm := check.of(history))]


def new_alarms(history: Lines) -> list[Alarm]:
    """The new alarms: of the checks that fail after the newest step and passed after each of the ten steps before."""

    def failed_before(check: Check) -> bool:
        return any(check.of(history[:-ago]) for ago in range(1, _QUIET + 1))

    return [alarm for check in CHECKS if (alarm := check.of(history)) and not failed_before(check)]


def all_alarms(history: Lines) -> list[Alarm]:
    """All alarms of a run with these steps, in order: those of `alarms` after each step, with one check per step."""
    raised: list[Alarm] = []
    last_failed: dict[str, int] = {}  # by check: the number of steps after which it failed last
    for end in range(1, len(history) + 1):
        for alarm in active_alarms(history[:end]):
            if alarm.name not in last_failed or end - last_failed[alarm.name] > _QUIET:
                raised.append(alarm)
            last_failed[alarm.name] = end
    return raised


# ------------------------------------------------------------------------------------------------ alarms.jsonl

_KIND_OF = {"str": TEXT, "int": COUNT, "float": NUMBER}
_FIELDS = {field.name: _KIND_OF[str(field.type)] for field in fields(Alarm)}


def read_alarms(run_dir: Path, *, torn: Torn = "never") -> list[Alarm]:
    """Read the alarms of a run, the oldest first. ValueError for a damaged file; `torn` as in read_lines."""
    lines = read_lines(run_dir / "alarms.jsonl", _FIELDS, torn=torn)
    return [Alarm(**{name: line[name] for name in _FIELDS}) for line in lines]


def write_alarms(run_dir: Path, alarms: Sequence[Alarm]) -> None:
    """Replace the alarms of the run. The file is replaced as a whole; without alarms there is none."""
    path = run_dir / "alarms.jsonl"
    if alarms:
        write_bytes(path, b"".join(checked_line(asdict(alarm)) for alarm in alarms))
    else:
        path.unlink(missing_ok=True)
