"""What a response does besides answering: does it check its own working, and does a check catch what is wrong?

The rule, for the text of any model. Only the think block counts (what stands before `</think>`, or all without one).

- An *equation* is `expression = number`: whole or decimal numbers, + - * / (also x, ×, ÷, \\times, \\cdot) and
  parentheses, worked out exactly. It is wrong when its two sides differ; a value that has no end (10/3) may be cut or
  rounded at the decimals that are written, not at a whole number.
- A response *checks itself* when, after a first equation, a checking word (check, verify, confirm, recompute, "let me
  make sure", ...) is followed by an equation before anything is concluded: "I will check" before there is anything to
  check does not count, nor does "I checked" with no calculation behind it.
- A *claim* is an expression with the value that it is given outside the checks. In a response that checks itself, a
  wrong claim is *caught* when the same expression is given its right value in the end, or when it is taken back in so
  many words ("I had 472. Wait, 402", "402, not 472"). A check that works the expression out again and then says "ok"
  to the wrong value catches nothing. Where the right value is used after it all the same, the claim was *replaced
  unsaid*: counted apart, never as caught.
- A *false alarm* is a right claim whose expression is given another, wrong, value in the end.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from verifiers.equations import Equation, equations, plain, think

_CHECK = re.compile(
    r"\b(?:double[- ]?check|re-?check|check|verify|confirm|re-?compute|re-?calculate|let me make sure|to be sure)\w*\b",
    re.IGNORECASE,
)
# What ends a check: the verdict. Equations after it are claims again.
_VERDICT = re.compile(r"\b(?:I had|good|ok|okay|correct|right|wait|so|therefore|hence)\b", re.IGNORECASE)
_ACCEPTED = re.compile(r"(?:I had [\d.]+\W+)?(?:good|ok|okay|correct|right)\b", re.IGNORECASE)
_WAIT = re.compile(r"\bwait\b", re.IGNORECASE)
# The text after each wrong claim is searched, so that both are bounded: what a model writes must not cost minutes.
_MOST_CHARACTERS = 200_000  # of a response that are looked at
_MOST_CLAIMS = 50  # wrong claims that may be taken back or replaced; the others count as neither


@dataclass(frozen=True, slots=True)
class Placed:
    """A stated equation and where it stands among the checks."""

    equation: Equation
    in_check: bool
    in_accepted_check: bool  # the check ends in "good" or the like


@dataclass(frozen=True, slots=True)
class Reflection:
    """What one response did."""

    checks: bool
    waits: bool
    wrong_claims: int = 0  # counted in responses that check themselves, as is what follows
    caught: int = 0
    replaced_unsaid: int = 0
    false_alarms: int = 0
    wrong_in_checks: int = 0  # arithmetic inside the checks that is itself wrong


def placed(text: str) -> list[Placed]:
    """Every equation of a plain text, in order, in or outside of a check."""
    stated = equations(text)
    checks = list(_check_spans(text, stated[0].end)) if stated else []
    starts = [start for start, _ in checks]
    found = []
    for equation in stated:
        check = bisect(starts, equation.start) - 1
        in_check = check >= 0 and equation.start < checks[check][1]
        accepted = in_check and _ACCEPTED.match(text, checks[check][1]) is not None
        found.append(Placed(equation, in_check, accepted))
    return found


def _check_spans(text: str, at: int) -> Iterator[tuple[int, int]]:
    """From each checking word after `at`, where the first equation ends, to the verdict after it (or the end)."""
    while cue := _CHECK.search(text, at):
        verdict = _VERDICT.search(text, cue.end())
        at = verdict.start() if verdict else len(text)
        yield cue.end(), at


def reflect(response: str) -> Reflection:
    """The rule of this module's docstring, applied to one response."""
    response = response[:_MOST_CHARACTERS]
    text = plain(think(response))
    found = placed(text)
    waits = _WAIT.search(text) is not None
    if not any(item.in_check for item in found):
        return Reflection(False, waits)
    claims = list(_by_expression(found))
    wrong = [values for values in claims if not values[0].is_right]
    not_mended = [values[0] for values in wrong if not values[-1].is_right]
    searched = not_mended[:_MOST_CLAIMS]
    missed = [claim for claim in searched if not _is_taken_back(claim, text)]
    whole = plain(response)
    return Reflection(
        checks=True,
        waits=waits,
        wrong_claims=len(wrong),
        caught=len(wrong) - len(not_mended) + len(searched) - len(missed),
        replaced_unsaid=sum(_is_replaced(claim, whole) for claim in missed),
        false_alarms=sum(values[0].is_right and not values[-1].is_right for values in claims),
        wrong_in_checks=sum(item.in_check and not item.equation.is_right for item in found),
    )


def _by_expression(found: Iterable[Placed]) -> Iterable[list[Equation]]:
    """The claims of each expression in order; a right value that a check finds and does not wave off is one too."""
    claims: dict[str, list[Equation]] = {}
    for item in found:
        equation = item.equation
        if not item.in_check:
            claims.setdefault(equation.expression, []).append(equation)
        elif equation.expression in claims and equation.is_right and not item.in_accepted_check:
            claims[equation.expression].append(equation)
    return claims.values()


def _is_taken_back(claim: Equation, text: str) -> bool:
    """The wrong value is disowned and the right one put in its place: "I had 472. Wait, 402" or "402, not 472"."""
    if claim.exact.denominator != 1:
        return False
    had, should = re.escape(claim.written), str(claim.exact)
    patterns = (rf"\bI had {had}\W+(?:wait|no)\b\D{{0,40}}\b{should}\b", rf"\b{should}\b,? not {had}\b")
    return any(re.compile(pattern, re.IGNORECASE).search(text, claim.end) for pattern in patterns)


def _is_replaced(claim: Equation, response: str) -> bool:
    """After the check that follows the claim, what goes on is the right value, in the thought or in the answer."""
    verdict = _VERDICT.search(response, claim.end)
    right = rf"(?<![\d.]){claim.exact}(?![\d.]\d|\d)"
    return verdict is not None and re.compile(right).search(response, verdict.start()) is not None


@dataclass(frozen=True, slots=True)
class ReflectionRates:
    """Reflection over many responses."""

    checks: float  # share of responses that check themselves
    waits: float  # share that say "wait"
    wrong_claims: int
    caught: int
    replaced_unsaid: int
    false_alarms: int
    wrong_in_checks: int

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
        replaced_unsaid=sum(r.replaced_unsaid for r in found),
        false_alarms=sum(r.false_alarms for r in found),
        wrong_in_checks=sum(r.wrong_in_checks for r in found),
    )
