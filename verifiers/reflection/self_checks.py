"""Self-checks in a response: whether it checks its own calculations, and which errors it corrects.

The rule, for the text of any model. Only the think block counts (the text before `</think>`, or all without that tag).

- An *equation* is `expression = number`: whole or decimal numbers, + - * / (also x, ×, ÷, \\times, \\cdot) and
  parentheses, evaluated exactly. It is wrong when its two sides differ; a non-terminating value (10/3) may be cut or
  rounded at the decimals that are written, not at a whole number.
- A response *checks itself* when, after a first equation, a checking word (check, verify, confirm, recompute, "let me
  make sure", ...) is followed by an equation before anything is concluded: "I will check" before there is anything to
  check does not count, nor does "I checked" with no calculation behind it.
- A *claim* is an expression with the value stated for it outside the checks. In a response that checks itself, a wrong
  claim is an *error caught* when the same expression has its correct value in the end, or when the claim is retracted
  explicitly ("I had 472. Wait, 402", "402, not 472"). A check that evaluates the expression again and then accepts the
  wrong value with "ok" catches no error. If the response uses the correct value afterwards nevertheless, the error is
  *replaced silently*: counted separately, never as caught.
- A *false alarm* is a correct claim whose expression has another, wrong, value in the end.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from verifiers.equations import Equation, equations, plain, think_block

_CHECK = re.compile(
    r"\b(?:double[- ]?check|re-?check|check|verify|confirm|re-?compute|re-?calculate|let me make sure|to be sure)\w*\b",
    re.IGNORECASE,
)
# A verdict ends a check. Equations after it are claims again.
_VERDICT = re.compile(r"\b(?:I had|good|ok|okay|correct|right|wait|so|therefore|hence)\b", re.IGNORECASE)
_ACCEPTANCE = re.compile(r"(?:I had [\d.]+\W+)?(?:good|ok|okay|correct|right)\b", re.IGNORECASE)
_WAIT = re.compile(r"\bwait\b", re.IGNORECASE)
# The text after each wrong claim is searched, so both are bounded: a hostile text must not take minutes.
_MAX_CHARACTERS = 200_000  # of a response; the rest is ignored
_MAX_CLAIMS = 50  # wrong claims that are checked for a retraction; later ones count as not retracted


@dataclass(frozen=True, slots=True)
class EquationInContext:
    """An equation of a text, and whether it is inside a check."""

    equation: Equation
    in_check: bool
    in_accepted_check: bool  # the check ends in "good" or the like


@dataclass(frozen=True, slots=True)
class Reflection:
    """The counts of one response."""

    has_self_check: bool
    has_wait: bool  # the word "wait"
    wrong_claims: int = 0  # this and the following fields are counted only in responses that check themselves
    errors_caught: int = 0
    errors_replaced_silently: int = 0
    false_alarms: int = 0
    errors_in_checks: int = 0  # wrong equations inside the checks


def equations_in_context(text: str) -> list[EquationInContext]:
    """Every equation of a plain text, in order, marked as inside or outside of a check."""
    all_equations = equations(text)
    checks = list(_check_spans(text, all_equations[0].end)) if all_equations else []
    starts = [start for start, _ in checks]
    result = []
    for equation in all_equations:
        check = bisect(starts, equation.start) - 1
        in_check = check >= 0 and equation.start < checks[check][1]
        is_accepted = in_check and _ACCEPTANCE.match(text, checks[check][1]) is not None
        result.append(EquationInContext(equation, in_check, is_accepted))
    return result


def _check_spans(text: str, at: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of each check after position `at`: from a checking word to the next verdict, or the end."""
    while cue := _CHECK.search(text, at):
        verdict = _VERDICT.search(text, cue.end())
        at = verdict.start() if verdict else len(text)
        yield cue.end(), at


def reflect(response: str) -> Reflection:
    """Apply the rule of this module's docstring to one response."""
    response = response[:_MAX_CHARACTERS]
    text = plain(think_block(response))
    items = equations_in_context(text)
    has_wait = _WAIT.search(text) is not None
    if not any(item.in_check for item in items):
        return Reflection(False, has_wait)
    claims = list(_by_expression(items))
    wrong = [values for values in claims if not values[0].is_correct]
    wrong_in_the_end = [values[0] for values in wrong if not values[-1].is_correct]
    candidates = wrong_in_the_end[:_MAX_CLAIMS]
    missed_claims = [claim for claim in candidates if not _is_retracted(claim, text)]
    whole_text = plain(response)
    return Reflection(
        has_self_check=True,
        has_wait=has_wait,
        wrong_claims=len(wrong),
        errors_caught=len(wrong) - len(wrong_in_the_end) + len(candidates) - len(missed_claims),
        errors_replaced_silently=sum(_is_replaced(claim, whole_text) for claim in missed_claims),
        false_alarms=sum(values[0].is_correct and not values[-1].is_correct for values in claims),
        errors_in_checks=sum(item.in_check and not item.equation.is_correct for item in items),
    )


def _by_expression(items: Iterable[EquationInContext]) -> Iterable[list[Equation]]:
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
    wrong, correct = re.escape(claim.value_text), str(claim.exact)
    patterns = (rf"\bI had {wrong}\W+(?:wait|no)\b\D{{0,40}}\b{correct}\b", rf"\b{correct}\b,? not {wrong}\b")
    return any(re.compile(pattern, re.IGNORECASE).search(text, claim.end) for pattern in patterns)


def _is_replaced(claim: Equation, response: str) -> bool:
    """Whether the correct value is used after the check that follows the claim, in the thought or in the answer."""
    verdict = _VERDICT.search(response, claim.end)
    correct = rf"(?<![\d.]){claim.exact}(?![\d.]\d|\d)"
    return verdict is not None and re.compile(correct).search(response, verdict.start()) is not None


@dataclass(frozen=True, slots=True)
class ReflectionRates:
    """The rates and counts of many responses."""

    self_check_rate: float  # share of responses that check themselves
    wait_rate: float  # share of responses with the word "wait"
    wrong_claims: int
    errors_caught: int
    errors_replaced_silently: int
    false_alarms: int
    errors_in_checks: int

    @property
    def errors_caught_share(self) -> float | None:
        """Errors caught as a share of wrong claims, in responses that check themselves; None without wrong claims."""
        return self.errors_caught / self.wrong_claims if self.wrong_claims else None


def rates(reflections: Sequence[Reflection]) -> ReflectionRates:
    """The rates of a set of responses; all zero for an empty set."""
    size = max(1, len(reflections))
    return ReflectionRates(
        self_check_rate=sum(r.has_self_check for r in reflections) / size,
        wait_rate=sum(r.has_wait for r in reflections) / size,
        wrong_claims=sum(r.wrong_claims for r in reflections),
        errors_caught=sum(r.errors_caught for r in reflections),
        errors_replaced_silently=sum(r.errors_replaced_silently for r in reflections),
        false_alarms=sum(r.false_alarms for r in reflections),
        errors_in_checks=sum(r.errors_in_checks for r in reflections),
    )
