"""Names of environments on the command line, gym:TASK and env:NAME (docs/DATA.md), and their problems.

The library runs in a process of its own (worker.py), which also grades the responses (verifiers/pool.py).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from data.child_process import ChildProcess
from data.options import join_options, read_options, split_options
from data.problem import Problem

VERIFIER = "environment"  # Problem.verifier of all these problems
LOAD_SECONDS = 1800.0  # longest time to load an environment, which may download its data
MEMORY_MIB = 4096  # of address space, at least: libraries reserve much more than they use
SPLITS = {"gym": ("train", "validation", "heldout"), "env": ("train", "eval")}  # the first is the default
EVALUATION_SPLIT = {"gym": "heldout", "env": "eval"}
_PYTHON = "env_python"  # the parameter that names the interpreter


@dataclass(frozen=True, slots=True)
class Environment:
    """What a spec names. `name` and `python` identify it for a worker."""

    kind: str  # gym or env
    task: str
    split: str
    parameters: str  # the query without env_python: a part of the ids of problems
    python: str  # interpreter, venv or folder of `pip install --target`; "" for this interpreter

    @property
    def name(self) -> str:
        """JSON text that the worker process reads."""
        values = {key: _value(text) for key, text in parse_qsl(self.parameters, keep_blank_values=True)}
        spec = {"kind": self.kind, "name": self.task, "split": self.split, "parameters": values}
        return json.dumps(spec, sort_keys=True)


@dataclass(frozen=True, slots=True)
class EnvironmentRow:
    """The row of an environment that a problem is: the column `environment` of its problems.

    Grading starts the program that it names. So it has a type of its own, which no value in a data file has.
    """

    name: str  # Environment.name
    env_python: str  # Environment.python
    row: int
    has_turns: bool = False  # whether it answers the model, which then goes on
    tools: str = ""  # that the model may call in them: a line of JSON each, as OpenAI's interface describes tools

    @classmethod
    def of(cls, value: object) -> EnvironmentRow:
        """Read it from a mapping, as data.files writes it. ValueError for anything else."""
        if isinstance(value, Mapping) and value.keys() == {field.name for field in fields(cls)}:
            name, python, row, has_turns, tools = (value[field.name] for field in fields(cls))
            has_texts = all(isinstance(one, str) for one in (name, python, tools))
            if has_texts and type(row) is int and isinstance(has_turns, bool):
                return cls(name, python, row, has_turns, tools)
        names = ", ".join(field.name for field in fields(cls))
        raise ValueError(f"the column 'environment' is {value!r:.80}; it must have {names}")


def has_turns(problem: Problem) -> bool:
    """Whether the problem is of an environment that answers the model, in several turns."""
    place = problem.columns.get("environment")
    return isinstance(place, EnvironmentRow) and place.has_turns


def tools_of(problem: Problem) -> str:
    """The tools of the problem's environment, as EnvironmentRow.tools; "" for none."""
    place = problem.columns.get("environment")
    return place.tools if isinstance(place, EnvironmentRow) else ""


def is_environment(spec: str) -> bool:
    """Whether a spec names an environment and not a set of problems or a file."""
    return spec.partition(":")[0] in SPLITS


def parse(spec: str) -> Environment:
    """Read a spec. ValueError for a faulty one."""
    path, options = split_options(spec)
    kind, _, rest = path.partition(":")
    task, _, split = rest.partition(":")
    if not task:
        example = "gym:chain_sum" if kind == "gym" else "env:NAME"
        raise ValueError(f"{spec!r} names no environment; write {example}")
    split = split or SPLITS[kind][0]
    if split not in SPLITS[kind]:
        raise ValueError(f"{spec!r}: there is no split {split!r}; there are {', '.join(SPLITS[kind])}")
    python = read_options(spec).get(_PYTHON, "")
    parameters = "&".join(option for option in options if option and not option.startswith(f"{_PYTHON}="))
    return Environment(kind, task, split, parameters, python)


def load_environment(spec: str, limit: int | None = None, memory_mib: int = MEMORY_MIB) -> list[Problem]:
    """Load the first `limit` problems in a process with so much address space, but at least MEMORY_MIB.

    ValueError for an environment that does not exist, start or is not supported.
    """
    environment = parse(spec)
    rows = _ask(environment.python, "load", environment.name, json.dumps(limit), memory_mib=memory_mib)
    if not rows:
        raise ValueError(f"{spec!r} has no problems")
    source = join_options(f"{environment.kind}:{environment.task}", [environment.parameters])
    return [_problem(environment, source, number, row) for number, row in enumerate(rows)]


def _problem(environment: Environment, source: str, number: int, row: Mapping[str, Any]) -> Problem:
    turns = {name: row[name] for name in ("has_turns", "tools") if name in row}
    place = EnvironmentRow(environment.name, environment.python, number, **turns)
    return Problem(
        id=f"{source}/{environment.split}/{number}",
        question=row["question"],
        answer=row["answer"],
        source=source,
        split=environment.split,
        level=row.get("level"),
        subject=row["subject"],
        verifier=VERIFIER,
        columns={**row["columns"], "environment": place},
    )


def gym_tasks() -> list[tuple[str, str]]:
    """(name, curriculum levels in words) of every task of reasoning-gym. ValueError if it is not installed."""
    return [(name, about) for name, about in _ask("", "tasks", "gym")]


def worker_command(python: str, seconds: float, memory_mib: int) -> list[str]:
    """The command that starts worker.py for an env_python. ValueError where that is no interpreter, venv or folder."""
    interpreter, folder = Path(sys.executable), ""
    if python:
        place = Path(python).expanduser().absolute()
        if place.is_dir():
            inside = place / "bin" / "python"
            interpreter, folder = (inside, "") if inside.is_file() else (interpreter, str(place))
        elif place.is_file():
            interpreter = place
        else:
            raise ValueError(f"env_python={python}: there is no such interpreter or folder")
    program = Path(__file__).with_name("worker.py")
    return [str(interpreter), str(program), str(seconds), str(max(memory_mib, MEMORY_MIB)), *filter(None, [folder])]


def worker_environment() -> dict[str, str]:
    """The parent's environment variables with one thread and a fixed hash seed."""
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONSAFEPATH", "PYTHONSTARTUP")}
    return environment | {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "PYTHONHASHSEED": "0"}


def _ask(python: str, task: str, *arguments: str, memory_mib: int = MEMORY_MIB) -> Sequence[Any]:
    """The rows that a fresh worker process answers. ValueError with its message, or where it ends without an answer."""
    command = worker_command(python, LOAD_SECONDS, memory_mib)
    try:
        child = ChildProcess(command, variables=worker_environment(), start_seconds=LOAD_SECONDS)
    except OSError as error:
        raise ValueError(f"cannot load an environment with {command[0]}: {error}") from error
    child.send(task, [arguments], LOAD_SECONDS)
    try:
        while (event := child.next_event()) is not None and "result" not in event:
            pass
        is_late, message = child.seconds_left() <= 0, child.startup_error()
    finally:
        status = child.stop()
    if event is None and (is_late or status == -signal.SIGALRM):
        took = f"it took longer than {LOAD_SECONDS:,.0f} s"
        raise ValueError(f"cannot load an environment with {command[0]}: {took}")
    if event is None:
        raise ValueError(f"the process of an environment ended with status {status}: {message}")
    if "error" in event["result"]:
        raise ValueError(event["result"]["error"])
    rows: Sequence[Any] = event["result"]["rows"]
    return rows


def _value(text: str) -> Any:
    """A parameter as JSON where it is JSON (3, 0.5, true, [1, 2]), else as the text itself."""
    try:
        return json.loads(text)
    except ValueError:
        return text
