"""Our grader beside math-verify on the same pairs: where their verdicts differ, and what each reads on both sides."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from data import Problem
from reasoner.analysis.answer_files import in_parts, read_answers
from reasoner.console import shorten
from reasoner.evals.tables import align_rows
from verifiers import Judgement, Verdict, VerifierPool
from verifiers.answers.explanation import Explanation
from verifiers.questions import question_of
from verifiers.score import UNJUDGED

SECONDS = 5.0  # of processor time for each grader and pair; math-verify's own limit for a comparison
_WIDTH = 90  # characters of a text in the printout
_MAX_SHOWN = 20  # pairs of an outcome in the printout; all of them are in the JSON

_UNEXPLAINED = Explanation("", "")
AGREE, OURS, THEIRS = "agree", "only ours accepts", "only math-verify accepts"
OUTCOMES = (AGREE, OURS, THEIRS, "its error", "its timeout", "ours unjudged")  # each pair has one


@dataclass(frozen=True, slots=True)
class ComparedPair:
    """A prediction and its problem, with both judgements; `explanation` is that of our grammar where they differ."""

    prediction: str
    problem: Problem  # its id is the line of the file
    ours: Judgement
    theirs: Judgement
    explanation: Explanation = _UNEXPLAINED

    @property
    def label(self) -> bool | None:
        """Whether the file says that the prediction is right; None where it does not say."""
        label = self.problem.columns.get("correct", self.problem.columns.get("label"))
        return label if isinstance(label, bool) else None

    @property
    def outcome(self) -> str:
        """One of OUTCOMES. An error of math-verify inside a comparison, which it takes for a refusal, is an error."""
        if self.ours.verdict in UNJUDGED:
            return "ours unjudged"
        if self.theirs.verdict is Verdict.TIMED_OUT:
            return "its timeout"
        if self.theirs.verdict in UNJUDGED or (not self.theirs and self.theirs.layer != "math-verify"):
            return "its error"
        return AGREE if bool(self.ours) == bool(self.theirs) else OURS if self.ours else THEIRS


# ------------------------------------------------------------------------------------------------ comparison


def compare_file(path: Path) -> list[ComparedPair]:
    """Grade the pairs of a file of JSON lines by both graders, in isolated processes: `gold` with `prediction` (or
    `answer`), and where they are known `question`, `tolerance` and a label, `correct` or `label`.
    """
    pairs = [(text, problem) for _, text, problem in read_answers(path, ("prediction", "answer"), "maths")]
    workers = min(os.cpu_count() or 1, 8, 1 + len(pairs) // 32)
    with VerifierPool(workers=workers, seconds=SECONDS, preload=True) as pool:
        return [compared for part in in_parts(pairs) for compared in _compare_part(pool, part)]


def _compare_part(pool: VerifierPool, pairs: Sequence[tuple[str, Problem]]) -> list[ComparedPair]:
    texts = [(prediction, problem.answer) for prediction, problem in pairs]
    questions = [question_of(problem) for _, problem in pairs]
    judgements = zip(pairs, pool.judge(texts, questions=questions), pool.judge_by_peer(texts), strict=True)
    compared = [ComparedPair(*pair, ours, theirs) for pair, ours, theirs in judgements]
    differing = [place for place, each in enumerate(compared) if each.outcome != AGREE]
    for place, explanation in zip(differing, pool.explain([texts[place] for place in differing]), strict=True):
        compared[place] = replace(compared[place], explanation=explanation)
    return compared


# ------------------------------------------------------------------------------------------------ report


def counts(compared: Sequence[ComparedPair]) -> list[list[str]]:
    """A table: the pairs of each of our layers, and of all, by outcome."""
    rows = [["decided by", "pairs", *OUTCOMES]]
    layers = Counter(each.ours.layer for each in compared)
    for name in (*(name for name, _ in layers.most_common()), "all"):
        outcomes = Counter(each.outcome for each in compared if name in (each.ours.layer, "all"))
        rows.append([name, f"{outcomes.total():,}", *(f"{outcomes[outcome]:,}" for outcome in OUTCOMES)])
    return rows


def label_counts(compared: Sequence[ComparedPair]) -> list[list[str]]:
    """A table: what each grader does with the pairs that the file labels; [] where it labels none."""
    labelled = [each for each in compared if each.label is not None]
    rows = [["against the labels", "pairs", "as labelled", "wrong accepted", "right refused", "errors", "timeouts"]]
    for name, side in (("ours", "ours"), ("math-verify", "theirs")):
        judgements = [(getattr(each, side), each.label) for each in labelled]
        numbers = (
            len(labelled),
            sum(bool(judgement) == is_right for judgement, is_right in judgements),
            sum(bool(judgement) and not is_right for judgement, is_right in judgements),
            sum(not judgement and is_right is True for judgement, is_right in judgements),
            sum(_is_error(judgement, side) for judgement, _ in judgements),
            sum(judgement.verdict is Verdict.TIMED_OUT for judgement, _ in judgements),
        )
        rows.append([name, *(f"{number:,}" for number in numbers)])
    return rows if labelled else []


def _is_error(judgement: Judgement, side: str) -> bool:
    is_inside = side == "theirs" and not judgement and judgement.layer != "math-verify"
    return judgement.verdict is Verdict.CRASHED or (is_inside and judgement.verdict not in UNJUDGED)


def _readings(each: ComparedPair) -> dict[str, str]:
    """What was compared: both texts, and both as each grader reads them."""
    explanation = each.explanation
    values = {
        "gold": each.problem.answer,
        "answer": each.prediction,
        "gold to us": explanation.gold,
        "answer to us": explanation.answer,
        "gold to math-verify": each.theirs.gold_form,
        "answer to math-verify": each.theirs.answer_form,
        "difference": "" if each.ours else explanation.counterexample,
    }
    return {name: value for name, value in values.items() if value or name in ("gold", "answer")}


def _reason(each: ComparedPair) -> str:
    theirs = "" if each.theirs.layer == "math-verify" else f" ({each.theirs.layer})"
    return f"ours: {each.ours.verdict} by {each.ours.layer}; math-verify: {each.theirs.verdict}{theirs}"


def text(compared: Sequence[ComparedPair]) -> str:
    """The comparison for a terminal: the counts, and the first pairs of each outcome but agreement."""
    parts = ["\n".join(align_rows(rows)) for rows in (counts(compared), label_counts(compared)) if rows]
    for outcome in OUTCOMES[1:]:
        pairs = [each for each in compared if each.outcome == outcome]
        if not pairs:
            continue
        more = f", the first {_MAX_SHOWN}" if len(pairs) > _MAX_SHOWN else ""
        lines = [f"{outcome}: {len(pairs):,}{more}"]
        for each in pairs[:_MAX_SHOWN]:
            lines.append(f"  {each.problem.id}  {_reason(each)}")
            lines += [f"      {name:<22} {shorten(value, _WIDTH)}" for name, value in _readings(each).items()]
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def values(compared: Sequence[ComparedPair]) -> list[dict[str, Any]]:
    """The pairs as plain values for JSON."""
    return [
        {
            "place": each.problem.id,
            "outcome": each.outcome,
            "label": each.label,
            "ours": {"verdict": str(each.ours.verdict), "layer": each.ours.layer},
            "math-verify": {"verdict": str(each.theirs.verdict), "layer": each.theirs.layer},
        }
        | _readings(each)
        for each in compared
    ]
