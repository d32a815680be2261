"""The stages of a pipeline, and its file runs/NAME/pipeline.json."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from reasoner.runs.json_files import FLAG, NUMBER, OBJECT, TEXT, Kind, check, is_number, read_object, write_json
from reasoner.runs.run_dir import is_unused

FILE = "pipeline.json"
FORMAT = 3
_LIST = Kind("a list", lambda value: isinstance(value, list))
_ESTIMATE = Kind(
    "an estimate with an interval",
    lambda value: isinstance(value, dict) and all(is_number(value.get(name)) for name in ("value", "low", "high")),
)
_RESULTS = {
    **dict.fromkeys(("pass@1", "greedy", "accuracy"), _ESTIMATE),
    **dict.fromkeys(("minutes", "sampled_tokens", "examples", "pairs", "tokens", "well_formed"), NUMBER),
}


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
    def has_begun(self) -> bool:
        return not is_unused(Path(self.output)) if self.run else Path(self.output).is_file()

    @property
    def values(self) -> Mapping[str, Any]:
        """The arguments, with those in `settings` by their keys."""
        return {**self.arguments, **self.arguments.get("settings", {})}


@dataclass(frozen=True, slots=True)
class PipelineState:
    """A pipeline: the settings of its recipe, its stages in order."""

    settings: Mapping[str, Any] = field(default_factory=dict)
    stages: Sequence[Stage] = ()


def write_state(folder: Path, state: PipelineState) -> None:
    write_json(folder / FILE, {"format": FORMAT, **asdict(state)})


def read_state(folder: Path) -> PipelineState:
    """The state of the pipeline in a folder; empty where there is none. ValueError that says what is damaged in it."""
    path = folder / FILE
    stored = read_object(path, {"format": NUMBER, "settings": OBJECT, "stages": _LIST})
    if not stored:
        return PipelineState()
    if stored["format"] != FORMAT:
        raise ValueError(f"{path} has the format {stored['format']}; this version reads {FORMAT}")
    return PipelineState(stored["settings"], tuple(_stage(one, f"a stage of {path}") for one in stored["stages"]))


def _stage(value: Any, where: str) -> Stage:
    needs = {"name": TEXT, "function": TEXT, "arguments": OBJECT, "run": TEXT, "is_control": FLAG}
    own = check(value, where, needs)
    if (results := own.get("results")) is not None:
        check(check(results, where, {}, _RESULTS).get("before", {}), where, {}, _RESULTS)
    return Stage(**{name: own[name] for name in needs}, results=results)
