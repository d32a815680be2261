"""Progress inside a step: its text, how often a log gets a line, and that no number depends on it."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from reasoner.progress import Progress, SampleCount
from tests.fixtures.tiny import tiny_model
from tests.fixtures.toys import config, make_trainer, random_groups, take_step


class Seconds:
    """A clock that moves only when it is set."""

    def __init__(self) -> None:
        self.at = 0.0

    def __call__(self) -> float:
        return self.at


def test_text_has_title_counts_tokens_speed_and_time_left():
    now = Seconds()
    progress = Progress(now=now)
    assert progress.text() == ""
    progress.begin("step 3/40")
    samples = SampleCount(progress, 256)
    now.at = 16.0
    samples.on_decode_step(lambda: (64, 12_320))
    progress.count("graded", 32, 256)
    assert progress.text() == (
        "step 3/40: sampled 64/256 completions, 12,320 tokens, 770 tok/s, 0:48 left; graded 32/256"
    )
    samples.add(256, sampled=256, tokens=40_000)
    progress.begin("step 4/40")
    assert progress.text() == ""


def test_cached_completions_count_as_done_but_not_for_speed():
    now = Seconds()
    progress = Progress(now=now)
    samples = SampleCount(progress, 100)
    samples.add(50, sampled=0, tokens=0)
    now.at = 20.0
    samples.on_decode_step(lambda: (10, 400))
    assert progress.text() == "sampled 60/100 completions, 400 tokens, 20 tok/s, 1:20 left"


def test_tick_counts_at_most_four_times_a_second():
    now, calls = Seconds(), []
    samples = SampleCount(Progress(now=now), 4)

    def counted() -> tuple[int, int]:
        calls.append(now.at)
        return 0, 1

    for hundredth in range(200):
        now.at = hundredth / 100
        samples.on_decode_step(counted)
    assert 7 <= len(calls) <= 8


@pytest.mark.parametrize(
    ("step_seconds", "num_steps", "expected"),
    [
        (2, 60, []),  # the embedded base on a quick machine
        (9, 40, []),
        (25, 4, [10.0]),  # only the first step shows progress
        (100, 2, [10.0, 40.0, 70.0, 129.0, 159.0, 189.0]),
    ],
)
def test_log_gets_lines_only_for_slow_steps(step_seconds, num_steps, expected):
    now, lines = Seconds(), []
    progress = Progress(lambda line: lines.append((now.at, line)), now=now)
    for step in range(num_steps):
        progress.begin(f"step {step + 1}")
        for second in range(step_seconds):
            now.at = float(step * step_seconds + second)
            progress.count("learnt", second, step_seconds)
        progress.line_printed()  # the step's own
    assert [at for at, _ in lines] == expected
    assert all(line.startswith("step ") and "learnt" in line for _, line in lines)


class SpiedProgress(Progress):
    """Progress that keeps every count."""

    def __init__(self, calls):
        super().__init__()
        self.calls = calls

    def count(self, name, done, total, *, rest=""):
        self.calls.append((name, done, total))


def test_progress_counts_micro_batches_without_changing_weights():
    reference = tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False)
    weights, calls = [], []
    for progress in (Progress(), SpiedProgress(calls)):
        own = make_trainer(config(beta=0.1, micro=40), reference=reference)
        own.progress = progress
        take_step(own, random_groups())
        weights.append([parameter.detach().clone() for parameter in own.policy.parameters()])
    assert all(torch.equal(one, other) for one, other in zip(*weights, strict=True))
    for name in ("log-probabilities", "trained"):
        counts = [(done, total) for what, done, total in calls if what == name]
        assert len(counts) > 2 and counts[-1] == (20, 20)
        assert [done for done, _ in counts] == sorted({done for done, _ in counts})


_SHOWING = """
import time
from reasoner.progress import shown_progress
with shown_progress() as progress:
    progress.begin("gsm8k, sampled")
    progress.count("sampled", 3, 8)
    time.sleep(1.5)
    print("the table")
"""


_TRAINING = """
import sys, time
from pathlib import Path
from reasoner.trainer.metrics_logger import MetricsLogger
with MetricsLogger(Path(sys.argv[1]), steps=9, start=0) as journal:
    journal.progress.begin("gsm8k, sampled")
    journal.progress.count("sampled", 3, 8)
    time.sleep(1.5)
    names = ("reward/mean", "correct", "well_formed", "completions/mean_length", "reflection/self_check_rate")
    shares = dict.fromkeys(names, 0.5)
    journal.write({"step": 0, **shares}, {"tokens_per_second": 0.5}, example="so")
    print("the table")
"""


@pytest.mark.parametrize("program", [_SHOWING, _TRAINING], ids=["alone", "journal"])
def test_terminal_shows_live_line_and_piped_output_stays_clean(program, tmp_path):
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path)], stdout=subprocess.PIPE, stderr=theirs, env=env, text=True,
        check=True, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    os.close(theirs)
    terminal_output = _read_all(ours)
    os.close(ours)
    assert process.stdout == "the table\n"
    assert "gsm8k, sampled: sampled 3/8" in terminal_output and "the table" not in terminal_output
    assert ("30.0 tok/min" in terminal_output) is (program is _TRAINING)


def _read_all(terminal: int) -> str:
    """Everything that was written to a pseudo-terminal whose other end is closed; one read returns only a part."""
    output = b""
    with contextlib.suppress(OSError):  # Linux reports the end as an error
        while part := os.read(terminal, 100_000):
            output += part
    return output.decode()


def test_quick_work_logs_no_line():
    process = subprocess.run(
        [sys.executable, "-c", _SHOWING], capture_output=True, text=True, check=True, cwd=Path(__file__).parents[1]
    )
    assert (process.stdout, process.stderr) == ("the table\n", "")


def test_counts_are_read_while_they_are_changed():
    """A signal that comes in the middle of count() prints beside the display, whose thread reads the counts."""
    readers = []

    def read():
        readers.append(threading.Thread(target=progress.text, daemon=True))
        readers[-1].start()
        readers[-1].join(10)
        return 0.0

    progress = Progress(now=lambda: 0.0)
    progress.now = read
    progress.count("sampled", 1, 2)
    assert [reader.is_alive() for reader in readers] == [False]
