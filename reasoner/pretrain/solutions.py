"""Solution styles of the corpus, from a short wrong guess to a calculation that is checked and corrected.

Every style returns the text between <think> and </think>, and the answer. Every random choice comes from the generator
that is passed in, so the corpus is a function of its seed.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import takewhile
from random import Random

from data.arithmetic import Equation, work
from data.families import Draft, candidates

# How often a step is first written with a wrong result: where it is checked afterwards, and where it is not.
SLIPS_CHECKED = 0.4
SLIPS_UNCHECKED = 0.3
# How often a check overlooks the difference and says "Good": the wrong value is then used in later steps.
CARELESS = 0.08

Solution = tuple[str, str]  # (thought, answer)


@dataclass(frozen=True, slots=True)
class Working:
    """How steps are worked out and checked."""

    one_digit: bool = False  # whether a division within a check subtracts one significant digit at a time
    # How often the first value of a checked division is wrong. A model that sees right ones copies their digits into
    # the check instead of finding the quotient's.
    quotient_slips: float = SLIPS_CHECKED
    # Of these wrong first values, the share that are random numbers of as many digits, which share no digit but by
    # chance: copying from them does not pay. The others have one wrong digit.
    random_quotients: float = 0.0
    corrections: bool = True  # False: what is checked was right, so that no check finds an error


def guess(draft: Draft, rng: Random, _: Working) -> Solution:
    """An estimate instead of a calculation: nearly always wrong."""
    if draft.numbers:
        expression = "+".join(map(str, draft.numbers))
        return f"Try {expression}.", expression
    value = int(draft.answer)
    if rng.random() < 0.8:
        value = _round(value)
        return f"About {value}.", str(value)
    value = slip(value, rng) if rng.random() < 0.6 else value
    return f"Maybe {value}.", str(value)


def quick(draft: Draft, rng: Random, _: Working) -> Solution:
    """The answer without steps: often wrong."""
    if draft.numbers:
        expression = rng.choice(_misses(draft))[0]
        return f"So {expression}.", expression
    value = int(draft.answer)
    value = slip(value, rng) if rng.random() < 0.6 else value
    return f"So {value}.", str(value)


def steps(draft: Draft, rng: Random, _: Working) -> Solution:
    """Every step with its result and without a check, so slips stay. In countdown: a search that ends too early."""
    if draft.numbers:
        tries = rng.sample(_misses(draft), min(len(_misses(draft)), rng.randint(1, 2)))
        text = " ".join(candidate_with_verdict(expression, value, draft.target) for expression, value in tries)
        return f"Let me see. {text} So {tries[-1][0]}.", tries[-1][0]
    lines: list[str] = []
    values: dict[int, int] = {}  # correct value of a step -> value in the text
    for step in draft.steps:
        actual = _recalculate(step, values)
        value = slip(actual.value, rng) if rng.random() < SLIPS_UNCHECKED else actual.value
        values[step.value] = value
        lines.append(f"{actual.expression}={value}.")
    return "Let me see. " + " ".join(lines), str(value)


def check(draft: Draft, rng: Random, working: Working) -> Solution:
    """Every step with its result, then by place value; slips are corrected. In countdown: the whole search."""
    if draft.numbers:
        return _search(draft, rng, working)
    lines: list[str] = []
    values: dict[int, int] = {}  # correct value of a step -> value in the text
    for step in draft.steps:
        actual = _recalculate(step, values)
        text, values[step.value] = claim_with_check(actual, rng, working, careless=CARELESS)
        lines.append(text)
    return f"Let me work and check. {' '.join(lines)}", str(values[step.value])


STYLES: dict[str, Callable[[Draft, Random, Working], Solution]] = {
    "guess": guess,
    "quick": quick,
    "steps": steps,
    "check": check,
}


def claim_with_check(step: Equation, rng: Random, working: Working, careless: float = 0.0) -> tuple[str, int]:
    """A step with its result, its check by place value and a verdict, as (text, value that later steps use).

    Later steps use the value after the verdict: a careless check keeps a wrong value. `careless`: the share of these.
    """
    small_steps = work(step, one_digit=working.one_digit)
    if not small_steps or small_steps[-1].value != step.value:
        return f"{step}.", step.value
    claim = _claim_of(step, rng, working) if working.corrections else step.value
    final = claim if rng.random() < careless else step.value
    text = f"{step.expression}={claim}. Check: {', '.join(map(str, small_steps))}."
    return f"{text} {compare_values(claim, final, correction=str(step))}", final


def _claim_of(step: Equation, rng: Random, working: Working) -> int:
    """The first value of a step that is checked: right, a slip, or in a division a random number of as many digits."""
    is_division = step.op == "/"
    if rng.random() >= (working.quotient_slips if is_division else SLIPS_CHECKED):
        return step.value
    if is_division and working.random_quotients and rng.random() < working.random_quotients:
        least: int = 10 ** (len(str(step.value)) - 1)
        return rng.randint(least, 10 * least - 1)
    return slip(step.value, rng)


def compare_values(claim: int, final: int, correction: str) -> str:
    """Compare the earlier value with the new one, digit by digit up to the first difference, and state a verdict.

    2083 against 2085: "I had 208... Wait, " and the correction. Comparing digits is easier to learn than numbers.
    """
    if claim == final:
        return f"I had {claim}. Good, {claim}."
    return f"I had {_common_digits(claim, final)}... Wait, {correction}."


def _common_digits(a: int, b: int) -> str:
    """The leading digits that two numbers have in common."""
    return "".join(one for one, _ in takewhile(lambda pair: pair[0] == pair[1], zip(str(a), str(b), strict=False)))


def slip(value: int, rng: Random) -> int:
    """The value with one wrong digit, mostly off by one, as after a lost carry or a misremembered table."""
    digits = list(str(value))
    place = rng.randrange(len(digits))
    change = rng.choice((-1, -1, 1, 1, -2, 2, rng.randint(3, 7)))
    digits[place] = str((int(digits[place]) + change) % 10)
    wrong = int("".join(digits))
    return wrong if wrong != value and wrong > 0 else value + 1


def _search(draft: Draft, rng: Random, working: Working) -> Solution:
    """Try candidates in order until one makes the target. A hit is checked; where it was a slip, the search goes on."""
    tries: list[str] = []
    for expression, value in candidates(draft.level, draft.numbers):
        if value == draft.target:
            tries += [candidate_with_verdict(expression, value, value), _claim(expression, value, value)]
            break
        slips = working.corrections and rng.random() < 0.05
        tries.append(candidate_with_verdict(expression, draft.target if slips else value, draft.target))
        if slips:
            tries.append(_claim(expression, draft.target, value))
    return f"Let me work and check. {' '.join(tries)}", expression


def candidate_with_verdict(expression: str, value: int, target: int) -> str:
    """A candidate with its running values, and the comparison of the last one with the target (first different digit).

    18+5-7 for 16 -> "18+5-7: 23, 16, want 16 yes."; for 19 -> "18+5-7: 23, 16, want 1 no."
    """
    *running, _ = (line.partition("=")[2] for line in _left_to_right(expression))
    verdict = f"want {target} yes" if value == target else f"want {_common_digits(value, target)} no".replace("  ", " ")
    return f"{expression}: {', '.join([*running, str(value)])}, {verdict}."


def _claim(expression: str, claim: int, value: int) -> str:
    """The claim that a candidate has the value `claim`, and its check."""
    comparison = compare_values(claim, value, correction=f"{expression}={value} no")
    return f"{expression}={claim}. Check: {', '.join(_left_to_right(expression))}. {comparison}"


def _left_to_right(expression: str) -> list[str]:
    """The steps of an expression from left to right: 18+5-7+2 -> 18+5=23, 23-7=16, 16+2=18."""
    tokens = expression.replace("+", " + ").replace("-", " - ").replace("*", " * ").split()
    running, lines = int(tokens[0]), []
    for sign, number in zip(tokens[1::2], map(int, tokens[2::2]), strict=True):
        value = {"+": running + number, "-": running - number, "*": running * number}[sign]
        lines.append(f"{running}{sign}{number}={value}")
        running = value
    return lines


def _misses(draft: Draft) -> list[tuple[str, int]]:
    """The candidates (expression, value) of a countdown that do not make its target."""
    return [c for c in candidates(draft.level, draft.numbers) if c[1] != draft.target] or [
        ("+".join(map(str, draft.numbers)), sum(draft.numbers))
    ]


def _recalculate(step: Equation, values: dict[int, int]) -> Equation:
    """Recalculate a step with the earlier values of the text, slips included; a division is rounded down."""
    left, right = values.get(step.left, step.left), values.get(step.right, step.right)
    value = {"+": left + right, "-": abs(left - right), "*": left * right, "/": left // max(right, 1)}[step.op]
    return Equation(left, step.op, right, value)


def _round(value: int) -> int:
    unit: int = 10 ** (len(str(value)) - 1)
    return max(1, (value + unit // 2) // unit) * unit
