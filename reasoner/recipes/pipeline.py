"""A pipeline: the calls that a recipe makes of the Python API, with the changes of --set.

All of them are checked before the first one. Then they run in order, each in a process of its own: what is done is
never called again, and what has begun is resumed.
"""

from __future__ import annotations

import json
import os
import re
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence, Set
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import cache
from inspect import signature
from multiprocessing import get_context
from pathlib import Path
from typing import Any

from data.registry import check as check_problems
from data.registry import hub_sources
from reasoner.api.calls import ARGUMENTS
from reasoner.api.stages import finetune, problems_to_sample, sample, train_reward_model
from reasoner.api.training import RunCall, train
from reasoner.config.resolve import check_types, parse, unknown_setting_error, with_values
from reasoner.config.schema import settings
from reasoner.config.stages import STAGES, is_used
from reasoner.console import log, print_result
from reasoner.models.resolve import resolve_cached_model
from reasoner.recipes.results import read_results, sampled_tokens, table
from reasoner.recipes.stages import PipelineState, Stage, read_state, write_state
from reasoner.runs.io import write_text
from reasoner.runs.run_start import lock_run_dir
from reasoner.runs.run_state import is_live
from reasoner.runtime import end_with_parent, set_environment, stop_signals
from reasoner.sft.sources import SEPARATOR, check_source
from reasoner.trainer.preflight import preflight

Function = Callable[..., object]
# Functions that train, and their stages of training.
TRAINING: dict[Function, str] = {train: "rl", finetune: "sft", train_reward_model: "reward-model"}
_SETS = {"validation.interval": "validation.data", "eval.heldout_problems": "eval.heldout"}  # what 0 leaves unused
_OF_PIPELINE = ("name", "runs", "out", "resume", "settings")  # arguments that are not changed by name


class Pipeline:
    """The stages that a recipe adds. Their runs are NAME-STAGE in the folder `runs`. `settings` are those of the
    recipe, which are kept beside the stages; `changes`: texts of --set.
    """

    def __init__(self, name: str, runs: Path, settings: Mapping[str, Any], changes: Sequence[str] = ()) -> None:
        if "/" in name or name.startswith("."):
            raise ValueError(f"--name is {name!r}; it must be a plain name (the folder is --runs)")
        self.folder, self.runs, self.settings = runs / name, runs, settings
        self.changes = [_parse_change(text) for text in changes]
        self.stages: list[Stage] = []
        self.functions: dict[str, Function] = {}  # by name

    @property
    def state(self) -> PipelineState:
        return PipelineState(self.settings, tuple(self.stages))

    def run(self, stage: str, function: Function, *, is_control: bool = False, **arguments: Any) -> str:
        """Add a call that makes the run NAME-STAGE, and return the folder of that run."""
        run = f"{self.folder.name}-{stage}"
        return self._add(stage, function, arguments | {"name": run, "runs": str(self.runs)}, run, is_control)

    def file(self, stage: str, function: Function, *, out: str, **arguments: Any) -> str:
        """Add a call that writes a file in the folder of the pipeline, and return its path."""
        return self._add(stage, function, arguments | {"out": str(self.folder / out)})

    def _add(
        self, name: str, function: Function, arguments: dict[str, Any], run: str = "", is_control: bool = False
    ) -> str:
        own = [one for one in self.changes if one[0] == name or (not one[0] and _has_use(function, one[1]))]
        off = {_SETS.get(key) for _, key, text in own if text == "0"}  # a set without effect would be refused
        if values := arguments.get("settings"):
            arguments["settings"] = {key: value for key, value in values.items() if key not in off}
        for _, key, text in own:
            _change(arguments, key, text, name, function)
        self.stages.append(Stage(name, function.__name__, arguments, run, is_control))
        self.functions[function.__name__] = function
        return self.stages[-1].output

    def check(self, *, download: bool) -> None:
        """ValueError, which names the stage, for what would be refused hours later: settings, models, problems and
        examples that its function cannot use, and what does not go on with stages that have begun. What the stages
        themselves make is left unchecked, and without `download` so are problems of the hub.
        """
        names, outputs = [stage.name for stage in self.stages], {stage.output for stage in self.stages}
        if unknown := [place for place, _, _ in self.changes if place not in ("", *names)]:
            raise ValueError(f"there is no stage {unknown[0]!r}; there are {', '.join(names)}")
        check_set = cache(check_problems)  # of many stages
        for stage in self.stages:
            function, arguments = self.functions[stage.function], stage.arguments
            try:
                if (model := arguments.get("model", "base")) not in outputs:
                    resolve_cached_model(model, runs=self.runs)
                if function is sample and (download or not hub_sources(arguments["data"])):
                    problems_to_sample(arguments["data"], skip=arguments["skip"], number=1)
                if function in TRAINING:
                    self._check_training(function, arguments, outputs, check_set)
            except ValueError as error:
                raise ValueError(f"stage {stage.name}: {error}") from None
        self._take_over()

    def _check_training(
        self, function: Function, arguments: Mapping[str, Any], outputs: Set[str], check_set: Callable[..., None]
    ) -> None:
        """Check as the start of the run would, with the recipe's first model in place of those of other stages."""
        stage, data = TRAINING[function], str(arguments["data"])
        keys = {"data": STAGES[stage].source, "validation_data": "validation.data", "algo": "algo.name"}
        values = {keys.get(name, name): value for name, value in arguments.items()}
        values = {key: value for key, value in values.items() if key in settings()} | arguments.get("settings", {})
        check_types(values, Path(function.__name__))
        from_stages = [key for key, value in values.items() if outputs & {value, *re.split("[,=]", str(value))}]
        call = RunCall(function.__name__, stage, None, self.runs, arguments.get("preset"))
        resolved, run_dir = call.start(values | dict.fromkeys(from_stages, self.stages[0].arguments["model"]))
        call.check_single_process(resolved.config)
        scorers = dict.fromkeys((key for key in from_stages if key not in ("model", keys["data"])), "")
        cfg = with_values(resolved, scorers, origin="").config
        preflight(cfg, run_dir, download=False, with_source=False, check_set=check_set)
        for source in data.split(SEPARATOR) if stage == "sft" else ():
            if source not in outputs and not any(own.run and own.run in source for own in self.stages):
                check_source(source, self.runs)

    def _take_over(self) -> None:
        """Take over from the file of the pipeline which stages are done.

        ValueError where a stage that is done was called otherwise, where one that has begun would lose a setting (any
        other change is for the function to refuse that resumes it) or is left out, where the folder of one that has not
        begun holds another run, which would be taken for its own, and for training problems that have changed.
        """
        state = read_state(self.folder)
        before = {stage.name: stage for stage in state.stages}
        for number, stage in enumerate(self.stages):
            was = before.pop(stage.name, None)
            if was is None and stage.has_begun:
                raise ValueError(
                    f"stage {stage.name} has not begun, and {stage.output} is in use: delete it, or choose another "
                    "--name"
                )
            if was is None or not was.has_begun:
                continue
            is_changed = was.results is not None and was.arguments != stage.arguments
            if is_changed or was.values.keys() - stage.values.keys():
                raise ValueError(
                    f"stage {stage.name} has begun with other settings; choose another --name, or give the same "
                    f"(STAGE:SETTING=VALUE changes one stage). It was: {was.call}   It is: {stage.call}"
                )
            self.stages[number] = replace(stage, results=was.results)
        if lost := [name for name, stage in before.items() if stage.has_begun]:
            raise ValueError(f"stage {lost[0]} has begun, and these settings leave it out")
        (data, old), (own, new) = ((one.get("data"), one.get("data_sha256")) for one in (state.settings, self.settings))
        if data == own and old and new and old != new:
            raise ValueError(
                f"the problems of {data} have changed since the pipeline in {self.folder} began: restore them, or "
                "choose another --name"
            )

    def start(self) -> None:
        """Run the stages that are left, and print the table of their results.

        ValueError as check() says of stages that have begun, and while another process runs the pipeline.
        """
        with lock_run_dir(self.folder):
            self._take_over()
            write_state(self.folder, self.state)
            for number, stage in enumerate(self.stages):
                title = f"stage {number + 1} of {len(self.stages)}: {stage.name}"
                if stage.results is not None:
                    log(f"{title} is done")
                    continue
                log(f"\n{title}\n{stage.call}\n")
                try:
                    self._call(stage, self.stages[:number])
                except BaseException:
                    log(f"reasoner: stage {stage.name} has not ended; the same command goes on with it")
                    raise
                self.stages[number] = replace(stage, results=read_results(Path(stage.output)) if stage.run else {})
                write_state(self.folder, self.state)
            text = table(self.stages)
            write_text(self.folder / "table.txt", text + "\n")
            print_result(f"\n{text}")

    def _call(self, stage: Stage, before: Sequence[Stage]) -> None:
        """Call the function of a stage, or let it resume its run."""
        function, arguments, run_dir = self.functions[stage.function], dict(stage.arguments), Path(stage.output)
        if stage.is_control:
            arguments["settings"] = {**arguments["settings"], "max_train_tokens": sampled_tokens(before)}
        if "resume" in signature(function).parameters:
            arguments["resume"] = (run_dir / "config.json").is_file()
        if stage.run and is_live(run_dir):
            log(f"waiting for the process that still trains {run_dir}")  # that of a pipeline that was killed
            while is_live(run_dir):
                time.sleep(0.1)
        in_own_process(function, **arguments)


def _parse_change(text: str) -> tuple[str, str, str]:
    """(stage, key, value) of [STAGE:]SETTING=VALUE; the stage may be empty. ValueError for another text."""
    place, equals, value = text.partition("=")
    stage, _, key = place.rpartition(":")
    if not equals or not key:
        raise ValueError(f"{text!r} is no change of a setting; write SETTING=VALUE or STAGE:SETTING=VALUE")
    if not stage and key not in settings():
        raise unknown_setting_error(key)
    return stage, key, value


def _has_use(function: Function, key: str) -> bool:
    """Whether a change that names no stage is for the calls of a function."""
    return is_used(key, TRAINING[function]) if function in TRAINING else function is sample and key == "threads"


def _change(arguments: dict[str, Any], key: str, text: str, stage: str, function: Function) -> None:
    """Change an argument of a call, or one of its settings. ValueError for what the function does not take."""
    name, parameters = ARGUMENTS.get(key, key.replace("-", "_")), signature(function).parameters
    value: object = text
    if key in settings():
        value = parse(settings()[key], text)
    else:
        with suppress(ValueError):
            value = json.loads(text)
    if name not in parameters and "settings" in parameters and key in settings():
        arguments["settings"] = {**arguments.get("settings", {}), key: value}
    elif name in parameters and name not in _OF_PIPELINE:
        arguments[name] = value
    else:
        raise ValueError(f"stage {stage}: {function.__name__} takes no {key!r}")


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
