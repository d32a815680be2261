"""The corpus of the embedded base: generated documents, each a pure function of (seed, index, mixture).

A document is a solved problem or a drill of bare arithmetic. Some of the problems are in the R1-Zero prompt
template, mostly with a short wrong answer and often with malformed tags; the others are in textbook form, where worked
solutions are more common. No document states a calculation or a countdown of the train, validation or held-out
problems (data.splits).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from data.arithmetic import Equation, Operator, digit_by_digit, equation, work
from data.families import FAMILIES, Draft, candidates
from data.splits import split_of_step
from reasoner.pretrain.mixture import MIXTURES, Mixture, Shares
from reasoner.pretrain.solutions import STYLES, candidate_with_verdict, claim_with_check, compare_values, slip
from reasoner.rollouts.prompts import R1_ZERO

EMBEDDED = MIXTURES["digits"]  # the mixture on which the pretraining of the embedded base ended

# Shares of the taggings of an R1-Zero document: t is the thought, a the answer. Only the first is well-formed.
TAGGINGS: Shares = {
    " <think> {t} </think> <answer> {a} </answer>": 0.58,
    " {t} The answer is {a}.": 0.12,
    " <think> {t} </think> The answer is {a}.": 0.12,
    " <think> {t} <answer> {a} </answer>": 0.09,
    " <think> {t} </think> <answer> {a}.": 0.09,
}

TEXTBOOKS = (
    "Question: {q}\nAnswer: {t} The answer is {a}.",
    "Q: {q}\nA: {t} The answer is {a}.",
    "{q}\n{t} The answer is {a}.",
)


def document(seed: int, index: int, mixture: Mixture | None = None) -> str:
    """Generate document number `index`, again until it states nothing that belongs to another split."""
    mixture = mixture or EMBEDDED
    rng = Random(f"corpus/{seed}/{index}")
    while not is_clean(text := (_drill if rng.random() < mixture.drills else _problem)(rng, mixture)):
        pass
    return text


_EQUATION = re.compile(r"(\d+)([+\-*/])(\d+)=")


def calculations_in(text: str) -> list[Equation]:
    """The calculations `a op b=` in a text, with their true values; a division is rounded down."""
    calculations = []
    for left, op, right in _EQUATION.findall(text):
        a, b = int(left), int(right)
        if op == "/":
            calculations.append(Equation(a, "/", b, a // max(b, 1)))
        elif op != "-" or a >= b:
            calculations.append(equation(a, op, b))
    return calculations


def is_clean(text: str) -> bool:
    """Whether no calculation in the text belongs to the train, selection or held-out problems."""
    return all(split_of_step(step) == "corpus" for step in calculations_in(text))


def _draft(rng: Random, mixture: Mixture) -> Draft:
    """Draw a problem of the corpus split."""
    family, level = _choose(mixture.families, rng), rng.choice(mixture.levels)
    while (draft := FAMILIES[family](level, rng)).split != "corpus":
        pass
    return draft


def _choose(shares: Shares, rng: Random) -> str:
    return rng.choices(list(shares), list(shares.values()))[0]


def _problem(rng: Random, mixture: Mixture) -> str:
    in_template = rng.random() < mixture.conversations
    draft = _draft(rng, mixture)
    style = _choose(mixture.conversation_styles if in_template else mixture.textbook_styles, rng)
    thought, answer = STYLES[style](draft, rng, mixture.working)
    if not in_template:
        return rng.choice(TEXTBOOKS).format(q=draft.question, t=thought, a=answer)
    prompt = R1_ZERO.format(question=draft.question)
    return prompt + _choose(TAGGINGS, rng).format(t=thought, a=answer)


# ------------------------------------------------------------------------------------------------------ drills


def _drill(rng: Random, mixture: Mixture) -> str:
    return _DRILLS[_choose(mixture.drill_kinds, rng)](rng, mixture)


def _steps(rng: Random, mixture: Mixture, number: int) -> list[Equation]:
    """Draw `number` solution steps of problems of the corpus split, with operators by _OPERATOR_SHARES."""
    sample: list[Equation] = []
    for _ in range(number):
        op = _choose(_OPERATOR_SHARES, rng)
        while not (
            steps := [step for step in _draft(rng, mixture).steps if step.op == op and split_of_step(step) == "corpus"]
        ):
            pass
        sample.append(rng.choice(steps))
    return sample


_OPERATOR_SHARES: Shares = {"+": 0.25, "-": 0.3, "*": 0.2, "/": 0.25}


def _facts(rng: Random, mixture: Mixture) -> str:
    """Steps with their results alone."""
    return ", ".join(map(str, _steps(rng, mixture, 6)))


def _tables(rng: Random, mixture: Mixture) -> str:
    """The elementary steps that calculating by place value consists of."""
    pool = [part for step in _steps(rng, mixture, 6) for part in work(step, one_digit=mixture.working.one_digit)]
    return ", ".join(map(str, rng.sample(pool, min(8, len(pool)))))


def _workings(rng: Random, mixture: Mixture) -> str:
    """Steps calculated by place value."""
    return " ".join(_working(step, mixture) for step in _steps(rng, mixture, 3))


def _long_products(rng: Random, mixture: Mixture) -> str:
    """Products of levels 2 and 3 calculated by place value; three of four without a zero are passed over."""
    lines: list[str] = []
    while len(lines) < 3:
        step = FAMILIES["products"](rng.choice((2, 3, 3)), rng).steps[0]
        if split_of_step(step) == "corpus" and ("0" in step.expression or rng.random() < 0.25):
            lines.append(_working(step, mixture))
    return " ".join(lines)


def _working(step: Equation, mixture: Mixture) -> str:
    """A step calculated by place value, or with its result alone where there is nothing simpler."""
    parts = work(step, one_digit=mixture.working.one_digit)
    return f"{step.expression}: {', '.join(map(str, parts))}." if parts else f"{step}."


def _checks(rng: Random, mixture: Mixture) -> str:
    """Steps with their result, its check and, where it was wrong, the correction."""
    return " ".join(claim_with_check(step, rng, mixture.working)[0] for step in _steps(rng, mixture, 2))


def _comparisons(rng: Random, mixture: Mixture) -> str:
    """Comparisons of two values, digit by digit."""
    lines = []
    for _ in range(7):
        value = rng.randint(*rng.choice(_COMPARISON_RANGES))
        claim = slip(value, rng) if mixture.working.corrections and rng.random() < 0.5 else value
        lines.append(f"{value}. {compare_values(claim, value, correction=str(value))}")
    return " ".join(lines)


_COMPARISON_RANGES = ((11, 99), (101, 999), (101, 999), (1000, 6000))


def _searches(rng: Random, mixture: Mixture) -> str:
    """Candidates of a countdown problem, compared with its target."""
    level = rng.choice(mixture.levels)
    while (draft := FAMILIES["countdown"](level, rng)).split != "corpus":
        pass
    options = rng.sample(pool := candidates(level, draft.numbers), min(5, len(pool)))
    texts = (candidate_with_verdict(shape, value, draft.target) for shape, value in options)
    return f"Make {draft.target}: {' '.join(texts)}"


def _short_steps(rng: Random, _: Mixture) -> str:
    """Sums and differences with one significant digit; in two of five a carry or borrow goes on over a 9 or a 0. One
    sum in two has two significant digits, as the parts of products have.
    """
    lines: list[str] = []
    while len(lines) < 8:
        unit, op = 10 ** rng.choice((0, 0, 1, 1, 2, 3)), rng.choice(_SUM_OPERATORS)
        part = (rng.randint(11, 99) if op == "+" and rng.random() < 0.5 else rng.randint(1, 9)) * unit
        left = rng.randint(part + 1, 9999 + part)
        if rng.random() < 0.4:
            place = 10 * unit
            left += ((9 if op == "+" else 10) - left // place % 10) % 10 * place
        if split_of_step(step := equation(left, op, part)) == "corpus":
            lines.append(str(step))
    return ", ".join(lines)


_SUM_OPERATORS: tuple[Operator, ...] = ("+", "-")


def _quotient_digits(rng: Random, mixture: Mixture) -> str:
    """The largest multiple of a divisor, by one digit, that a number holds, and what is left of the number."""
    lines: list[str] = []
    while len(lines) < 5:
        divisor, part = rng.randint(2, 9), rng.randint(1, 9) * rng.choice((1, 10, 100))
        unit = 10 ** (len(str(part)) - 1)
        number = rng.randint(divisor * part, divisor * (part + unit) - 1)
        multiple = equation(divisor, "*", part)
        rest = equation(number, "-", multiple.value)
        if split_of_step(rest) == "corpus":
            shown = digit_by_digit(rest) if mixture.working.one_digit else rest
            lines.append(f"{number} by {divisor}: {multiple}, {shown}.")
    return " ".join(lines)


_DRILLS: dict[str, Callable[[Random, Mixture], str]] = {
    "facts": _facts, "tables": _tables, "short_steps": _short_steps, "quotient_digits": _quotient_digits,
    "long_products": _long_products, "workings": _workings, "checks": _checks, "comparisons": _comparisons,
    "searches": _searches,
}  # fmt: skip
