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
from fractions import Fraction

# Spellings of the same sign, so that what follows needs to know one. Bold comes before products, bullets before signs.
_SPELLINGS = tuple(
    (re.compile(pattern), plain)
    for pattern, plain in (
        (r"\*\*", " "),
        (r"(?m)^[ \t]*[-*+•][ \t]+", ""),
        (r"[×·∗]|\\times\b|\\cdot\b|(?<=[\d)])[ ]?x[ ]?(?=[\d(])", "*"),
        (r"÷|\\div\b", "/"),
        (r"[−–]", "-"),
        (r"(?<=\d),(?=\d{3}(?!\d))", ""),
        (r"\\?\$|\\[,;!()\[\]]", ""),
    )
)
_NUMBER = r"\d{1,12}(?:\.\d{1,12})?"
_ATOM = rf"\({{0,3}}{_NUMBER}\){{0,3}}"
# A piece of something longer is not an equation: "x - 3+4 = 8", "1 1/2 = 0.5", "650 000/2 = 325 000".
_BEFORE = r"(?<![\w.)}\]^+\-*/])(?<![\^+\-*/x\d] )"
# Nor is one whose value goes on: "2+3=10-5", "3*30 = 30 + m", "1/10=10%", "17/3 = 5 and 2/3", "63/5 = 12 remainder 3".
_AFTER = (
    r"(?![\w%^]|\.\d|[ ]?[+\-*/^][ ]?(?:[\d(]|[A-Za-z]\b)| \d{3}\b| and \d+/\d"
    r"|[ ]?(?:\\text\{[ ]?)?(?:with a )?(?:remainder|R )\b)"
)
_EQUATION = re.compile(rf"{_BEFORE}({_ATOM}(?:[ ]?[+\-*/][ ]?{_ATOM}){{1,8}})[ ]?=[ ]?(-?{_NUMBER}){_AFTER}")
_CHECK = re.compile(
    r"\b(?:double[- ]?check|re-?check|check|verify|confirm|re-?compute|re-?calculate|let me make sure|to be sure)\w*\b",
    re.IGNORECASE,
)
# What ends a check: the verdict. Equations after it are claims again.
_VERDICT = re.compile(r"\b(?:I had|good|ok|okay|correct|right|wait|so|therefore|hence)\b", re.IGNORECASE)
_ACCEPTED = re.compile(r"(?:I had [\d.]+\W+)?(?:good|ok|okay|correct|right)\b", re.IGNORECASE)
_WAIT = re.compile(r"\bwait\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Equation:
    """One stated equation: `expression` without spaces, what it comes to, what is written, and where."""

    expression: str
    exact: Fraction
    written: str
    end: int  # in the text
    in_check: bool
    in_accepted_check: bool  # the check ends in "good" or the like

    @property
    def is_right(self) -> bool:
        stated, unit = Fraction(self.written), Fraction(1, 10 ** len(self.written.partition(".")[2]))
        has_no_end = unit != 1 and (self.exact / unit).denominator != 1
        return abs(self.exact - stated) < unit if has_no_end else self.exact == stated


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


def evaluate(expression: str) -> Fraction | None:
    """The exact value of numbers joined by + - * / and parentheses; None for a division by zero or anything else."""
    tokens = re.findall(r"\d+(?:\.\d+)?|[+\-*/()]", expression)
    if "".join(tokens) != expression.replace(" ", ""):
        return None
    try:
        value = _sum(tokens)
    except (ZeroDivisionError, IndexError, ValueError):
        return None
    return None if tokens else value


def _sum(tokens: list[str]) -> Fraction:
    """Takes a sum of products off the front of the tokens."""
    value = _product(tokens)
    while tokens and tokens[0] in "+-":
        sign = 1 if tokens.pop(0) == "+" else -1
        value += sign * _product(tokens)
    return value


def _product(tokens: list[str]) -> Fraction:
    value = _operand(tokens)
    while tokens and tokens[0] in "*/":
        op, operand = tokens.pop(0), _operand(tokens)
        value = value * operand if op == "*" else value / operand
    return value


def _operand(tokens: list[str]) -> Fraction:
    first = tokens.pop(0)
    if first != "(":
        return Fraction(first)
    value = _sum(tokens)
    if tokens.pop(0) != ")":
        raise ValueError("a parenthesis is not closed")
    return value


def think(response: str) -> str:
    """The text before `</think>`; all of it where the block is not closed."""
    return response.split("</think>", 1)[0]


def plain(text: str) -> str:
    """The text with one spelling for each sign of arithmetic, and no thousands separators, currency or bold marks."""
    for pattern, sign in _SPELLINGS:
        text = pattern.sub(sign, text)
    return text


def equations(text: str) -> list[Equation]:
    """Every equation of a plain text, in order."""
    checks = list(_check_spans(text))
    starts = [start for start, _ in checks]
    found = []
    for match in _EQUATION.finditer(text):
        expression = match[1].replace(" ", "")
        expression = expression[max(0, expression.count("(") - expression.count(")")) :]  # "(3+4=7)"
        exact = evaluate(expression)
        if exact is None:
            continue
        check = bisect(starts, match.start()) - 1
        in_check = check >= 0 and match.start() < checks[check][1]
        accepted = in_check and _ACCEPTED.match(text, checks[check][1]) is not None
        found.append(Equation(expression, exact, match[2], match.end(), in_check, accepted))
    return found


def _check_spans(text: str) -> Iterator[tuple[int, int]]:
    """From each checking word that has an equation before it to the verdict after it (or the end of the text)."""
    first = _EQUATION.search(text)
    at = first.end() if first else len(text)
    while cue := _CHECK.search(text, at):
        verdict = _VERDICT.search(text, cue.end())
        at = verdict.start() if verdict else len(text)
        yield cue.end(), at


def reflect(response: str) -> Reflection:
    """The rule of this module's docstring, applied to one response."""
    text = plain(think(response))
    found = equations(text)
    waits = _WAIT.search(text) is not None
    if not any(equation.in_check for equation in found):
        return Reflection(False, waits)
    claims = list(_by_expression(found))
    wrong = [stated for stated in claims if not stated[0].is_right]
    missed = [stated[0] for stated in wrong if not stated[-1].is_right and not _is_taken_back(stated[0], text)]
    whole = plain(response)
    return Reflection(
        checks=True,
        waits=waits,
        wrong_claims=len(wrong),
        caught=len(wrong) - len(missed),
        replaced_unsaid=sum(_is_replaced(claim, whole) for claim in missed),
        false_alarms=sum(stated[0].is_right and not stated[-1].is_right for stated in claims),
        wrong_in_checks=sum(equation.in_check and not equation.is_right for equation in found),
    )


def _by_expression(found: Iterable[Equation]) -> Iterable[list[Equation]]:
    """The claims of each expression in order; a right value that a check finds and does not wave off is one too."""
    claims: dict[str, list[Equation]] = {}
    for equation in found:
        if not equation.in_check:
            claims.setdefault(equation.expression, []).append(equation)
        elif equation.expression in claims and equation.is_right and not equation.in_accepted_check:
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
