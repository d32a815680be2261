"""The written form of a value, whatever its value is: it tells an answer from a formula of its question said back,
and an expanded or factored one from one that is not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from fractions import Fraction
from math import prod
from typing import Any

from verifiers.answers.comparison import equal_expressions
from verifiers.answers.values import (
    FUNCTIONS,
    MIRROR,
    ONE,
    ZERO,
    Amount,
    Choice,
    Collection,
    Expression,
    Named,
    Node,
    Relation,
    Value,
    has,
    names,
    subtract,
)

Form = tuple[Any, ...]
_ONE: Form = ("number", ONE.value)
_E: Form = ("e", "")
_OPEN = FUNCTIONS - {"exp"}  # e^2 in another spelling


def form(value: Value) -> Form | None:
    r"""What is written in a value, without the order of sums and products and the parts that change nothing.

    `(x+2)(x+5)` and `1 \cdot (5+x)(2+x)` have one form, `x^2+7x+10` another. A single name in front and a unit, degree
    or per cent sign behind do not count. None for other values, such as intervals and words.
    """
    match value:
        case Expression(node=node) | Amount(node=node):
            return _form(node)
        case Named(names=(_,), items=(item,)) | Choice(value=item):
            return form(item)
        case Relation(signs=signs, sides=sides):
            return _difference(signs[0], *sides) if len(sides) == 2 else ("relation", signs, *map(_form, sides))
        case Collection(kind=kind, items=items):
            return (kind, *map(form, items))
    return None


def _difference(sign: str, left: Node, right: Node) -> Form:
    """A relation in one form, on whichever side its terms are."""
    difference = _form(subtract(left, right))
    if sign in MIRROR and sign > MIRROR[sign]:
        sign, difference = MIRROR[sign], _opposite(difference)
    if sign == MIRROR.get(sign, sign):
        difference = min(difference, _opposite(difference), key=repr)
    return ("relation", sign, difference)


def _form(node: Node) -> Form:
    if node.args and not names(node):  # i^4, sin(pi/2), 0!
        for neutral in (ZERO, ONE):
            if equal_expressions(node, neutral):
                return ("number", neutral.value)
    match node.op:
        case "add":
            return _combined("add", [_form(each) for each in node.args], _opposite)
        case "mul":
            return _product([_form(each) for each in node.args])
        case "div":
            return _product([_form(node.args[0]), _reciprocal(_form(node.args[1]))])
        case "degrees" | "percent" | "absolute" | "floor" | "ceil":
            return _form(node.args[0])
        case "root":
            return _power(_form(node.args[0]), _reciprocal(_form(node.args[1])))
        case "power":
            return _power(*map(_form, node.args))
        case "exp":
            return _power(_E, _form(node.args[0]))
        case "ln" | "log":
            argument, base = _form(node.args[0]), _form(node.args[1]) if node.op == "log" else _E
            result: Form = argument[3] if argument[0] == "power" and argument[2] == base else ("log", argument, base)
            return result
        case "neg":
            return _opposite(_form(node.args[0]))
        case "number":
            return ("number", node.value)
    return (node.op, node.name, *map(_form, node.args))


def _power(base: Form, exponent: Form) -> Form:
    r"""A power, without the powers, roots and logarithms that undo each other: `(x^2)^{1/2}`, `e^{\ln x}`."""
    if base[0] == "power":
        return _power(base[2], _product([base[3], exponent]))
    if exponent == _ONE:
        return base
    if exponent == _opposite(_ONE):
        return _reciprocal(base)
    if exponent[0] == "log" and exponent[2] == base:
        argument: Form = exponent[1]
        return argument
    return ("power", "", base, exponent)


def _product(factors: list[Form]) -> Form:
    is_negative = [_is_negative(each) for each in factors]
    sizes = [_opposite(each) if is_below else each for each, is_below in zip(factors, is_negative, strict=True)]
    product = _combined("mul", sizes, _reciprocal)
    return _opposite(product) if sum(is_negative) % 2 else product


def _combined(op: str, parts: list[Form], inverse: Callable[[Form], Form]) -> Form:
    """The parts of a sum or product in one order, without neutral parts and without a part beside its inverse."""
    counts: Counter[Form] = Counter()
    for part in parts:
        counts.update(part[1] if part[0] == op else [part])
    for part in list(counts):
        if pairs := min(counts[part], counts[inverse(part)]):
            counts -= Counter({part: pairs, inverse(part): pairs})
    rest = tuple(sorted(counts.elements(), key=repr))
    if len(rest) == 1:
        return rest[0]
    return (op, rest) if rest else ("number", 0 if op == "add" else 1)


def worked_out(part: Form) -> Form:
    """A form with the sums, products and quotients of its numbers worked out: `(2+1)x` as `3x`."""
    match part[0]:
        case "add" | "mul":
            inside = list(map(worked_out, part[1]))
            numbers = [each[1] for each in inside if each[0] == "number"]
            rest = [each for each in inside if each[0] != "number"]
            value = Fraction(sum(numbers) if part[0] == "add" else prod(numbers))
            parts = [*rest, ("number", value)] if numbers else rest
            return _combined("add", parts, _opposite) if part[0] == "add" else _product(parts)
        case "neg":
            return _opposite(worked_out(part[1]))
        case "inverse":
            inner = worked_out(part[1])
            return ("number", 1 / Fraction(inner[1])) if inner[0] == "number" and inner[1] else _reciprocal(inner)
        case "power":
            return _power(worked_out(part[2]), worked_out(part[3]))
    return tuple(worked_out(each) if isinstance(each, tuple) and each else each for each in part)


def _opposite(part: Form) -> Form:
    if part[0] == "number":
        return ("number", -part[1])
    if part[0] == "add":
        return ("add", tuple(sorted(map(_opposite, part[1]), key=repr)))
    return part[1] if part[0] == "neg" else ("neg", part)


def _is_negative(part: Form) -> bool:
    return part[0] == "neg" or (part[0] == "number" and bool(part[1] < 0))


def _reciprocal(part: Form) -> Form:
    if part == _ONE:
        return part
    if _is_negative(part):
        return _opposite(_reciprocal(_opposite(part)))
    if part[0] == "mul":
        return ("mul", tuple(sorted(map(_reciprocal, part[1]), key=repr)))
    return part[1] if part[0] == "inverse" else ("inverse", part)


def has_open_part(part: Form) -> bool:
    """Whether a function is left to be evaluated in a form: a logarithm, a factorial, a trigonometric function."""
    return has_part(part, *_OPEN)


def numbers_in(part: Form) -> set[Form]:
    """The numbers in a form."""
    inside = [each for each in part if isinstance(each, tuple) and each]
    return {part} if part[0] == "number" else set().union(*map(numbers_in, inside))


def is_quotient(part: Form) -> bool:
    """Whether numbers are left to be multiplied and divided, and nothing else."""
    if part[0] == "neg":
        return is_quotient(part[1])
    return part[0] == "mul" and all((each[1] if each[0] == "inverse" else each)[0] == "number" for each in part[1])


def has_part(part: Form, *ops: str) -> bool:
    return part[0] in ops or any(has_part(each, *ops) for each in part if isinstance(each, tuple) and each)


def is_inside(part: Form, whole: Form) -> bool:
    """Whether a form is a part of another one, or some of the summands or factors of a part."""
    if part == whole or (part[0] == whole[0] in ("add", "mul") and Counter(part[1]) <= Counter(whole[1])):
        return True
    return any(is_inside(part, each) for each in whole if isinstance(each, tuple) and each)


def is_expanded(node: Node) -> bool:
    """Whether no sum with a letter is a factor or the base of a power."""
    products = [each for each in node.walk() if each.op in ("mul", "power")]
    parts = [part for each in products for part in (each.args if each.op == "mul" else each.args[:1])]
    return not any(has(part, "add") and names(part) for part in parts)


def num_factors(node: Node) -> int:
    """The number of factors with a letter, those of a power with a whole exponent as often as it says."""
    if node.op == "mul":
        return sum(map(num_factors, node.args))
    if node.op in ("neg", "div"):
        return num_factors(node.args[0])
    if node.op == "power" and node.args[1].op == "number" and node.args[1].value.denominator == 1:
        return int(node.args[1].value) * num_factors(node.args[0])
    return int(bool(names(node)))
