"""Names of environments on the command line, gym:TASK and env:NAME (docs/DATA.md), and their problems.

The library runs in a process of its own (worker.py), which also grades the responses (verifiers/pool.py).
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl

from data.child_process import ChildProcess
from data.problem import Problem

VERIFIER = "environment"  # Problem.verifier of all these problems
LOAD_SECONDS = 1800.0  # longest time to load an environment, which may download its data
MEMORY_MIB = 4096  # of address space, at least: libraries reserve much more than they use
_PYTHON = "env_python"  # the parameter that names the interpreter


@dataclass(frozen=True, slots=True)
class EnvironmentRow:
    """The row of an environment that a problem is: the column `environment` of its problems.

    Grading starts the program that it names. So it has a type of its own, which no value in a data file has.
    """

    name: str  # environment_name
    env_python: str  # interpreter, venv or folder of `pip install --target`; "" for this interpreter
    row: int
    has_turns: bool = False  # whether it answers the model, which then goes on
    tools: str = ""  # that the model may call in them: a line of JSON each, as OpenAI's interface describes tools

    @classmethod
    def of(cls, value: object) -> EnvironmentRow:
        """Read it from a mapping, as data.files writes it. ValueError for anything else."""
        kinds = {"name": str, "env_python": str, "row": int, "has_turns": bool, "tools": str}
        if isinstance(value, Mapping) and {key: type(each) for key, each in value.items()} == kinds:
            return cls(**value)
        raise ValueError(f"the column 'environment' is {value!r:.80}; it must have {', '.join(kinds)}")


def has_turns(problem: Problem) -> bool:
    """Whether the problem is of an environment that answers the model, in several turns."""
    place = problem.columns.get("environment")
    return isinstance(place, EnvironmentRow) and place.has_turns


def tools_of(problem: Problem) -> str:
    """The tools of the problem's environment, as EnvironmentRow.tools; "" for none."""
    place = problem.columns.get("environment")
    return place.tools if isinstance(place, EnvironmentRow) else ""


def load_environment(
    name: str, split: str, query: str, limit: int | None = None, memory_mib: int = MEMORY_MIB
) -> list[Problem]:
    """Load the first `limit` problems of gym:TASK or env:NAME, with the parameters of a query, in a process with so
    much address space, but at least MEMORY_MIB.

    ValueError for an environment that does not exist, start or is not supported.
    """
    options = [option for option in query.split("&") if option]
    parameters = "&".join(option for option in options if not option.startswith(f"{_PYTHON}="))
    python = dict(parse_qsl(query)).get(_PYTHON, "")
    environment = environment_name(name, split, parameters)
    rows = _ask(python, "load", environment, json.dumps(limit), memory_mib=memory_mib)
    source = f"{name}?{parameters}" if parameters else name
    if not rows:
        raise ValueError(f"{source!r} has no problems in its split {split!r}")
    return [
        Problem(
            id=f"{source}/{split}/{number}",
            question=row["question"],
            answer=row["answer"],
            source=source,
            split=split,
            level=row.get("level"),
            subject=row["subject"],
            verifier=VERIFIER,
            columns={
                **row["columns"],
                "environment": EnvironmentRow(
                    environment, python, number, row.get("has_turns", False), row.get("tools", "")
                ),
            },
        )
        for number, row in enumerate(rows)
    ]


def environment_name(name: str, split: str, parameters: str) -> str:
    """The JSON text by which a worker process knows an environment."""
    kind, _, task = name.partition(":")
    values = {key: _value(text) for key, text in parse_qsl(parameters, keep_blank_values=True)}
    return json.dumps({"kind": kind, "name": task, "split": split, "parameters": values}, sort_keys=True)


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
