"""An audit of gold answers: which of them a grader cannot read or decide, and which contradict others."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

from data.gold_answers import final_answer
from data.problem import Problem
from reasoner.console import shorten
from reasoner.evals.tables import align_rows, set_name
from verifiers import VerifierPool
from verifiers.answers.explanation import value_text
from verifiers.answers.layer import compare, letter_of, read
from verifiers.answers.values import Amount, Collection, Expression, Literal, Named, Node, Value, has, names
from verifiers.limits import too_big
from verifiers.maths import answer_part
from verifiers.questions import question_of

SECONDS = 5.0  # of processor time for a gold beside another text
# Each kind of finding with what it means. Those of the second group are no faults: they say how a gold is compared.
KINDS: dict[str, str] = {
    "unusable": "the row has no question or no answer, or repeats an id: it is left out of the set",
    "missing": "the gold is what programs write for a value that is not there: only the same word is correct",
    "unread": "the grammar cannot read the gold: an answer in another form is decided by algebra or by its text",
    "undecided": "the gold in a box and a sentence, or its value, is not accepted as equal to the gold",
    "solution": "the final answer of the row's own solution is not accepted for the gold",
    "conflict": "the same question, but for case and spaces, has another gold that this one does not accept",
    "ambiguous": "the gold has two readings, or its precision is open, and the question does not say which is meant",
    "several": "the gold holds several answers: an answer must have all of them and no other",
    "words": "the gold is a word or a name: only the same words are correct",
    "repeated": "the same question again, with a gold that this one accepts",
}
_GOLD_WIDTH, _DETAIL_WIDTH = 40, 200  # characters in the printout
_SENTENCE = r"The answer is $\boxed{{{}}}$."


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding on a gold."""

    kind: str
    source: str
    problem: str
    gold: str
    detail: str


# ------------------------------------------------------------------------------------------------ one gold

_MISSING = ("nan", "none", "null", "na", "n/a", "<na>", "#n/a")  # without case
_PAIR = re.compile(
    r"\b(pairs?|(end|mid)?points?|coordinates?|vectors?|vertex|focus|cent(er|re)|solutions?|intersect)", re.IGNORECASE
)
_INTERVAL = re.compile(r"\b(intervals?|domain|range|inequalit|values of|all (real )?(numbers|values))", re.IGNORECASE)
_ROUNDING = re.compile(r"\b(round|nearest|approximate|decimal places?|significant|estimate)", re.IGNORECASE)


def _tuple_or_interval(problem: Problem, value: Value) -> str:
    if not isinstance(value, Collection) or value.brackets != "()" or len(value.items) != 2:
        return ""
    hints = [bool(pattern.search(problem.question)) for pattern in (_PAIR, _INTERVAL)]
    ends = [item.node if isinstance(item, Expression) else None for item in value.items]
    if any(node is None or has(node, "infinity") for node in ends) or hints[0] != hints[1]:
        return ""
    return "a pair or an open interval"


def _choice_letter(problem: Problem, value: Value) -> str:
    has_choices = question_of(problem).choices
    return "a letter, and no choices are read in the question" if letter_of(value) and not has_choices else ""


def _rounded(problem: Problem, value: Value) -> str:
    nodes = [value.node] if isinstance(value, Expression | Amount) else []
    if not nodes or question_of(problem).tolerance:
        return ""
    if isinstance(value, Expression) and value.is_rounded:
        return "stated as approximate, without a tolerance"
    is_decimal = not names(nodes[0]) and any(
        each.op == "number" and each.value.denominator > 1 for each in nodes[0].walk()
    )
    is_power = re.fullmatch(r"[-\d.]+(e|\s*\\times\s*10\^)\S+", problem.answer) is not None
    if is_power or (is_decimal and "." in problem.answer and _ROUNDING.search(problem.question)):
        return "a rounded decimal, without a tolerance"
    return ""


def _base_of_logarithm(problem: Problem, value: Value) -> str:
    if not any(each.op == "unknownlog" for each in _nodes(value)):
        return ""
    result = compare(problem.answer, problem.answer.replace(r"\log", r"\ln"))
    return "" if result is not None and result[0] else "a logarithm without a base, on which the value depends"


AMBIGUITIES: tuple[Callable[[Problem, Value], str], ...] = (
    _tuple_or_interval,
    _choice_letter,
    _rounded,
    _base_of_logarithm,
)


def _nodes(value: Value) -> Iterator[Node]:
    if isinstance(value, Expression | Amount):
        yield from value.node.walk()
    for item in value.items if isinstance(value, Collection | Named) else ():
        yield from _nodes(item)


def _several(value: Value) -> str:
    if isinstance(value, Collection) and value.kind == "list" and len(value.items) > 1:
        return f"{len(value.items)} values"
    if isinstance(value, Named) and len(value.names) > 1:
        return f"{len(value.names)} named values"
    if any(each.op in ("plusminus", "minusplus") for each in _nodes(value)):
        return "both signs"
    return ""


def gold_findings(problem: Problem) -> Iterator[tuple[str, str]]:
    """(kind, detail) of everything that the gold alone shows, with the question and the columns beside it."""
    gold = problem.answer
    if gold.casefold() in _MISSING:
        yield "missing", "compared as text"
        return
    if reason := too_big(gold):
        yield "unread", reason
        return
    value = read(answer_part(gold))
    if value is None or (isinstance(value, Literal) and value.kind == "words"):
        is_word = re.fullmatch(r"(\\text\{|\\mbox\{)?[A-Za-z][A-Za-z .'-]*\}?", gold.strip("$")) is not None
        yield ("words" if is_word else "unread"), "compared as text" if is_word else "not read by the grammar"
        return
    result = compare(gold, gold)
    if not letter_of(value) and (result is None or not result[0]):
        yield "undecided", f"read as {value_text(value)}, which the grammar does not find equal to itself"
    if detail := _several(value):
        yield "several", f"{detail}: {value_text(value)}"
    for ambiguity in AMBIGUITIES:
        if detail := ambiguity(problem, value):
            yield "ambiguous", f"{detail}: {value_text(value)}"


# ------------------------------------------------------------------------------------------------ all golds


def audit(sources: Mapping[str, Sequence[Problem]], faults: Mapping[str, Sequence[str]] | None = None) -> list[Finding]:
    """The findings on the golds of some sources, by name, and on the rows that could not be loaded."""
    findings = [Finding("unusable", name, "", "", fault) for name, rows in (faults or {}).items() for fault in rows]
    problems = [replace(problem, source=name) for name, group in sources.items() for problem in group]
    for problem in problems:
        if problem.verifier == "maths":
            findings += [_finding(kind, problem, detail) for kind, detail in gold_findings(problem)]
    workers = min(os.cpu_count() or 1, 8, 1 + len(problems) // 200)
    with VerifierPool(workers=workers, seconds=SECONDS, preload=True) as pool:
        claims = [*_own_texts(problems), *_solutions(problems), *_repeated(problems)]
        for claim, is_accepted in zip(claims, _accepted(pool, claims), strict=True):
            if is_accepted == (claim.finding.kind == "repeated"):
                findings.append(claim.finding)
    return findings


@dataclass(frozen=True, slots=True)
class _Claim:
    """That a prediction is accepted for a problem's gold. The finding holds if it is not, "repeated" if it is."""

    prediction: str
    problem: Problem
    finding: Finding


def _finding(kind: str, problem: Problem, detail: str) -> Finding:
    return Finding(kind, problem.source, problem.id, problem.answer, detail)


def _own_texts(problems: Sequence[Problem]) -> Iterator[_Claim]:
    for problem in problems:
        texts = (problem.answer, _SENTENCE.format(problem.answer))
        for text in texts if problem.verifier == "maths" else texts[:1]:
            yield _Claim(text, problem, _finding("undecided", problem, f"not accepted: {text}"))


def _solutions(problems: Sequence[Problem]) -> Iterator[_Claim]:
    for problem in problems:
        solution = problem.columns.get("solution")
        if isinstance(solution, str) and (stated := final_answer(solution)) != solution.strip():
            yield _Claim(stated, problem, _finding("solution", problem, f"its solution ends with {stated}"))


def _repeated(problems: Sequence[Problem]) -> Iterator[_Claim]:
    """Each repetition of a question beside its first occurrence."""
    first: dict[tuple[str, str], Problem] = {}
    for problem in problems:
        question = "".join(problem.question.casefold().replace("$", "").split()).rstrip(".?!:")
        other = first.setdefault((question, problem.verifier), problem)
        if other is not problem:
            where = f"{other.answer} in {set_name(other.source)}, {other.id}"
            for kind in ("conflict", "repeated"):
                yield _Claim(other.answer, problem, _finding(kind, problem, where))


def _accepted(pool: VerifierPool, claims: Sequence[_Claim]) -> list[bool]:
    """Whether each claim's prediction is accepted: by the verifier of its problem, in isolated processes."""
    result = [False] * len(claims)
    for verifier in {claim.problem.verifier for claim in claims}:
        places = [place for place, claim in enumerate(claims) if claim.problem.verifier == verifier]
        pairs = [(claims[place].prediction, claims[place].problem.answer) for place in places]
        questions = [question_of(claims[place].problem) for place in places]
        for place, judgement in zip(places, pool.judge(pairs, verifier, questions=questions), strict=True):
            result[place] = bool(judgement)
    return result


# ------------------------------------------------------------------------------------------------ report


def counts(sources: Mapping[str, Sequence[Problem]], findings: Sequence[Finding]) -> list[list[str]]:
    """A table: the problems of each source, and its golds with findings of each kind."""
    rows = [["source", "problems", *KINDS]]
    for name, problems in sources.items():
        own = [each for each in findings if each.source == name]
        golds = [{each.problem or each.detail for each in own if each.kind == kind} for kind in KINDS]
        rows.append([set_name(name), f"{len(problems):,}", *(f"{len(group):,}" for group in golds)])
    return rows


def text(sources: Mapping[str, Sequence[Problem]], findings: Sequence[Finding], *, examples: int) -> str:
    """The audit for a terminal: the counts, and the first findings of each kind."""
    parts = ["\n".join(align_rows(counts(sources, findings)))]
    for kind, meaning in KINDS.items():
        group = [each for each in findings if each.kind == kind]
        if group:
            lines = [f"{kind} ({len(group):,}): {meaning}"]
            lines += [f"  {_line(each)}" for each in group[:examples]]
            parts.append("\n".join([*lines, *([f"  and {len(group) - examples:,} more"] * (len(group) > examples))]))
    return "\n\n".join(parts)


def _line(each: Finding) -> str:
    parts = set_name(each.source), each.problem, shorten(each.gold, _GOLD_WIDTH), shorten(each.detail, _DETAIL_WIDTH)
    return "  ".join(filter(None, parts))


def values(findings: Sequence[Finding]) -> list[dict[str, Any]]:
    """The findings as plain values for JSON."""
    return [asdict(each) for each in findings]
