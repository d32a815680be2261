"""The typed values that the grammar yields."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from verifiers.answers.tree import Node


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
    """A set of reals: disjoint intervals in increasing order. `name`: the letter of a condition on it ("" for none)."""

    intervals: tuple[Interval, ...]
    name: str = ""


@dataclass(frozen=True, slots=True)
class Sequence:
    """Several values. `kind`: list (bare), set, tuple or interval; `brackets` as written, for example "[)"."""

    kind: str
    items: tuple[Value, ...]
    brackets: str = ""


@dataclass(frozen=True, slots=True)
class Matrix:
    rows: tuple[tuple[Value, ...], ...]


@dataclass(frozen=True, slots=True)
class Assignments:
    """Values with the names in front of them: x = 1, y = 2. `is_chain`: written as x = y = 1."""

    names: tuple[str, ...]
    items: tuple[Value, ...]
    is_chain: bool = False

    def equal_letters(self) -> tuple[str, ...]:
        """The letters of `x = y = z`, which have one value that is not said; () for other values."""
        last = self.items[-1]
        is_letter = isinstance(last, Expression) and last.node.op == "symbol"
        if (
            not (self.is_chain or len(self.names) == 1)
            or not is_letter
            or not all(len(name) == 1 for name in self.names)
        ):
            return ()
        assert isinstance(last, Expression)
        return () if last.node.name in self.names else (*self.names, last.node.name)


@dataclass(frozen=True, slots=True)
class Function:
    """f(x) = ...: a name, its argument's letter, and the expression."""

    name: str
    argument: str
    node: Node


@dataclass(frozen=True, slots=True)
class Relation:
    """Sides joined by =, <, >, ≤, ≥ or ≠."""

    signs: tuple[str, ...]
    sides: tuple[Node, ...]


@dataclass(frozen=True, slots=True)
class Parameter:
    """An integer parameter. `least`: its lower bound, or None. `is_natural`: ℕ, which may begin with 0 or 1."""

    name: str
    least: int | None = None
    is_natural: bool = False


@dataclass(frozen=True, slots=True)
class Family:
    """All values of items (numbers, or tuples of them) for all integer values of the parameters."""

    items: tuple[tuple[Node, ...], ...]
    parameters: tuple[Parameter, ...]
    name: str = ""  # in front of the values


@dataclass(frozen=True, slots=True)
class RealFamily:
    """All values of items for all values of real parameters in their sets: lines, `f(x) = cx`, `x^2 + C`.

    `name` and `argument`: of the function whose values the items are ("" for none).
    """

    items: tuple[tuple[Node, ...], ...]
    parameters: tuple[tuple[str, Reals], ...]
    name: str = ""
    argument: str = ""


@dataclass(frozen=True, slots=True)
class Ratio:
    """3:4. `is_time`: written as a time of day is, 12:30."""

    terms: tuple[Node, ...]
    is_time: bool = False


@dataclass(frozen=True, slots=True)
class Nothing:
    """No solution, the empty set."""


@dataclass(frozen=True, slots=True)
class Choice:
    """The letter of a choice with its value: (B) 24."""

    letter: str
    value: Value


@dataclass(frozen=True, slots=True)
class Piecewise:
    """Expressions, each with the set of numbers or integers for which it holds."""

    pieces: tuple[tuple[Expression, Reals | Family], ...]


@dataclass(frozen=True, slots=True)
class Primes:
    """A set of primes, by those of its members that are compared."""

    members: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Words:
    """A name, or another answer in words."""

    text: str


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
    """Digits in a base."""

    digits: str
    base: int


@dataclass(frozen=True, slots=True)
class Clock:
    """A time of day: hour, minute, and "am" or "pm"."""

    hour: int
    minute: int
    half: str


@dataclass(frozen=True, slots=True)
class Date:
    """A day of the year; `year` is 0 where it is not given."""

    month: int
    day: int
    year: int = 0


Value = (
    Piecewise
    | Amount
    | Primes
    | Words
    | Numeral
    | Clock
    | Date
    | Choice
    | Expression
    | Reals
    | Sequence
    | Matrix
    | Assignments
    | Function
    | Relation
    | Family
    | RealFamily
    | Ratio
    | Nothing
)
