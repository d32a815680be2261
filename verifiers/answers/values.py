"""Expression trees, and the eleven kinds of values that an answer can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from itertools import repeat
from typing import TypeVar


@dataclass(frozen=True, slots=True)
class Node:
    """One operation. Leaves: number (`value`), symbol (`name`), and the constants pi, e, i and infinity.

    Operations: add, mul, div, neg, power, root (radicand, index), percent, degrees, radians, factorial,
    binomial, absolute, plusminus (left, right), minusplus, log (argument, base), unknownlog (base
    not given), mixed (whole, fraction), and functions by name ("sin", "floor", ...).
    """

    op: str
    args: tuple[Node, ...] = ()
    name: str = ""
    value: Fraction = Fraction(0)

    def walk(self) -> Iterator[Node]:
        """This node and every node below it."""
        stack = [self]
        while stack:
            node = stack.pop()
            yield node
            stack.extend(node.args)


def number(value: Fraction | int) -> Node:
    return Node("number", value=Fraction(value))


def symbol(name: str) -> Node:
    return Node("symbol", name=name)


ZERO, ONE, TEN = number(0), number(1), number(10)
PI, INFINITY, MINUS_INFINITY = Node("pi"), Node("infinity"), Node("neg", (Node("infinity"),))


def add(*terms: Node) -> Node:
    return Node("add", terms)


def multiply(*factors: Node) -> Node:
    return Node("mul", factors)


def negate(node: Node) -> Node:
    return node.args[0] if node.op == "neg" else Node("neg", (node,))


def subtract(left: Node, right: Node) -> Node:
    return add(left, negate(right))


def divide(left: Node, right: Node) -> Node:
    return Node("div", (left, right))


@lru_cache(maxsize=4096)
def names(node: Node) -> frozenset[str]:
    """The free symbols of an expression."""
    return frozenset(each.name for each in node.walk() if each.op == "symbol")


def replace_symbols(node: Node, values: dict[str, Node]) -> Node:
    """The expression with symbols replaced."""
    if node.op == "symbol":
        return values.get(node.name, node)
    if not node.args:
        return node
    return Node(node.op, tuple(replace_symbols(each, values) for each in node.args), node.name, node.value)


def has(node: Node, *ops: str) -> bool:
    return any(each.op in ops for each in node.walk())


def with_letter_i(node: Node) -> Node:
    """The tree with the letter i, of an index or a unit vector, in place of the imaginary unit."""
    if node.op == "i":
        return symbol("i")
    return Node(node.op, tuple(map(with_letter_i, node.args)), node.name, node.value)


def is_infinite(node: Node) -> bool:
    return node.op == "infinity" or (node.op == "neg" and node.args[0].op == "infinity")


def signs(node: Node) -> list[Node]:
    r"""The expressions of both signs of `a \pm b`. Two of `\pm` are independent; `\pm` and `\mp` go together."""
    places = sum(each.op in ("plusminus", "minusplus") for each in node.walk())
    if places == 0:
        return [node]
    if has(node, "minusplus"):
        return [_with_signs(node, repeat(sign)) for sign in (1, -1)]
    if places > 3:
        return [node]
    result = []
    for choice in range(2**places):
        bits = (1 if choice >> place & 1 else -1 for place in range(places))
        result.append(_with_signs(node, bits))
    return result


def _with_signs(node: Node, sign: Iterator[int]) -> Node:
    if node.op in ("plusminus", "minusplus"):
        positive = (next(sign) > 0) == (node.op == "plusminus")
        parts = [_with_signs(each, sign) for each in node.args]
        last = parts[-1] if positive else negate(parts[-1])
        return add(*parts[:-1], last) if len(parts) > 1 else last
    if not node.args:
        return node
    return Node(node.op, tuple(_with_signs(each, sign) for each in node.args), node.name, node.value)


def is_numeral(node: Node) -> bool:
    """Whether a tree is one written number: integer, decimal, fraction, mixed number, product with a power of ten."""
    if node.op == "neg":
        return is_numeral(node.args[0])
    if node.op in ("number", "mixed"):
        return True
    if node.op in ("percent", "degrees", "radians"):
        return is_numeral(node.args[0])
    if node.op == "div":
        return all(each.op == "number" or (each.op == "neg" and each.args[0].op == "number") for each in node.args)
    return is_scientific(node)


def is_scientific(node: Node) -> bool:
    """Whether a tree is `a * 10^n`."""
    if node.op != "mul" or len(node.args) != 2 or node.args[0].op != "number":
        return False
    return node.args[1].op == "power" and node.args[1].args[0] == TEN


def is_undone(node: Node) -> bool:
    """Whether a tree without functions and letters is arithmetic to be carried out: 2+3, 2*3, 10/(1+1)."""
    undone = False
    for each in node.walk():
        if each.op in _ROUNDING:
            undone = True
        elif each.op in FUNCTIONS or each.op == "symbol":
            return False
        if each.op in ("add", "plusminus") and len(each.args) > 1:
            undone = True
        if each.op == "mul" and not is_scientific(each):
            undone = undone or sum(not has(part, "pi", "e", "i", "root", "degrees") for part in each.args) > 1
        if each.op == "div" and any(has(part, "div", "mixed") for part in each.args):
            undone = True
    return undone


_ROUNDING = frozenset(("floor", "ceil", "absolute"))
_FUNCTION_WORDS = (
    "sin cos tan cot sec csc asin acos atan acot asec acsc sinh cosh tanh coth asinh acosh atanh exp ln lg log "
    "unknownlog cis binomial factorial"
)
FUNCTIONS = frozenset(_FUNCTION_WORDS.split())


@dataclass(frozen=True, slots=True)
class Expression:
    """A number or an expression with letters. `is_rounded`: stated as approximate."""

    node: Node
    is_rounded: bool = False
    approximation: Node | None = None  # the rounded value stated behind it: √10 ≈ 3.16


@dataclass(frozen=True, slots=True)
class Interval:
    """An interval of reals; its ends may be infinite. A point is a closed interval with equal ends."""

    low: Node
    high: Node
    has_low: bool
    has_high: bool


@dataclass(frozen=True, slots=True)
class Reals:
    """A set of reals: disjoint intervals in increasing order. `name`: the letter of a condition on it ("" for none);
    `is_real`: whether that is said to be real, n ∈ [1, ∞), where n ≥ 1 may be of integers.
    """

    intervals: tuple[Interval, ...]
    name: str = ""
    is_real: bool = field(default=False, compare=False)


@dataclass(frozen=True, slots=True)
class Collection:
    """Several values. `kind`: list (bare), set, tuple (of two also an interval), matrix (of rows), ratio.

    `brackets`: of a tuple, as written ("[)"); "()" for a tuple of more than two. Of a ratio "time" where it may be one.
    """

    kind: str
    items: tuple[Value, ...]
    brackets: str = ""

    @property
    def is_plain_tuple(self) -> bool:
        return self.kind == "tuple" and self.brackets in ("()", "⟨⟩")

    @property
    def is_bare(self) -> bool:
        """Whether the values have no order."""
        return self.kind in ("list", "set")


@dataclass(frozen=True, slots=True)
class Named:
    """Values with the names in front of them: x = 1, y = 2; f(x) = 2x with its `argument`."""

    names: tuple[str, ...]
    items: tuple[Value, ...]
    argument: str = ""
    is_chain: bool = False  # x = y = 5, whose last link alone may be the answer

    @property
    def is_single(self) -> bool:
        return len(self.names) == 1


@dataclass(frozen=True, slots=True)
class Relation:
    """Sides joined by =, <, >, ≤, ≥ or ≠."""

    signs: tuple[str, ...]
    sides: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """The numbers or tuples of the items for all integers of some letters, or for those from a least one on."""

    items: tuple[tuple[Node, ...], ...]
    letters: tuple[tuple[str, int | None], ...]  # with the least integer of each


@dataclass(frozen=True, slots=True)
class Space:
    """The numbers, tuples or functions of the items for all values of real parameters, each of its own set."""

    items: tuple[tuple[Node, ...], ...]
    parameters: tuple[tuple[str, Reals], ...]
    argument: str = ""  # x of f(x) = ax + b


@dataclass(frozen=True, slots=True)
class Integers:
    """A set of integers: `members(limit)` are those from -limit to limit. `size`: the largest number that tells it.

    `optional`: numbers that may be left out, as 0 of the natural numbers and 1 of the powers of 2.
    """

    members: Callable[[int], frozenset[int]]
    size: int = 1
    optional: frozenset[int] = frozenset()


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of a unit, which is `factor` times the product of powers of base units; 2 h 15 min has two parts."""

    node: Node
    powers: tuple[tuple[str, int], ...]
    factor: Fraction
    num_parts: int = 1
    is_rounded: bool = False  # stated as approximate


@dataclass(frozen=True, slots=True)
class Numeral:
    """Digits with the base that they are read in: 1011_2."""

    digits: str
    base: int


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day with am or pm, in 24 hours."""

    hour: int
    minute: int
    second: int


@dataclass(frozen=True, slots=True)
class Choice:
    """The letter of a choice with its value: (B) 24."""

    letter: str
    value: Value


Value = (
    Expression | Reals | Collection | Named | Relation | Family | Space | Integers | Amount | Numeral | Clock | Choice
)
EMPTY = Reals(())
MIRROR = {"<": ">", ">": "<", "≤": "≥", "≥": "≤", "=": "=", "≠": "≠"}  # a relation read from its right side
ALL_REALS = Reals((Interval(MINUS_INFINITY, INFINITY, False, False),))


def listed(items: tuple[Value, ...] | list[Value]) -> Value:
    """One value as it is, several as a list."""
    return items[0] if len(items) == 1 else Collection("list", tuple(items))


def bare(value: Value) -> Value:
    """A value without a single name in front of it."""
    return value.items[0] if isinstance(value, Named) and value.is_single else value


def nodes_of(values: tuple[Value, ...]) -> list[Node] | None:
    """The trees of values that are all expressions; None for others."""
    nodes = [value.node for value in values if isinstance(value, Expression)]
    return nodes if len(nodes) == len(values) else None


T = TypeVar("T")
Result = bool | None  # of a comparison: True, False, or None where another layer must decide


def all_equal(results: Iterable[Result]) -> Result:
    """True if all are, False if one is False, else None."""
    is_decided = True
    for result in results:
        if result is False:
            return False
        is_decided = is_decided and result is not None
    return True if is_decided else None


def matched(gold: Sequence[T], answer: Sequence[T], equal: Callable[[T, T], Result]) -> Result:
    """Whether each value has an equal one of its own on the other side, in any order; both have the same length."""
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
