r"""Values with an integer letter as families: `\frac{\pi}{4} + k\pi` without a word about k."""

from __future__ import annotations

from verifiers.answers.families import equal_families
from verifiers.answers.integer_sets import integers_in
from verifiers.answers.parameters import function_family
from verifiers.answers.reals import complement
from verifiers.answers.results import Result
from verifiers.answers.tree import Node, has, is_infinite, names, replace_symbols, signs, symbol
from verifiers.answers.values import Assignments, Expression, Family, Nothing, Parameter, Reals, Sequence, Value

_INTEGER_LETTERS = frozenset("knmlj")


def as_families(gold: Value, answer: Value) -> tuple[Value, Value]:
    """An answer with an integer letter as a family, beside a gold that is one; as a formula beside another gold.

    Only a gold that says itself for which integers it holds is a family. A formula in n is no set: beside `n - 1` the
    answer "all integers" says nothing.
    """
    if isinstance(gold, Reals) and (isinstance(answer, Family) or _are_integers(gold, answer)):
        return _family(gold) or gold, _family(answer) or answer
    if not isinstance(gold, Family):
        return gold, _formula(gold, answer) or answer
    is_letter = isinstance(answer, Expression) and answer.node.op == "symbol"  # n alone says nothing
    if is_letter or (family := _family(answer)) is None:
        return gold, answer
    return gold, family if isinstance(answer, Family | Reals) else _with_domain_of(gold, family)


def _are_integers(gold: Reals, answer: Value) -> bool:
    """Whether both are about a letter n: n > 3 and n ≥ 4."""
    return isinstance(answer, Reals) and gold.name == answer.name == "n"


def _with_domain_of(gold: Family, answer: Family) -> Family:
    """A family without a word about its parameters, beside a gold that gives all of its own one domain, with this."""
    domains = {(each.least, each.is_natural) for each in gold.parameters}
    if len(domains) != 1 or (None, False) in domains:
        return answer
    ((least, is_natural),) = domains
    parameters = tuple(Parameter(each.name, least, is_natural) for each in answer.parameters)
    return Family(answer.items, parameters, answer.name)


def _formula(gold: Value, answer: Value) -> Value | None:
    """An answer that says for which integers its formulas hold, without these words; None for another answer.

    The letter is the gold's own, and may be another one in tuples and multiples of pi. A letter alone is no formula.
    """
    nodes = _nodes(gold)
    letters = frozenset().union(*map(names, nodes))
    is_letter = isinstance(gold, Expression) and gold.node.op == "symbol"
    if not isinstance(answer, Family) or len(letters) != 1 or is_letter:
        return None
    is_tuple = isinstance(gold, Assignments) or (isinstance(gold, Sequence) and _is_tuple(gold))
    is_free = is_tuple or any(has(node, "pi", "degrees") for node in nodes)
    change = {each.name: symbol(*letters) for each in answer.parameters if is_free}
    rows = [tuple(Expression(replace_symbols(node, change)) for node in item) for item in answer.items]
    values = [row[0] if len(row) == 1 else Sequence("tuple", row, "()") for row in rows]
    return values[0] if len(values) == 1 else Sequence("list", tuple(values))


def _nodes(value: Value) -> list[Node]:
    """The expressions in a value."""
    items = value.items if isinstance(value, Sequence | Assignments) else ()
    return [value.node] if isinstance(value, Expression) else [node for each in items for node in _nodes(each)]


def as_pairs(gold: Value, answer: Value) -> Value:
    """(k, k) or a = b, beside the pairs (m, m) for positive integers m, as pairs of such integers; others as they are.

    The gold has the integers that its question allows, which an answer need not repeat.
    """
    return _pairs(gold, answer) or answer if isinstance(gold, Family) and not isinstance(answer, Family) else answer


def _pairs(gold: Family, answer: Value) -> Family | None:
    (size, *others) = {len(item) for item in gold.items}
    if (
        others
        or size < 2
        or len({each.least for each in gold.parameters}) != 1
        or gold.parameters[0].least not in (None, 0, 1)
    ):
        return None
    row = _plain_row(answer)
    if isinstance(answer, Assignments) and len(answer.equal_letters()) == size:
        letter = answer.equal_letters()[-1]
        row = Family(((symbol(letter),) * size,), (Parameter(letter),))
    elif row is None and isinstance(answer, Assignments) and len(answer.names) == 1 and size == 2:
        value, name = answer.items[0], answer.names[0]
        if isinstance(value, Expression) and len(names(value.node)) == 1 and name not in names(value.node):
            (letter,) = names(value.node)
            pair = (symbol(letter), value.node) if letter < name else (value.node, symbol(letter))
            row = Family((pair,), (Parameter(letter),)) if len(name) == 1 else None
    if row is None or any(each.least is not None for each in row.parameters):
        return None
    least, is_natural = gold.parameters[0].least, gold.parameters[0].is_natural
    return Family(row.items, tuple(Parameter(each.name, least, is_natural) for each in row.parameters))


def _plain_row(value: Value) -> Family | None:
    """A tuple with letters, or a list of one or several of them, as a family; None for other values."""
    items = value.items if isinstance(value, Sequence) and value.kind in ("list", "set") else (value,)
    rows = [_row(each, any_letters=True) for each in items]
    known = [each for each in rows if each is not None]
    if len(known) < len(rows) or not known:
        return None
    parameters = dict.fromkeys(each for row in known for each in row.parameters)
    return Family(tuple(item for row in known for item in row.items), tuple(parameters))


def _family(value: Value) -> Family | None:
    if isinstance(value, Family):
        return value
    if isinstance(value, Reals):
        return _bounded(value)
    if isinstance(value, Expression) and len(names(value.node) - _INTEGER_LETTERS) == 1 == len(names(value.node)) - 1:
        (argument,) = names(value.node) - _INTEGER_LETTERS
        return function_family(value.node, argument, [Parameter(name) for name in names(value.node) - {argument}])
    if (row := _row(value)) is not None:
        return row
    items = value.items if isinstance(value, Sequence) and value.kind in ("list", "set") else (value,)
    nodes = [node for item in items if isinstance(item, Expression) for node in signs(item.node)]
    letters = frozenset().union(*map(names, nodes))
    if (
        not letters
        or not letters <= _INTEGER_LETTERS
        or not all(isinstance(item, Expression) and names(item.node) for item in items)
    ):
        return None
    return Family(tuple((node,) for node in nodes), tuple(Parameter(name) for name in sorted(letters)))


def _row(value: Value, *, any_letters: bool = False) -> Family | None:
    """(2k, 2k + 1) and x = 2k, y = 2k + 1 without a word about k; None for other values."""
    items: tuple[Value, ...] = ()
    if isinstance(value, Assignments) and len(value.names) > 1:
        items = tuple(item for _, item in sorted(zip(value.names, value.items, strict=True), key=lambda pair: pair[0]))
    elif isinstance(value, Sequence) and _is_tuple(value):
        items = value.items
    nodes = tuple(item.node for item in items if isinstance(item, Expression))
    letters = frozenset().union(*map(names, nodes))
    if not items or len(nodes) < len(items) or not letters or not (any_letters or letters <= _INTEGER_LETTERS):
        return None
    return Family((nodes,), tuple(Parameter(name) for name in sorted(letters)))


def _is_tuple(value: Sequence) -> bool:
    return value.kind in ("tuple", "interval") and value.brackets in ("()", "")


def _bounded(value: Reals) -> Family | None:
    """n ≥ 3 as the integers from 3 on; None without an integer letter, and for other sets."""
    others = complement(value).intervals
    is_without_points = bool(others) and all(part.low == part.high for part in others)  # n ≠ 3
    has_least = bool(value.intervals) and (is_without_points or not is_infinite(value.intervals[0].low))
    if value.name not in _INTEGER_LETTERS or not has_least or not is_infinite(value.intervals[-1].high):
        return None
    integers = integers_in(value, Parameter(value.name))
    return integers if isinstance(integers, Family) else None


def equal_as_families(gold: Value, answer: Value) -> Result:
    if isinstance(gold, Family) and isinstance(answer, Family):
        if {len(item) for item in gold.items} == {2} and answer.name and len(answer.parameters) == 1:
            answer = _as_pairs(answer)
        return equal_families(_expanded(gold), _expanded(answer))
    other = answer if isinstance(gold, Family) else gold
    return False if isinstance(other, Expression | Sequence | Nothing) else None


def _as_pairs(family: Family) -> Family:
    """b = a^2 for integers a as the pairs (a, a^2), in the alphabetical order of the letters."""
    (parameter,) = family.parameters
    is_first = parameter.name < family.name
    letter = symbol(parameter.name)
    items = [(letter, item[0]) if is_first else (item[0], letter) for item in family.items if len(item) == 1]
    return Family(tuple(items), family.parameters)


def _expanded(family: Family) -> Family:
    items = tuple(tuple(node.args) for item in family.items for node in signs(Node("tuple", item)))
    return Family(items, family.parameters)
