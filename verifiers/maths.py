"""Rule "maths": is an answer the same mathematical object as the gold?

Layers run cheapest first; the first that can decide does. Most answers never reach the symbolic layer. Correct are
values that are equal in any exact form; formatting, units, the name of a variable before `=` and the case of words do
not matter. A rounded value, an unfinished calculation, a hedge, an extra or a missing solution are wrong.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic

from verifiers.answer_text import answer_part as answer_part
from verifiers.answer_text import texts_of
from verifiers.answers.layer import UNREAD
from verifiers.answers.layer import compare as compare_values
from verifiers.limits import too_big, too_costly
from verifiers.normalise import canonical, numeral
from verifiers.score import Judgement, Verdict
from verifiers.symbolic import compare

_deadline: ContextVar[float | None] = ContextVar("deadline", default=None)  # monotonic; None: algebra allowed


class UndecidedError(Exception):
    """The decision would need algebra or more time. Raised inside `without_algebra` only."""


@contextmanager
def without_algebra(seconds: float) -> Iterator[None]:
    """Context in which an answer that needs the last layer, or more than `seconds`, raises UndecidedError.

    It applies to the current thread or asyncio task only.
    """
    token = _deadline.set(monotonic() + seconds)
    try:
        yield
    finally:
        _deadline.reset(token)


Finding = tuple[Verdict, str]  # the verdict and the layer that gave it


def equivalent(gold: str, answer: str) -> Judgement:
    """Judge whether `answer` is equivalent to `gold`. Not symmetric: the gold decides which form is required."""
    if reason := too_big(answer):
        return Judgement(Verdict.REFUSED, reason)
    (whole_gold, gold), (whole_answer, answer) = texts_of(gold), texts_of(answer)
    readings = (whole_gold, whole_answer), (gold, answer)
    gold, answer = canonical(gold), canonical(answer)
    if not answer:
        return Judgement(Verdict.NO_ANSWER, "empty", gold, answer)
    verdict, layer = _cheap(gold, answer) or _first_correct(*readings) or _by_algebra(gold, answer)
    return Judgement(verdict, layer, gold, answer)


def same(left: str, right: str) -> bool:
    """Whether two predictions count as one answer in a vote: each is equivalent to the other as gold."""
    return all(equivalent(*pair).verdict is Verdict.CORRECT for pair in ((left, right), (right, left)))


def _first_correct(*readings: tuple[str, str]) -> Finding | None:
    """The grammar's finding for the whole texts; where that is not "correct", for the formulas in them."""
    findings = [_typed(*pair) for pair in dict.fromkeys(readings)]
    return next((each for each in findings if each and each[0] is Verdict.CORRECT), findings[-1])


def _check_deadline() -> None:
    deadline = _deadline.get()
    if deadline is not None and monotonic() > deadline:
        raise UndecidedError


def _cheap(gold: str, answer: str) -> Finding | None:
    """Layers "identical" and "rational", which decide most answers."""
    if gold == answer:
        return Verdict.CORRECT, "identical"
    _check_deadline()
    values = numeral(gold), numeral(answer)
    return None if None in values else (_verdict(values[0] == values[1]), "rational")


def _typed(gold: str, answer: str) -> Finding | None:
    """Layers of the grammar: both texts as typed values (verifiers.answers), read as written."""
    if (result := compare_values(gold, answer)) is None:
        return None
    is_equal, layer = result
    return Verdict.UNPARSABLE if layer == UNREAD else _verdict(is_equal), layer


def _by_algebra(gold: str, answer: str) -> Finding:
    """Layers "numeric" and "math-verify"."""
    if reason := too_costly(answer):
        return Verdict.REFUSED, reason
    if too_costly(gold):
        return Verdict.WRONG, "text"
    if _deadline.get() is not None:
        raise UndecidedError
    return compare(gold, answer)


def _verdict(is_equal: bool) -> Verdict:
    return Verdict.CORRECT if is_equal else Verdict.WRONG
