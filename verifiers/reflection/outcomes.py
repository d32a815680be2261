"""Outcomes of second thoughts: the answers before and after a cue, both judged by the verifier of the reward.

Three labels, each a stronger claim than the one before:

1. *cue*: words of a second thought in context (verifiers.reflection.cues). Nothing is claimed about their effect.
2. *self-correction*: the answer before the cue is wrong, the answer after it is correct.
3. *aha*: a self-correction in a response that is correct in the end, to a question that the other completions of its
   group, those without a self-correction, mostly get wrong (at least two of them, at most half correct).

Compared are the candidate answers to the question (`\\boxed{}`, `<answer>`, "the answer is ..."), judged against the
gold answer, and the calculations stated in the text (7*6=44), judged by exact arithmetic. The answer before the cue is
the last one before it, the answer after it is the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from data.answer_key import boxed_spans
from verifiers import grade
from verifiers.equations import equations, plain_with_places
from verifiers.reflection.cues import LEXICON, Cue, cues

LABELS = ("cue", "self-correction", "aha")  # of cues, each a stronger claim than the one before
OUTCOMES = {
    "correct": "wrong before, right after",
    "harm": "right before, wrong after",
    "switch": "wrong before, another wrong one after",
    "confirm": "right before and after",
    "missed": "wrong before, the same after",
    "open": "nothing to compare on one side",
}
_MOST_CANDIDATES = 24
_LONGEST = 200  # characters of a candidate answer; a longer match is likely misread
_MOST_RIGHT = 0.5  # share of correct completions among the others in the group, for an aha
_FEWEST_OTHERS = 2

# The value after "the answer is". "The answer is correct" states none, and "3 + 4" must not be cut to "3".
_VALUE = (
    r"\$[^$\n]{1,80}\$(?!\d)|\\[(\[][^$]{1,80}?\\[)\]]"  # maths between its signs
    r"|[(\[][^()\[\]\n]{1,40},[^()\[\]\n]{1,40}[)\]]"  # a pair, an interval
    r"|\(?(?-i:[A-E])\)?"  # a choice
    r"|(?=[^\s<]{0,40}?(?:\d|\\[a-z]))[^\s;]{1,80}?"  # a word with a digit or a command of LaTeX in it
)
_STATED = re.compile(
    rf"\banswer(?: is|:| should be| must be)[\s:*]{{0,8}}+(?P<stated>{_VALUE})"
    r"(?=[.,;:!?*]{0,4}(?:\s|$)|</)(?! ?(?:[-+*/=×·÷^] ?[\d(\\]|\\[a-z]))"
    r"|<answer>(?P<block>[^<]{1,200})</answer>",
    re.IGNORECASE,
)
_ACCEPTS = re.compile(
    r"(?<!not )(?<!n't )\b(?:good|ok|okay|correct|right|matches|works|checks out|confirmed)\b", re.IGNORECASE
)


@dataclass(frozen=True, slots=True)
class Stated:
    """A value stated in the text: an answer to the question, or the value of a calculation."""

    start: int
    end: int
    what: str  # "answer", or the expression of the calculation
    value: str
    is_correct: bool | None  # None for what the verifier cannot judge


Candidate = tuple[int, int, str]  # start, end, text


@dataclass(frozen=True, slots=True)
class Span:
    """A second thought and its outcome."""

    start: int  # in the completion
    end: int
    kind: str  # of LEXICON
    outcome: str  # of OUTCOMES
    label: str  # of LABELS
    before: str = ""
    after: str = ""


def spans(completion: str, question: str, gold: str, rule: str = "maths") -> list[Span]:
    """The second thoughts of a response, in order, labelled "cue" or "self-correction" ("aha" needs a group)."""
    thought = completion.split("</think>", 1)[0]
    if not cues(thought, question):
        return []
    text, places = plain_with_places(thought)
    answers = _candidates(completion)
    claims = [
        Stated(places[e.start], places[e.end - 1] + 1, e.expression, e.written, e.is_correct) for e in equations(text)
    ]
    places_between = (*(item.start for item in claims), *(item[0] for item in answers))
    thoughts = cues(thought, question, keeps_apart=places_between)
    ends = [cue.start for cue in thoughts[1:]] + [len(thought)]

    def stated(candidates: Iterable[Candidate]) -> Stated | None:
        """The first candidate that the verifier can judge."""
        judged = (Stated(start, end, "answer", text, judge(text, gold, rule)) for start, end, text in candidates)
        return next((item for item in judged if item.is_correct is not None), None)

    def judged(cue: Cue, end: int) -> Span:
        before = [item for item in answers if item[1] <= cue.start]
        after = [item for item in answers if item[0] >= cue.start]
        pair = (stated(reversed(before)), stated(after)) if before and after else (None, None)
        return _outcome_of(cue, [pair, *_claim_pairs(cue, end, thought, claims)], rule)

    return [judged(cue, end) for cue, end in zip(thoughts, ends, strict=True)]


def _outcome_of(cue: Cue, pairs: Iterable[tuple[Stated | None, Stated | None]], rule: str) -> Span:
    """The first change among the (before, after) pairs; else "confirm" or "missed"; "open" without pairs."""
    span = Span(cue.start, cue.end, cue.kind, "open", "cue")
    for before, after in pairs:
        if before is None or after is None:
            continue
        outcome = _outcome(before, after, rule)
        if outcome != "confirm" or span.outcome == "open":
            label = "self-correction" if outcome == "correct" else "cue"
            span = replace(span, outcome=outcome, label=label, before=before.value, after=after.value)
        if outcome not in ("confirm", "missed"):
            break
    return span


def _outcome(before: Stated, after: Stated, rule: str) -> str:
    if before.is_correct:
        return "confirm" if after.is_correct else "harm"
    if after.is_correct:
        return "correct"
    is_same = before.value == after.value or judge(after.value, before.value, rule)
    return "missed" if is_same else "switch"


def _claim_pairs(cue: Cue, end: int, text: str, claims: Sequence[Stated]) -> list[tuple[Stated, Stated]]:
    """Calculations stated before the cue and again between it and the next one. If there are none, the last calculation
    before the cue paired with itself, provided that the text after the cue calculates and then accepts ("correct").
    """
    before = {item.what: item for item in claims if item.end <= cue.start}
    inside = [item for item in claims if cue.start <= item.start < end]
    again = [(before[item.what], item) for item in inside if item.what in before]
    if again or not inside or not before:
        return again
    last = max(before.values(), key=lambda item: item.end)
    return [(last, last)] if _ACCEPTS.search(text, inside[-1].end, end) else []


def _candidates(completion: str) -> list[Candidate]:
    """(start, end, text) of the candidate answers, in order: boxes, answer blocks, and "the answer is ..."."""
    candidates = [(start, end, completion[start:end]) for start, end in boxed_spans(completion)]
    for match in _STATED.finditer(completion):
        group = "stated" if match["stated"] is not None else "block"
        if "\\boxed" not in match[group]:
            candidates.append((match.start(group), match.end(group), match[group]))
    stripped = ((start, end, text.strip().strip("*$ ")) for start, end, text in sorted(candidates))
    return [item for item in stripped if 0 < len(item[2]) <= _LONGEST][-_MOST_CANDIDATES:]


@lru_cache(maxsize=20_000)
def judge(answer: str, gold: str, rule: str) -> bool | None:
    """Whether the reward's verifier calls an answer correct; None if it cannot judge it, or has no usable gold."""
    if not gold.strip():
        return None
    try:
        judgement = grade(answer, gold, rule)
    except ValueError:
        return None
    return bool(judgement) if judgement.verdict in ("correct", "wrong") else None


# ------------------------------------------------------------------------------------------------ in a group


@dataclass(frozen=True, slots=True)
class Member:
    """A completion of a group, with its second thoughts."""

    is_correct: bool
    spans: tuple[Span, ...]

    @property
    def corrects(self) -> bool:
        return any(span.outcome == "correct" for span in self.spans)


def labelled(group: Sequence[Member]) -> list[Member]:
    """The members, with label "aha" where the group supports it (item 3 of the module docstring)."""
    others = [member.is_correct for member in group if not member.corrects]
    is_hard = len(others) >= _FEWEST_OTHERS and sum(others) <= _MOST_RIGHT * len(others)

    def relabel(member: Member) -> Member:
        if not (is_hard and member.is_correct):
            return member
        changed = (replace(s, label="aha") if s.outcome == "correct" else s for s in member.spans)
        return replace(member, spans=tuple(changed))

    return [relabel(member) for member in group]


def score(span: Span, *, others_right: float) -> float:
    """Sort key of a gallery: the label, then the difficulty for the other completions, then the kind of cue."""
    kinds = list(LEXICON)
    return (
        LABELS.index(span.label)
        + 0.6 * (1 - others_right) * (span.label != "cue")
        + 0.3 * (1 - kinds.index(span.kind) / len(kinds))
    )
