"""Self-checks in a response: does it check its own calculations, and does a check catch errors?

The rule, for the text of any model. Only the think block counts (the text before `</think>`, or all without that tag).

- An *equation* is `expression = number`: whole or decimal numbers, + - * / (also x, ×, ÷, \\times, \\cdot) and
  parentheses, evaluated exactly. It is wrong when its two sides differ; a non-terminating value (10/3) may be cut or
  rounded at the decimals that are written, not at a whole number.
- A response *checks itself* when, after a first equation, a checking word (check, verify, confirm, recompute, "let me
  make sure", ...) is followed by an equation before anything is concluded: "I will check" before there is anything to
  check does not count, nor does "I checked" with no calculation behind it.
- A *claim* is an expression with the value stated for it outside the checks. In a response that checks itself, a wrong
  claim is *caught* when the same expression has its correct value in the end, or when it is retracted explicitly ("I
  had 472. Wait, 402", "402, not 472"). A check that evaluates the expression again and then accepts the wrong value
  with "ok" catches nothing. If the correct value is used afterwards nevertheless, it is *replaced unsaid*: counted
  separately, never as caught.
- A *false alarm* is a correct claim whose expression has another, wrong, value in the end.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from verifiers.equations import Equation, equations, plain, think_block

_CHECK = re.compile(
    r"\b(?:double[- ]?check|re-?check|check|verify|confirm|re-?compute|re-?calculate|let me make sure|to be sure)\w*\b",
    re.IGNORECASE,
)
# A verdict ends a check. Equations after it are claims again.
_VERDICT = re.compile(r"\b(?:I had|good|ok|okay|correct|right|wait|so|therefore|hence)\b", re.IGNORECASE)
_ACCEPTED = re.compile(r"(?:I had [\d.]+\W+)?(?:good|ok|okay|correct|right)\b", re.IGNORECASE)
_WAIT = re.compile(r"\bwait\b", re.IGNORECASE)
# The text after each wrong claim is searched, so both are bounded: a hostile text must not take minutes.
_MOST_CHARACTERS = 200_000  # of a response that are read
_MOST_CLAIMS = 50  # wrong claims that are searched for a retraction; later ones count as not retracted


@dataclass(frozen=True, slots=True)
class Placed:
    """A stated equation, and whether it is inside a check."""

    equation: Equation
    in_check: bool
    in_accepted_check: bool  # the check ends in "good" or the like


@dataclass(frozen=True, slots=True)
class Reflection:
    """The counts of one response."""

    checks: bool
    waits: bool
    wrong_claims: int = 0  # this and the following fields are counted only in responses that check themselves
    caught: int = 0
    replaced_unsaid: int = 0
    false_alarms: int = 0
    wrong_in_checks: int = 0  # arithmetic inside the checks that is itself wrong


def placed(text: str) -> list[Placed]:
    """Every equation of a plain text, in order, marked as inside or outside of a check."""
    stated = equations(text)
    checks = list(_check_spans(text, stated[0].end)) if stated else []
    starts = [start for start, _ in checks]
    result = []
    for equation in stated:
        check = bisect(starts, equation.start) - 1
        in_check = check >= 0 and equation.start < checks[check][1]
        accepted = in_check and _ACCEPTED.match(text, checks[check][1]) is not None
        result.append(Placed(equation, in_check, accepted))
    return result


def _check_spans(text: str, at: int) -> Iterator[tuple[int, int]]:
    """From each checking word after `at`, where the first equation ends, to the verdict after it (or the end)."""
    while cue := _CHECK.search(text, at):
        verdict = _VERDICT.search(text, cue.end())
        at = verdict.start() if verdict else len(text)
        yield cue.end(), at


def reflect(response: str) -> Reflection:
    """The rule of this module's docstring, applied to one response."""
    response = response[:_MOST_CHARACTERS]
    text = plain(think_block(response))
    items = placed(text)
    waits = _WAIT.search(text) is not None
    if not any(item.in_check for item in items):
        return Reflection(False, waits)
    claims = list(_by_expression(items))
    wrong = [values for values in claims if not values[0].is_correct]
    uncorrected = [values[0] for values in wrong if not values[-1].is_correct]
    searched = uncorrected[:_MOST_CLAIMS]
    missed = [claim for claim in searched if not _is_retracted(claim, text)]
    whole = plain(response)
    return Reflection(
        checks=True,
        waits=waits,
        wrong_claims=len(wrong),
        caught=len(wrong) - len(uncorrected) + len(searched) - len(missed),
        replaced_unsaid=sum(_is_replaced(claim, whole) for claim in missed),
        false_alarms=sum(values[0].is_correct and not values[-1].is_correct for values in claims),
        wrong_in_checks=sum(item.in_check and not item.equation.is_correct for item in items),
    )


def _by_expression(items: Iterable[Placed]) -> Iterable[list[Equation]]:
    """The claims of each expression, in order. A correct value in a check that does not end in "ok" is a claim too."""
    claims: dict[str, list[Equation]] = {}
    for item in items:
        equation = item.equation
        if not item.in_check:
            claims.setdefault(equation.expression, []).append(equation)
        elif equation.expression in claims and equation.is_correct and not item.in_accepted_check:
            claims[equation.expression].append(equation)
    return claims.values()


def _is_retracted(claim: Equation, text: str) -> bool:
    """Whether the wrong value is retracted for the correct one: "I had 472. Wait, 402" or "402, not 472"."""
    if claim.exact.denominator != 1:
        return False
    had, should = re.escape(claim.written), str(claim.exact)
    patterns = (rf"\bI had {had}\W+(?:wait|no)\b\D{{0,40}}\b{should}\b", rf"\b{should}\b,? not {had}\b")
    return any(re.compile(pattern, re.IGNORECASE).search(text, claim.end) for pattern in patterns)


def _is_replaced(claim: Equation, response: str) -> bool:
    """Whether the correct value is used after the check that follows the claim, in the thought or in the answer."""
    verdict = _VERDICT.search(response, claim.end)
    right = rf"(?<![\d.]){claim.exact}(?![\d.]\d|\d)"
    return verdict is not None and re.compile(right).search(response, verdict.start()) is not None


@dataclass(frozen=True, slots=True)
class ReflectionRates:
    """The rates and counts of many responses."""

    checks: float  # share of responses that check themselves
    waits: float  # share that say "wait"
    wrong_claims: int
    caught: int
    replaced_unsaid: int
    false_alarms: int
    wrong_in_checks: int

    @property
    def caught_share(self) -> float | None:
        """The share of wrong claims that were caught, in responses that check themselves; None without wrong claims."""
        return self.caught / self.wrong_claims if self.wrong_claims else None


def rates(responses: Iterable[str]) -> ReflectionRates:
    """The rates of a set of responses; all zero for an empty set."""
    reflections = [reflect(response) for response in responses]
    size = max(1, len(reflections))
    return ReflectionRates(
        checks=sum(r.checks for r in reflections) / size,
        waits=sum(r.waits for r in reflections) / size,
        wrong_claims=sum(r.wrong_claims for r in reflections),
        caught=sum(r.caught for r in reflections),
        replaced_unsaid=sum(r.replaced_unsaid for r in reflections),
        false_alarms=sum(r.false_alarms for r in reflections),
        wrong_in_checks=sum(r.wrong_in_checks for r in reflections),
    )
