"""The state of a pipeline: runs/NAME/pipeline.json, written whole after every change."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from reasoner.pipelines.stages import Stage
from reasoner.runs.json_files import (
    FLAG,
    NUMBER,
    OBJECT,
    TEXT,
    TEXTS,
    Kind,
    check,
    check_each,
    read_object,
    write_json,
)

FILE = "pipeline.json"
FORMAT = 1

WAITING, RUNNING, DONE, STOPPED = "waiting", "running", "done", "stopped"  # states of a stage

_STATE = Kind("waiting, running, done or stopped", lambda value: value in (WAITING, RUNNING, DONE, STOPPED))
_LIST = Kind("a list", lambda value: isinstance(value, list))
_ESTIMATES = ("pass@1", "greedy", "tokens", "accuracy")
_COUNTS = ("sampled_tokens", "examples", "pairs")
_FIGURES = {
    **dict.fromkeys((*_ESTIMATES, "before"), OBJECT),
    **dict.fromkeys(_COUNTS, NUMBER),
}


@dataclass(frozen=True, slots=True)
class StageRecord:
    """What is recorded of a stage."""

    name: str
    part: str
    command: tuple[str, ...]
    run: str  # name of its run; empty without one
    model: str  # that the command names
    is_control: bool
    state: str = WAITING
    minutes: float = 0.0  # that its command took, all attempts together
    figures: Mapping[str, Any] = field(default_factory=dict)  # of its run: reasoner.pipelines.figures


@dataclass(frozen=True, slots=True)
class PipelineState:
    """A pipeline: its recipe, the settings it was started with, its stages in order."""

    recipe: str
    settings: Mapping[str, Any]
    stages: tuple[StageRecord, ...]

    def with_stage(self, name: str, **changes: Any) -> PipelineState:
        """The state with other values of a stage."""
        stages = (replace(one, **changes) if one.name == name else one for one in self.stages)
        return replace(self, stages=tuple(stages))

    def sampled_tokens(self, before: str) -> int:
        """The tokens that the stages before one have sampled, controls left out."""
        names = [one.name for one in self.stages]
        stages = self.stages[: names.index(before)]
        return sum(int(one.figures.get("sampled_tokens", 0)) for one in stages if not one.is_control)


def new_record(stage: Stage) -> StageRecord:
    """The record of a stage that has not begun."""
    run = stage.run.name if stage.run is not None else ""
    return StageRecord(stage.name, stage.part, stage.command, run, stage.model, stage.is_control)


def continue_records(old: Sequence[StageRecord], stages: Iterable[Stage]) -> tuple[StageRecord, ...]:
    """The records of the stages, for those that have begun as they are, but for settings that may change when a run is
    resumed. ValueError where one had another command, and where one is left out.
    """
    begun_stages = {one.name: one for one in old if one.state != WAITING}
    records = []
    for stage in stages:
        before = begun_stages.pop(stage.name, None)
        if before is not None and before.command != stage.command:
            if before.state == DONE or not stage.continues(before.command):
                raise ValueError(_other_command(before, stage))
            before = replace(before, command=stage.command)
        records.append(before or new_record(stage))
    if begun_stages:
        raise ValueError(f"stage {next(iter(begun_stages))} has begun, and these settings leave it out")
    return tuple(records)


def _other_command(before: StageRecord, stage: Stage) -> str:
    now = "is done, and was given" if before.state == DONE else "has begun with"
    return (
        f"stage {stage.name} {now} other settings; choose another --name, or give the same (STAGE:SETTING=VALUE "
        f"changes one stage). It was: reasoner {shlex.join(before.command)}   "
        f"It is: reasoner {shlex.join(stage.command)}"
    )


def write_state(folder: Path, state: PipelineState) -> None:
    """Replace the file of the state."""
    write_json(folder / FILE, {"format": FORMAT, **asdict(state)})


def read_state(folder: Path) -> PipelineState | None:
    """The state of the pipeline in a folder; None where there is none. ValueError that says what is damaged in it."""
    path = folder / FILE
    stored = read_object(path, {"format": NUMBER, "recipe": TEXT, "settings": OBJECT, "stages": _LIST})
    if not stored:
        return None
    if stored["format"] != FORMAT:
        raise ValueError(f"{path} has the format {stored['format']}; this version reads {FORMAT}")
    return PipelineState(stored["recipe"], stored["settings"], tuple(_record(path, one) for one in stored["stages"]))


def _record(path: Path, value: Any) -> StageRecord:
    texts = dict.fromkeys(("name", "part", "run", "model"), TEXT)
    needs = {**texts, "command": TEXTS, "is_control": FLAG, "state": _STATE, "minutes": NUMBER, "figures": OBJECT}
    own = check(value, f"a stage of {path}", needs)
    _check_figures(path, own["figures"])
    return StageRecord(**{name: own[name] for name in needs} | {"command": tuple(own["command"])})


def _check_figures(path: Path, figures: Mapping[str, Any]) -> None:
    """ValueError where a figure is not of its kind."""
    where = f"a stage of {path}"
    check(dict(figures), where, {}, _FIGURES)
    for side in (figures, figures.get("before", {})):
        estimates = {name: side[name] for name in _ESTIMATES if name in side}
        check_each(estimates, where, dict.fromkeys(("value", "low", "high"), NUMBER))
