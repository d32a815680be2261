"""Names in front of values: `x = 3`, `f(x) = 2x`, `a = 1, b = 2`, and the same values without their names."""

from __future__ import annotations

from verifiers.answers.results import Equality, Result, all_equal
from verifiers.answers.structures import equal_unordered
from verifiers.answers.tree import names, replace_symbols, symbol
from verifiers.answers.values import Assignments, Expression, Function, Relation, Sequence, Value


def without_names(gold: Value, answer: Value) -> tuple[Value, Value, bool]:
    """Both values without a single name in front, and whether the names allow them to be equal."""
    if not (_has_many(gold) and _has_many(answer)):
        gold, answer = _link(gold), _link(answer)
    gold_name, gold = _name(gold)
    answer_name, answer = _name(answer)
    if isinstance(gold, Function) and ("_" in answer_name or "(" in answer_name):
        return gold, answer, False  # a_n = ... and a_{n+1} = ..., f(x) = ... and f(1) = ...
    if isinstance(gold, Function) or isinstance(answer, Function):
        gold, answer, is_same = _function_values(gold, answer)
        return gold, answer, is_same
    if gold_name and isinstance(answer, Relation) and isinstance(gold, Expression):
        return Relation(("=",), (symbol(gold_name), gold.node)), answer, True
    if gold_name and isinstance(gold, Sequence) and gold.kind == "list" and isinstance(answer, Assignments):
        return gold, answer, False  # x = 3 or x = -2, and x = 3, y = -2
    if _is_set_of_solutions(gold_name, gold) != _is_set_of_solutions(answer_name, answer):
        return gold, answer, True
    if gold_name and answer_name and not _is_same_name(gold_name, answer_name):
        if isinstance(gold, Expression) and isinstance(answer, Expression) and names(gold.node) | names(answer.node):
            sides = [Relation(("=",), (symbol(n), v.node)) for n, v in ((gold_name, gold), (answer_name, answer))]
            return sides[0], sides[1], True
        return gold, answer, False
    return gold, answer, True


def _is_set_of_solutions(name: str, value: Value) -> bool:
    """Whether a name is that of a set, S = {1, -3}, whose members may have another name on the other side."""
    return len(name) == 1 and name.isupper() and isinstance(value, Sequence) and value.kind == "set"


def _is_same_name(gold: str, answer: str) -> bool:
    """Whether two names are one: r and radius, the angles B and ABC, x and x_0."""
    short, long = sorted((gold, answer), key=len)
    is_word = len(short) == 1 and len(long) > 3 and long.isalpha() and long.islower() and long[0] == short.casefold()
    is_angle = len(short) == 1 and len(long) == 3 and long.isupper() and long.isalpha() and long[1] == short
    is_with_index = long.partition("_")[0] == short and "(" not in long  # x and x_0
    return gold == answer or is_word or is_angle or is_with_index


def _has_many(value: Value) -> bool:
    return isinstance(value, Sequence) or (isinstance(value, Assignments) and len(value.names) > 1)


def _link(value: Value) -> Value:
    """The last link of a chain x = y = 5; any other value as it is."""
    is_chain = isinstance(value, Assignments) and value.is_chain
    if not isinstance(value, Assignments) or not is_chain:
        return value
    letters = {name.partition("_")[0] for name in value.names}
    last = letters.pop() if len(letters) == 1 else value.names[-1]  # x of x_1 = x_2 = 5
    return Assignments((last,), value.items[-1:])


def _name(value: Value) -> tuple[str, Value]:
    if isinstance(value, Assignments) and len(value.names) == 1:
        return value.names[0], value.items[0]
    return "", value


def _function_values(gold: Value, answer: Value) -> tuple[Value, Value, bool]:
    """The expressions of f(x) = ... and f(t) = ..., in one letter; an answer may leave f(x) out."""
    is_same = True
    if isinstance(gold, Function) and isinstance(answer, Function):
        is_same = gold.name.casefold() == answer.name.casefold() or "" in (gold.name, answer.name)  # P(x) and p(x)
        answer = Function(
            answer.name, gold.argument, replace_symbols(answer.node, {answer.argument: symbol(gold.argument)})
        )
    plain = [Expression(each.node) if isinstance(each, Function) else each for each in (gold, answer)]
    return plain[0], plain[1], is_same


def equal_named(gold: Value, answer: Value, equal: Equality) -> Result:
    """Several named values: by name; without names in the gold's order, or in the answer's alphabetical order."""
    if isinstance(gold, Assignments) and isinstance(answer, Assignments):
        if sorted(gold.names) != sorted(answer.names):  # a name twice holds two candidates
            return False
        values = dict(zip(answer.names, answer.items, strict=True))
        return all_equal(equal(item, values[name]) for name, item in zip(gold.names, gold.items, strict=True))
    if isinstance(gold, Assignments):
        if not isinstance(answer, Sequence) or len(answer.items) != len(gold.items):
            return False if isinstance(answer, Expression | Sequence) else None
        is_ordered = answer.kind == "list" or (answer.kind in ("tuple", "interval") and answer.brackets in ("()", ""))
        return is_ordered and all_equal(map(equal, gold.items, answer.items))
    if isinstance(gold, Sequence) and gold.kind in ("tuple", "interval") and isinstance(answer, Assignments):
        pairs = sorted(zip(answer.names, answer.items, strict=True), key=lambda pair: pair[0])
        return len(pairs) == len(gold.items) and all_equal(
            equal(g, item) for g, (_, item) in zip(gold.items, pairs, strict=True)
        )
    if isinstance(gold, Sequence) and gold.kind == "list" and isinstance(answer, Assignments):
        return equal_unordered(gold.items, answer.items, equal)
    return False if isinstance(gold, Expression) else None
