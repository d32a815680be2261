"""The stages of a pipeline, and its file runs/NAME/pipeline.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from reasoner.runs.json_files import FLAG, NUMBER, OBJECT, TEXT, Kind, check, check_each, read_object, write_json

FILE = "pipeline.json"
FORMAT = 2
ESTIMATES = ("pass@1", "greedy", "tokens", "accuracy")  # results with an interval
COUNTS = ("minutes", "sampled_tokens", "examples", "pairs")
_LIST = Kind("a list", lambda value: isinstance(value, list))


@dataclass(frozen=True, slots=True)
class Stage:
    """A call of the Python API that makes a run, or of a function that writes a file."""

    name: str
    function: str
    arguments: Mapping[str, Any]
    run: str = ""  # name of the run that it makes; empty: it writes the file arguments["out"]
    is_control: bool = False  # RL with as many sampled tokens as all stages before it but controls
    results: Mapping[str, Any] | None = None  # of reasoner.recipes.results; None until it is done

    @property
    def call(self) -> str:
        """The call as Python."""
        return f"{self.function}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"

    @property
    def output(self) -> str:
        """The folder of the run, or the file."""
        return str(Path(self.arguments["runs"]) / self.run if self.run else self.arguments["out"])

    @property
    def values(self) -> Mapping[str, Any]:
        """The arguments, with those in `settings` by their keys."""
        return {**self.arguments, **self.arguments.get("settings", {})}


@dataclass(frozen=True, slots=True)
class PipelineState:
    """A pipeline: its recipe, the settings it was started with, its stages in order."""

    recipe: str
    settings: Mapping[str, Any]
    stages: Sequence[Stage]


def write_state(folder: Path, state: PipelineState) -> None:
    write_json(folder / FILE, {"format": FORMAT, **asdict(state)})


def read_state(folder: Path) -> PipelineState | None:
    """The state of the pipeline in a folder; None where there is none. ValueError that says what is damaged in it."""
    path = folder / FILE
    stored = read_object(path, {"format": NUMBER, "recipe": TEXT, "settings": OBJECT, "stages": _LIST})
    if not stored:
        return None
    if stored["format"] != FORMAT:
        raise ValueError(f"{path} has the format {stored['format']}; this version reads {FORMAT}")
    stages = tuple(_stage(one, f"a stage of {path}") for one in stored["stages"])
    return PipelineState(stored["recipe"], stored["settings"], stages)


def _stage(value: Any, where: str) -> Stage:
    needs = {"name": TEXT, "function": TEXT, "arguments": OBJECT, "run": TEXT, "is_control": FLAG}
    own = check(value, where, needs)
    results = own.get("results")
    if results is not None:
        check(results, where, {}, dict.fromkeys((*ESTIMATES, "before"), OBJECT) | dict.fromkeys(COUNTS, NUMBER))
        for side in (results, results.get("before", {})):
            estimates = {name: side[name] for name in ESTIMATES if name in side}
            check_each(estimates, where, dict.fromkeys(("value", "low", "high"), NUMBER))
    return Stage(**{name: own[name] for name in needs}, results=results)
