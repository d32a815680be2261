"""Outcomes of reflection: the answers before and after a cue, both judged by the verifier of the reward.

Three labels, each a stronger claim than the one before:

1. *cue*: words of reflection in context (verifiers.reflection.cues). Nothing is claimed about their effect.
2. *self-correction*: the answer before the cue is wrong, the answer after it is correct.
3. *aha*: a self-correction in a response that is correct in the end, to a question that the other completions of its
   group, those without a self-correction, mostly get wrong (at least two of them, at most half correct). The name is
   DeepSeek-R1's "aha moment".

Compared are the candidate answers to the question (`\\boxed{}`, `<answer>`, "the answer is ..."), judged against the
gold answer, and the calculations stated in the text (7*6=44), judged by exact arithmetic. The answer before the cue is
the last one before it, the answer after it is the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from data.boxes import box_spans
from verifiers import grade
from verifiers.equations import equations, plain_with_places
from verifiers.reflection.cues import LEXICON, Cue, cues

LABELS = ("cue", "self-correction", "aha")  # of cues, each a stronger claim than the one before
OUTCOMES = {
    "correct": "wrong before, correct after",
    "harm": "correct before, wrong after",
    "switch": "wrong before, another wrong one after",
    "confirm": "correct before and after",
    "missed": "wrong before, the same after",
    "open": "nothing to compare on one side",
}
_MAX_CANDIDATES = 24
_MAX_CHARACTERS = 200  # of a candidate answer; a longer match is likely misread
_MAX_CORRECT_SHARE = 0.5  # of the other completions in the group, for the label "aha"
_MIN_OTHERS = 2

# The value after "the answer is". "The answer is correct" states none, and "3 + 4" must not be cut to "3".
_VALUE = (
    r"\$[^$\n]{1,80}\$(?!\d)|\\[(\[][^$]{1,80}?\\[)\]]"  # maths between its signs
    r"|[(\[][^()\[\]\n]{1,40},[^()\[\]\n]{1,40}[)\]]"  # a pair, an interval
    r"|\(?(?-i:[A-E])\)?"  # a choice
    r"|(?=[^\s<]{0,40}?(?:\d|\\[a-z]))[^\s;]{1,80}?"  # a word with a digit or a command of LaTeX in it
)
_ANSWER_PHRASE = re.compile(
    rf"\banswer(?: is|:| should be| must be)[\s:*]{{0,8}}+(?P<phrase>{_VALUE})"
    r"(?=[.,;:!?*]{0,4}(?:\s|$)|</)(?! ?(?:[-+*/=×·÷^] ?[\d(\\]|\\[a-z]))"
    r"|<answer>(?P<block>[^<]{1,200})</answer>",
    re.IGNORECASE,
)
_ACCEPTANCE = re.compile(
    r"(?<!not )(?<!n't )\b(?:good|ok|okay|correct|right|matches|works|checks out|confirmed)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class StatedValue:
    """A value in the text: an answer to the question, or the value of a calculation."""

    start: int
    end: int
    what: str  # "answer", or the expression of the calculation
    value: str
    is_correct: bool | None  # None for what the verifier cannot judge


Candidate = tuple[int, int, str]  # start, end, text


@dataclass(frozen=True, slots=True)
class Span:
    """A reflection cue and its outcome."""

    start: int  # in the completion
    end: int
    kind: str  # of LEXICON
    outcome: str  # of OUTCOMES
    label: str  # of LABELS
    before: str = ""
    after: str = ""


def spans(completion: str, question: str, gold: str, verifier: str = "maths") -> list[Span]:
    """Find the reflection spans of a response, in order, labels "cue" or "self-correction" ("aha" needs a group)."""
    thought = completion.split("</think>", 1)[0]
    if not cues(thought, question):
        return []
    text, places = plain_with_places(thought)
    answers = _candidates(completion)
    claims = [
        StatedValue(places[e.start], places[e.end - 1] + 1, e.expression, e.value_text, e.is_correct)
        for e in equations(text)
    ]
    value_starts = (*(item.start for item in claims), *(item[0] for item in answers))
    all_cues = cues(thought, question, separators=value_starts)
    ends = [cue.start for cue in all_cues[1:]] + [len(thought)]

    def first_verdict(candidates: Iterable[Candidate]) -> StatedValue | None:
        """The first candidate that the verifier can judge, with its verdict."""
        values = (
            StatedValue(start, end, "answer", text, judge(text, gold, verifier)) for start, end, text in candidates
        )
        return next((value for value in values if value.is_correct is not None), None)

    def span_of(cue: Cue, end: int) -> Span:
        before = [item for item in answers if item[1] <= cue.start]
        after = [item for item in answers if item[0] >= cue.start]
        pair = (first_verdict(reversed(before)), first_verdict(after)) if before and after else (None, None)
        return _outcome_of(cue, [pair, *_claim_pairs(cue, end, thought, claims)], verifier)

    return [span_of(cue, end) for cue, end in zip(all_cues, ends, strict=True)]


def _outcome_of(cue: Cue, pairs: Iterable[tuple[StatedValue | None, StatedValue | None]], verifier: str) -> Span:
    """The first change among the (before, after) pairs; else "confirm" or "missed"; "open" without pairs."""
    span = Span(cue.start, cue.end, cue.kind, "open", "cue")
    for before, after in pairs:
        if before is None or after is None:
            continue
        outcome = _outcome(before, after, verifier)
        if outcome != "confirm" or span.outcome == "open":
            label = "self-correction" if outcome == "correct" else "cue"
            span = replace(span, outcome=outcome, label=label, before=before.value, after=after.value)
        if outcome not in ("confirm", "missed"):
            break
    return span


def _outcome(before: StatedValue, after: StatedValue, verifier: str) -> str:
    if before.is_correct:
        return "confirm" if after.is_correct else "harm"
    if after.is_correct:
        return "correct"
    is_same = before.value == after.value or judge(after.value, before.value, verifier)
    return "missed" if is_same else "switch"


def _claim_pairs(cue: Cue, end: int, text: str, claims: Sequence[StatedValue]) -> list[tuple[StatedValue, StatedValue]]:
    """Calculations stated before the cue and again between it and the next one. If there are none, the last calculation
    before the cue paired with itself, provided that the text after the cue calculates and then accepts ("correct").
    """
    before = {item.what: item for item in claims if item.end <= cue.start}
    inside = [item for item in claims if cue.start <= item.start < end]
    again = [(before[item.what], item) for item in inside if item.what in before]
    if again or not inside or not before:
        return again
    last = max(before.values(), key=lambda item: item.end)
    return [(last, last)] if _ACCEPTANCE.search(text, inside[-1].end, end) else []


def _candidates(completion: str) -> list[Candidate]:
    """(start, end, text) of the candidate answers, in order: boxes, answer blocks, and "the answer is ..."."""
    candidates = [(start, end, completion[start:end]) for start, end in box_spans(completion)]
    for match in _ANSWER_PHRASE.finditer(completion):
        group = "phrase" if match["phrase"] is not None else "block"
        if "\\boxed" not in match[group]:
            candidates.append((match.start(group), match.end(group), match[group]))
    trimmed = ((start, end, text.strip().strip("*$ ")) for start, end, text in sorted(candidates))
    return [item for item in trimmed if 0 < len(item[2]) <= _MAX_CHARACTERS][-_MAX_CANDIDATES:]


@lru_cache(maxsize=20_000)
def judge(answer: str, gold: str, verifier: str) -> bool | None:
    """Whether the reward's verifier calls an answer correct; None if it cannot judge it, or has no usable gold."""
    if not gold.strip():
        return None
    try:
        judgement = grade(answer, gold, verifier)
    except ValueError:
        return None
    return bool(judgement) if judgement.verdict in ("correct", "wrong") else None


# ------------------------------------------------------------------------------------------------ in a group


@dataclass(frozen=True, slots=True)
class Member:
    """A completion of a group, with its reflection spans."""

    is_correct: bool
    spans: tuple[Span, ...]

    @property
    def has_self_correction(self) -> bool:
        return any(span.outcome == "correct" for span in self.spans)


def assign_labels(group: Sequence[Member]) -> list[Member]:
    """Copy the members, with label "aha" where the group supports it (item 3 of the module docstring)."""
    others = [member.is_correct for member in group if not member.has_self_correction]
    is_hard = len(others) >= _MIN_OTHERS and sum(others) <= _MAX_CORRECT_SHARE * len(others)

    def relabel(member: Member) -> Member:
        if not (is_hard and member.is_correct):
            return member
        new_spans = (replace(s, label="aha") if s.outcome == "correct" else s for s in member.spans)
        return replace(member, spans=tuple(new_spans))

    return [relabel(member) for member in group]


def score(span: Span, *, others_correct: float) -> float:
    """Sort key of a gallery: the label, then the difficulty for the other completions, then the kind of cue."""
    kinds = list(LEXICON)
    return (
        LABELS.index(span.label)
        + 0.6 * (1 - others_correct) * (span.label != "cue")
        + 0.3 * (1 - kinds.index(span.kind) / len(kinds))
    )
