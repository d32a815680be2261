"""The tools of setting tools.names: "python", and functions of the user's as FILE.py:function or module:function."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable
from typing import Any

from data import Problem
from data.environments.spec import has_turns, tools_of
from reasoner.config.schema import ToolsConfig
from reasoner.rollouts.reward_functions import load_reward_functions
from reasoner.tools.forms import tool_form
from verifiers import VerifierPool

SETTING = "tools.names"


def split_names(names: str) -> list[str]:
    """The entries of the setting, in order."""
    return [name for name in map(str.strip, names.split(",")) if name]


def function_tools(names: str) -> dict[str, Callable[..., Any]]:
    """The functions by name. ValueError for an entry that cannot be imported."""
    own = [name for name in split_names(names) if name != "python"]
    if unknown := [name for name in own if ":" not in name or "=" in name]:
        raise ValueError(f"{SETTING} has {unknown[0]!r}; it takes python, FILE.py:function and module:function")
    return {one.name: one.function for one in load_reward_functions(",".join(own), SETTING)}


def check_tools(cfg: ToolsConfig, prompt_style: str) -> None:
    """ValueError for tools that cannot be run: an entry that cannot be imported, a form that cannot call it."""
    names, functions = cfg.names, function_tools(cfg.names)
    if functions and not tool_form(cfg.form, prompt_style).is_json:
        raise ValueError(f"{SETTING} is {names!r}: functions are called in the form qwen3 (tools.form)")
    if "python" in functions:
        raise ValueError(f"{SETTING} is {names!r}: a function has the name of the tool python")
    if "python" in split_names(names) and importlib.util.find_spec("pydantic_monty") is None:
        needs = 'pydantic-monty, which is not installed: pip install "reasoner-rlvr[tools]"'
        raise ValueError(f"{SETTING} is {names!r}: the tool python needs {needs}")


def environments_of(
    problems: Iterable[Problem], pool: VerifierPool, tools: ToolsConfig, prompt_style: str
) -> VerifierPool | None:
    """The pool where environments answer some of the problems, else None. ValueError for calls that an environment and
    the tools of the settings would both answer.
    """
    problems = list(problems)
    own = next(filter(tools_of, problems), None)
    if own and tools.names and tool_form(tools.form, prompt_style).is_json:
        raise ValueError(
            f"tools.names is {tools.names!r}, in the form in which the environment of problem {own.id!r} has tools of "
            "its own: leave one of them out"
        )
    return pool if any(map(has_turns, problems)) else None
