"""How every function of the Python API is called: an unknown argument is answered with the name here, and messages name
Python's arguments instead of the command line's flags.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from functools import wraps
from typing import ParamSpec, TypeVar

from reasoner.config.other_names import did_you_mean, find_other_name
from reasoner.config.schema import settings
from reasoner.console import rewording

P = ParamSpec("P")
R = TypeVar("R")

# The arguments that stand for a setting, and those for flags that are named otherwise.
ARGUMENTS = {
    "data.train": "data", "validation.data": "validation_data", "sft.data": "data", "rm.data": "data",
    "algo.name": "algo", "run.name": "name", "run.dir": "runs", "reward.functions": "reward_functions",
    "problems": "limit",
}  # fmt: skip
# A command, which stays as it is, or a flag that stands alone.
_FLAG = re.compile(r"(reasoner [a-z-]+(?: --\S+ [^\s;,)]+)*)|(?<![\w-])--(?:(resume) [\w./-]+|([a-z][\w@.-]*[\w@]))")


def python_call(function: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of the API: errors and printed messages name Python's arguments."""

    @wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> R:
        parameters = inspect.signature(function).parameters
        if unknown := [name for name in kwargs if name not in parameters]:
            raise TypeError(f"{function.__name__}() has no argument {unknown[0]!r}{_hint(unknown[0], parameters)}")
        with rewording(in_python):
            try:
                return function(*args, **kwargs)
            except Exception as error:
                error.args = tuple(in_python(one) if isinstance(one, str) else one for one in error.args)
                raise

    return call


def in_python(message: str) -> str:
    """The message with arguments in place of flags: "--optim.lr 1e-5" becomes "optim.lr 1e-5", "--data" "data"."""
    return _FLAG.sub(lambda match: match[1] or (match[2] and "resume=True") or _argument(match[3]), message)


def _argument(flag: str) -> str:
    name = flag.replace("-", "_")
    return ARGUMENTS.get(name, name)


def _hint(name: str, parameters: Mapping[str, object]) -> str:
    """The end of the sentence that refuses a keyword argument: what to write in its place."""
    other = find_other_name(name)
    key = other.ours if other else next((key for key in settings() if name in (key, key.split(".")[-1])), "")
    if argument := next((one for one in (ARGUMENTS.get(name, ""), ARGUMENTS.get(key, key)) if one in parameters), ""):
        return f"; it is {argument}"
    if key:
        return f'; it is a setting: settings={{"{key}": ...}}'
    return did_you_mean(name, parameters) or f"; there are {', '.join(parameters)}"
