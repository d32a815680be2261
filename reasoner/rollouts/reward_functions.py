"""Reward functions of the user's: functions that add to the graded reward, from Python or by setting reward.functions.

A reward function has the signature that TRL's GRPOTrainer uses (docs/PYTHON_API.md). It may be asynchronous.
"""

from __future__ import annotations

import asyncio
import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from hashlib import sha256
from itertools import chain, count
from math import isfinite
from numbers import Real
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, Protocol

from data import Problem
from reasoner.config.other_names import did_you_mean
from reasoner.types import RolloutGroup
from verifiers.rewards import REWARDS

RewardCallable = Callable[..., Sequence[float | None]]

# Arguments besides the columns of the problems, and their entries. A column of the same name is not passed.
ROLLOUT_COLUMNS = {
    "prompts": "the prompt as the model reads it, without the part that begins the completion",
    "completions": "the completion, with the part that the prompt template begins (such as <think>)",
    "completion_ids": "its token ids",
    "correct": "whether the grader judged the answer correct",
    "well_formed": "whether the answer is in the required form",
}
_BY_NAME = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
PROBLEM_COLUMNS = ("id", "question", "answer", "source", "split", "level", "subject", "verifier")


class RewardCaller(Protocol):
    """Where functions are called in isolation (reasoner.rollouts.reward_process)."""

    def values(self, function: RewardFunction, columns: Mapping[str, Sequence[Any]], size: int) -> list[float | None]:
        """As RewardFunction.values."""


@dataclass(frozen=True, slots=True)
class RewardFunction:
    """A reward function with its name in the rollouts and its weight in the reward."""

    name: str
    function: RewardCallable
    weight: float = 1.0
    process: RewardCaller | None = None  # where it is called; None: in this process

    @property
    def parameters(self) -> list[inspect.Parameter]:
        return list(inspect.signature(self.function).parameters.values())

    @property
    def required_columns(self) -> set[str]:
        """The columns that the function needs: its parameters without a default."""
        return {p.name for p in self.parameters if p.kind in _BY_NAME and p.default is inspect.Parameter.empty}

    def values(self, columns: Mapping[str, Sequence[Any]], size: int) -> list[float | None]:
        """Call the function with the columns that it takes, None in those that no problem has. ValueError unless it
        returns `size` finite numbers.
        """
        columns = dict.fromkeys(self.required_columns, [None] * size) | dict(columns)
        if self.process is not None:
            return self.process.values(replace(self, process=None), columns, size)
        takes_all = any(p.kind is inspect.Parameter.VAR_KEYWORD for p in self.parameters)
        names = columns if takes_all else {p.name for p in self.parameters} & columns.keys()
        arguments = {name: list(columns[name]) for name in names}
        try:
            result = _result(self.function, arguments)
        except Exception as error:
            about = [_position(self.function, error)]
            if (place := _first_failure(self.function, arguments, size)) is not None:
                about += [f"problem {columns['id'][place]!r}", f"completion {columns['completions'][place]!r:.80}"]
            message = f"reward function {self.name} failed: {type(error).__name__}: {error} ({', '.join(about)})"
            raise ValueError(message) from error
        if isinstance(result, str) or not isinstance(result, Iterable):
            raise ValueError(f"reward function {self.name} returned {result!r:.80}; it must return a list of numbers")
        values = list(map(_number, result))
        if len(values) != size:
            raise ValueError(f"reward function {self.name} returned {len(values)} values for {size} completions")
        for place, value in enumerate(values):
            if value is not None and not (isinstance(value, Real) and isfinite(value)):
                raise ValueError(
                    f"reward function {self.name} returned {value!r:.80} for completion {place + 1} of {size}, of "
                    f"problem {columns['id'][place]!r}; it must be a finite number or None"
                )
        return [None if value is None else float(value) for value in values]


def _number(value: Any) -> Any:
    """The number of a scalar of torch or numpy; any other value as it is."""
    return value.item() if hasattr(value, "item") and getattr(value, "ndim", None) == 0 else value


def _position(function: RewardCallable, error: Exception) -> str:
    """FILE:LINE where a function failed: the last line of its own file in the traceback, without one the last line."""
    code = _code(function)
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if code is not None and frame.filename == code.co_filename]
    frame = (own or frames)[-1]
    return f"{frame.filename}:{frame.lineno}"


def _code(function: RewardCallable) -> CodeType | None:
    """The code of a function, of a partial's function or of the class of an object; None of one that is not Python."""
    called = inspect.unwrap(_innermost(function))
    code: CodeType | None = getattr(called, "__code__", getattr(type(called).__call__, "__code__", None))
    return code


def _first_failure(function: RewardCallable, arguments: Mapping[str, Sequence[Any]], size: int) -> int | None:
    """The place of the first completion for which a function that failed fails alone as well; None without one."""
    for place in range(size):
        try:
            _result(function, {name: [values[place]] for name, values in arguments.items()})
        except Exception:
            return place
    return None


def _innermost(function: RewardCallable) -> RewardCallable:
    while isinstance(function, partial):
        function = function.func
    return function


def _name_of(function: RewardCallable, taken: Collection[str]) -> str:
    """The name of a function. Partials, lambdas and objects have none of their own: they get that of the partial's
    function, "lambda" or that of the class, with a number where it is taken.
    """
    own = getattr(function, "__name__", "<lambda>")
    if own != "<lambda>":
        return str(own)
    called = _innermost(function)
    name = getattr(called, "__name__", type(called).__name__).strip("<>")
    return next(one for one in chain([name], (f"{name}_{number}" for number in count(2))) if one not in taken)


def _result(function: RewardCallable, columns: Mapping[str, Sequence[Any]]) -> Any:
    """What a function returns; of an asynchronous one, what it returns in the end. Its event loop is in a thread of its
    own, as a notebook has one in this thread.
    """
    result = function(**columns)
    if not inspect.iscoroutine(result):
        return result
    with ThreadPoolExecutor(1) as thread:
        return thread.submit(asyncio.run, result).result()


def reward_functions_of(
    entries: Sequence[RewardCallable | tuple[RewardCallable, float]], names: Sequence[str] = ()
) -> list[RewardFunction]:
    """Read functions and (function, weight) pairs; `names`: of the functions, by default their own.

    ValueError for an entry that cannot be used, and for equal names.
    """
    functions: list[RewardFunction] = []
    for place, entry in enumerate(entries):
        function, weight = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, 1.0)
        if not callable(function):
            raise ValueError(f"reward_functions has {entry!r:.80}; it takes functions and (function, weight) pairs")
        taken = (*REWARDS, *(one.name for one in functions))
        name = names[place] if names else _name_of(function, taken)
        if isinstance(weight, bool) or not isinstance(weight, Real) or not isfinite(weight):
            raise ValueError(f"the weight of reward function {name} is {weight!r}; it must be a finite number")
        if name in taken:
            raise ValueError(f"reward function {name!r} has the name of another reward; rename it")
        functions.append(RewardFunction(name, function, float(weight)))
    return functions


def check_columns(functions: Sequence[RewardFunction], problems: Callable[[], Iterable[Problem]]) -> None:
    """Raise ValueError for a function that cannot be called with the columns of the problems: it needs another one, or
    takes none by name. Problems are loaded only if it matters.
    """
    available = columns_of([])
    if any(function.required_columns - available.keys() for function in functions):
        available = columns_of(problems())
    for function in functions:
        known = f"the columns are {', '.join(sorted(available))}"
        if missing := sorted(function.required_columns - available.keys()):
            raise ValueError(f"reward function {function.name} needs {', '.join(missing)}; {known}")
        kinds = {parameter.kind for parameter in function.parameters}
        if inspect.Parameter.POSITIONAL_ONLY in kinds or not kinds & {*_BY_NAME, inspect.Parameter.VAR_KEYWORD}:
            raise ValueError(
                f"reward function {function.name} has the parameters ({', '.join(map(str, function.parameters))}); it "
                f"is called with columns by name and must take at least one; {known}"
            )


def columns_of(problems: Iterable[Problem]) -> dict[str, None]:
    """The names of all columns that a run on these problems passes to reward functions."""
    extra = dict.fromkeys(name for problem in problems for name in problem.columns)
    return dict.fromkeys((*PROBLEM_COLUMNS, *extra, *ROLLOUT_COLUMNS))


def apply_reward_functions(groups: Sequence[RolloutGroup], functions: Sequence[RewardFunction]) -> list[RolloutGroup]:
    """Add the weighted value of each function to the rewards; score.parts records the values without their weights.

    A function is called once with the completions of all groups. Where it returns None it adds nothing and records
    nothing. ValueError that names the function for a wrong number of values and for a value that is no finite number.
    """
    if not functions or not groups:
        return list(groups)
    columns = _columns(groups)
    size = len(columns["completions"])
    parts: list[dict[str, float]] = [{} for _ in range(size)]
    for function in functions:
        for own, value in zip(parts, function.values(columns, size), strict=True):
            own |= {} if value is None else {function.name: value}
    weights = {function.name: function.weight for function in functions}
    rest = iter(parts)
    return [with_parts(group, [next(rest) for _ in group.scores], weights) for group in groups]


def _columns(groups: Sequence[RolloutGroup]) -> dict[str, list[Any]]:
    """The arguments of a reward function: one entry per completion, in order."""
    rows = [row for group in groups for row in zip(group.completions, group.scores, strict=True)]
    prompts = [group.prompt for group in groups for _ in group.completions]
    problems = [prompt.problem for prompt in prompts]  # a column of the data set comes before a field of its name
    columns: dict[str, list[Any]] = {
        name: [one.columns.get(name, getattr(one, name, None)) for one in problems] for name in columns_of(problems)
    }
    return columns | {
        "prompts": [prompt.text.removesuffix(prompt.prefill) for prompt in prompts],
        "completions": [
            prompt.prefill + completion.own_text for prompt, (completion, _) in zip(prompts, rows, strict=True)
        ],
        "completion_ids": [list(completion.token_ids) for completion, _ in rows],
        "correct": [score.correct for _, score in rows],
        "well_formed": [score.well_formed for _, score in rows],
    }


def with_parts(group: RolloutGroup, parts: Sequence[Mapping[str, float]], weights: Mapping[str, float]) -> RolloutGroup:
    """Return the group with the parts of each completion added to its score, and their weighted sum to its reward."""
    scores = tuple(
        replace(
            score,
            parts={**score.parts, **own},
            reward=score.reward + sum(weights[name] * value for name, value in own.items()),
        )
        for score, own in zip(group.scores, parts, strict=True)
    )
    return replace(group, scores=scores)


def parse_weighted(setting: str, text: str, form: str) -> dict[str, float]:
    """Parse the value of a setting, "NAME=0.5, OTHER", into weights by name, 1 where none is stated. `form`: a name as
    messages show it.

    ValueError, naming the setting, for an entry without a name, for a weight that is not a finite number, and for a
    name that stands twice.
    """
    weights: dict[str, float] = {}
    for entry in filter(None, map(str.strip, text.split(","))):
        name, number = map(str.strip, entry.rsplit("=", 1)) if "=" in entry else (entry, "1")
        try:
            weight = float(number)
        except ValueError:
            weight = float("nan")
        if not name or not isfinite(weight):
            raise ValueError(f"{setting} has {entry!r}; it takes {form} or {form}=WEIGHT, a finite number")
        if name in weights:
            raise ValueError(f"{setting} has {name!r} twice")
        weights[name] = weight
    return weights


def load_reward_functions(spec: str, setting: str = "reward.functions") -> list[RewardFunction]:
    """Parse "rewards.py:brevity=0.5,package.module:style" and import the functions. ValueError, naming the setting, for
    a faulty part.
    """
    entries: list[tuple[RewardCallable, float]] = []
    names: list[str] = []
    files: dict[Path, ModuleType] = {}
    for path, weight in parse_weighted(setting, spec, "FILE.py:function").items():
        place, _, name = path.rpartition(":")
        if not place or not name:
            raise ValueError(f"{setting} has {path!r}; it takes FILE.py:function=weight or module:function=weight")
        try:
            module = _module(place, files)
        except Exception as error:  # any statement of the user's module may fail
            raise ValueError(f"{setting} has {path!r}: {type(error).__name__}: {error}") from error
        if not hasattr(module, name):
            raise ValueError(f"{setting} has {path!r}: {place} has no {name!r}{did_you_mean(name, vars(module))}")
        names.append(name)
        entries.append((getattr(module, name), weight))
    return reward_functions_of(entries, names)


def source_fingerprint(functions: Iterable[RewardCallable]) -> str:
    """The first digits of the SHA-256 of the files in which functions are written, separated by commas."""
    paths = dict.fromkeys(Path(code.co_filename) for code in map(_code, functions) if code)
    return ",".join(sha256(path.read_bytes()).hexdigest()[:16] for path in paths if path.is_file())


def _module(place: str, files: dict[Path, ModuleType]) -> ModuleType:
    """The module of a file or of a name. A file is executed once: `files` gets its module."""
    if not place.endswith(".py"):
        return importlib.import_module(place)
    path = Path(place).expanduser().resolve()
    if path not in files:
        source = importlib.util.spec_from_file_location(f"reward_file_{path.stem}", path)
        assert source is not None and source.loader is not None
        files[path] = importlib.util.module_from_spec(source)
        sys.modules[source.name] = files[path]  # as dataclasses of the file need
        source.loader.exec_module(files[path])
    return files[path]
