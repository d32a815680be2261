"""Run a pipeline: the calls of its plan in order. What is done is never called again, and what has begun is resumed."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from inspect import signature
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from reasoner.console import log, print_result
from reasoner.recipes.plan import Plan
from reasoner.recipes.results import read_results, sampled_tokens, table
from reasoner.recipes.stages import PipelineState, Stage, read_state, write_state
from reasoner.runs.io import write_text
from reasoner.runs.run_dir import is_unused
from reasoner.runs.run_start import lock_run_dir
from reasoner.runs.run_state import is_live
from reasoner.runtime import end_with_parent, set_environment, stop_signals


def run_pipeline(plan: Plan, *, recipe: str, settings: Mapping[str, Any]) -> None:
    """Run the stages of a pipeline that are left, and print the table of their results.

    `recipe` and `settings` are for the record. ValueError as stages_to_run() says, and while another process runs it.
    """
    with lock_run_dir(plan.folder):
        stages = stages_to_run(plan)
        write_state(plan.folder, PipelineState(recipe, settings, stages))
        for number, stage in enumerate(stages):
            title = f"stage {number + 1} of {len(stages)}: {stage.name}"
            if stage.results is not None:
                log(f"{title} is done")
                continue
            log(f"\n{title}\n{stage.call}\n")
            try:
                _run_stage(plan.functions[stage.function], stage, stages[:number])
            except BaseException:
                log(f"reasoner: stage {stage.name} has not ended; the same command goes on with it")
                raise
            stages[number] = replace(stage, results=read_results(Path(stage.output)) if stage.run else {})
            write_state(plan.folder, PipelineState(recipe, settings, stages))
        text = table(stages)
        write_text(plan.folder / "table.txt", text + "\n")
        print_result(f"\n{text}")


def stages_to_run(plan: Plan) -> list[Stage]:
    """The stages of the plan, and which of them are done.

    ValueError where a stage that is done was called otherwise, where one that has begun would lose a setting (any other
    change is for the function to refuse that resumes it) or is left out, and where the folder of one that has not begun
    holds another run, which would be taken for its own.
    """
    state = read_state(plan.folder)
    before = {stage.name: stage for stage in state.stages} if state else {}
    stages = []
    for stage in plan.stages:
        was = before.pop(stage.name, None)
        if was is None and _has_begun(stage):
            raise ValueError(
                f"stage {stage.name} has not begun, and {stage.output} is in use: delete it, or choose another --name"
            )
        if was is None or not _has_begun(was):
            stages.append(stage)
            continue
        is_changed = was.results is not None and was.arguments != stage.arguments
        if is_changed or was.values.keys() - stage.values.keys():
            raise ValueError(
                f"stage {stage.name} has begun with other settings; choose another --name, or give the same "
                f"(STAGE:SETTING=VALUE changes one stage). It was: {was.call}   It is: {stage.call}"
            )
        stages.append(replace(stage, results=was.results))
    if lost := [name for name, stage in before.items() if _has_begun(stage)]:
        raise ValueError(f"stage {lost[0]} has begun, and these settings leave it out")
    return stages


def _has_begun(stage: Stage) -> bool:
    path = Path(stage.output)
    return not is_unused(path) if stage.run else path.is_file()


def _run_stage(function: Callable[..., object], stage: Stage, before: Sequence[Stage]) -> None:
    """Call the function of a stage, or let it resume its run."""
    arguments, run_dir = dict(stage.arguments), Path(stage.output)
    if stage.is_control:
        arguments["settings"] = {**arguments["settings"], "max_train_tokens": sampled_tokens(before)}
    if "resume" in signature(function).parameters:
        arguments["resume"] = (run_dir / "config.json").is_file()
    if stage.run and is_live(run_dir):
        log(f"waiting for the process that still trains {run_dir}")  # that of a pipeline that was killed
        while is_live(run_dir):
            time.sleep(0.1)
    in_own_process(function, **arguments)


def in_own_process(function: Callable[..., object], **arguments: Any) -> None:
    """Call a function in a process of its own. Its errors are raised here, and the signals that end a program go there.

    Why a process for each stage: what torch and vLLM hold of a GPU's memory they return for certain only when their
    process ends, and a switch of torch that one stage has set must not reach the next.
    """
    context = get_context("spawn")
    with (
        ProcessPoolExecutor(1, context, initializer=_enter_process, initargs=(os.getpid(),)) as pool,
        _signals_to(pool.submit(os.getpid).result()),
    ):
        pool.submit(function, **arguments).result()


def _enter_process(parent: int) -> None:
    """Begin a stage's process: it ends with its parent, signals of the terminal do not reach it twice, and standard
    output is left to the pipeline.
    """
    end_with_parent()
    if os.getppid() != parent:
        os._exit(1)
    os.setpgid(0, 0)
    sys.stdout = sys.stderr
    set_environment()


@contextmanager
def _signals_to(pid: int) -> Iterator[None]:
    """A block in which the signals that end a program go to another process."""
    handlers = {number: signal.signal(number, lambda number, _: os.kill(pid, number)) for number in stop_signals()}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)
