"""A run's metrics.jsonl, times.jsonl and evals.jsonl, and the progress that the console shows during training.

Everything measured by a clock is in times.jsonl alone, so two runs with the same seed have byte-identical
metrics.jsonl files.
"""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from rich.console import Console, Group, RenderableType
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from reasoner.console import clock, escape_controls, sparkline, speed
from reasoner.progress import Progress, live
from reasoner.runs.alarms import Alarm, forget, record
from reasoner.runs.io import write_text
from reasoner.runs.json_files import append_line, scan_lines
from reasoner.runs.migrate import migrate_metrics

FILES = ("metrics.jsonl", "times.jsonl", "evals.jsonl")
# Every metric of a step, with its meaning. The line of a step holds a subset of these names.
METRICS: dict[str, str] = {
    "step": "number of the step; the first is 0",
    "num_tokens": "tokens sampled so far, this step's included",
    "reward/mean": "mean reward of the step's completions",
    "correct": "share of completions with the right answer in the strict form",
    "well_formed": "share of completions in the strict <think>/<answer> form",
    "completions/mean_length": "mean tokens of a completion, the end token included",
    "completions/clipped_ratio": "share of completions cut off at sampling.max_tokens",
    "reflection/self_check_rate": "share of completions that check their own working (rule: verifiers.reflection)",
    "reflection/errors_caught": "of the wrong claims in completions that check themselves, the share detected and corrected",
    "frac_reward_zero_std": "share of groups whose rewards are all equal",
    "grading/failed": "share of completions whose grading timed out, crashed or was refused",
    "loss": "the loss; on-policy its value says little, its gradient everything",
    "kl": "mean estimate of KL(policy || reference) per token, in nats",
    "entropy": "mean entropy of the policy per token, in nats",
    "clip_ratio": "share of tokens whose gradient was clipped away (0 with one update a step)",
    "grad_norm": "norm of the gradient before clipping",
    "lr": "learning rate",
    "skipped_updates": "updates left out because their gradient was not finite",
    "sampling/logprob_diff_mean": "mean |log-probability of engine - of learner| over the tokens",
    "sampling/logprob_diff_max": "largest of them",
    "sampling/importance_mean": "mean weight of the correction for the sampler (1 where algo.importance_sampling is none)",
    "sampling/importance_clipped": "share of tokens whose weight is at algo.importance_clip_max",
    "rollouts/policy_age": "updates that the sampler's weights were behind the learner's, where the run samples ahead",
    "beta": "coefficient of the KL penalty towards the reference, where it is adapted",
    "policy_kl": "KL(old || new) per token of the step's update, where a trust region measures it",
    "penalty": "coefficient of KL(old || new), where it is adapted",
    "trust_region/step_fraction": "share of its full length that a constrained step took; 0 = none was accepted",
    "critic/loss": "the critic's loss",
    "critic/explained_variance": "share of the returns' variance that the critic's values explain",
    "dynamic_sampling/replaced": "prompts sampled to replace zero-variance groups (dynamic sampling)",
    "validation/pass@1": "pass@1 on the validation problems after the steps so far",
    "validation/cons@k": "cons@k on them, k being validation.samples",
    "validation/greedy": "right greedy answers on the validation problems",
    "validation/well_formed": "share in the strict form on the validation problems",
    "repetition": "share of completions in which most 8-token windows occur three times or more",
    "rollbacks": "times that the run was rolled back before this step",
    "parity/logprob_diff_max": "largest |log-probability of engine - of learner| of the parity probe",
}
TIMES: dict[str, str] = {
    "tokens_per_second": "sampled tokens a second of the whole step",
    "time/generate": "seconds spent sampling and grading",
    "time/grade_max": "longest seconds that a completion was graded for",
    "time/train": "seconds spent on log-probabilities and the update",
    "time/weight_sync": "seconds spent handing the weights to the engine",
    "time/step": "seconds of the whole step",
    "time/record": "seconds spent on validation, the files and the checkpoint before this step",
    "time/run": "seconds of the run so far, without this step's record; pauses do not count",
}


def read_metrics(run_dir: Path) -> list[dict[str, float]]:
    """The METRICS and TIMES of each step of a run, in order; `step` counts from 0."""
    times = {line["step"]: line for line in _lines(run_dir / "times.jsonl")}
    return [line | times.get(line["step"], {}) for line in _lines(run_dir / "metrics.jsonl")]


def read_evals(run_dir: Path) -> list[dict[str, Any]]:
    """The validations on the validation problems: `step` (steps done), `sampled`, `greedy` (Evaluation.figures)."""
    return _lines(run_dir / "evals.jsonl")


def _lines(path: Path) -> list[dict[str, Any]]:
    """The objects of a JSON lines file without a torn last line. ValueError for any other damaged line."""
    lines = scan(path)
    for number, (_, line) in enumerate(lines[:-1], 1):
        if line is None:
            raise ValueError(f"{path}, line {number} is damaged")
    return [line for _, line in lines if line is not None]


def scan(path: Path) -> list[tuple[str, dict[str, Any] | None]]:
    """(text, object) of each line of a JSON lines file whose lines all have a whole number `step`.

    The object is None where the line is damaged or torn. A complete last line counts even without its newline. Returns
    [] when there is no file.
    """
    lines = scan_lines(path, lambda line: isinstance(line.get("step"), int))
    return [(text, line and migrate_metrics(line)) for text, line in lines]


def lacks_newline(path: Path) -> bool:
    """Whether the file's last line is complete except for its newline."""
    lines = scan(path)
    return bool(lines) and lines[-1][1] is not None and not path.read_bytes().endswith(b"\n")


def metrics_prefix(run_dir: Path) -> list[tuple[str, dict[str, Any]]]:
    """(text, object) of the lines of metrics.jsonl for steps 0, 1, 2, ... up to the first that is missing, damaged or
    out of order.
    """
    prefix: list[tuple[str, dict[str, Any]]] = []
    for text, line in scan(run_dir / "metrics.jsonl"):
        if line is None or line["step"] != len(prefix):
            break
        prefix.append((text, line))
    return prefix


def truncate_logs(run_dir: Path, start: int, *, last_look: int) -> None:
    """Cut the files of FILES back to the first `start` steps, and to the validations after at most `last_look` steps.

    Each file is rewritten whole. Damaged lines of times.jsonl and evals.jsonl are dropped.
    """
    texts_of = {"metrics": [text for text, _ in metrics_prefix(run_dir)[:start]]}
    for name, last in (("times", start - 1), ("evals", last_look)):
        lines = scan(run_dir / f"{name}.jsonl")
        texts_of[name] = [text for text, line in lines if line is not None and line["step"] <= last]
    for name, texts in texts_of.items():
        write_text(run_dir / f"{name}.jsonl", "".join(f"{text}\n" for text in texts))


class MetricsLogger:
    """Log of a run: appends one line per step to the files, and shows progress on standard error.

    On a terminal the progress is a live panel, otherwise one plain line per step.
    """

    def __init__(self, run_dir: Path, *, steps: int, start: int) -> None:
        self.run_dir = run_dir
        self.steps = steps
        self.start = start
        self._rewind(start, last_look=start or -1)  # a new run is validated before its first step
        self._before = max((line.get("time/run", 0.0) for line in self.history), default=0.0)
        self.console = Console(stderr=True)
        self.progress = Progress(None if self.console.is_terminal else self.log)  # inside a step or an evaluation
        self._example = ""
        self.live = live(self.console, self._shown) if self.console.is_terminal else None
        self.began = time.monotonic()

    def __enter__(self) -> MetricsLogger:
        if self.live is not None:
            self.live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self.live is not None:
            self.live.stop()

    def rewind(self, start: int) -> None:
        """Cut the log back to the first `start` steps."""
        self._rewind(start, last_look=start)

    def _rewind(self, start: int, *, last_look: int) -> None:
        truncate_logs(self.run_dir, start, last_look=last_look)
        forget(self.run_dir, start)
        self.history = read_metrics(self.run_dir)
        assert len(self.history) == start, f"{len(self.history)} steps are recorded of {start}"

    def alarm(self, alarms: Sequence[Alarm]) -> None:
        """Record new alarms and print them."""
        record(self.run_dir, alarms)
        for alarm in alarms:
            self.log(alarm.text)

    def log(self, line: str) -> None:
        """Print one plain line beside the progress."""
        if self.live is not None:
            self.live.console.print(line, highlight=False, markup=False)
        else:
            print(line, file=sys.stderr, flush=True)
            self.progress.line_printed()

    def evaluated(self, step: int, *, sampled: Mapping[str, object], greedy: Mapping[str, object]) -> None:
        """Record a validation after `step` steps."""
        self._append("evals", {"step": step, "sampled": sampled, "greedy": greedy})

    def write(self, metrics: Mapping[str, float], times: Mapping[str, float], *, example: str = "") -> None:
        """Record a step. `example` is a completion to show on a terminal. Names must be those of METRICS and TIMES.

        A value that is not finite is left out of the file, because JSON has no word for it.
        """
        assert metrics.keys() <= METRICS.keys(), f"metrics that METRICS lacks: {metrics.keys() - METRICS.keys()}"
        assert times.keys() <= TIMES.keys(), f"times that TIMES lacks: {times.keys() - TIMES.keys()}"
        timed = {"step": metrics["step"], **times, "time/run": 60 * self.minutes()}
        self._append("times", timed)
        self._append("metrics", {name: value for name, value in metrics.items() if math.isfinite(value)})
        self.history.append({**metrics, **timed})
        if self.live is not None:
            self._example = example
            self.live.refresh()
        else:
            self.log(self._line())

    def _append(self, name: str, line: Mapping[str, object]) -> None:
        append_line(self.run_dir / f"{name}.jsonl", line)

    @property
    def steps_done(self) -> int:
        return int(self.history[-1]["step"]) + 1 if self.history else 0

    def num_tokens(self) -> float:
        """Number of tokens sampled by the steps so far."""
        return self.history[-1].get("num_tokens", 0.0) if self.history else 0.0

    def minutes(self) -> float:
        """Minutes of the run so far: steps, validations and checkpoints."""
        return (self._before + time.monotonic() - self.began) / 60

    def _seconds_left(self) -> float:
        done = self.history[-1]["step"] + 1 - self.start
        return float((time.monotonic() - self.began) / done * (self.steps - self.start - done))

    def _line(self) -> str:
        m = self.history[-1]
        line = (
            f"step {m['step']:.0f} ({self.steps_done}/{self.steps} done)  reward {m['reward/mean']:.3f}  "
            f"correct {m['correct']:.1%}  well-formed {m['well_formed']:.1%}  tokens {m['completions/mean_length']:.0f}  "
            f"self-check {m['reflection/self_check_rate']:.1%}  KL {m.get('kl', 0):.4f}  {speed(m['tokens_per_second'])}  "
            f"{clock(self._seconds_left())} left"
        )
        if "validation/pass@1" in m:
            shown = {"pass@1": "pass@1", "vote": "cons@k", "greedy": "greedy"}
            looks = ", ".join(f"{word} {m[f'validation/{name}']:.1%}" for word, name in shown.items())
            line += f"  | selection, {self.steps_done} steps done: {looks}"
        return line

    def _shown(self) -> Group:
        """The panel of the steps so far, and the progress within the current one."""
        within = Text(self.progress.text(), "dim", overflow="ellipsis", no_wrap=True)
        return Group(*(self._panel() if self.history else ()), within)

    def _panel(self) -> list[RenderableType]:
        m = self.history[-1]
        table = Table(box=None, padding=(0, 1), show_header=True, header_style="bold")
        cells = {
            "step": f"{m['step']:.0f}",
            "done": f"{self.steps_done}/{self.steps}",
            "reward": f"{m['reward/mean']:.3f}",
            "correct": f"{m['correct']:.1%}",
            "well-formed": f"{m['well_formed']:.1%}",
            "tokens": f"{m['completions/mean_length']:.0f}",
            "self-check": f"{m['reflection/self_check_rate']:.1%}",
            "KL": f"{m.get('kl', 0):.4f}",
            "speed": speed(m["tokens_per_second"]),
            "left": clock(self._seconds_left()),
        }
        for name in cells:
            table.add_column(name, justify="right", no_wrap=True)
        table.add_row(*cells.values())
        evals = [line for line in self.history if "validation/pass@1" in line]
        selection = "  ".join(f"{line['step'] + 1:.0f}: {line['validation/pass@1']:.1%}" for line in evals[-6:])
        return [
            ProgressBar(total=self.steps, completed=m["step"] + 1, width=60),
            table,
            Text(f"correct  {sparkline([line['correct'] for line in self.history])}"),
            Text(f"pass@1 on validation problems by steps done  {selection}" if selection else ""),
            Text(
                f"a completion: {' '.join(escape_controls(self._example).split())}",
                "dim",
                overflow="ellipsis",
                no_wrap=True,
            ),
        ]
