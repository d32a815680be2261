"""Why two answers are equal or not: both as read, and a point at which they differ."""

from __future__ import annotations

from dataclasses import dataclass

from verifiers.answers.comparison import points
from verifiers.answers.display import expression_text, value_text
from verifiers.answers.evaluation import approximation, is_zero, start_budget
from verifiers.answers.rationals import NoValueError, TooLargeError
from verifiers.answers.reading import read
from verifiers.answers.reals import as_reals, complement, intersection
from verifiers.answers.token import UnreadableError
from verifiers.answers.tree import Node, names, replace_symbols, subtract
from verifiers.answers.values import Expression, Value, bare

UNREAD = "not read by the grammar"


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
    if values[0] is None or values[1] is None:
        return Explanation(texts[0], texts[1])
    try:
        example = _difference(values[0], values[1])
    except (NoValueError, TooLargeError, UnreadableError):
        example = ""
    return Explanation(texts[0], texts[1], example)


def _difference(gold: Value, answer: Value) -> str:
    nodes = [_node(value) for value in (gold, answer)]
    if nodes[0] is not None and nodes[1] is not None:
        return _different_values(nodes[0], nodes[1])
    sets = [as_reals(value) for value in (gold, answer)]
    if sets[0] is not None and sets[1] is not None:
        only = {
            "gold": intersection(sets[0], complement(sets[1])),
            "answer": intersection(sets[1], complement(sets[0])),
        }
        return "; ".join(f"only in the {side}: {value_text(part)}" for side, part in only.items() if part.intervals)
    return ""


def _node(value: Value) -> Node | None:
    value = bare(value)
    return value.node if isinstance(value, Expression) else None


def _different_values(gold: Node, answer: Node) -> str:
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
