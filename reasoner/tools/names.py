"""The tools of setting tools.names: "python", and functions of the user's as FILE.py:function or module:function."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from typing import Any

from reasoner.rollouts.reward_functions import load_reward_functions

SETTING = "tools.names"


def split_names(names: str) -> list[str]:
    """The entries of the setting, in order."""
    return [name for name in map(str.strip, names.split(",")) if name]


def function_tools(names: str) -> dict[str, Callable[..., Any]]:
    """The functions by name. ValueError for an entry that cannot be imported."""
    own = ",".join(name for name in split_names(names) if name != "python")
    return {one.name: one.function for one in load_reward_functions(own, SETTING)}


def check_tools(names: str, *, is_json: bool) -> None:
    """ValueError for tools that cannot be run: an entry that cannot be imported, a form that cannot call it."""
    functions = function_tools(names)
    if functions and not is_json:
        raise ValueError(f"{SETTING} is {names!r}: functions are called in the form qwen3 (tools.form)")
    if "python" in functions:
        raise ValueError(f"{SETTING} is {names!r}: a function has the name of the tool python")
    if "python" in split_names(names) and importlib.util.find_spec("pydantic_monty") is None:
        raise ValueError("the tool python needs pydantic-monty: pip install -e '.[tools]'")
