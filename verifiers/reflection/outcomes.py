"""What came of a second thought: the answer before it, the answer after it, both judged by the reward's own verifier.

The ladder, and the words for it:

1. *cue*: second-thought words in context (verifiers.reflection.cues). Nothing is claimed of them.
2. *self-correction*: what stood before the cue is wrong, what stands after it is right.
3. *aha*: a self-correction in a response that is right in the end, on a question that the other completions of its
   group, those without a self-correction, mostly get wrong (at least two of them, at most half right).

What is compared: the candidate answers of the question (`\\boxed{}`, `<answer>`, "the answer is ..."), judged against
the gold answer; and where a cue stands between none, the calculations stated in the text (7*6=44), judged by exact
arithmetic. The answer before the cue is the last one before it, the answer after it is the next one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

from data.gold import boxed_spans
from verifiers import grade
from verifiers.equations import equations, plain_with_places
from verifiers.reflection.cues import LEXICON, Cue, cues

LABELS = ("cue", "self-correction", "aha")  # of second thoughts, each the stronger claim
OUTCOMES = {
    "correct": "wrong before, right after",
    "harm": "right before, wrong after",
    "switch": "wrong before, another wrong one after",
    "confirm": "right before and after",
    "missed": "wrong before, the same after",
    "open": "nothing to compare on one side",
}
_MOST_CANDIDATES = 24
_LONGEST = 200  # characters of a candidate answer; half of a longer one would be misread
_MOST_RIGHT = 0.5  # of the others in the group, for an aha
_FEWEST_OTHERS = 2

# What follows "the answer is". "The answer is correct" states none, and the half of "3 + 4" would be misread.
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
    """A value that the text gives: of the question ("answer"), or of a calculation (its expression)."""

    start: int
    end: int
    what: str
    value: str
    is_right: bool | None  # None for what the verifier cannot judge


Candidate = tuple[int, int, str]  # start, end, text


@dataclass(frozen=True, slots=True)
class Span:
    """A second thought and what came of it."""

    start: int  # in the completion
    end: int
    kind: str  # of LEXICON
    outcome: str  # of OUTCOMES
    label: str  # of LABELS
    before: str = ""
    after: str = ""


def spans(completion: str, question: str, gold: str, rule: str = "maths") -> list[Span]:
    """The second thoughts of a response, in order; labels up to "self-correction", which need no group."""
    thought = completion.split("</think>", 1)[0]
    if not cues(thought, question):
        return []
    text, places = plain_with_places(thought)
    answers = _candidates(completion)
    claims = [
        Stated(places[e.start], places[e.end - 1] + 1, e.expression, e.written, e.is_right) for e in equations(text)
    ]
    found = cues(thought, question, keeps_apart=(*(item.start for item in claims), *(item[0] for item in answers)))
    ends = [cue.start for cue in found[1:]] + [len(thought)]

    def stated(candidates: Iterable[Candidate]) -> Stated | None:
        """The first of them that the verifier can judge."""
        judged = (Stated(start, end, "answer", text, judge(text, gold, rule)) for start, end, text in candidates)
        return next((item for item in judged if item.is_right is not None), None)

    def judged(cue: Cue, end: int) -> Span:
        before = [item for item in answers if item[1] <= cue.start]
        after = [item for item in answers if item[0] >= cue.start]
        pair = (stated(reversed(before)), stated(after)) if before and after else (None, None)
        return _outcome_of(cue, [pair, *_claim_pairs(cue, end, thought, claims)], rule)

    return [judged(cue, end) for cue, end in zip(found, ends, strict=True)]


def _outcome_of(cue: Cue, pairs: Iterable[tuple[Stated | None, Stated | None]], rule: str) -> Span:
    """The first change among the pairs of (before, after), else that nothing changed, else that nothing is known."""
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
    if before.is_right:
        return "confirm" if after.is_right else "harm"
    if after.is_right:
        return "correct"
    is_same = before.value == after.value or judge(after.value, before.value, rule)
    return "missed" if is_same else "switch"


def _claim_pairs(cue: Cue, end: int, text: str, claims: Sequence[Stated]) -> list[tuple[Stated, Stated]]:
    """Calculations that were stated before the cue and are stated again between it and the next one; and the last one
    before the cue with itself, where what follows the cue works something out and then accepts it in so many words.
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
    found = [(start, end, completion[start:end]) for start, end in boxed_spans(completion)]
    for match in _STATED.finditer(completion):
        group = "stated" if match["stated"] is not None else "block"
        if "\\boxed" not in match[group]:
            found.append((match.start(group), match.end(group), match[group]))
    stripped = ((start, end, text.strip().strip("*$ ")) for start, end, text in sorted(found))
    return [item for item in stripped if 0 < len(item[2]) <= _LONGEST][-_MOST_CANDIDATES:]


@lru_cache(maxsize=20_000)
def judge(answer: str, gold: str, rule: str) -> bool | None:
    """As the reward judges it; None for what it cannot judge, a gold answer that is none included."""
    if not gold.strip():
        return None
    try:
        found = grade(answer, gold, rule)
    except ValueError:
        return None
    return bool(found) if found.verdict in ("correct", "wrong") else None


# ------------------------------------------------------------------------------------------------ in a group


@dataclass(frozen=True, slots=True)
class Member:
    """A completion of a group with its second thoughts."""

    is_right: bool
    spans: tuple[Span, ...]

    @property
    def corrects(self) -> bool:
        return any(span.outcome == "correct" for span in self.spans)


def labelled(group: Sequence[Member]) -> list[Member]:
    """The members with "aha" where the group bears it out (rung 3 of this module's docstring)."""
    others = [member.is_right for member in group if not member.corrects]
    is_hard = len(others) >= _FEWEST_OTHERS and sum(others) <= _MOST_RIGHT * len(others)

    def raised(member: Member) -> Member:
        if not (is_hard and member.is_right):
            return member
        changed = (replace(s, label="aha") if s.outcome == "correct" else s for s in member.spans)
        return replace(member, spans=tuple(changed))

    return [raised(member) for member in group]


def score(span: Span, *, others_right: float) -> float:
    """For the order of a gallery: the rung, then how hard the question is for the others, then the kind of cue."""
    kinds = list(LEXICON)
    return (
        LABELS.index(span.label)
        + 0.6 * (1 - others_right) * (span.label != "cue")
        + 0.3 * (1 - kinds.index(span.kind) / len(kinds))
    )
