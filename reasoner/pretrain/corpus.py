"""The corpus of the embedded base: generated documents, each a pure function of (seed, index).

A document is a solved problem or a drill of bare arithmetic. Three tenths of the problems are in the R1-Zero prompt
template, mostly with a short wrong answer and often with malformed tags; the others are in textbook form, where worked
solutions are more common. No document states a calculation or a countdown of the train, selection or held-out
problems (data.contamination).
"""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

from data.arithmetic import Equation, equation, work
from data.contamination import split_of_step
from data.families import LEVELS, Draft, candidates, draw
from reasoner.pretrain.solutions import STYLES, Solution, candidate_with_verdict, claim_with_check, compare_values, slip
from reasoner.rollouts.prompts import R1_ZERO

DRILLS = 0.45  # share of the documents
CONVERSATIONS = 0.3  # share of the problems in the R1-Zero template

# Shares of the problem families: more of those that are hard to learn.
FAMILY_SHARES = {"sums": 0.18, "products": 0.14, "equations": 0.22, "words": 0.22, "countdown": 0.24}

# Shares of the solution styles (reasoner.pretrain.solutions) by form of document.
STYLE_SHARES = {
    "conversation": {"guess": 0.58, "quick": 0.16, "steps": 0.12, "check": 0.14},
    "textbook": {"guess": 0.10, "quick": 0.10, "steps": 0.25, "check": 0.55},
}

# Shares of the taggings of an R1-Zero document: t is the thought, a the answer. Only the first is well-formed.
TAGGINGS = {
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


def document(seed: int, index: int) -> str:
    """Generate document number `index`, again and again until it states nothing that belongs to another split."""
    rng = Random(f"corpus/{seed}/{index}")
    while not is_clean(text := _drill(rng) if rng.random() < DRILLS else _problem(rng)):
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


def _draft(rng: Random) -> Draft:
    """Draw a problem of the corpus split: a family by FAMILY_SHARES, each level equally often."""
    family, level = _choose(FAMILY_SHARES, rng), rng.choice(LEVELS)
    while (draft := draw(family, level, rng)).split != "corpus":
        pass
    return draft


def _choose(shares: dict[str, float], rng: Random) -> str:
    """A random key, by its share."""
    return rng.choices(list(shares), list(shares.values()))[0]


def _problem(rng: Random) -> str:
    """A document of a solved problem."""
    frame = "conversation" if rng.random() < CONVERSATIONS else "textbook"
    draft = _draft(rng)
    thought, answer = _solve(draft, frame, rng)
    if frame == "textbook":
        return rng.choice(TEXTBOOKS).format(q=draft.question, t=thought, a=answer)
    prompt = R1_ZERO.format(question=draft.question)
    return prompt + _choose(TAGGINGS, rng).format(t=thought, a=answer)


def _solve(draft: Draft, frame: str, rng: Random) -> Solution:
    return STYLES[_choose(STYLE_SHARES[frame], rng)](draft, rng)


# ------------------------------------------------------------------------------------------------------ drills


def _drill(rng: Random) -> str:
    """A document of bare arithmetic."""
    return _DRILLS[_choose(_DRILL_SHARES, rng)](rng)


def _steps(rng: Random, number: int) -> list[Equation]:
    """Draw `number` solution steps of problems of the corpus split, with operators by _OPERATOR_SHARES."""
    sample: list[Equation] = []
    for _ in range(number):
        op = _choose(_OPERATOR_SHARES, rng)
        while not (steps := [step for step in _draft(rng).steps if step.op == op and split_of_step(step) == "corpus"]):
            pass
        sample.append(rng.choice(steps))
    return sample


_OPERATOR_SHARES = {"+": 0.25, "-": 0.3, "*": 0.2, "/": 0.25}


def _facts(rng: Random) -> str:
    """Steps with their results alone."""
    return ", ".join(map(str, _steps(rng, 6)))


def _tables(rng: Random) -> str:
    """The elementary steps that calculating by place value consists of."""
    pool = [part for step in _steps(rng, 6) for part in work(step)]
    return ", ".join(map(str, rng.sample(pool, min(8, len(pool)))))


def _workings(rng: Random) -> str:
    """Steps calculated by place value."""
    lines = []
    for step in _steps(rng, 3):
        parts = work(step)
        lines.append(f"{step.expression}: {', '.join(map(str, parts))}." if parts else f"{step}.")
    return " ".join(lines)


def _checks(rng: Random) -> str:
    """Steps with their result, its check and, where it was wrong, the correction."""
    return " ".join(claim_with_check(step, rng)[0] for step in _steps(rng, 2))


def _comparisons(rng: Random) -> str:
    """Comparisons of two values, digit by digit."""
    lines = []
    for _ in range(7):
        value = rng.randint(*rng.choice(_COMPARISON_RANGES))
        claim = slip(value, rng) if rng.random() < 0.5 else value
        lines.append(f"{value}. {compare_values(claim, value, correction=str(value))}")
    return " ".join(lines)


_COMPARISON_RANGES = ((11, 99), (101, 999), (101, 999), (1000, 6000))


def _searches(rng: Random) -> str:
    """Candidates of a countdown problem, compared with its target."""
    level = rng.choice(LEVELS)
    while (draft := draw("countdown", level, rng)).split != "corpus":
        pass
    options = rng.sample(pool := candidates(level, draft.numbers), min(5, len(pool)))
    texts = (candidate_with_verdict(shape, value, draft.target) for shape, value in options)
    return f"Make {draft.target}: {' '.join(texts)}"


_DRILLS: dict[str, Callable[[Random], str]] = {
    "facts": _facts,
    "tables": _tables,
    "workings": _workings,
    "checks": _checks,
    "comparisons": _comparisons,
    "searches": _searches,
}
_DRILL_SHARES = {
    "facts": 0.06,
    "tables": 0.3,
    "workings": 0.18,
    "checks": 0.18,
    "comparisons": 0.08,
    "searches": 0.2,
}
