"""Classes of integers within bounds: "even integers greater than 2", "multiples of 3 less than 20"."""

from __future__ import annotations

from verifiers.answers.integer_sets import MAX_LISTED, first_integer, integer_set, last_integer, parity
from verifiers.answers.rationals import rational
from verifiers.answers.slices import Tokens
from verifiers.answers.token import UnreadableError
from verifiers.answers.tree import add, multiply, names, number, replace_symbols, symbol
from verifiers.answers.values import Expression, Family, Parameter, Reals, Sequence, Value

CLASSES = ("even", "odd", "multiples", "remainder")
_MEMBER = symbol("the member of a class of integers")


def integer_class(tokens: Tokens) -> Family | None:
    """The class of "even", "odd n", "positive multiples of 3"; None for other tokens."""
    if not any(token.is_sign(*CLASSES) for token in tokens):
        return None
    return integer_set(tokens) or parity(tokens)


def within(family: Family, reals: Reals) -> Value:
    """The members of a class within an interval of reals: a family if it has no upper end, else a list."""
    if len(reals.intervals) != 1:
        raise UnreadableError("a class within several intervals")
    modulus, residues, least = _progression(family)
    first, last = first_integer(reals.intervals[0]), last_integer(reals.intervals[0])
    starts = [each for each in (first, least) if each is not None]
    if not starts:
        raise UnreadableError("a class without a least member")
    firsts = sorted(max(starts) + (residue - max(starts)) % modulus for residue in residues)
    if last is None:
        step = multiply(number(modulus), _MEMBER)
        return Family(tuple((add(number(each), step),) for each in firsts), (Parameter(_MEMBER.name, 0),))
    members = sorted(each for start in firsts for each in range(start, last + 1, modulus))
    if len(members) > MAX_LISTED:
        raise UnreadableError("too many members")
    return Sequence("set", tuple(Expression(number(each)) for each in members))


def _progression(family: Family) -> tuple[int, set[int], int | None]:
    """(m, residues modulo m, the least member or None) of a linear family of integers."""
    if len(family.parameters) != 1 or family.parameters[0].is_natural:
        raise UnreadableError("a class with other parameters")
    (parameter,) = family.parameters
    rows = []
    for (node,) in family.items:
        if names(node) != {parameter.name}:
            raise UnreadableError("a class of other members")
        values = [rational(replace_symbols(node, {parameter.name: number(each)})) for each in (0, 1, 5)]
        whole = [int(value) for value in values if value is not None and value.denominator == 1]
        if len(whole) < len(values) or whole[2] - whole[0] != 5 * (whole[1] - whole[0]):
            raise UnreadableError("a class that is not linear")
        rows.append((whole[0], whole[1] - whole[0]))
    steps = {step for _, step in rows}
    modulus = steps.pop()
    if steps or not 0 < modulus <= MAX_LISTED:
        raise UnreadableError("a class with several steps")
    least = None if parameter.least is None else min(start + parameter.least * modulus for start, _ in rows)
    return modulus, {start % modulus for start, _ in rows}, least
