"""What the grammar reads in two answers, for people, and a point or numbers at which they differ."""

from __future__ import annotations

from dataclasses import dataclass

from verifiers.answers.comparison import points
from verifiers.answers.evaluation import approximation, is_zero, start_budget
from verifiers.answers.layer import read
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.reals import as_reals, complement, intersection
from verifiers.answers.syntax import UnreadableError
from verifiers.answers.values import (
    EMPTY,
    Amount,
    Choice,
    Clock,
    Collection,
    Expression,
    Family,
    Integers,
    Interval,
    Named,
    Node,
    Reals,
    Relation,
    Space,
    Value,
    bare,
    names,
    replace_symbols,
    subtract,
)

UNREAD = "not read by the grammar"
_SIGNS = {"add": " + ", "mul": "·", "div": "/", "power": "^", "mixed": " + "}
_SUFFIXES = {"percent": "%", "degrees": "°", "factorial": "!"}
_CONSTANTS = {"pi": "π", "infinity": "∞"}


@dataclass(frozen=True, slots=True)
class Explanation:
    """Both texts as typed values in words, and what shows that they differ ("" where nothing was found)."""

    gold: str
    answer: str
    counterexample: str = ""


def explain(gold: str, answer: str) -> Explanation:
    """What the grammar reads in two answers, and an example of their difference."""
    start_budget()
    values = [read(text) for text in (gold, answer)]
    texts = [UNREAD if value is None else value_text(value) for value in values]
    try:
        example = "" if values[0] is None or values[1] is None else _example(values[0], values[1])
    except (NoValueError, TooLargeError, UnreadableError):
        example = ""
    return Explanation(texts[0], texts[1], example)


def _example(gold: Value, answer: Value) -> str:
    one, other = bare(gold), bare(answer)
    if isinstance(one, Expression) and isinstance(other, Expression):
        return _difference(one.node, other.node)
    sets = as_reals(gold), as_reals(answer)
    if sets[0] is None or sets[1] is None:
        return ""
    only = {"gold": intersection(sets[0], complement(sets[1])), "answer": intersection(sets[1], complement(sets[0]))}
    return "; ".join(f"only in the {side}: {value_text(part)}" for side, part in only.items() if part.intervals)


def _difference(gold: Node, answer: Node) -> str:
    """The first sample point at which the values differ, with both values to 15 digits."""
    for point in points(names(gold) | names(answer)):
        left, right = replace_symbols(gold, point), replace_symbols(answer, point)
        try:
            if is_zero(subtract(left, right)) is False:
                at = ", ".join(f"{name} = {expression_text(value)}" for name, value in sorted(point.items()))
                where = f"at {at}: " if at else ""
                return f"{where}gold {approximation(left):.15g}, answer {approximation(right):.15g}"
        except (NoValueError, TooLargeError):
            continue
    return ""


def expression_text(node: Node) -> str:
    """An expression with brackets around every operation inside another."""
    if not node.args:
        return str(node.value) if node.op == "number" else node.name or _CONSTANTS.get(node.op, node.op)
    parts = [_part(each) for each in node.args]
    if node.op in _SIGNS:
        return _SIGNS[node.op].join(parts).replace("+ -", "- ")
    if node.op in _SUFFIXES:
        return parts[0] + _SUFFIXES[node.op]
    return f"-{parts[0]}" if node.op == "neg" else f"{node.op}({', '.join(map(expression_text, node.args))})"


def _part(node: Node) -> str:
    text = expression_text(node)
    return f"({text})" if node.op in _SIGNS or (node.op == "number" and "/" in text) else text


def value_text(value: Value) -> str:
    """A typed value with the name of its type: "set of reals [1, 2) ∪ {5}"."""
    match value:
        case Expression(node=node, is_rounded=is_rounded):
            return ("about " if is_rounded else "") + expression_text(node)
        case Reals(intervals=intervals, name=name):
            head = f"set of reals of {name}: " if name else "set of reals: "
            return "no solution" if value == EMPTY else head + " ∪ ".join(map(_interval, intervals))
        case Collection(kind=kind, items=items, brackets=brackets):
            kind = "tuple or interval" if kind == "tuple" and len(items) == 2 else kind
            brackets = {"set": "{}"}.get(kind, brackets if len(brackets) == 2 else "  ")
            return f"{kind} {brackets[0]}{'; '.join(map(value_text, items))}{brackets[1]}".rstrip()
        case Named(names=several, items=items, argument=argument):
            head = f"({argument})" if argument else ""
            rows = zip(several, items, strict=True)
            return ", ".join(f"{name}{head} = {value_text(item)}" for name, item in rows)
        case Relation(signs=signs, sides=sides):
            rest = zip(signs, map(expression_text, sides[1:]), strict=True)
            return f"relation {expression_text(sides[0])}" + "".join(f" {sign} {side}" for sign, side in rest)
        case Family(items=rows_, letters=letters):
            domains = ", ".join(letter if least is None else f"{letter} ≥ {least}" for letter, least in letters)
            return f"family {_rows(rows_)} for all integers {domains}"
        case Space(items=rows_, parameters=parameters):
            return f"space {_rows(rows_)} for all real {', '.join(name for name, _ in parameters)}"
        case Integers(members=members):
            near = sorted(members(30), key=lambda each: (abs(each), each))[:6]
            return f"set of integers {', '.join(map(str, near))}, ..."
        case Amount(node=node, powers=powers, factor=factor):
            return f"{expression_text(node)} times {factor} {'·'.join(f'{name}^{power}' for name, power in powers)}"
        case Choice(letter=letter, value=inner):
            return f"choice {letter}: {value_text(inner)}"
        case Clock(hour=hour, minute=minute, second=second):
            return f"time {hour:02}:{minute:02}:{second:02}"
    return f"{value.digits} in base {value.base}"


def _rows(rows: tuple[tuple[Node, ...], ...]) -> str:
    return "; ".join(", ".join(map(expression_text, row)) for row in rows)


def _interval(part: Interval) -> str:
    low, high = expression_text(part.low), expression_text(part.high)
    return f"{{{low}}}" if part.low == part.high else f"{'(['[part.has_low]}{low}, {high}{')]'[part.has_high]}"
