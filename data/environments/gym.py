"""Tasks of reasoning-gym with their own scorers and curricula. It runs in the process of worker.py."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import fields, replace
from difflib import get_close_matches
from dis import get_instructions
from functools import lru_cache
from importlib.util import find_spec
from types import CodeType
from typing import Any
from unicodedata import normalize

DEFAULTS: dict[str, Any] = {"size": 500, "seed": 20250101, "level": None}  # parameters that every task has
SPLITS = {"train": 0, "validation": 10**9, "heldout": 2 * 10**9}  # added to the seed: entry n is made with seed + n

_DUNDER = re.compile(r"__\w+__")
_OF_OBJECTS = ("LOAD_ATTR", "LOAD_METHOD", "STORE_ATTR", "DELETE_ATTR")  # instructions that an answer has no use for
_NAMES = ("LOAD_NAME", "LOAD_GLOBAL")
_REACHING = frozenset(("getattr", "vars", "globals", "locals", "eval", "exec", "compile", "open", "breakpoint"))
_FORBIDDEN = ("os.", "subprocess.", "socket.", "shutil.", "ctypes.", "signal.", "pty.", "webbrowser.")

_is_scoring: list[bool] = []  # not empty while a scorer has an answer


class Gym:
    """A task, or with names joined by "+" reasoning-gym's composite of several tasks."""

    def __init__(self, name: str, split: str, parameters: Mapping[str, Any]) -> None:
        _check_installed()
        import reasoning_gym
        from reasoning_gym.composite import DatasetSpec

        self._tasks = [check_task(task) for task in name.split("+")]
        common, own = _by_task(self._tasks, parameters)
        self._level = common["level"]
        sizes = {"size": common["size"], "seed": common["seed"] + SPLITS[split]}
        weights = [float(own[task].pop("weight", 1.0)) for task in self._tasks]
        configs = [task_config(task, own[task], self._level) for task in self._tasks]
        try:
            if len(self._tasks) == 1:
                self._dataset = reasoning_gym.create_dataset(name, **configs[0], **sizes)
            else:
                specs = [DatasetSpec(*row) for row in zip(self._tasks, weights, configs, strict=True)]
                self._dataset = reasoning_gym.create_dataset("composite", datasets=specs, **sizes)
        except (AssertionError, TypeError) as error:
            raise ValueError(f"reasoning-gym refuses the parameters of {name}: {error}") from error
        self._entry = lru_cache(maxsize=256)(self._dataset.__getitem__)

    def rows(self, limit: int | None) -> list[dict[str, Any]]:
        """The first entries as rows: question, answer, subject, level and metadata."""
        count = len(self._dataset) if limit is None else min(limit, len(self._dataset))
        return [self._row(self._dataset[number]) for number in range(count)]

    def _row(self, entry: Mapping[str, Any]) -> dict[str, Any]:
        metadata = entry["metadata"]
        answer = entry["answer"] if entry["answer"] is not None else metadata.get("example_correct_answer", "")
        return {
            "question": entry["question"],
            "answer": str(answer),
            "subject": self._tasks[0] if len(self._tasks) == 1 else metadata["source_dataset"],
            "level": self._level,
            "columns": {"metadata": json.loads(json.dumps(metadata, default=str, skipkeys=True))},
        }

    def score(self, number: int, _response: str, answer: str | None) -> dict[str, Any]:
        """The score of an answer by the task's own scorer, as environment_score.

        Some scorers call `eval` on the answer: names of Python's internals, as its parser reads them (NFKC), and side
        effects are refused, and so is code with attributes, which could reach the pipe to the parent.
        """
        if answer is not None and _DUNDER.search(normalize("NFKC", answer)):
            raise ValueError("the answer has a name of Python's internals")
        entry = deepcopy(self._entry(number))  # may run code of the task itself
        _refuse_side_effects()
        _is_scoring.append(True)
        try:
            return {"environment_score": float(self._dataset.score_answer(answer, entry))}
        finally:
            _is_scoring.clear()


def tasks() -> list[tuple[str, str]]:
    """Every single-turn task with its number of curriculum levels, in words."""
    _check_installed()
    from reasoning_gym.factory import CURRICULA

    return [(task, f"levels 0 to {_top(task)}" if task in CURRICULA else "no levels") for task in _names()]


def check_task(name: str) -> str:
    """Return the name of a task unchanged. ValueError that says which names are near, or else all of them."""
    names = _names()
    if name in names:
        return name
    near = get_close_matches(name, names, 3)
    known = f"near it are {', '.join(near)}" if near else f"it has {', '.join(names)}"
    raise ValueError(f"reasoning-gym has no task {name!r}; {known} (all: reasoner data list --gym)")


def task_config(task: str, own: Mapping[str, Any], level: int | None) -> dict[str, Any]:
    """The parameters of a task: its defaults, or those of a curriculum level, and over them `own`."""
    from reasoning_gym.factory import CURRICULA, DATASETS

    config = DATASETS[task][1]()
    names = [field.name for field in fields(config) if field.name not in DEFAULTS]
    for name in own:
        if name not in names:
            near = get_close_matches(name, names, 1)
            hint = f" (did you mean {near[0]!r}?)" if near else ""
            raise ValueError(f"{task} of reasoning-gym has no parameter {name!r}{hint}; it has {', '.join(names)}")
    if level is not None:
        if task not in CURRICULA:
            raise ValueError(f"{task} of reasoning-gym has no curriculum: level={level} cannot be used")
        if not 0 <= level <= _top(task):
            raise ValueError(f"{task} of reasoning-gym has no level {level}; its levels are 0 to {_top(task)}")
        curriculum = CURRICULA[task]()
        curriculum.set_global_level(level)
        config = curriculum.generate_configuration()
    values = {name: tuple(v) if isinstance(getattr(config, name), tuple) else v for name, v in own.items()}
    config = replace(config, **values)
    return {name: getattr(config, name) for name in names}


def _check_installed() -> None:
    if find_spec("reasoning_gym") is None:
        raise ValueError("reasoning-gym is not installed; install it with: pip install reasoning-gym")


def _names() -> list[str]:
    from reasoning_gym.factory import DATASETS

    return sorted(set(DATASETS) - {"composite"})


def _top(task: str) -> int:
    """The highest level: a curriculum keeps parameters that have fewer levels at their last one."""
    from reasoning_gym.factory import CURRICULA

    return max(len(attribute.levels) for attribute in CURRICULA[task]().attributes.values()) - 1


def _by_task(tasks: list[str], parameters: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, dict[str, Any]]]:
    """The parameters that all tasks share, and those of each (of several tasks: TASK.NAME)."""
    common = dict(DEFAULTS)
    own: dict[str, dict[str, Any]] = {task: {} for task in tasks}
    for name, value in parameters.items():
        task, dot, rest = name.partition(".")
        if name in common:
            if isinstance(value, bool) or not isinstance(value, int) or value < (name == "size"):
                raise ValueError(f"{name} is {value!r}; it must be a whole number from {int(name == 'size')}")
            common[name] = value
        elif dot and task in own:
            own[task][rest] = value
        elif len(tasks) == 1:
            own[tasks[0]][name] = value
        else:
            raise ValueError(f"no parameter {name!r}; of several tasks write TASK.NAME, such as {tasks[0]}.weight")
    return common, own


@lru_cache(maxsize=1)
def _refuse_side_effects() -> None:
    """From now on refuse programs, connections and writing to files in this process, which only scores answers."""
    sys.addaudithook(_audit)


def _audit(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "exec" and _is_scoring:
        caller = str(sys._getframe(1).f_globals.get("__name__"))
        if arguments[0].co_filename.startswith("<") and caller.startswith(("reasoning_gym.", "sympy.")):
            _check_code(arguments[0])
    elif event == "open":
        _, mode, flags = arguments
        if set(mode or "") & set("wax+") or (flags or 0) & (os.O_WRONLY | os.O_RDWR):
            raise PermissionError("a scorer may not write to files")
    elif event.startswith(_FORBIDDEN) and event not in ("os.listdir", "os.scandir", "os.walk"):
        raise PermissionError(f"a scorer may not use {event}")


def _check_code(code: CodeType) -> None:
    """PermissionError for evaluated code that reads an attribute, or names a builtin that reaches other objects."""
    for instruction in get_instructions(code):
        is_internal = instruction.argval in _REACHING or str(instruction.argval).startswith("__")
        if instruction.opname in _OF_OBJECTS or (instruction.opname in _NAMES and is_internal):
            raise PermissionError(f"an answer may not use {instruction.argval}")
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            _check_code(constant)
