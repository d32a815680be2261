"""The generated families: random questions with the steps that lead to their answers.

Five families: sums, products, equations, words and countdown. Levels 1 to 3 are those of `generated`; levels 4 and 5
have longer numbers or more of them than the embedded base has ever seen. A draft is a question before it is assigned to
a split; `Draft.split` is that split. For countdown, which uses no non-elementary facts, the numbers decide.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product
from math import prod
from random import Random

from data.arithmetic import Equation, Operator, equation
from data.splits import SPLITS, Split, split_of_key, split_of_step

LEVELS = (1, 2, 3)
HARD_LEVELS = (4, 5)


@dataclass(frozen=True, slots=True)
class Draft:
    """A question with its answer and the steps that lead to it."""

    family: str
    level: int
    question: str
    answer: str
    steps: tuple[Equation, ...] = ()  # sums, products, equations, words
    numbers: tuple[int, ...] = ()  # countdown: the numbers to use, largest first
    target: int = 0  # countdown

    @property
    def split(self) -> Split:
        """The most restricted split of any step that the question needs."""
        if self.numbers:
            return split_of_key("countdown " + " ".join(map(str, self.numbers)))
        return max(map(split_of_step, self.steps), key=list(SPLITS).index, default="corpus")


def _draft(family: str, level: int, question: str, steps: list[Equation]) -> Draft:
    return Draft(family, level, question, str(steps[-1].value), tuple(steps))


# ------------------------------------------------------------------------------------------------------- sums


_Range = tuple[int, int]
# level -> ranges of the operands, from left to right
_TERMS: dict[int, tuple[_Range, ...]] = {
    1: ((101, 999), (101, 999)),
    2: ((101, 999), (101, 999), (11, 99)),
    3: ((101, 999), (101, 999), (101, 999)),
    4: ((1001, 9999), (1001, 9999)),
    5: ((1001, 9999), (1001, 9999), (1001, 9999)),
}


def _sums(level: int, rng: Random) -> Draft:
    """Additions and subtractions: one at levels 1 and 4, else two."""
    first, *others = _TERMS[level]
    steps: list[Equation] = []
    for low, high in others:
        left = steps[-1].value if steps else rng.randint(*first)
        steps.append(_sum_step(left, rng, low, high))
    calculation = str(steps[0].left) + "".join(f" {step.op} {step.right}" for step in steps)
    return _draft("sums", level, rng.choice(_CALCULATE).format(calculation), steps)


def _sum_step(left: int, rng: Random, low: int = 101, high: int = 999) -> Equation:
    """A step left + b or left - b, with b from low to high and a difference above 100."""
    op: Operator = "-" if left > 200 + low and rng.random() < 0.5 else "+"
    right = rng.randint(low, min(high, left - 101) if op == "-" else high)
    return equation(left, op, right)


_CALCULATE = ("What is {}?", "Compute {}.", "Find the value of {}.")


# --------------------------------------------------------------------------------------------------- products

_FACTORS: dict[int, tuple[_Range, _Range]] = {
    1: ((13, 99), (2, 9)), 2: ((101, 999), (2, 9)), 3: ((13, 99), (13, 99)), 4: ((101, 999), (13, 99)),
    5: ((1001, 9999), (13, 99)),
}  # fmt: skip


def _product(level: int, rng: Random) -> Equation:
    """A product of factors in the ranges of the level."""
    (low, high), (low_2, high_2) = _FACTORS[level]
    return equation(rng.randint(low, high), "*", rng.randint(low_2, high_2))


def _products(level: int, rng: Random) -> Draft:
    step = _product(level, rng)
    return _draft("products", level, rng.choice(_CALCULATE).format(f"{step.left} * {step.right}"), [step])


# -------------------------------------------------------------------------------------------------- equations


def _equations(level: int, rng: Random) -> Draft:
    """Levels 1 to 3: x + b = c or x - b = c; d*x = c; d*x + b = c or d*x - b = c. Levels 4 and 5: as 2 and 3, with a
    solution of three digits. The solution is a whole number.
    """
    factor, solution = rng.randint(2, 9), rng.randint(*((101, 999) if level > 3 else (13, 99)))
    divide = equation(factor * solution, "/", factor)
    if level == 1:
        step = _sum_step(rng.randint(202, 999), rng)
        sign = "-" if step.op == "+" else "+"
        equation_text, steps = f"x {sign} {step.right} = {step.left}", [step]
    elif level in (2, 4):
        equation_text, steps = f"{factor} * x = {divide.left}", [divide]
    else:
        shift = rng.randint(101, 999)
        if divide.left > shift + 101 or rng.random() < 0.5:
            equation_text = f"{factor} * x + {shift} = {divide.left + shift}"
            steps = [equation(divide.left + shift, "-", shift), divide]
        else:
            right = rng.randint(1, max(1, divide.left - 1))
            equation_text = f"{factor} * x - {divide.left - right} = {right}"
            steps = [equation(right, "+", divide.left - right), divide]
    return _draft("equations", level, rng.choice(_SOLVE).format(equation_text), steps)


_SOLVE = ("Solve {} for x.", "What is x if {}?", "Find x: {}.")


# ------------------------------------------------------------------------------------------------------ words

_NAMES = ("Ana", "Ben", "Cora", "Dan", "Eva", "Finn", "Gita", "Hugo")
_THINGS = ("pens", "books", "coins", "cards", "stamps", "apples", "beads", "shells")

_ONE_STEP: tuple[tuple[Operator, str], ...] = (
    ("+", "{who} has {a} {what} and gets {b} more. How many {what} does {who} have?"),
    ("-", "{who} has {a} {what} and gives away {b}. How many {what} are left?"),
    ("*", "{who} buys {b} boxes with {a} {what} in each. How many {what} is that?"),
    ("/", "{who} shares {a} {what} equally among {b} friends. How many {what} does each get?"),
)
_TWO_STEPS: dict[Operator, str] = {
    "+": "{who} has {c} {what} and buys {b} boxes with {a} in each. How many {what} does {who} have now?",
    "-": "{who} buys {b} boxes with {a} {what} in each and gives away {c}. How many {what} are left?",
}
_THREE_STEPS: dict[Operator, str] = {
    "+": "{who} buys {b} boxes of {a} {what} and {d} boxes of {c} {what}. How many {what} is that in all?",
    "-": "{who} packs {b} boxes of {a} {what} and then sells {d} bags of {c}. How many {what} are left?",
}


def _words(level: int, rng: Random) -> Draft:
    """Levels 1 to 3: a story of one, two or three steps. Levels 4 and 5: as 3, with longer factors."""
    who, what = rng.choice(_NAMES), rng.choice(_THINGS)
    factors = {4: 2, 5: 4}.get(level, 1)  # the level of the products
    boxes = _product(factors, rng)
    a, b, c, d = boxes.left, boxes.right, 0, 0
    if level == 1:
        op, story = rng.choice(_ONE_STEP)
        if op in "+-":
            a, b = rng.randint(301, 999), rng.randint(101, 299)
        elif op == "/":
            a = boxes.value
        steps = [equation(a, op, b)]
    elif level == 2:
        op = "+" if boxes.value <= 202 or rng.random() < 0.5 else "-"
        c = rng.randint(101, 999 if op == "+" else boxes.value - 101)
        story, steps = _TWO_STEPS[op], [boxes, equation(boxes.value, op, c)]
    else:
        other = _product(factors, rng)
        c, d = other.left, other.right
        op = "-" if boxes.value > other.value + 101 and rng.random() < 0.5 else "+"
        story, steps = _THREE_STEPS[op], [boxes, other, equation(boxes.value, op, other.value)]
    return _draft("words", level, story.format(who=who, what=what, a=a, b=b, c=c, d=d), steps)


# -------------------------------------------------------------------------------------------------- countdown


def candidates(level: int, numbers: tuple[int, ...]) -> list[tuple[str, int]]:
    """Every (expression, value) in the order of a systematic search, without the plain sum, which is never a target.

    Levels 1, 2 and 4: the first number with every choice of signs for the others. Levels 3 and 5: the product of two
    numbers, with every choice of signs for the others.
    """
    words = list(map(str, numbers))
    if level in (3, 5):
        shapes = []
        for i, j in combinations(range(len(words)), 2):
            others = [word for place, word in enumerate(words) if place not in (i, j)]
            shapes += _signed(f"{words[i]}*{words[j]}", others)
    else:
        shapes = _signed(words[0], words[1:])[1:]
    return [(shape, value) for shape in shapes if (value := _value_of(shape)) > 0]


def _signed(first: str, rest: list[str]) -> list[str]:
    """The first term with every choice of signs for the others."""
    return [first + "".join(map("".join, zip(signs, rest, strict=True))) for signs in product("+-", repeat=len(rest))]


def _value_of(shape: str) -> int:
    """The value of a sum of signed terms, each a number or a product of numbers."""
    return sum(prod(map(int, term.split("*"))) for term in shape.replace("-", "+-").split("+"))


_COUNTDOWN_NUMBERS = {
    1: (3, 2, 30), 2: (4, 2, 15), 3: (3, 2, 12), 4: (5, 2, 15), 5: (4, 2, 12),
}  # level -> how many, from, to  # fmt: skip


def _countdown(level: int, rng: Random) -> Draft:
    count, low, high = _COUNTDOWN_NUMBERS[level]
    numbers = tuple(sorted(rng.sample(range(low, high + 1), count), reverse=True))
    plain_sum = sum(numbers)
    expression, target = rng.choice([c for c in candidates(level, numbers) if c[1] != plain_sum])
    numbers_text = ", ".join(map(str, numbers[:-1])) + f" and {numbers[-1]}"
    signs = "+, - and *" if level in (3, 5) else "+ and -"
    question = rng.choice(_MAKE).format(numbers=numbers_text, signs=signs, target=target)
    return Draft("countdown", level, question, expression, numbers=numbers, target=target)


_MAKE = (
    "Use {numbers} once each with {signs} to make {target}.",
    "Make {target} from {numbers}, each used once, with {signs}.",
)


FAMILIES: dict[str, Callable[[int, Random], Draft]] = {
    "sums": _sums, "products": _products, "equations": _equations, "words": _words, "countdown": _countdown,
}  # fmt: skip
