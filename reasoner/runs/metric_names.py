"""The metrics of a step: one row each with its meaning, unit, label and the places that show it (docs/METRICS.md).

METRICS are the values of metrics.jsonl, TIMES those of times.jsonl. Console and dashboard take labels and units
from here. To add a metric, add a row and write the value in reasoner.trainer.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from reasoner.console import markdown_table

# console: the line, or panel, after each step; sft, reward-model: the same in these stages; overview: the
# curves of a run on the dashboard; health: the small charts below them; compare: the curves of several runs.
Place = Literal["console", "sft", "reward-model", "overview", "health", "compare"]


@dataclass(frozen=True, slots=True)
class Metric:
    """One row of METRICS or TIMES."""

    name: str
    meaning: str
    unit: str = ""  # "share" is a number from 0 to 1, shown in per cent; empty for a number without a unit
    label: str = ""  # short name for columns, legends and titles; metrics that no place shows have none
    places: tuple[Place, ...] = ()


def _by_name(*rows: Metric) -> dict[str, Metric]:
    return {row.name: row for row in rows}


METRICS = _by_name(
    Metric("step", "number of the step; the first is 0"),
    Metric("num_tokens", "tokens sampled so far, this step's included; in supervised finetuning those with a loss",
        "tokens"),
    Metric("reward/mean", "mean reward of the step's completions", "", "reward", ("console", "overview")),
    Metric("reward/model", "mean weighted score of the reward models (reward.model), a part of reward/mean", "",
        "reward model", ("overview",)),
    Metric("correct", "share of completions with the right answer in the form that the prompt requires", "share",
        "correct", ("console", "overview", "compare")),
    Metric("well_formed",
        "share of completions in the form that the prompt requires: with extraction strict one <think> block, then one "
        "<answer> block; with any other (boxed, lenient, ...) an answer that it finds", "share", "well-formed",
        ("console", "overview")),
    Metric("completions/mean_length", "mean tokens of a completion, the end token included", "tokens", "tokens",
        ("console", "overview", "compare")),
    Metric("completions/clipped_ratio",
        "share of completions truncated at sampling.max_tokens (finish length; aborted ones do not count)", "share",
        "truncated", ("console", "health")),
    Metric("reflection/self_check_rate",
        "share of completions that check their own working (rule: verifiers.reflection)", "share", "self-check",
        ("overview", "compare")),
    Metric("reflection/errors_caught",
        "of the wrong claims in completions that check themselves, the share detected and corrected", "share",
        "wrong claims caught", ("overview",)),
    Metric("frac_reward_zero_std", "share of groups whose rewards are all equal", "share", "zero-variance",
        ("console", "health")),
    Metric("grading/failed", "share of completions whose grading timed out, crashed or was refused", "share"),
    Metric("loss",
        "the loss; on-policy its value says little, its gradient everything. In supervised finetuning the mean "
        "negative log-likelihood of the step's tokens with a loss, in nats, before the update", "", "loss",
        ("sft", "reward-model", "health")),
    Metric("token_accuracy",
        "in supervised finetuning: share of the tokens with a loss that are the model's likeliest", "share",
        "token accuracy", ("sft", "health")),
    Metric("kl", "mean estimate of KL(policy || reference) per token with a gradient", "nats per token", "KL",
        ("health", "compare")),
    Metric("entropy", "mean entropy of the policy per token with a gradient", "nats per token", "entropy",
        ("sft", "health")),
    Metric("clip_ratio",
        "share of the tokens with a gradient that was clipped away, with algo.surrogate clip_weight whose weight was "
        "clipped (0 with one update a step)", "share"),
    Metric("grad_norm", "norm of the gradient before clipping, the mean of the step's updates", "", "gradient norm",
        ("reward-model", "health")),
    Metric("lr", "learning rate", "", "learning rate", ("health",)),
    Metric("skipped_updates", "updates left out because their gradient was not finite", "updates"),
    Metric("sampling/logprob_diff_mean",
        "mean |log-probability of engine - of trainer| over the tokens with a gradient", "nats",
        "engine against trainer, mean |log p|", ("health",)),
    Metric("sampling/logprob_diff_max", "largest |log-probability of engine - of trainer| over these tokens", "nats"),
    Metric("sampling/importance_mean", "mean weight of these tokens, the correction for the sampler (1 without one)"),
    Metric("sampling/importance_clipped",
        "share of these tokens whose weight is at algo.importance_clip_max or masked", "share"),
    Metric("tools/calls", "calls of tools per completion, with tools.names", "", "tool calls", ("overview",)),
    Metric("tools/error_rate", "share of the calls of tools that failed", "share", "failed calls", ("health",)),
    Metric("rollouts/policy_age",
        "steps that the sampler's weights were behind the trainer's, with max_off_policy_steps above 0", "steps"),
    Metric("kl/response", "mean estimate of KL(policy || reference) of a whole response, with algo.kl_target", "nats",
        "KL of a response", ("health",)),
    Metric("beta", "coefficient of the KL penalty towards the reference, where it is adapted"),
    Metric("policy_kl", "KL(old || new) of a constrained step", "nats per token"),
    Metric("trust_region/step_fraction",
        "share of its full length that a constrained step took; 0 = none was accepted", "share"),
    Metric("teacher/kl",
        "KL(policy || teacher): over the vocabulary (teacher.kl full), or estimated by the mean log-probability of the "
        "policy - of the teacher at the sampled tokens", "nats per token", "KL to the teacher, nats", ("health",)),
    Metric("critic/loss", "the critic's loss"),
    Metric(
        "critic/explained_variance", "share of the returns' variance that the critic's values explain; may be negative"
    ),
    Metric("dynamic_sampling/replaced",
        "prompts sampled to replace groups that algo.filter_metric leaves out (dynamic sampling)", "prompts"),
    Metric("validation/pass@1", "pass@1 on the validation problems after the steps so far", "share",
        "validation pass@1", ("console", "sft")),
    Metric("validation/cons@k", "cons@k on the validation problems, k being validation.samples", "share",
        "validation cons@k", ("console",)),
    Metric("validation/greedy", "correct greedy answers on the validation problems", "share", "validation greedy",
        ("console", "sft")),
    Metric("validation/loss",
        "in supervised finetuning: the loss on the examples of the problems that are not trained on", "nats per token",
        "validation loss", ("sft", "health")),
    Metric("validation/token_accuracy",
        "in supervised finetuning: share of their tokens that are the model's likeliest", "share",
        "validation token accuracy", ("health",)),
    Metric("validation/well_formed", "well-formed completions on the validation problems", "share"),
    Metric("reward_model/accuracy",
        "of a reward model in training: share of the step's pairs whose preferred completion has the higher score, "
        "before the update; every prompt counts alike, and equal scores half", "share", "accuracy",
        ("reward-model", "health")),
    Metric("reward_model/margin", "mean difference of the two scores of a pair, as the labels have them", "", "margin",
        ("reward-model", "health")),
    Metric("reward_model/score_mean", "mean score of the step's completions", "", "mean score", ("health",)),
    Metric("reward_model/score_std", "standard deviation of the step's scores", "", "deviation of scores", ("health",)),
    Metric("repetition", "share of completions in which most 8-token windows occur three times or more", "share"),
    Metric("parity/logprob_diff_max", "largest |log p of engine - trainer|, in the engine's precision", "nats"),
)  # fmt: skip
TIMES = _by_name(
    Metric("tokens_per_second",
        "tokens per second of the whole step: the sampled ones, else those of its completions", "tokens per second",
        "speed", ("console", "sft", "reward-model", "health")),
    Metric("time/generate", "time spent sampling and grading", "seconds"),
    Metric("time/grade_max", "longest time that a completion was graded for", "seconds"),
    Metric("time/train", "time spent on log-probabilities and the update", "seconds"),
    Metric("time/weight_sync", "time spent handing the weights to the engine", "seconds"),
    Metric("time/step", "time of the whole step", "seconds"),
    Metric("time/record", "time after the last step for its metrics, validation, files and checkpoint", "seconds"),
    Metric("time/run", "time of the run so far, without this step's record; pauses do not count", "seconds"),
)  # fmt: skip


def shown_at(place: Place) -> list[Metric]:
    """The metrics and times that a place shows, in the order of the tables."""
    return [row for row in (METRICS | TIMES).values() if place in row.places]


def markdown() -> str:
    """The text of docs/METRICS.md."""
    lines = [
        "# Metrics",
        "",
        "Generated by `python -m reasoner.runs.metric_names > docs/METRICS.md`. In the folder of a run, a line of",
        "`metrics.jsonl` holds the metrics of one step, and a line of `times.jsonl` what a clock measured. A line has",
        "those that the run computes: `kl` needs `algo.beta` above 0, for example. Trackers get the same names.",
        "The last field of a line, `crc32`, is its checksum.",
        "",
        "A token has a gradient if its completion has: not in a zero-variance group that is left out",
        "(algo.filter_zero_advantages) or on which nothing but the reward acts (algo.beta 0), nor truncated with",
        "algo.mask_truncated_completions. It counts in every update of the step.",
        "",
        "Shown: `console` is the line after each step, `sft` and `reward-model` the same in these stages; `overview`,",
        "`health` and `compare` are curves of the dashboard.",
    ]
    for title, table in {"metrics.jsonl": METRICS, "times.jsonl": TIMES}.items():
        rows = [
            [f"`{row.name}`", row.unit, row.meaning.replace("<", "&lt;"), ", ".join(row.places)]
            for row in table.values()
        ]
        lines += ["", f"## {title}", "", markdown_table([["metric", "unit", "meaning", "shown"], *rows])]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(markdown(), end="")
