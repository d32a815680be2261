"""The tools of setting tools.names: "python", and functions of the user's as FILE.py:function or module:function. How
they are checked, and how a prompt tells them to a model: by the system message that chat templates of Qwen2.5 and Qwen3
make of them.
"""

from __future__ import annotations

import importlib.util
import inspect
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from data import Problem
from data.environments.spec import has_turns, tools_of
from reasoner.config.schema import ToolsConfig
from reasoner.rollouts.prompts import Template, with_tools_message
from reasoner.rollouts.reward_functions import load_reward_functions
from reasoner.tools.forms import tool_form
from verifiers import VerifierPool

SETTING = "tools.names"
_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}  # of JSON
_PYTHON = "Run Python code and return what it prints. No files, no network, no modules but math, re and a few more."


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


def with_tools(template: Template, cfg: ToolsConfig, prompt_style: str) -> Template:
    """The template with the tools in its system message, where it is a chat whose model calls them as JSON. Any other
    template says itself how they are called, or the model knows.
    """
    if not cfg.names or not template.chat or not tool_form(cfg.form, prompt_style).is_json:
        return template
    schemas = [_schema("python", _PYTHON, {"code": "string"}, ["code"])] if "python" in split_names(cfg.names) else []
    schemas += map(_function_schema, function_tools(cfg.names).values())
    tools = "\n".join(json.dumps(one, ensure_ascii=False) for one in schemas)
    return replace(template, system=with_tools_message(template.system, tools))


def _function_schema(function: Callable[..., Any]) -> dict[str, Any]:
    """A function's name, its docstring, and the types of its parameters by their annotations."""
    parameters = inspect.signature(function).parameters
    types = {name: _type(parameter.annotation) for name, parameter in parameters.items()}
    required = [name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty]
    return _schema(function.__name__, " ".join((inspect.getdoc(function) or "").split()), types, required)


def _schema(name: str, description: str, types: Mapping[str, str], required: Sequence[str]) -> dict[str, Any]:
    """A tool in the form of OpenAI's interface, which chat templates take."""
    properties = {parameter: {"type": kind} for parameter, kind in types.items()}
    parameters = {"type": "object", "properties": properties, "required": list(required)}
    return {"type": "function", "function": {"name": name, "description": description, "parameters": parameters}}


def _type(annotation: Any) -> str:
    """The type of JSON for an annotation, a type or its name; of any other a text."""
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return _TYPES.get(name.partition("[")[0], "string")
