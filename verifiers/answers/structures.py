"""Equality of structures: matrices, vectors, tuples, lists, sets, functions by cases. `equal` compares the parts."""

from __future__ import annotations

from collections.abc import Sequence as Items

from verifiers.answers.results import Equality, Result, all_equal
from verifiers.answers.token import UnreadableError
from verifiers.answers.tree import Node, signs
from verifiers.answers.values import Amount, Expression, Matrix, Sequence, Value


def equal_matrices(gold: Value, answer: Value, equal: Equality) -> Result:
    """Matrices entry by entry; a row or a column is the same as the vector in brackets."""
    if isinstance(gold, Matrix) and isinstance(answer, Matrix):
        if [len(row) for row in gold.rows] != [len(row) for row in answer.rows]:
            return False
        return all_equal(
            equal(*pair) for rows in zip(gold.rows, answer.rows, strict=True) for pair in zip(*rows, strict=True)
        )
    if isinstance(gold, Matrix) and isinstance(answer, Sequence) and (rows := _rows(answer)) is not None:
        return equal_matrices(gold, rows, equal)
    entries = [_vector(each) for each in (gold, answer)]
    if entries[0] is None or entries[1] is None:
        return False if isinstance(gold, Expression) or isinstance(answer, Expression) else None
    return len(entries[0]) == len(entries[1]) and all_equal(map(equal, entries[0], entries[1]))


def _rows(value: Sequence) -> Matrix | None:
    """[[1, 2], [3, 4]] as a matrix."""
    rows = [item.items for item in value.items if isinstance(item, Sequence) and item.kind in ("tuple", "interval")]
    return Matrix(tuple(rows)) if len(rows) == len(value.items) and "set" not in value.kind else None


def _vector(value: Value) -> tuple[Value, ...] | None:
    if isinstance(value, Expression) and value.node.op == "binomial":
        return tuple(map(Expression, value.node.args))  # \binom{1}{2} for a column
    if isinstance(value, Matrix) and len(value.rows) == 1:
        return value.rows[0]
    if isinstance(value, Matrix) and all(len(row) == 1 for row in value.rows):
        return tuple(row[0] for row in value.rows)
    is_vector = (
        isinstance(value, Sequence) and value.kind in ("tuple", "interval") and value.brackets in ("()", "[]", "")
    )
    return value.items if isinstance(value, Sequence) and is_vector else None


def equal_sequences(gold: Value, answer: Value, equal: Equality) -> Result:
    if not (isinstance(gold, Sequence) and isinstance(answer, Sequence)):
        other = answer if isinstance(gold, Sequence) else gold
        return False if isinstance(other, Expression) else None
    gold, answer = _open(gold), _open(answer)
    is_ordered = [each.kind in ("tuple", "interval") for each in (gold, answer)]
    if is_ordered[0] != is_ordered[1]:
        is_long = not is_ordered[0] and gold.kind == "list" and len(gold.items) > 2 and answer.kind == "tuple"
        return (
            is_long
            and not answer.brackets
            and len(gold.items) == len(answer.items)
            and all_equal(map(equal, gold.items, answer.items))
        )
    if is_ordered[0]:
        return _equal_tuples(gold, answer, equal)
    return equal_unordered(gold.items, answer.items, equal)


def _equal_tuples(gold: Sequence, answer: Sequence, equal: Equality) -> Result:
    if (gold.brackets, len(gold.items)) != (answer.brackets, len(answer.items)):
        return False
    return all_equal(map(equal, gold.items, answer.items))


def _has_both_signs(value: Sequence) -> bool:
    return value.kind in ("tuple", "interval") and any(
        isinstance(item, Expression) and len(signs(item.node)) > 1 for item in value.items
    )


def _open(value: Sequence) -> Sequence:
    r"""A tuple with `\pm` in it as the list of the tuples that it stands for."""
    return Sequence("list", tuple(_expand(value))) if _has_both_signs(value) else value


def _expand(value: Sequence) -> list[Value]:
    r"""The tuples of all signs of a tuple with `\pm` in it."""
    nodes = [item.node for item in value.items if isinstance(item, Expression)]
    if len(nodes) != len(value.items):
        raise UnreadableError("both signs beside other values")
    return [
        Sequence(value.kind, tuple(map(Expression, node.args)), value.brackets)
        for node in signs(Node("tuple", tuple(nodes)))
    ]


def equal_unordered(gold: Items[Value], answer: Items[Value], equal: Equality) -> Result:
    """Whether two lists hold the same values, in any order.

    Repeated values count where all are the same, and among angles and amounts, whose list is no set of solutions.
    """
    gold, answer = _flat(gold), _flat(answer)
    if len(gold) != len(answer) and any(map(_is_measured, gold)):
        return False
    if len(gold) != len(answer):
        gold, answer = _distinct(gold, equal), _distinct(answer, equal)
        if len(gold) != len(answer) or len(gold) < 2:
            return False
    rest = list(answer)
    is_decided = True
    for value in gold:
        results = [equal(value, other) for other in rest]
        if True in results:
            del rest[results.index(True)]
        elif None in results:
            is_decided = False
        else:
            return False
    return True if is_decided else None


def _is_measured(value: Value) -> bool:
    return isinstance(value, Amount) or (isinstance(value, Expression) and value.node.op == "degrees")


def _flat(values: Items[Value]) -> list[Value]:
    r"""The values with lists in the list (from `\pm`) and tuples of both signs taken apart."""
    result: list[Value] = []
    for value in values:
        if isinstance(value, Sequence) and value.kind == "list":
            result += _flat(value.items)
        elif isinstance(value, Sequence) and _has_both_signs(value):
            result += _expand(value)
        else:
            result.append(value)
    return result


def _distinct(values: list[Value], equal: Equality) -> list[Value]:
    result: list[Value] = []
    for value in values:
        if not any(equal(value, other) for other in result):
            result.append(value)
    return result
