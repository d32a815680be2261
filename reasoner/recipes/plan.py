"""The plan of a pipeline: the calls that a recipe makes, with the changes of --set, checked before the first one."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from inspect import signature
from pathlib import Path
from typing import Any

from data.registry import check as check_problems
from data.registry import hub_sources, load
from reasoner.api.calls import ARGUMENTS
from reasoner.api.stages import finetune, sample, train_reward_model
from reasoner.api.training import train
from reasoner.config.resolve import parse, unknown_setting_error
from reasoner.config.schema import settings
from reasoner.config.stages import check_used, is_used
from reasoner.models.resolve import resolve_cached_model
from reasoner.recipes.stages import Stage
from reasoner.sft.sources import SEPARATOR, check_source

Function = Callable[..., object]
# Functions that train, and their stages of training.
TRAINING: dict[Function, str] = {train: "rl", finetune: "sft", train_reward_model: "reward-model"}


@dataclass(frozen=True, slots=True)
class Change:
    """A value of --set, for one stage, or without one for all stages of training that have a use for it (and
    `threads` of those that sample).
    """

    stage: str
    key: str  # a setting, or an argument of the stage's function
    text: str

    @classmethod
    def parse(cls, text: str) -> Change:
        """The change that [STAGE:]SETTING=VALUE names. ValueError for another text."""
        place, equals, value = text.partition("=")
        stage, _, key = place.rpartition(":")
        if not equals or not key:
            raise ValueError(f"{text!r} is no change of a setting; write SETTING=VALUE or STAGE:SETTING=VALUE")
        if not stage and key not in settings():
            raise unknown_setting_error(key)
        return cls(stage, key, value)

    def is_for(self, stage: str, function: Function) -> bool:
        if self.stage:
            return self.stage == stage
        if function in TRAINING:
            return is_used(self.key, TRAINING[function])
        return function is sample and self.key == "threads"


class Plan:
    """The stages of the pipeline `name`, whose runs are in the folder `runs`."""

    def __init__(self, name: str, runs: Path, changes: Sequence[Change] = ()) -> None:
        self.folder, self.runs, self.changes = runs / name, runs, changes
        self.stages: list[Stage] = []
        self.functions: dict[str, Function] = {}  # by name

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
        for change in self.changes:
            if change.is_for(name, function):
                _apply(change, name, function, arguments)
        stage = Stage(name, function.__name__, arguments, run, is_control)
        self.stages.append(stage)
        self.functions[stage.function] = function
        return stage.output

    def check(self, *, download: bool) -> None:
        """ValueError, which names the stage, for settings, models, problems and examples that its function
        would refuse hours later. What the stages themselves make is left unchecked, and without `download` so are
        problems of the hub.
        """
        names = [stage.name for stage in self.stages]
        if unknown := [change.stage for change in self.changes if change.stage not in ("", *names)]:
            raise ValueError(f"there is no stage {unknown[0]!r}; there are {', '.join(names)}")
        num_problems = cache(partial(_num_problems, download=download))
        for stage in self.stages:
            try:
                self._check_stage(stage, num_problems)
            except ValueError as error:
                raise ValueError(f"stage {stage.name}: {error}") from None

    def _check_stage(self, stage: Stage, num_problems: Callable[[str], int | None]) -> None:
        values, function = stage.values, self.functions[stage.function]
        check_used(stage.arguments.get("settings", {}), TRAINING.get(function, "rl"))
        outputs = {own.output for own in self.stages}
        if "model" in values and values["model"] not in outputs:
            resolve_cached_model(values["model"], runs=self.runs)
        if function is sample:
            total = num_problems(values["data"])
            if total is not None and total <= values["skip"]:
                raise ValueError(f"skip is {values['skip']}, and {values['data']} has {total:,} problems")
        if function is finetune:
            for source in values["data"].split(SEPARATOR):
                if source not in outputs and not any(own.run and own.run in source for own in self.stages):
                    check_source(source, self.runs)
        for key in ("data" if function is train else "", "validation.data", "eval.heldout"):
            if key in values:
                check_problems(str(values[key]))


def _apply(change: Change, stage: str, function: Function, arguments: dict[str, Any]) -> None:
    """Change an argument of a call, or one of its settings. ValueError for what the function does not take."""
    key = ARGUMENTS.get(change.key, change.key.replace("-", "_"))
    parameters: Mapping[str, object] = signature(function).parameters
    if change.key in settings():
        value = parse(settings()[change.key], change.text)
    else:
        value = change.text
        with suppress(ValueError):
            value = json.loads(change.text)
    if key not in parameters and "settings" in parameters and change.key in settings():
        arguments["settings"] = {**arguments.get("settings", {}), change.key: value}
    elif key in parameters and key not in _OF_PLAN:
        arguments[key] = value
    else:
        raise ValueError(f"stage {stage}: {function.__name__} takes no {change.key!r}")


_OF_PLAN = ("name", "runs", "out", "resume", "settings")  # arguments that are not changed by name


def _num_problems(data: str, *, download: bool) -> int | None:
    """The number of problems that a spec names. None without `download`, where they are on the hub."""
    check_problems(data)
    return len(load(data)) if download or not hub_sources(data) else None
