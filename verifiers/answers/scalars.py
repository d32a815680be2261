"""Equality of single values: numbers and expressions, amounts, equations and inequalities."""

from __future__ import annotations

from dataclasses import replace

from verifiers.answers.comparison import equal_expressions, proportional
from verifiers.answers.evaluation import approximation
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.units import UNITS
from verifiers.answers.values import (
    TEN,
    Amount,
    Expression,
    Node,
    Relation,
    Result,
    Value,
    all_equal,
    divide,
    has,
    is_infinite,
    is_numeral,
    is_scientific,
    is_undone,
    multiply,
    names,
    negate,
    number,
    subtract,
)

_FUNCTION_WORDS = "sin cos tan cot sec csc ln log unknownlog binomial factorial absolute floor ceil"
_FUNCTIONS = _FUNCTION_WORDS.split()
_OF_UNKNOWN = ("ln", "log", "unknownlog", "factorial")
_UNKNOWNS = frozenset("xyztrθ")  # letters whose equation may be a curve
_MIRROR = {">": "<", "≥": "≤"}
_BASES = frozenset(name for each in UNITS.values() for name, _ in each.powers)
_HUNDRED = number(100)
_MAX_ROUNDING = 0.05  # of a number: 22/7 ≈ 3
_MAX_PLACES = 60  # behind the point
_DIGITS = 6  # of a number that is worked out


def is_closed(node: Node) -> bool:
    return not names(node) and not is_infinite(node)


def equal_scalars(gold: Expression, answer: Expression) -> bool | None:
    """Whether two single values are equal by the conventions of docs/GRADING.md; None if undecided."""
    if answer.approximation is not None:
        result = equal_scalars(gold, Expression(answer.node, answer.is_rounded))
        rounded = Expression(answer.approximation, is_rounded=True)
        return equal_scalars(gold, rounded) if result is not True and is_decimal(gold.node) else result
    if answer.is_rounded and not gold.is_rounded and not is_decimal(gold.node):
        return False
    if bool(names(gold.node)) != bool(names(answer.node)) or is_unfinished(gold.node, answer.node):
        return False  # a number is no expression with a letter, whatever algebra could make of it
    results = [equal_expressions(*pair) for pair in comparable(gold.node, answer.node)]
    return True if True in results else False if results and None not in results else None


def is_unfinished(gold: Node, answer: Node) -> bool:
    """Whether the gold is a numeral and the answer a number that is still to be worked out: 2+3, 7!/5!, log_2 8.

    A numeral takes numerals, numbers that are left as they are, and for degrees multiples of pi.
    """
    if not is_numeral(gold) or is_numeral(answer) or _is_left(answer):
        return False
    return is_undone(answer) or not (has(gold, "degrees") and has(answer, "pi", "radians"))


def _is_left(node: Node) -> bool:
    """Whether a number is left as it is: a power of ten, and what has over six digits when it is multiplied out.

    These are powers, factorials and binomials of integers, and fractions of them: 10^3, 2^{100}, 1/100!, not 12!/10!.
    """
    if node.op in ("neg", "percent", "degrees"):
        return _is_left(node.args[0])
    parts = node.args if node.op == "div" else (node,)
    powers = [each for each in parts if each.op in ("power", "factorial", "binomial")]
    if not all(each.op == "number" or (each in powers and all(map(_is_integer, each.args))) for each in parts):
        return False
    try:
        value = rational(node)
    except TooLargeError:
        return True
    except NoValueError:
        return False
    is_long = value is not None and max(abs(value.numerator), value.denominator) >= 10**_DIGITS
    return is_long or (bool(powers) and all(each.args[0] == TEN for each in powers))


def _is_integer(node: Node) -> bool:
    node = node.args[0] if node.op == "neg" else node
    return node.op == "number" and node.value.denominator == 1


def is_undone_for(gold: Value, answer: Value) -> bool:
    """Whether the gold is a number and the answer arithmetic that is not carried out."""
    if not (isinstance(gold, Expression | Amount) and isinstance(answer, Expression | Amount)):
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


def comparable(gold: Node, answer: Node) -> list[tuple[Node, Node]]:
    """The pairs one of which must be equal where two numbers, with or without a per cent or degree sign, are.

    A gold with a per cent sign takes the number and the share; one without it, from -1 to 1 a share, beyond a number. A
    degree sign may be left out or added around a whole value; beside multiples of pi it is converted.
    """
    tops, bare = (_top(gold), _top(answer)), (_bare(gold), _bare(answer))
    if tops[0] == tops[1] and tops[0] in ("percent", "degrees"):
        return [bare]
    if tops[0] == "percent":
        return [(bare[0], answer), (divide(bare[0], _HUNDRED), answer)]
    if tops[1] == "percent":
        value = rational(gold)
        share = bare[1] if value is not None and abs(value) > 1 else divide(bare[1], _HUNDRED)
        return [] if value is None else [(gold, share)]
    if "degrees" in tops and has(gold, "degrees") != has(answer, "degrees"):
        is_turn = any(has(each, "pi", "sin", "cos", "tan", "radians") for each in (gold, answer))
        return [(gold, answer) if is_turn else bare]
    return [(gold, answer)]


def is_rounding(exact: Node, rounded: Node) -> bool:
    """Whether a number is another one rounded, up or down, to its last digit that is not zero: 66.6 or 67 for 200/3.

    NoValueError, TooLargeError.
    """
    try:
        size, value = abs(approximation(exact) - approximation(rounded)), rational(rounded)
    except OverflowError:
        return False
    if value is None:
        return False
    digits = f"{value.numerator * 10**_MAX_PLACES // value.denominator}"
    place = 10.0 ** (len(digits) - len(digits.rstrip("0")) - _MAX_PLACES)
    return size < place * (1 - 1e-9) and size <= _MAX_ROUNDING * abs(value)


def contradicts(left: Value, right: Value) -> bool:
    """Whether two numbers, or amounts of one unit, with "=" between them are certainly not equal, also not rounded."""
    if not (isinstance(left, Expression | Amount) and isinstance(right, Expression | Amount)):
        return False
    nodes = [left.node, right.node]
    if isinstance(left, Amount) and isinstance(right, Amount):
        nodes = [multiply(each.node, number(each.factor)) for each in (left, right)]
        if left.powers != right.powers:
            return False
    if any(map(names, nodes)):
        return False
    try:
        results = [equal_expressions(*pair) for pair in comparable(*nodes)]
        return {*results} == {False} and not is_rounding(*nodes)
    except (NoValueError, TooLargeError):
        return False


# -------------------------------------------------------------------------------------------------- amounts


def equal_amounts(gold: Value, answer: Value) -> Result:
    """Amounts of the same size; a unit may be left out or added, but not where the amount has several parts."""
    if isinstance(gold, Amount) and isinstance(answer, Amount):
        gold, answer = _pounds(gold, answer), _pounds(answer, gold)
        gold, answer = _without_units(gold, answer), _without_units(answer, gold)
        if answer.num_parts == 1 and is_unfinished(gold.node, answer.node):
            return False
        gold, answer = _without_things(gold, answer), _without_things(answer, gold)
        if gold.powers != answer.powers:
            return not gold.powers or not answer.powers if _same_number(gold, answer) else False
        if gold.factor == answer.factor:
            return _same_number(gold, answer)
        nodes = [multiply(each.node, number(each.factor)) for each in (gold, answer)]
        return equal_scalars(Expression(nodes[0]), Expression(nodes[1]))
    amount_, other = (gold, answer) if isinstance(gold, Amount) else (answer, gold)
    if not isinstance(other, Expression) or not isinstance(amount_, Amount):
        return None
    is_known = any(name in _BASES for name, _ in amount_.powers)
    if is_known and other.node.op == "percent" != amount_.node.op:  # $15 and 15%
        return False
    is_temperature = amount_.powers in (UNITS["celsius"].powers, UNITS["fahrenheit"].powers)
    is_angle = other.node.op == "degrees" and bool(amount_.powers) and (other is gold or not is_temperature)  # 120 °C
    if amount_.num_parts > 1 or is_angle:
        return False
    sides = (_number_of(amount_), other) if amount_ is gold else (other, _number_of(amount_))
    return equal_scalars(*sides)


def _pounds(value: Amount, other: Amount) -> Amount:
    """Pounds as the weight or the currency that the other side has; any other amount as it is."""
    for name in ("lb", "£"):
        if value.powers == UNITS["pound"].powers and other.powers == UNITS[name].powers:
            return replace(value, powers=other.powers, factor=UNITS[name].factor)
    return value


def _without_units(value: Amount, other: Amount) -> Amount:
    """An amount in (square) units as a number, beside an amount in another unit."""
    is_in_units = [each.powers[:1] != () and each.powers[0][0] == "unit" for each in (value, other)]
    return replace(value, powers=()) if is_in_units == [True, False] else value


def _without_things(value: Amount, other: Amount) -> Amount:
    """A rate per thing that is counted, $15 per ticket, as the amount of one, beside an amount that names no thing."""
    things = [(name, power) for name, power in value.powers if power < 0 and name not in _BASES]
    rest = tuple(each for each in value.powers if each not in things)
    return replace(value, powers=rest) if rest and rest == other.powers else value


def _number_of(value: Amount) -> Expression:
    return Expression(value.node, value.is_rounded)


def _same_number(gold: Amount, answer: Amount) -> Result:
    return equal_scalars(_number_of(gold), _number_of(answer))


# ------------------------------------------------------------------------------------ equations, inequalities


def equal_relations(gold: Value, answer: Value) -> Result:
    """Relations up to a factor and up to the side on which they are read; an answer's value behind `=`."""
    if isinstance(gold, Relation) and isinstance(answer, Relation):
        return _equal_pair_of_relations(_rising(gold), _rising(answer))
    if isinstance(answer, Relation) and answer.signs == ("=",) and isinstance(gold, Expression):
        left, right = answer.sides
        if not names(left) and equal_expressions(left, right) is not True:
            return False
        if bool(names(right)) != bool(names(gold.node)):
            return None if names(right) else False
        if names(right) and equal_expressions(left, right):
            return equal_scalars(gold, Expression(right))
        is_open = left.op in _OF_UNKNOWN and left.args[0].op == "symbol"  # ln x = 2 is to be solved
        is_asked = len(names(left)) != 1 or has(left, *_FUNCTIONS) or _has_reciprocal(left)
        is_asked = is_asked and not is_open  # a + b = 12, x + 1/x = 5, but not x^2 = 12 or x + 2 = 5
        if names(right) and not names(left).isdisjoint(names(gold.node) | names(right)):
            return None
        return equal_scalars(gold, Expression(right)) if is_asked else False
    if isinstance(gold, Relation) and isinstance(answer, Expression) and is_closed(answer.node):
        return equal_scalars(Expression(gold.sides[1]), answer) if _is_asked(gold) else False
    return None


def _is_asked(gold: Relation) -> bool:
    r"""Whether a gold gives the value of an expression of several letters that are no unknowns: `m + n = 17`."""
    left, right = gold.sides[0], gold.sides[-1]
    is_value = gold.signs == ("=",) and is_closed(right) and len(names(left)) > 1
    return is_value and names(left).isdisjoint(_UNKNOWNS) and right != number(0)


def _has_reciprocal(node: Node) -> bool:
    """Whether a sum has a letter and its reciprocal: x + 1/x."""
    is_over = [each.op == "div" and bool(names(each.args[1])) for each in node.args if names(each)]
    return node.op == "add" and True in is_over and False in is_over


def _rising(relation: Relation) -> Relation:
    if set(relation.signs) <= {">", "≥"}:
        return Relation(tuple(_MIRROR[each] for each in reversed(relation.signs)), tuple(reversed(relation.sides)))
    return relation


def _equal_pair_of_relations(gold: Relation, answer: Relation) -> Result:
    if gold.signs != answer.signs:
        return False
    if len(gold.signs) == 1:
        differences = [subtract(*each.sides) for each in (gold, answer)]
        return proportional(differences[0], differences[1], has_sign=gold.signs[0] in "<≤")
    same = all_equal(map(equal_expressions, gold.sides, answer.sides))
    return True if same else None if set(gold.signs) == {"="} else same
