"""Why responses are wrong: one cause for each response that is not correct, and their counts by step.

The causes are found by rules from the text, the verdict and the gold answer; no model judges another. They are stored
beside the shards (reasoner.runs.shard) and found again when these files are deleted.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from reasoner.runs.filters import CAUSES
from reasoner.runs.repetition import repeats
from reasoner.runs.rollout_row import own_text
from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.shard import Shard, value_counts
from verifiers import extract_answer
from verifiers.answer_text import answer_part
from verifiers.answers.layer import read
from verifiers.answers.rationals import NoValueError, TooLargeError, rational
from verifiers.answers.values import Expression
from verifiers.equations import Equation, equations, plain_with_places
from verifiers.reflection.outcomes import judge
from verifiers.score import UNJUDGED

_NEAR = Fraction(1, 10)  # of the gold answer
_MAX_POWER = 3  # of ten


@dataclass(frozen=True, slots=True)
class Response:
    """A graded response."""

    text: str
    gold: str
    verifier: str  # of verifiers.equivalence.VERIFIERS
    verdict: str
    answer: str | None  # as the grader extracted it
    finish: str  # "length": cut off at the limit of tokens


@dataclass(frozen=True, slots=True)
class Failure:
    """The cause of a failure, with its place in the text where it has one (else start and end are 0)."""

    cause: str  # of CAUSES
    detail: str = ""
    start: int = 0
    end: int = 0


def failure_of(response: Response) -> Failure | None:
    """The first cause that applies, in the order of CAUSES; None for a correct response."""
    if response.verdict == "correct":
        return None
    failures = (rule(response) for rule in _RULES)
    return next((failure for failure in failures if failure is not None), Failure("other wrong answer"))


# ------------------------------------------------------------------------------------------------ rules


def _repeated(response: Response) -> Failure | None:
    return Failure("repeated") if repeats(response.text.split()) else None


def _truncated(response: Response) -> Failure | None:
    return Failure("truncated") if response.finish == "length" else None


def _ungraded(response: Response) -> Failure | None:
    return Failure("not graded", response.verdict) if response.verdict in UNJUDGED else None


def _other_form(response: Response) -> Failure | None:
    """The right answer by lenient extraction, where the strict one or the grader finds none."""
    if response.verdict == "wrong":
        return None
    answer = extract_answer(response.text, "lenient").answer
    if answer is None or not judge(answer, response.gold, response.verifier):
        return None
    start = response.text.rfind(answer)
    return Failure("right in another form", f"{response.verdict}: {answer}", start, start + len(answer))


def _ungradable(response: Response) -> Failure | None:
    causes = {"no_answer": "no answer", "malformed": "malformed", "unparsable": "unparsable"}
    return Failure(causes[response.verdict], response.answer or "") if response.verdict in causes else None


def _arithmetic_slip(response: Response) -> Failure | None:
    """The first stated calculation that is wrong and not stated again correctly."""
    text, places = plain_with_places(response.text)
    claims = equations(text)
    right = {equation.expression: number for number, equation in enumerate(claims) if equation.is_correct}
    for number, equation in enumerate(claims):
        if not equation.is_correct and right.get(equation.expression, -1) < number:
            detail = f"calculation {number + 1} of {len(claims)}: {_correction(equation)}"
            return Failure("arithmetic slip", detail, places[equation.start], places[equation.end - 1] + 1)
    return None


def _correction(equation: Equation) -> str:
    exact = equation.exact
    value = str(exact.numerator) if exact.denominator == 1 else f"{float(exact):.6g}"
    return f"{equation.expression} = {value}, not {equation.value_text}"


def _number(text: str) -> Fraction | None:
    """The value of an answer that is a rational number."""
    value = read(answer_part(text))
    try:
        return rational(value.node) if isinstance(value, Expression) else None
    except (NoValueError, TooLargeError):
        return None


def _near(response: Response) -> Failure | None:
    gold, answer = map(_number, (response.gold, response.answer or ""))
    if gold is None or answer is None or gold == answer:
        return None
    relation = next((name for name, holds in _NEARNESS.items() if holds(gold, answer)), None)
    return None if relation is None else Failure("near the gold answer", relation)


# In order: a name, and whether (gold, answer) are so related.
_NEARNESS: dict[str, Callable[[Fraction, Fraction], bool]] = {
    "opposite sign": lambda gold, answer: answer == -gold,
    "off by a power of ten": lambda gold, answer: any(
        gold == answer * Fraction(10) ** power for power in range(-_MAX_POWER, _MAX_POWER + 1)
    ),
    "off by one": lambda gold, answer: abs(gold - answer) == 1,
    "within 10 %": lambda gold, answer: abs(gold - answer) <= _NEAR * abs(gold),
}


_RULES = (_repeated, _truncated, _ungraded, _other_form, _ungradable, _arithmetic_slip, _near)


# ------------------------------------------------------------------------------------------------ over a run


_FOUND = pa.schema(
    [("id", pa.int64()), ("cause", pa.string()), ("detail", pa.string()), ("start", pa.int32()), ("end", pa.int32())]
)
_COLUMNS = ("completion", "observation_text", "gold", "verifier", "verdict", "extracted", "finish")


def classify(table: RolloutTable, *, limit: int | None = None) -> int:
    """Find the causes of the steps that lack them; returns the number of steps added.

    `limit`: of the first so many steps; None: of all.
    """
    return table.analyse("failures", _classify, limit=limit)


def _classify(shard: Shard) -> tuple[pa.Table, dict[str, int]]:
    failures = [(number, failure_of(_response(row))) for number, row in shard.read(_COLUMNS)]
    rows = [{"id": number, **asdict(failure)} for number, failure in failures if failure is not None]
    return pa.Table.from_pylist(rows, _FOUND), {}


def _response(row: dict[str, Any]) -> Response:
    verifier, finish = row["verifier"] or "maths", row["finish"] or ""
    return Response(own_text(row), row["gold"], verifier, row["verdict"], row["extracted"], finish)


def timeline(table: RolloutTable) -> list[dict[str, Any]]:
    """For each classified step: its rollouts, and the number of failures by cause."""
    lines = []
    for shard, failures in table.analysed("failures"):
        counts = value_counts(failures["cause"])
        causes = {cause: counts.get(cause, 0) for cause in CAUSES}
        lines.append({"step": shard.step, "rollouts": len(shard.rows), "causes": causes})
    return lines


def examples(table: RolloutTable, *, cause: str, offset: int, limit: int) -> list[dict[str, Any]]:
    """Failures with this cause ("": any), the latest step first: id, name, cause, detail, start, end."""
    failures = table.findings("failures", _FOUND)
    if cause:
        failures = failures.filter(pc.field("cause") == cause)
    rows = failures.take(np.arange(len(failures))[::-1][offset : offset + limit]).to_pylist()
    return [row | {"name": table.name(row["id"])} for row in rows]
