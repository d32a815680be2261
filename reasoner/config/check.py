"""The check of settings: each value, values that contradict each other, and settings that would have no effect.

A condition is a Python expression on other settings, such as "algo.beta > 0 and lora.rank == 0". Conditions stand in
the declarations of settings and in tables of rules, never in what a user writes.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, fields
from itertools import pairwise
from operator import eq, ge, gt, le, lt, ne
from typing import Any
from urllib.parse import urlsplit

from reasoner.config.learning import DTYPES
from reasoner.config.schema import Config, settings, value_of

Scope = Mapping[str, object]  # what the names of a condition stand for: sections and settings outside of sections


@dataclass(frozen=True, slots=True)
class Rule:
    """Values that do not go together: where the condition `when` holds, `needs` must."""

    when: str
    needs: str
    why: str


_SHARDED = "optim.sharding in ('gathered', 'sharded')"
RULES = (
    Rule("max_off_policy_steps > 0", "algo.importance_sampling != 'none'", "rollouts are older than the policy"),
    Rule("max_off_policy_steps > 1", "max_off_policy_steps < run.save_interval", "no checkpoint lies between"),
    Rule("algo.filter_metric == 'correct'", "reward.correct > 0", "it leaves out groups by verdicts"),
    Rule("teacher.kl == 'full'", "algo.trust != 'constrained'", "TRPO searches on the RL loss alone"),
    Rule("teacher.alone", "not algo.filter_zero_advantages", "it leaves out groups by rewards, which have no part"),
    Rule("teacher.alone and algo.kl_in == 'reward'", "algo.beta == 0", "the penalty is a part of the reward"),
    Rule("lora.rank > 0", "algo.ref_sync_steps == 0", "the reference is the model without its adapter"),
    Rule("lora.base_dtype == 'bfloat16'", "lora.rank > 0 and optim.dtype == 'bfloat16'", "trained weights are float32"),
    Rule("optim.compile", "algo.trust != 'constrained'", "TRPO differentiates gradients, and compiled layers cannot"),
    Rule(_SHARDED, "algo.trust != 'constrained'", "TRPO's step and line search write all weights as one vector"),
    Rule(
        "engine.dtype == 'fp8'", "engine.name in ('auto', 'vllm')", "vLLM in this process alone quantises each update"
    ),
    Rule("engine.dtype == 'fp8'", "algo.importance_sampling != 'none'", "quantised weights are another policy"),
    Rule("engine.name == 'remote'", "engine.urls", "it samples from servers, --engine.urls http://HOST:PORT,..."),
    Rule("engine.urls", "engine.name in ('auto', 'remote')", "the servers are the engine"),
)


def check_least(least: int, **values: int | None) -> None:
    """ValueError for a value below `least`, by the name of its flag; None is no value."""
    for name, value in values.items():
        if value is not None and value < least:
            raise ValueError(f"--{name.replace('_', '-')} is {value}; it must be at least {least}")


def check_sampling(temperature: float | None, top_p: float | None, max_tokens: int | None, dtype: str | None) -> None:
    """ValueError for a value outside its range, by the name of its flag; None is no value."""
    check_least(1, max_tokens=max_tokens)
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"--top-p is {top_p:g}; it must be above 0 and at most 1")
    if temperature is not None and not 0 <= temperature < math.inf:
        raise ValueError(f"--temperature is {temperature:g}; it must be at least 0")
    if dtype not in (None, *DTYPES):
        raise ValueError(f"--dtype is {dtype!r}; known are {', '.join(DTYPES)}")


def check_values(config: Config) -> None:
    """ValueError for the first value that is not allowed."""
    for key, setting in settings().items():
        setting.check(value_of(config, key))
    _check_urls("engine.urls", config.engine.urls)
    _check_urls("teacher.model", config.teacher.urls)


def check_run(config: Config) -> None:
    """ValueError for the first values of a run that contradict each other; nothing is left to its algorithm."""
    check_rules(RULES, _scope(config))
    for what, is_set, why in (
        ("teacher.kl full", config.teacher.kl == "full", "a server tells the log-probabilities of single tokens"),
        ("teacher.prompt", config.teacher.prompt, "how long those prompts may be is known of a folder alone"),
        ("a sampling.temperature other than 1", config.sampling.temperature != 1, "a server scores at temperature 1"),
    ):
        if config.teacher.urls and is_set:
            raise ValueError(f"teacher.model is {config.teacher.model}, which excludes {what}: {why}")


def check_effect(config: Config, named: Mapping[str, object]) -> None:
    """ValueError for the first of the named settings, values by key, that differs from its default and would have no
    effect in a run of `config`, in which nothing is left to the algorithm.
    """
    scope = _scope(config)
    for key, value in named.items():
        setting = settings()[key]
        for need in (setting.section_needs, setting.needs):
            if need and value != setting.default and not _value(need, scope):
                raise ValueError(no_effect(key, value, f"{need} ({_values(need, scope)})"))


def no_effect(key: str, value: object, need: str) -> str:
    """The sentence that refuses a setting without effect."""
    return f"{key} is {value!r}, which has no effect here: it needs {need}"


def check_rules(rules: Iterable[Rule], scope: Scope) -> None:
    """ValueError for the first rule that the values break."""
    for rule in rules:
        if _value(rule.when, scope) and not _value(rule.needs, scope):
            values = _values(f"{rule.when} {rule.needs}", scope)
            raise ValueError(f"{rule.when} needs {rule.needs}: {rule.why} ({values})")


def names_in(condition: str) -> list[str]:
    """The settings in a condition."""
    words = re.findall(r"[a-z][a-z_0-9.]*", re.sub(r"'[^']*'", "", condition))
    return [word for word in dict.fromkeys(words) if word not in ("and", "or", "not", "in")]


def _value(condition: str, scope: Scope) -> Any:
    """The value of a condition on settings: names, constants, comparisons, products, and, or, not."""
    return _evaluate(ast.parse(condition, mode="eval").body, scope)


def _evaluate(node: ast.AST, scope: Scope) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id=name):
            return scope[name]
        case ast.Attribute(value=owner, attr=name):
            return getattr(_evaluate(owner, scope), name)
        case ast.Tuple(elts=items):
            return tuple(_evaluate(item, scope) for item in items)
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return not _evaluate(operand, scope)
        case ast.BinOp(left=left, op=ast.Mult(), right=right):
            return _evaluate(left, scope) * _evaluate(right, scope)
        case ast.BoolOp(op=op, values=values):
            parts = (_evaluate(value, scope) for value in values)
            return all(parts) if isinstance(op, ast.And) else any(parts)
        case ast.Compare(left=left, ops=ops, comparators=others):
            sides = [_evaluate(side, scope) for side in (left, *others)]
            return all(_COMPARISONS[type(op)](*pair) for op, pair in zip(ops, pairwise(sides), strict=True))
    raise ValueError(f"a condition on settings has {ast.unparse(node)}")


_COMPARISONS: dict[type[ast.cmpop], Callable[[Any, Any], bool]] = {
    ast.Eq: eq,
    ast.NotEq: ne,
    ast.Lt: lt,
    ast.LtE: le,
    ast.Gt: gt,
    ast.GtE: ge,
    ast.In: lambda one, other: one in other,
    ast.NotIn: lambda one, other: one not in other,
}


def _values(condition: str, scope: Scope) -> str:
    """The values of the settings in a condition, for messages."""
    return ", ".join(f"{name} is {_value(name, scope)!r}" for name in names_in(condition))


def _scope(config: Config) -> Scope:
    return {"stage": config.stage, **{one.name: getattr(config, one.name) for one in fields(config)}}


def _check_urls(key: str, text: str) -> None:
    """ValueError for addresses of servers that are none or stand twice."""
    urls = [url.strip().rstrip("/") for url in text.split(",")] if text else []
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
            raise ValueError(f"{key} has {url!r}; an address is http://HOST:PORT, several with commas between")
        if urls.count(url) > 1:
            raise ValueError(f"{key} has {url!r} twice")
