"""How a prompt tells a model its tools: the system message that chat templates of Qwen2.5 and Qwen3 make of them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from reasoner.config.schema import ToolsConfig
from reasoner.rollouts.prompts import Template, with_tools_message
from reasoner.tools.forms import tool_form
from reasoner.tools.names import function_tools, split_names

_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}


_PYTHON = (
    "Run Python code and return what it prints. No files, no network, no modules but math, re and a few more; "
    "simplify(text), factor(text) and solve(equation, unknown) compute with exact expressions."
)


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
