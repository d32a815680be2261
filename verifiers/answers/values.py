"""The twelve kinds of values that an answer can be."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any, TypeVar

from verifiers.answers.tree import INFINITY, MINUS_INFINITY, Node


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
    """Sides joined by =, <, >, ≤, ≥, ≠, ∥ or ⊥."""

    signs: tuple[str, ...]
    sides: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Family:
    """The numbers or tuples of the items for all integers of some letters, or for those from a least one on."""

    items: tuple[tuple[Node, ...], ...]
    letters: tuple[tuple[str, int | None], ...]  # with the least integer of each
    name: str = ""  # b of b = a^2


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
class Cases:
    """A function by cases: expressions, each with the numbers that it holds for. The first that holds counts."""

    pieces: tuple[tuple[Node, Reals | Integers], ...]
    letter: str


@dataclass(frozen=True, slots=True)
class Amount:
    """A number of a unit, which is `factor` times the product of powers of base units; 2 h 15 min has two parts."""

    node: Node
    powers: tuple[tuple[str, int], ...]
    factor: Fraction
    num_parts: int = 1
    is_rounded: bool = False  # stated as approximate


@dataclass(frozen=True, slots=True)
class Literal:
    """What is equal only where all parts are.

    `kind`: base (digits, base), time (hour, minute, am or pm), words (the name of somebody).
    """

    kind: str
    parts: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Choice:
    """The letter of a choice with its value: (B) 24."""

    letter: str
    value: Value


Value = (
    Expression | Reals | Collection | Named | Relation | Family | Space | Integers | Cases | Amount | Literal | Choice
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
