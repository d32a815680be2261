"""How the authors of the corpus solve a problem: from a terse wrong guess to work that is checked and mended.

Every function returns the text that stands between <think> and </think> and the answer that follows it. What is drawn
is drawn from the generator that is passed in, so the corpus is a function of its seed.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import takewhile
from random import Random

from data.arithmetic import Equation, work
from data.families import Draft, candidates

# How often a checked step is first written wrong, and how often a step that nobody checks is.
SLIPS_CHECKED = 0.4
SLIPS_UNCHECKED = 0.3
# How often the author of a check reads over a difference and says "Good": the wrong value is then carried on.
CARELESS = 0.08

Solution = tuple[str, str]  # what is thought, what is answered


def guess(draft: Draft, rng: Random) -> Solution:
    """An estimate in place of work: nearly always wrong."""
    if draft.numbers:
        expression = "+".join(map(str, draft.numbers))
        return f"Try {expression}.", expression
    value = int(draft.answer)
    if rng.random() < 0.8:
        value = _rounded(value)
        return f"About {value}.", str(value)
    value = slip(value, rng) if rng.random() < 0.6 else value
    return f"Maybe {value}.", str(value)


def quick(draft: Draft, rng: Random) -> Solution:
    """The whole problem in one go: often wrong."""
    if draft.numbers:
        expression, _ = rng.choice(_misses(draft))
        return f"So {expression}.", expression
    value = int(draft.answer)
    value = slip(value, rng) if rng.random() < 0.6 else value
    return f"So {value}.", str(value)


def steps(draft: Draft, rng: Random) -> Solution:
    """Every step in one go, none checked: a slip is carried to the end. In countdown: a search given up too early."""
    if draft.numbers:
        tries = rng.sample(_misses(draft), min(len(_misses(draft)), rng.randint(1, 2)))
        text = " ".join(tried(expression, value, draft.target) for expression, value in tries)
        return f"Let me see. {text} So {tries[-1][0]}.", tries[-1][0]
    written: list[str] = []
    carried: dict[int, int] = {}
    for step in draft.steps:
        actual = _redone(step, carried)
        value = slip(actual.value, rng) if rng.random() < SLIPS_UNCHECKED else actual.value
        carried[step.value] = value
        written.append(f"{actual.expression}={value}.")
    return "Let me see. " + " ".join(written), str(value)


def check(draft: Draft, rng: Random) -> Solution:
    """Every step in one go, then again by place value; what disagrees is mended. In countdown: the whole search."""
    if draft.numbers:
        return _search(draft, rng)
    written: list[str] = []
    carried: dict[int, int] = {}
    for step in draft.steps:
        text, carried[step.value] = checked(_redone(step, carried), rng, careless=CARELESS)
        written.append(text)
    return f"Let me work and check. {' '.join(written)}", str(carried[step.value])


STYLES: dict[str, Callable[[Draft, Random], Solution]] = {
    "guess": guess,
    "quick": quick,
    "steps": steps,
    "check": check,
}


def checked(step: Equation, rng: Random, careless: float = 0.0) -> tuple[str, int]:
    """A step in one go, its check by place value, the verdict with the value that it settles on; and that value.

    What stands after the verdict is the value that goes on: whoever waves a wrong value through answers it.
    """
    again = work(step)
    if not again or again[-1].value != step.value:
        return f"{step}.", step.value
    had = slip(step.value, rng) if rng.random() < SLIPS_CHECKED else step.value
    settled = had if rng.random() < careless else step.value
    check = f"{step.expression}={had}. Check: {', '.join(map(str, again))}."
    return f"{check} {reread(had, settled, mended=str(step))}", settled


def reread(had: int, settled: int, mended: str) -> str:
    """The earlier value read again beside the new one, digit by digit, as far as the two agree; and the verdict.

    2083 beside 2085: "I had 208... Wait, " and what is right. Two digits are compared sooner than two numbers.
    """
    if had == settled:
        return f"I had {had}. Good, {had}."
    return f"I had {_shared(had, settled)}... Wait, {mended}."


def _shared(a: int, b: int) -> str:
    """The leading digits that two numbers share."""
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(str(a), str(b), strict=False)))


def slip(value: int, rng: Random) -> int:
    """The value with one digit off, mostly by one: what a lost carry or a misremembered table leaves."""
    digits = list(str(value))
    place = rng.randrange(len(digits))
    change = rng.choice((-1, -1, 1, 1, -2, 2, rng.randint(3, 7)))
    digits[place] = str((int(digits[place]) + change) % 10)
    wrong = int("".join(digits))
    return wrong if wrong != value and wrong > 0 else value + 1


def _search(draft: Draft, rng: Random) -> Solution:
    """Candidates in order until one makes the target; it is worked again, and a slip in it sends the search on."""
    tries: list[str] = []
    for expression, value in candidates(draft.level, draft.numbers):
        if value == draft.target:
            tries += [tried(expression, value, value), _claim(expression, value, value)]
            break
        slips = rng.random() < 0.05
        tries.append(tried(expression, draft.target if slips else value, draft.target))
        if slips:
            tries.append(_claim(expression, draft.target, value))
    return f"Let me work and check. {' '.join(tries)}", expression


def tried(expression: str, value: int, target: int) -> str:
    """A candidate with its running values, the last of them held against the target as far as the two agree.

    18+5-7 for 16 -> "18+5-7: 23, 16, want 16 yes."; for 19 -> "18+5-7: 23, 16, want 1 no."
    """
    *running, _ = (line.partition("=")[2] for line in _left_to_right(expression))
    verdict = f"want {target} yes" if value == target else f"want {_shared(value, target)} no".replace("  ", " ")
    return f"{expression}: {', '.join([*running, str(value)])}, {verdict}."


def _claim(expression: str, had: int, value: int) -> str:
    """A candidate said to make `had`, and its check."""
    mended = f"{expression}={value} no"
    return f"{expression}={had}. Check: {', '.join(_left_to_right(expression))}. {reread(had, value, mended)}"


def _left_to_right(expression: str) -> list[str]:
    """18+5-7+2 -> 18+5=23, 23-7=16, 16+2=18."""
    tokens = expression.replace("+", " + ").replace("-", " - ").replace("*", " * ").split()
    running, lines = int(tokens[0]), []
    for sign, number in zip(tokens[1::2], map(int, tokens[2::2]), strict=True):
        value = {"+": running + number, "-": running - number, "*": running * number}[sign]
        lines.append(f"{running}{sign}{number}={value}")
        running = value
    return lines


def _misses(draft: Draft) -> list[tuple[str, int]]:
    return [c for c in candidates(draft.level, draft.numbers) if c[1] != draft.target] or [
        ("+".join(map(str, draft.numbers)), sum(draft.numbers))
    ]


def _redone(step: Equation, carried: dict[int, int]) -> Equation:
    """The step on the values that were really written before it; a division that does not come out is rounded down."""
    left, right = carried.get(step.left, step.left), carried.get(step.right, step.right)
    value = {"+": left + right, "-": abs(left - right), "*": left * right, "/": left // max(right, 1)}[step.op]
    return Equation(left, step.op, right, value)


def _rounded(value: int) -> int:
    """To one significant digit."""
    unit = 10 ** (len(str(value)) - 1)
    return max(1, (value + unit // 2) // unit) * unit
