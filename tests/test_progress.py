"""Progress inside a step: its text, and how often a log gets a line."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from reasoner.progress import Progress, SampleCount


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


_SHOWING = """
import time
from reasoner.progress import shown_progress
with shown_progress() as progress:
    progress.begin("gsm8k, sampled")
    progress.count("sampled", 3, 8)
    time.sleep(1.5)
    print("the table")
"""


def test_terminal_shows_live_line_and_piped_output_stays_clean():
    ours, theirs = pty.openpty()
    env = {**os.environ, "TERM": "xterm", "COLUMNS": "100"}
    process = subprocess.run(
        [sys.executable, "-c", _SHOWING], stdout=subprocess.PIPE, stderr=theirs, env=env, text=True,
        check=True, cwd=Path(__file__).parents[1],
    )  # fmt: skip
    os.close(theirs)
    terminal_output = _read_all(ours)
    os.close(ours)
    assert process.stdout == "the table\n"
    assert "gsm8k, sampled: sampled 3/8" in terminal_output and "the table" not in terminal_output


def _read_all(terminal: int) -> str:
    """Everything that was written to a pseudo-terminal whose other end is closed; one read returns only a part."""
    output = b""
    with contextlib.suppress(OSError):  # Linux reports the end as an error
        while part := os.read(terminal, 100_000):
            output += part
    return output.decode()


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
