"""An audit of gold answers: which of them a grader cannot read or decide, and which contradict others."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from data.boxes import final_answer
from data.problem import Problem
from reasoner.console import shorten
from reasoner.evals.tables import align_rows, set_name
from reasoner.rollouts.dataset import NO_ANSWER
from verifiers import VerifierPool
from verifiers.answers.explanation import value_text
from verifiers.answers.layer import compare, letter_of, read
from verifiers.limits import too_big
from verifiers.maths import answer_part
from verifiers.questions import question_of

SECONDS = 5.0  # of processor time for a gold beside another text
# Each kind of finding with what it means.
KINDS: dict[str, str] = {
    "unusable": "the row has no question or no answer, or repeats an id: it is left out of the set",
    "missing": "the gold is what is written where there is no answer: only the same word is correct",
    "unread": "the grammar cannot read the gold: an answer in another form is decided by algebra or by its text",
    "undecided": "the gold in a box and a sentence, or its value, is not accepted as equal to the gold",
    "solution": "the final answer of the row's own solution is not accepted for the gold",
    "conflict": "the same question, but for case and spaces, has another gold that this one does not accept",
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

_WORD = re.compile(r"(\\text\{|\\mbox\{)?[A-Za-z][A-Za-z .'-]*\}?")  # compared as text, which is right for a word
_MISSING = (*NO_ANSWER, "none", "na", "n/a")  # without case


def gold_findings(problem: Problem) -> Iterator[tuple[str, str]]:
    """(kind, detail) of everything that the gold alone shows."""
    gold = problem.answer
    if gold.casefold() in _MISSING:
        yield "missing", "compared as text"
        return
    if reason := too_big(gold):
        yield "unread", reason
        return
    value = read(answer_part(gold))
    if value is None:
        if _WORD.fullmatch(gold.strip("$")) is None:
            yield "unread", "not read by the grammar"
        return
    result = compare(gold, gold)
    if not letter_of(value) and (result is None or not result[0]):
        yield "undecided", f"read as {value_text(value)}, which the grammar does not find equal to itself"


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
        accepted = zip(claims, _accepted(pool, claims), strict=True)
        findings += [claim.finding for claim, is_accepted in accepted if not is_accepted]
    return findings


@dataclass(frozen=True, slots=True)
class _Claim:
    """That a prediction is accepted for a problem's gold. The finding holds if it is not."""

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
            yield _Claim(other.answer, problem, _finding("conflict", problem, where))


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
