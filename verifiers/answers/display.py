"""Typed values as text, for people: what the grammar has read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verifiers.answers.tree import Node
from verifiers.answers.values import (
    EMPTY,
    Amount,
    Choice,
    Collection,
    Expression,
    Family,
    Interval,
    Literal,
    Named,
    Reals,
    Relation,
    Value,
)

_SIGNS = {"add": " + ", "mul": "·", "div": "/", "power": "^", "mixed": " + "}
_SUFFIXES = {"percent": "%", "degrees": "°", "radians": " rad", "factorial": "!", "doublefactorial": "!!"}
_CONSTANTS = {"pi": "π", "e": "e", "i": "i", "infinity": "∞"}


def expression_text(node: Node) -> str:
    """An expression with brackets around every operation inside another."""
    if node.op == "number":
        return str(node.value)
    if node.op == "symbol":
        return node.name
    if node.op in _CONSTANTS:
        return _CONSTANTS[node.op]
    parts = [_part(each) for each in node.args]
    if node.op in _SIGNS:
        return _SIGNS[node.op].join(parts).replace("+ -", "- ")
    if node.op == "neg":
        return f"-{parts[0]}"
    if node.op in _SUFFIXES:
        return parts[0] + _SUFFIXES[node.op]
    if node.op in ("plusminus", "minusplus"):
        sign = "±" if node.op == "plusminus" else "∓"
        return f" {sign} ".join(parts) if len(parts) > 1 else sign + parts[0]
    return f"{node.op}({', '.join(map(expression_text, node.args))})"


def _part(node: Node) -> str:
    text = expression_text(node)
    return f"({text})" if node.op in _SIGNS or node.op == "plusminus" or (node.op == "number" and "/" in text) else text


def value_text(value: Value) -> str:
    """A typed value with the name of its type: "set of reals [1, 2) ∪ {5}"."""
    return _TEXTS[type(value)](value)


def _reals(value: Reals) -> str:
    if value == EMPTY:
        return "no solution"
    name = f" of {value.name}" if value.name else ""
    return f"set of reals{name}: " + " ∪ ".join(map(_interval, value.intervals))


def _interval(part: Interval) -> str:
    low, high = expression_text(part.low), expression_text(part.high)
    return f"{{{low}}}" if part.low == part.high else f"{'(['[part.has_low]}{low}, {high}{')]'[part.has_high]}"


def _collection(value: Collection) -> str:
    brackets = value.brackets if value.kind == "tuple" else "{}" if value.kind == "set" else "  "
    kind = "tuple or interval" if value.kind == "tuple" and len(value.items) == 2 else value.kind
    joint = " : " if value.kind == "ratio" else "; "
    return f"{kind} {brackets[0]}{joint.join(map(value_text, value.items))}{brackets[1]}".rstrip()


def _amount(value: Amount) -> str:
    powers = "·".join(f"{name}^{power}" if power != 1 else name for name, power in value.powers) or "unit"
    return f"{expression_text(value.node)} times {value.factor} {powers}"


def _named(value: Named) -> str:
    head = [f"function {name}({value.argument})" if value.argument else name for name in value.names]
    return ", ".join(f"{name} = {value_text(item)}" for name, item in zip(head, value.items, strict=True))


def _relation(value: Relation) -> str:
    text = expression_text(value.sides[0])
    for sign, side in zip(value.signs, value.sides[1:], strict=True):
        text += f" {sign} {expression_text(side)}"
    return f"relation {text}"


def _family(value: Family) -> str:
    domain = f"integers {value.letter}" + ("" if value.least is None else f" ≥ {value.least}")
    items = "; ".join(", ".join(map(expression_text, row)) for row in value.items)
    return f"family {items} for all {domain}"


def _literal(value: Literal) -> str:
    parts = [str(each) for each in value.parts]
    return f"{value.kind} {', '.join(parts[:8])}" + (", ..." if len(parts) > 8 else "")


_TEXTS: dict[type, Callable[[Any], str]] = {
    Expression: lambda value: ("about " if value.is_rounded else "") + expression_text(value.node),
    Amount: _amount,
    Literal: _literal,
    Choice: lambda value: f"choice {value.letter}: {value_text(value.value)}",
    Reals: _reals,
    Collection: _collection,
    Named: _named,
    Relation: _relation,
    Family: _family,
}
