"""Expression trees: frozen nodes with an operation and its arguments, and what can be read off them without a value."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from itertools import repeat


@dataclass(frozen=True, slots=True)
class Node:
    """One operation. Leaves: number (`value`), symbol (`name`), and the constants pi, e, i and infinity.

    Operations: add, mul, div, neg, power, root (radicand, index), percent, degrees, radians, factorial,
    doublefactorial, binomial, absolute, plusminus (left, right), minusplus, log (argument, base), unknownlog (base
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
BOUND = "§"  # before the name of the index of a sum or product
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
    return frozenset(each.name for each in node.walk() if each.op == "symbol" and each.name[0] != BOUND)


def replace_symbols(node: Node, values: dict[str, Node]) -> Node:
    """The expression with symbols replaced."""
    if node.op == "symbol":
        return values.get(node.name, node)
    if not node.args:
        return node
    return Node(node.op, tuple(replace_symbols(each, values) for each in node.args), node.name, node.value)


def unfold(node: Node, bounds: Callable[[Node, Node], Iterable[int]]) -> Node:
    """The tree with every sum and product between two integers written out.

    `bounds` is the function from the two ends to the integers between them.
    """
    if not has(node, "sum", "product"):
        return node
    if node.op not in ("sum", "product"):
        return Node(node.op, tuple(unfold(each, bounds) for each in node.args), node.name, node.value)
    body, low, high = node.args
    terms = [unfold(replace_symbols(body, {node.name: number(value)}), bounds) for value in bounds(low, high)]
    if not terms:
        return ZERO if node.op == "sum" else ONE
    return add(*terms) if node.op == "sum" else multiply(*terms)


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
    "unknownlog cis binomial factorial doublefactorial"
)
FUNCTIONS = frozenset(_FUNCTION_WORDS.split())
