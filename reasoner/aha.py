"""What a response does besides answering: does it check its own working, and does a check catch what is wrong?

The rule, for the text of any model. Only the think block counts (everything before `</think>`, or all of it without one).

- An *equation* is `expression = number`, whole numbers with + - * /. It is wrong when its two sides differ.
- A response *checks itself* when, after a first equation, a checking word (check, verify, recompute, "let me make sure", ...) is
  followed by an equation before anything is concluded: "I will check" before there is anything to check does not count, nor does
  "I checked" with no calculation behind it.
- A *claim* is an equation outside the checks. In a response that checks itself, a wrong claim is *caught* when the same expression
  is stated again later with its right value. A check that recomputes and then says "ok" to the wrong value catches nothing.
- A *false alarm* is a right claim whose expression is stated again with another, wrong, value.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction

_NUMBER = r"\d{1,12}"
_EQUATION = re.compile(rf"(?<![\d.+\-*/])({_NUMBER}(?: ?[+\-*/] ?{_NUMBER}){{1,6}}) ?= ?(-?{_NUMBER})(?![\d.]\d)")
_CHECK = re.compile(
    r"\b(?:double[- ]?check|re-?check|check|verify|re-?compute|re-?calculate|let me make sure|to be sure)\w*\b",
    re.IGNORECASE,
)
# What ends a check: the verdict. Equations after it are claims again.
_VERDICT = re.compile(r"\b(?:I had|good|ok|okay|correct|right|wait|so|therefore|hence)\b", re.IGNORECASE)
_WAIT = re.compile(r"\bwait\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Equation:
    """One stated equation: `expression` without spaces, the stated value, where it starts, and whether it stands in a check."""

    expression: str
    value: int
    start: int
    in_check: bool

    @property
    def is_right(self) -> bool:
        return evaluate(self.expression) == self.value


@dataclass(frozen=True, slots=True)
class Reflection:
    """What one response did."""

    checks: bool
    waits: bool
    wrong_claims: int = 0  # counted in responses that check themselves, as is what follows
    caught: int = 0
    false_alarms: int = 0
    wrong_in_checks: int = 0  # arithmetic inside the checks that is itself wrong


def evaluate(expression: str) -> Fraction | None:
    """The exact value of whole numbers joined by + - * /; None for a division by zero or anything else."""
    tokens = re.findall(r"\d+|[+\-*/]", expression)
    if len(tokens) % 2 == 0 or "".join(tokens) != expression.replace(" ", ""):
        return None
    total, term, sign = Fraction(0), Fraction(int(tokens[0])), 1
    for op, number in zip(tokens[1::2], map(int, tokens[2::2]), strict=True):
        if op == "*":
            term *= number
        elif op == "/":
            if number == 0:
                return None
            term /= number
        else:
            total += sign * term
            sign, term = (1 if op == "+" else -1), Fraction(number)
    return total + sign * term


def think(response: str) -> str:
    """The text before `</think>`; all of it where the block is not closed."""
    return response.split("</think>", 1)[0]


def equations(text: str) -> list[Equation]:
    """Every equation of the text, in order."""
    checks = list(_check_spans(text))
    return [
        Equation(
            found[1].replace(" ", ""),
            int(found[2]),
            found.start(),
            any(start <= found.start() < end for start, end in checks),
        )
        for found in _EQUATION.finditer(text)
    ]


def _check_spans(text: str) -> Iterator[tuple[int, int]]:
    """From each checking word that has an equation before it to the verdict after it (or the end of the text)."""
    first = _EQUATION.search(text)
    for cue in _CHECK.finditer(text, first.end() if first else len(text)):
        verdict = _VERDICT.search(text, cue.end())
        yield cue.end(), verdict.start() if verdict else len(text)


def reflect(response: str) -> Reflection:
    """The rule of this module's docstring, applied to one response."""
    text = think(response)
    found = equations(text)
    checks = any(equation.in_check for equation in found)
    waits = _WAIT.search(text) is not None
    if not checks:
        return Reflection(False, waits)
    claims = [equation for equation in found if not equation.in_check]
    wrong = caught = alarms = 0
    first: dict[str, Equation] = {}
    for claim in claims:
        earlier = first.setdefault(claim.expression, claim)
        if earlier is claim:
            wrong += not claim.is_right
        elif earlier.value != claim.value:
            caught += claim.is_right
            alarms += earlier.is_right
            first[claim.expression] = claim
    in_checks = sum(equation.in_check and not equation.is_right for equation in found)
    return Reflection(True, waits, wrong, min(caught, wrong), alarms, in_checks)


@dataclass(frozen=True, slots=True)
class ReflectionRates:
    """Reflection over many responses."""

    checks: float  # share of responses that check themselves
    waits: float  # share that say "wait"
    wrong_claims: int
    caught: int
    false_alarms: int

    @property
    def caught_share(self) -> float | None:
        """Of the wrong claims in responses that check, the share found and mended; None where there was none."""
        return self.caught / self.wrong_claims if self.wrong_claims else None


def rates(responses: Iterable[str]) -> ReflectionRates:
    """Reflection of a set of responses; all zero for none."""
    found = [reflect(response) for response in responses]
    size = max(1, len(found))
    return ReflectionRates(
        checks=sum(r.checks for r in found) / size,
        waits=sum(r.waits for r in found) / size,
        wrong_claims=sum(r.wrong_claims for r in found),
        caught=sum(r.caught for r in found),
        false_alarms=sum(r.false_alarms for r in found),
    )
