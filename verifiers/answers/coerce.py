"""One value as another: without the names in front of both, and in the type of the other, where it may be read so."""

from __future__ import annotations

from verifiers.answers.families import beside_family, beside_formula
from verifiers.answers.integers import integers_of
from verifiers.answers.reals import as_reals
from verifiers.answers.tree import Node, names, replace_symbols, symbol
from verifiers.answers.values import Collection, Expression, Family, Named, Reals, Relation, Value

_FACTORS = frozenset("ckC")  # letters that are constants beside the argument of a function


def coerce(gold: Value, answer: Value) -> tuple[Value, Value]:
    """Both values in one type, where one of them may be read in the type of the other; else as they are.

    Only an answer is read as a family of integers beside one, or as the formula of one: beside `n - 1` the answer "all
    integers" says nothing.
    """
    if isinstance(gold, Family) and isinstance(answer, Expression | Collection | Named):
        return gold, beside_family(answer, gold) or answer
    if isinstance(gold, Family) and isinstance(answer, Reals):
        return gold, integers_of(answer, gold) or answer
    if isinstance(gold, Reals) and isinstance(answer, Family):
        return integers_of(gold, answer) or gold, answer
    if isinstance(answer, Family) and isinstance(gold, Expression | Collection | Named):
        return gold, beside_formula(answer, gold) or answer
    if isinstance(gold, Relation) and isinstance(answer, Named):
        return gold, _relation(answer) or answer
    if isinstance(gold, Reals) and isinstance(answer, Collection):
        return gold, as_reals(answer) or answer
    if isinstance(gold, Collection) and isinstance(answer, Reals):
        return as_reals(gold) or gold, answer
    return gold, answer


def _relation(value: Named) -> Relation | None:
    """The equation of a named value; None for a function and for several names."""
    item = value.items[0]
    if not value.is_single or not isinstance(item, Expression) or value.argument:
        return None
    return Relation(("=",), (symbol(value.names[0]), item.node))


def without_names(gold: Value, answer: Value) -> tuple[Value, Value] | None:
    """Both values without a single name in front; None if their names differ."""
    (gold_name, gold_argument, gold_item), (name, argument, item) = _parts(gold), _parts(answer)
    if gold_argument or argument:
        if gold_argument and not argument and ("_" in name or "(" in name):
            return None  # a_n = ... and a_{n+1} = ..., f(x) = ... and f(1) = ...
        if gold_argument and argument and gold_name.casefold() != name.casefold() and gold_name and name:
            return None
        if gold_argument and argument and isinstance(item, Expression):
            item = _with_factor(gold_item, replace_symbols(item.node, {argument: symbol(gold_argument)}), gold_argument)
        return gold_item, item
    if gold_name and isinstance(item, Relation) and isinstance(gold_item, Expression):
        return Relation(("=",), (symbol(gold_name), gold_item.node)), item
    if gold_name and isinstance(gold_item, Collection) and gold_item.kind == "list" and isinstance(item, Named):
        return None  # x = 3 or x = -2, and x = 3, y = -2
    if _is_set_of_solutions(gold_name, gold_item) != _is_set_of_solutions(name, item):
        return gold_item, item
    if gold_name and name and not _is_same_name(gold_name, name):
        relations = [_relation(each) for each in (gold, answer) if isinstance(each, Named)]
        has_letters = any(isinstance(each, Expression) and names(each.node) for each in (gold_item, item))
        return (relations[0], relations[1]) if relations[0] and relations[1] and has_letters else None
    return gold_item, item


def _with_factor(gold: Value, node: Node, argument: str) -> Expression:
    """f(x) = ax in the letter of the gold f(x) = cx, where each is the only one beside the argument."""
    letters = [names(each) - {argument} for each in (gold.node if isinstance(gold, Expression) else node, node)]
    if letters[0] <= _FACTORS and len(letters[0]) == len(letters[1]) == 1:
        node = replace_symbols(node, {next(iter(letters[1])): symbol(*letters[0])})
    return Expression(node)


def _is_set_of_solutions(name: str, value: Value) -> bool:
    """Whether a name is that of a set, S = {1, -3}, whose members may have another name on the other side."""
    return len(name) == 1 and name.isupper() and isinstance(value, Collection) and value.kind == "set"


def _is_same_name(gold: str, answer: str) -> bool:
    """Whether two names are one: x and x_0."""
    short, long = sorted((gold, answer), key=len)
    return gold == answer or (long.partition("_")[0] == short and "(" not in long)


def _parts(value: Value) -> tuple[str, str, Value]:
    """(name, argument, value) of a single named value."""
    if isinstance(value, Named) and value.is_single:
        return value.names[0], value.argument, value.items[0]
    return "", "", value
