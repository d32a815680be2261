"""How a prompt tells a model its tools: the system message that chat templates of Qwen2.5 and Qwen3 make of them."""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from reasoner.config.schema import ToolsConfig
from reasoner.rollouts.prompts import Template
from reasoner.tools.forms import tool_form
from reasoner.tools.names import function_tools, split_names

_TOOLS = (
    "# Tools\n\nYou may call one or more functions to assist with the user query.\n\nYou are provided with function "
    "signatures within <tools></tools> XML tags:\n<tools>\n{tools}\n</tools>\n\nFor each function call, return a json "
    "object with function name and arguments within <tool_call></tool_call> XML tags:\n<tool_call>\n"
    '{{"name": <function-name>, "arguments": <args-json-object>}}\n</tool_call>'
)
_TYPES = {"int": "integer", "float": "number", "bool": "boolean", "list": "array", "dict": "object"}


def python(code: str) -> str:
    """Run Python code and return what it prints. No files, no network, no modules but math, re and a few more;
    simplify(text), factor(text) and solve(equation, unknown) compute with exact expressions.
    """
    raise NotImplementedError(code)  # reasoner.tools.worker.Sandbox


def with_tools(template: Template, cfg: ToolsConfig, prompt_style: str) -> Template:
    """The template with the tools in its system message, where it is a chat whose model calls them as JSON. Any other
    template says itself how they are called, or the model knows.
    """
    if not cfg.names or not template.chat or not tool_form(cfg.form, prompt_style).is_json:
        return template
    functions: list[Callable[..., Any]] = [python] if "python" in split_names(cfg.names) else []
    functions += function_tools(cfg.names).values()
    tools = "\n".join(json.dumps(_schema(function), ensure_ascii=False) for function in functions)
    return replace(template, system="\n\n".join(filter(None, [template.system, _TOOLS.format(tools=tools)])))


def _schema(function: Callable[..., Any]) -> dict[str, Any]:
    """A function as JSON: its name, its docstring, and the types of its parameters by their annotations."""
    parameters = inspect.signature(function).parameters
    properties = {name: {"type": _type(parameter.annotation)} for name, parameter in parameters.items()}
    required = [name for name, parameter in parameters.items() if parameter.default is inspect.Parameter.empty]
    described = {"name": function.__name__, "description": " ".join((inspect.getdoc(function) or "").split())}
    return {
        "type": "function",
        "function": described | {"parameters": {"type": "object", "properties": properties, "required": required}},
    }


def _type(annotation: Any) -> str:
    """The type of JSON for an annotation, a type or its name; of any other a text."""
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return _TYPES.get(name.partition("[")[0], "string")
