"""Equality of two single values: arithmetic left undone, per cent and degree signs, rounded values."""

from __future__ import annotations

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.tree import (
    TEN,
    Node,
    divide,
    has,
    is_infinite,
    is_numeral,
    is_scientific,
    is_undone,
    names,
    negate,
    number,
)
from verifiers.answers.values import Expression, Value

_HUNDRED = number(100)
_DIGITS = 6  # of a number that is worked out


def is_closed(node: Node) -> bool:
    return not names(node) and not is_infinite(node)


def equal_scalars(gold: Expression, answer: Expression) -> bool | None:
    """Whether two single values are equal by the conventions of docs/GRADING_GRAMMAR.md; None if undecided."""
    if answer.approximation is not None:
        result = equal_scalars(gold, Expression(answer.node, answer.is_rounded))
        rounded = Expression(answer.approximation, is_rounded=True)
        return equal_scalars(gold, rounded) if result is not True and is_decimal(gold.node) else result
    if answer.is_rounded and not gold.is_rounded and not is_decimal(gold.node):
        return False
    if bool(names(gold.node)) != bool(names(answer.node)) or is_unfinished(gold.node, answer.node):
        return False  # a number is no expression with a letter, whatever algebra could make of it
    gold_node, answer_node = gold.node, answer.node
    if "percent" in (_top(gold_node), _top(answer_node)):
        return _equal_percentages(gold_node, answer_node)
    if has(gold_node, "degrees") != has(answer_node, "degrees"):
        return _equal_angles(gold_node, answer_node)
    return equal_expressions(gold_node, answer_node)


def is_unfinished(gold: Node, answer: Node) -> bool:
    """Whether the gold is a numeral and the answer a number that is still to be worked out: 2+3, 7!/5!, log_2 8.

    A numeral takes numerals, numbers that are left as they are, and for degrees multiples of pi.
    """
    if not is_numeral(gold) or is_numeral(answer) or _is_left(answer):
        return False
    return is_undone(answer) or not (has(gold, "degrees") and has(answer, "pi", "radians"))


def _is_left(node: Node) -> bool:
    """Whether a number is left as it is: a power of ten, and what has over six digits when it is multiplied out.

    These are powers, factorials and binomials of integers, and fractions of them: 10^3, 2^{100}, 1/100!.
    """
    if node.op in ("neg", "percent", "degrees"):
        return _is_left(node.args[0])
    if node.op == "div":
        return all(each.op == "number" or (each.op != "div" and _is_left(each)) for each in node.args)
    if node.op not in ("power", "factorial", "doublefactorial", "binomial") or not all(map(_is_integer, node.args)):
        return False
    try:
        value = rational(node)
    except TooLargeError:
        return True
    except NoValueError:
        return False
    return node.args[0] == TEN or (value is not None and max(abs(value.numerator), value.denominator) >= 10**_DIGITS)


def _is_integer(node: Node) -> bool:
    node = node.args[0] if node.op == "neg" else node
    return node.op == "number" and node.value.denominator == 1


def is_undone_for(gold: Value, answer: Value) -> bool:
    """Whether the gold is a number and the answer arithmetic that is not carried out."""
    if not (isinstance(gold, Expression) and isinstance(answer, Expression)):
        return False
    return is_numeral(gold.node) and is_undone(answer.node)


def is_decimal(node: Node) -> bool:
    """Whether a tree is a number written with decimals or a power of ten."""
    node = node.args[0] if node.op in ("neg", "percent", "degrees") else node
    return (node.op == "number" and node.value.denominator != 1) or (node.op == "mul" and is_scientific(node))


def _top(node: Node) -> str:
    return node.args[0].op if node.op == "neg" else node.op


def _bare(node: Node) -> Node:
    """The number in front of a per cent or degree sign."""
    if node.op == "neg":
        return negate(_bare(node.args[0]))
    return node.args[0] if node.op in ("percent", "degrees") else node


def _equal_percentages(gold: Node, answer: Node) -> bool | None:
    """A gold with the sign takes the number and the share; one without it, from -1 to 1 a share, beyond a number."""
    signs = [_top(each) == "percent" for each in (gold, answer)]
    if all(signs):
        return equal_expressions(_bare(gold), _bare(answer))
    if signs[0]:
        results = [equal_expressions(value, answer) for value in (_bare(gold), divide(_bare(gold), _HUNDRED))]
        return True if True in results else None if None in results else False
    value = rational(gold)
    if value is None:
        return None
    return equal_expressions(gold, _bare(answer) if abs(value) > 1 else divide(_bare(answer), _HUNDRED))


def _equal_angles(gold: Node, answer: Node) -> bool | None:
    """A degree sign may be left out or added around a whole value; beside multiples of pi it is converted."""
    with_sign, plain = (gold, answer) if has(gold, "degrees") else (answer, gold)
    if _top(with_sign) == "degrees" and not has(plain, "pi", "sin", "cos", "tan", "radians"):
        return equal_expressions(_bare(with_sign), plain)
    return equal_expressions(gold, answer)
