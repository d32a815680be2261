"""Run a pipeline: each stage is a process of an ordinary command, and what is complete is never run again.

A stage that was killed is continued by its command's own --resume. A stage's run may still be held by the process of a
pipeline that was killed; the next one waits for it.
"""

from __future__ import annotations

import shlex
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import FrameType
from typing import Any

from reasoner.console import log, print_result
from reasoner.pipelines.figures import read_figures, table
from reasoner.pipelines.stages import SAMPLED_TOKENS, Stage
from reasoner.pipelines.state import (
    DONE,
    RUNNING,
    STOPPED,
    WAITING,
    PipelineState,
    StageRecord,
    continue_records,
    read_state,
    write_state,
)
from reasoner.runs.io import write_text
from reasoner.runs.run_dir import is_unused
from reasoner.runs.run_start import lock_run_dir
from reasoner.runtime import end_with_parent, stop_signals

REASONER = (sys.executable, "-m", "reasoner")
_RECORD_SECONDS = 10.0  # between two records of a running stage's minutes


def run_pipeline(
    folder: Path,
    stages: Sequence[Stage],
    *,
    recipe: str,
    settings: Mapping[str, Any],
    program: Sequence[str] = REASONER,
) -> int:
    """Run the stages of a pipeline, or those that are left, and print the table of their results.

    `recipe` and `settings` are for the record. `program`: what runs a command, whose words follow. Returns the exit
    status of the stage that failed or was stopped, else 0. ValueError where a stage that has begun had another command,
    where the run folder of one that has not begun is in use, and while another process runs the pipeline.
    """
    with lock_run_dir(folder):
        state = PipelineState(recipe, settings, check_records(folder, stages))
        write_state(folder, state)
        for number, stage in enumerate(stages, 1):
            record = state.stages[number - 1]
            title = f"stage {number} of {len(stages)}, {stage.part}: {stage.name}"
            if record.state == DONE:
                log(f"{title} is done")
                continue
            log(f"\n{title}")
            state, status = _run_stage(folder, state, stage, program)
            if status:
                log(f"reasoner: stage {stage.name} ended with status {status}; the same command goes on with it")
                return status
        text = table(state)
        write_text(folder / "table.txt", text + "\n")
        print_result(f"\n{text}")
    return 0


def check_records(folder: Path, stages: Sequence[Stage]) -> tuple[StageRecord, ...]:
    """The records of the stages, those that have begun as they are in the folder. ValueError as run_pipeline() says."""
    before = read_state(folder)
    records = continue_records(before.stages if before else (), stages)
    for stage, record in zip(stages, records, strict=True):
        if record.state == WAITING:
            _check_run_is_free(stage)
    return records


def _run_stage(folder: Path, state: PipelineState, stage: Stage, program: Sequence[str]) -> tuple[PipelineState, int]:
    """Run the command of a stage: (the state after it, its exit status)."""
    if stage.run is not None:
        wait_until_unlocked(stage.run)
    before = next(one for one in state.stages if one.name == stage.name)
    has_begun = before.state != WAITING
    if not has_begun:
        _check_run_is_free(stage)
    tokens = str(state.sampled_tokens(stage.name))
    command = stage.next_command() if has_begun else stage.command
    words = [tokens if word == SAMPLED_TOKENS else word for word in command]
    log(f"$ reasoner {shlex.join(words)}\n")
    minutes, start = before.minutes, time.monotonic()

    def record(stage_state: str, **changes: object) -> PipelineState:
        spent = minutes + (time.monotonic() - start) / 60
        state_now = state.with_stage(stage.name, state=stage_state, minutes=round(spent, 3), **changes)
        write_state(folder, state_now)
        return state_now

    record(RUNNING)  # before the command: a run that it has begun is this stage's own
    status = _run_command([*program, *words], lambda: record(RUNNING))
    if status:
        return record(STOPPED), status
    return record(DONE, figures=read_figures(stage.run) if stage.run is not None else {}), 0


def _check_run_is_free(stage: Stage) -> None:
    """ValueError where the folder of a stage's run holds another run, which would be taken for the stage's own."""
    if stage.run is not None and stage.run.exists() and not is_unused(stage.run):
        raise ValueError(
            f"stage {stage.name} has not begun, and the folder of its run, {stage.run}, is in use: delete it (reasoner "
            "runs rm), or choose another --name"
        )


def _run_command(words: Sequence[str], on_wait: Callable[[], object]) -> int:
    """Run a program to its end; `on_wait` is called from time to time. Returns its exit status, 128 + N for signal N.

    The program has a process group of its own, so a signal reaches it once: from here. It ends when this process dies.
    What it prints goes to sys.stdout of this process, which --json redirects to standard error.
    """
    with forward_signals() as forward_to:
        process = subprocess.Popen(words, stdout=sys.stdout, process_group=0, preexec_fn=end_with_parent)
        forward_to(process)
        while True:
            on_wait()
            try:
                status = process.wait(timeout=_RECORD_SECONDS)
            except subprocess.TimeoutExpired:
                continue
            return status if status >= 0 else 128 - status


@contextmanager
def forward_signals() -> Iterator[Callable[[subprocess.Popen[bytes]], None]]:
    """A block in which signals that end a program go to the process that is named by a call, also those before it."""
    processes: list[subprocess.Popen[bytes]] = []
    early: list[int] = []

    def forward(number: int, frame: FrameType | None) -> None:
        for process in processes:
            process.send_signal(number)
        if not processes:
            early.append(number)

    def forward_to(process: subprocess.Popen[bytes]) -> None:
        processes.append(process)
        for number in early:
            process.send_signal(number)

    handlers = {number: signal.signal(number, forward) for number in stop_signals()}
    try:
        yield forward_to
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def wait_until_unlocked(run_dir: Path) -> None:
    """Return when no process holds the lock of a run's folder."""
    is_reported = False
    while run_dir.is_dir():
        try:
            with lock_run_dir(run_dir):
                return
        except ValueError:
            if not is_reported:
                log(f"waiting for the process that still trains {run_dir}")
            is_reported = True
