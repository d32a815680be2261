"""Typed values as text, for people: what the grammar has read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from verifiers.answers.tree import Node
from verifiers.answers.values import (
    Amount,
    Assignments,
    Choice,
    Clock,
    Date,
    Expression,
    Family,
    Function,
    Interval,
    Matrix,
    Nothing,
    Numeral,
    Piecewise,
    Primes,
    Ratio,
    RealFamily,
    Reals,
    Relation,
    Sequence,
    Value,
    Words,
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
    name = f" of {value.name}" if value.name else ""
    return f"set of reals{name}: " + (" ∪ ".join(map(_interval, value.intervals)) or "∅")


def _interval(part: Interval) -> str:
    low, high = expression_text(part.low), expression_text(part.high)
    return f"{{{low}}}" if part.low == part.high else f"{'(['[part.has_low]}{low}, {high}{')]'[part.has_high]}"


def _sequence(value: Sequence) -> str:
    brackets = value.brackets or ("{}" if value.kind == "set" else "()" if value.kind == "tuple" else "  ")
    kind = "tuple or interval" if value.kind == "interval" else value.kind
    return f"{kind} {brackets[0]}{'; '.join(map(value_text, value.items))}{brackets[1]}".rstrip()


def _amount(value: Amount) -> str:
    powers = "·".join(f"{name}^{power}" if power != 1 else name for name, power in value.powers) or "unit"
    return f"{expression_text(value.node)} times {value.factor} {powers}"


def _named(value: Assignments) -> str:
    return ", ".join(f"{name} = {value_text(item)}" for name, item in zip(value.names, value.items, strict=True))


def _relation(value: Relation) -> str:
    text = expression_text(value.sides[0])
    for sign, side in zip(value.signs, value.sides[1:], strict=True):
        text += f" {sign} {expression_text(side)}"
    return f"relation {text}"


def _real_family(value: RealFamily) -> str:
    items = "; ".join(", ".join(map(expression_text, item)) for item in value.items)
    head = f"{value.name}({value.argument}) = " if value.argument else f"{value.name} = " if value.name else ""
    domains = ", ".join(f"{name} in {_reals(reals)}" for name, reals in value.parameters)
    return f"family {head}{items} for all {domains}"


def _family(value: Family) -> str:
    items = "; ".join(", ".join(map(expression_text, item)) for item in value.items)
    domains = [each.name + (" ∈ ℤ" if each.least is None else f" ≥ {each.least}") for each in value.parameters]
    return f"family {items} for all integers {', '.join(domains)}"


_TEXTS: dict[type, Callable[[Any], str]] = {
    Expression: lambda value: ("about " if value.is_rounded else "") + expression_text(value.node),
    Amount: _amount,
    Words: lambda value: f"words {value.text}",
    Primes: lambda value: f"primes {', '.join(map(str, value.members[:8]))}, ...",
    Numeral: lambda value: f"numeral {value.digits} in base {value.base}",
    Clock: lambda value: f"time {value.hour}:{value.minute:02} {value.half}",
    Date: lambda value: f"date, month {value.month}, day {value.day}" + (f", year {value.year}" if value.year else ""),
    Piecewise: lambda value: "; ".join(f"{value_text(one)} for {value_text(other)}" for one, other in value.pieces),
    Choice: lambda value: f"choice {value.letter}: {value_text(value.value)}",
    Reals: _reals,
    Nothing: lambda value: "no solution",
    Sequence: _sequence,
    Matrix: lambda value: "matrix " + "; ".join(", ".join(map(value_text, row)) for row in value.rows),
    Assignments: _named,
    Function: lambda value: f"function {value.name}({value.argument}) = {expression_text(value.node)}",
    Relation: _relation,
    Family: _family,
    RealFamily: _real_family,
    Ratio: lambda value: "ratio " + " : ".join(map(expression_text, value.terms)),
}
