"""Whether a typed answer is the same as a typed gold, type by type. The gold decides which form an answer must have."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeGuard

from verifiers.answers.amounts import equal_amounts
from verifiers.answers.choices import equal_choices
from verifiers.answers.comparison import equal_expressions
from verifiers.answers.conditions import bounds_of
from verifiers.answers.integer_letters import as_families, as_pairs, equal_as_families
from verifiers.answers.named_values import equal_named, without_names
from verifiers.answers.piecewise_equality import equal_piecewise
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.real_parameters import as_real_families, equal_as_real_families
from verifiers.answers.reals import as_reals, equal_reals
from verifiers.answers.relations import equal_relations
from verifiers.answers.results import Result, all_equal
from verifiers.answers.scalars import equal_scalars, is_closed, is_unfinished
from verifiers.answers.structures import equal_matrices, equal_sequences
from verifiers.answers.token import UnreadableError
from verifiers.answers.tree import INFINITY, Node, divide, multiply, names, number, replace_symbols, symbol
from verifiers.answers.values import (
    Amount,
    Assignments,
    Choice,
    Clock,
    Date,
    Expression,
    Family,
    Function,
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
from verifiers.answers.vectors import components, tuple_of

_PARAMETERS = frozenset("ktsmnλμ")  # letters that a tuple without a word about them may have in another's place


def equal(gold: Value, answer: Value) -> Result:
    """True or False where it is decided; None where another layer must decide."""
    try:
        if isinstance(gold, Choice) or isinstance(answer, Choice):
            return equal_choices(gold, answer, equal)
        gold, answer = _count(gold, answer), _count(answer, gold)
        if isinstance(gold, Primes | Words) or isinstance(answer, Primes | Words):
            return gold == answer if type(gold) is type(answer) else None
        if isinstance(gold, Numeral | Clock | Date) or isinstance(answer, Numeral | Clock | Date):
            return _quantities(gold, answer)
        gold, answer = _plain(gold), _plain(answer)
        return _equal(gold, answer)
    except (UnreadableError, NoValueError, TooLargeError, RecursionError):
        return None


def _count(value: Value, other: Value) -> Value:
    """Infinity as a number of things, "infinitely many", beside these words; any other value as it is."""
    is_infinity = isinstance(value, Expression) and value.node == INFINITY and isinstance(other, Words)
    return Words("infinitely many") if is_infinity else value


def _quantities(gold: Value, answer: Value) -> Result:
    """Times and dates are the same in every part; a numeral with a base may leave its base out."""
    if isinstance(answer, Numeral) and answer.base == 10 and isinstance(gold, Expression):
        return _digits_of(gold.node) == answer.digits or None
    if isinstance(gold, Numeral) and isinstance(answer, Expression):
        return _digits_of(answer.node) == gold.digits or None
    if isinstance(gold, Clock | Ratio) and isinstance(answer, Clock | Ratio):
        sides = [_clock(each) if isinstance(each, Ratio) else each for each in (gold, answer)]
        return None if None in sides else sides[0] == sides[1]
    return gold == answer if type(gold) is type(answer) else None


def _digits_of(node: Node) -> str:
    """The digits that an expression is, if it stands for a numeral without its base: 1011, 1A3."""
    if node.op == "mul" and all(each.op in ("number", "symbol") for each in node.args):
        return "".join(map(_digits_of, node.args))
    value = rational(node)
    return node.name if node.op == "symbol" else str(value)


def _clock(ratio: Ratio) -> Clock | None:
    """A time without am and pm, which is one of 24 hours; None for another ratio."""
    parts = [rational(each) for each in ratio.terms]
    if not ratio.is_time or len(parts) != 2 or parts[0] is None or parts[1] is None:
        return None
    hour = int(parts[0])
    return Clock(hour % 12 or 12, int(parts[1]), "am" if hour < 12 else "pm")


def _plain(value: Value) -> Value:
    """A value without brackets that do not matter: a set or a list of one value is that value."""
    if (
        isinstance(value, Sequence)
        and value.kind in ("list", "set")
        and len(value.items) == 1
        and value.items[0] != Nothing()
        and not (value.kind == "set" and isinstance(value.items[0], Sequence) and value.items[0].kind == "set")
    ):
        return _plain(value.items[0])
    if (
        isinstance(value, Relation)
        and value.signs == ("=",)
        and value.sides[1].op == "symbol"
        and not names(value.sides[0])
    ):
        return Assignments((value.sides[1].name,), (Expression(value.sides[0]),))
    if isinstance(value, Assignments) and len(value.names) == 1:
        item = _plain(value.items[0])
        letter, _, index = value.names[0].partition("_")
        if len(index) == 1 and index.isalpha() and isinstance(item, Expression) and names(item.node) == {index}:
            return Function(letter, index, item.node)  # a_n = 2n + 1
        return Assignments(value.names, (item,))
    return value


def _equal(gold: Value, answer: Value) -> Result:
    letters = [each.equal_letters() if isinstance(each, Assignments) else () for each in (gold, answer)]
    if (size := _num_equal_parts(gold)) > 1 and size == _num_equal_parts(answer):  # a = b = c and (t, t, t)
        return not all(letters) or {*letters[0]} == {*letters[1]}
    answer = _with_letter_of(gold, answer)
    gold, answer = _quotient(gold, answer), _quotient(answer, gold)
    if isinstance(gold, Relation) and gold.signs == ("=",) and isinstance(answer, Assignments):
        return equal_relations(gold, answer)
    answer = as_pairs(gold, answer)
    if (
        isinstance(gold, Assignments)
        and isinstance(answer, Assignments)
        and len(gold.names) > 1
        and len(answer.names) == 1
    ):
        return False
    gold, answer = as_real_families(gold, answer)
    if isinstance(gold, RealFamily) or isinstance(answer, RealFamily):
        return equal_as_real_families(gold, answer)
    if isinstance(answer, Relation) and (reals := as_reals(gold)) is not None and not reals.name:
        answer = bounds_of(answer) or answer
    if isinstance(gold, Relation) and (reals := as_reals(answer)) is not None and not reals.name:
        gold = bounds_of(gold) or gold
    gold, answer, is_same_name = without_names(gold, answer)
    if not is_same_name:
        return False
    if isinstance(gold, Relation) or isinstance(answer, Relation):
        return equal_relations(gold, answer)
    gold, answer = as_families(gold, answer)
    if isinstance(gold, Amount) or isinstance(answer, Amount):
        return equal_amounts(gold, answer)
    gold, answer = _as_vector(gold, answer), _as_vector(answer, gold)
    for kind, function in _BY_TYPE:
        if isinstance(gold, kind) or isinstance(answer, kind):
            return function(gold, answer)
    return equal_scalars(gold, answer) if isinstance(gold, Expression) and isinstance(answer, Expression) else None


def _with_letter_of(gold: Value, answer: Value) -> Value:
    """(t, 2t, 3t) beside (k, 2k, 3k) in the gold's letter, where each is the only one; any other value as it is."""
    letters = [_only_letter(each) for each in (gold, answer)]
    if not all(letters) or letters[0] == letters[1] or not isinstance(answer, Sequence):
        return answer
    change = {letters[1]: symbol(letters[0])}
    nodes = [replace_symbols(item.node, change) for item in answer.items if isinstance(item, Expression)]
    return Sequence(answer.kind, tuple(map(Expression, nodes)), answer.brackets)


def _only_letter(value: Value) -> str:
    """The only letter of a tuple where it may be any parameter; "" for other values."""
    if not _is_tuple(value):
        return ""
    nodes = [item.node for item in value.items if isinstance(item, Expression)]
    letters = frozenset().union(*map(names, nodes))
    is_open = len(nodes) == len(value.items) and len(letters) == 1 and letters <= _PARAMETERS
    return next(iter(letters)) if is_open else ""


def _is_tuple(value: Value) -> TypeGuard[Sequence]:
    return isinstance(value, Sequence) and value.kind in ("tuple", "interval") and value.brackets in ("()", "")


def _num_equal_parts(value: Value) -> int:
    """How many letters `x = y = z` says to be equal, or how many times a tuple has one letter; 0 for other values."""
    if isinstance(value, Assignments) and (letters := value.equal_letters()):
        return len(letters)
    items = value.items if isinstance(value, Assignments) or _is_tuple(value) else ()
    nodes = [item.node for item in items if isinstance(item, Expression) and item.node.op == "symbol"]
    return len(nodes) if nodes and len(nodes) == len(items) and len(set(nodes)) == 1 else 0


def _as_vector(value: Value, other: Value) -> Value:
    """3i - 2j + k as a tuple beside a vector; any other value as it is."""
    is_vector = isinstance(other, Matrix) or (isinstance(other, Sequence) and other.kind in ("tuple", "interval"))
    if not is_vector or not isinstance(value, Expression) or not {"j"} <= names(value.node) <= {"j", "k"}:
        return value
    return tuple_of(components(value.node))


def _reals(gold: Value, answer: Value) -> Result:
    sides = [as_reals(each) for each in (gold, answer)]
    if sides[0] is None or sides[1] is None:
        other = gold if sides[0] is None else answer
        return False if isinstance(other, Expression) and is_closed(other.node) else None
    letters = {each.name for each in sides if each is not None and each.name}
    if len(letters) > 1 or not equal_reals(sides[0], sides[1]):
        return False
    ends = [[end for part in each.intervals for end in (part.low, part.high)] for each in sides if each is not None]
    return not any(map(is_unfinished, *ends))


def _nothing(gold: Value, answer: Value) -> Result:
    """Only what is written as the empty set is empty: a condition that no number fulfils is still to be solved."""
    return gold == answer


def _ratios(gold: Value, answer: Value) -> Result:
    """Ratios up to a factor; a gold ratio of two takes their quotient. What may be a time of day must be the same."""
    if isinstance(gold, Ratio) and isinstance(answer, Ratio):
        if len(gold.terms) != len(answer.terms):
            return False
        if all_equal(map(equal_expressions, gold.terms, answer.terms)):
            return True
        if gold.is_time and len(gold.terms) == 2:
            return False if answer.is_time else None
        first = zip(gold.terms, answer.terms, strict=True)
        base = gold.terms[0], answer.terms[0]
        return all_equal(equal_expressions(multiply(g, base[1]), multiply(a, base[0])) for g, a in first)
    if isinstance(gold, Ratio) and isinstance(answer, Expression) and len(gold.terms) == 2:
        return equal_scalars(Expression(divide(*gold.terms)), answer)
    return None


def _quotient(value: Value, other: Value) -> Value:
    """AP/PB = 2/3 beside a ratio, as the ratio AP:PB; any other value as it is."""
    is_ratio = isinstance(other, Ratio) or (isinstance(other, Assignments) and isinstance(other.items[0], Ratio))
    if not is_ratio or not isinstance(value, Relation) or value.signs != ("=",) or not is_closed(value.sides[1]):
        return value
    parts = [_letters(each) for each in value.sides[0].args] if value.sides[0].op == "div" else []
    if len(parts) != 2 or not all(parts):
        return value
    return Assignments((":".join(parts),), (Ratio((value.sides[1], number(1))),))


def _letters(node: Node) -> str:
    """The letters of a product of letters, AP; "" for another expression."""
    factors = node.args if node.op == "mul" else (node,)
    return "".join(each.name for each in factors) if all(each.op == "symbol" for each in factors) else ""


_BY_TYPE: tuple[tuple[type, Callable[[Value, Value], Result]], ...] = (
    (Piecewise, equal_piecewise),
    (Family, equal_as_families),
    (Nothing, _nothing),
    (Assignments, partial(equal_named, equal=equal)),
    (Matrix, partial(equal_matrices, equal=equal)),
    (Reals, _reals),
    (Ratio, _ratios),
    (Sequence, partial(equal_sequences, equal=equal)),
)
