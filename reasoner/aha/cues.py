"""Reflection cues: words of a second thought, where they stand as such. "Wait, that is wrong" is one, "waiter" is not.

The lexicon takes up the published ones (DeepSeek-R1 Nature, extended data fig. 1; Liu et al. 2025, understand-r1-zero;
SimpleRL-Zoo) and asks for the context that tells a second thought from the same word in a word problem: most cues must
open a clause or be followed by what only a second thought is followed by. A cue is a word and no more: whether anything
came of it is for reasoner.aha.evidence.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

# A clause begins: at the start, after a stop, a colon or a dash, with small words in front.
_OPENS = (
    r"(?:^|(?<=[.!?:;\n…>])|(?<=[,–—-] )|(?<=\.\.\.))[\s\"'*_(]*"
    r"(?:(?:but|and|oh|ah|hmm+|okay|ok|well|so|now|no|actually|then)[,.!\s]+){0,3}"
)
_GO = r"(?:let(?:'s|’s| me| us)|I(?:'ll| will| should| need to| must| want to| have to)|we (?:should|need to|must))"
_LOOK_AGAIN = (
    r"(?:start over|backtrack|redo|restart|retry|rethink|try again|reconsider|revisit"
    r"|re-?evaluate|re-?examine|re-?assess|re-?analy[sz]e|go back (?:to|and|over))"
)

# In order of strength: of cues that stand together the first kind names the span.
LEXICON: dict[str, tuple[str, ...]] = {
    "aha": (r"\baha\b(?! (?-i:[A-Z]))", r"\beureka\b", r"\bnow I (?:see|get it|understand)\b"),
    "error": (
        r"\bI(?:'ve| have)?(?: must have| may have| might have)? ?(?:made|make|see|found|spot(?:ted)?)"
        r" (?:(?:a|an|my|the|another|some) )?(?:\w+ )?(?:mistakes?|errors?)\b",
        r"\bmy mistake\b",
        r"\bI (?:was wrong|mis(?:read|calculated|counted|understood|remembered|took|applied))\b",
        r"\b(?:that|this|it)(?:'s|’s| is| was) (?:not (?:right|correct|possible)|wrong|incorrect|a mistake|an error)\b",
        _OPENS + r"(?:oops|whoops|scratch that)\b",
    ),
    "backtrack": (
        rf"\b{_GO} {_LOOK_AGAIN}\b",
        _OPENS + rf"(?:{_LOOK_AGAIN}|on second thou?ght)\b",
    ),
    "doubt": (
        _OPENS
        + r"wait\b(?=\s*[,.!?…–—-]|\s+(?:a (?:minute|second|moment|sec)\b|no\b|that\b|let\b|I\b|is\b|this\b|but\b"
        r"|what\b|actually\b|maybe\b|it\b|there\b|did\b|if\b|wait\b)|\s*$)",
        _OPENS + r"(?:hold on|hang on|hmm+|not so fast)\b",
        r"\bsomething(?:'s|’s| is| seems| must be) (?:off|wrong|not right|amiss)\b",
        r"\b(?:that|this|it) (?:can't|can’t|cannot|couldn't|couldn’t) be(?: right| correct)?\s*[.!?,;]",
        r"\b(?:that|this|it) (?:does not|doesn't|doesn’t) (?:seem|look|sound|make|add up)(?: \w+)?\b",
        r"\b(?:am I|did I) (?:sure|right|missing|miss|forget|mis\w+)\b",
    ),
    "verify": (
        rf"\b{_GO} (?:quickly |just |also |now )?(?:double[- ]?check|re-?check|check|verify|confirm|re-?compute"
        r"|re-?calculate|make sure|see if (?:this|that|it) (?:works|is right|is correct|holds))\b",
        _OPENS + r"(?:double[- ]?check(?:ing)?|re-?check(?:ing)?|sanity check|verif(?:y|ying|ication)"
        r"|check(?:ing)?(?=\s*:|\s*,|\s+(?:this|that|again|it|my|our|the (?:answer|result|sum|work|calculation))\b))",
        _OPENS + r"(?:just )?to (?:double[- ]?check|check|verify|confirm|be sure|make sure)\b",
    ),
    "alternative": (
        _OPENS + r"alternatively\b",
        rf"\b{_GO} try (?:another|a different|something else|an alternative)\b",
        _OPENS + r"(?:another|a different) (?:way|approach|method|idea)\b(?= (?:to|is|would|might|could)|\s*[,:])",
    ),
}
_PATTERNS = {kind: re.compile("|".join(found), re.IGNORECASE) for kind, found in LEXICON.items()}
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_APART = 120  # characters within which cues are one span
_COPIED = 8  # words that stand in the question as well
_LOOP = 40  # characters: a cue followed by the same ones as an earlier cue says nothing new
_MOST = 200  # cues looked at


@dataclass(frozen=True, slots=True)
class Cue:
    """A span of one or several cues, and the strongest kind among them."""

    start: int
    end: int
    kind: str


def cues(text: str, question: str = "", *, keeps_apart: tuple[int, ...] = ()) -> list[Cue]:
    """The spans of a text, in order. Cues with a place of `keeps_apart` between them stay two.

    Left out: code, words copied from the question, and the repeats of a loop.
    """
    text = _CODE.sub(lambda code: " " * len(code[0]), text)
    singles = sorted(
        (
            Cue(_first_letter(text, match.start()), match.end(), kind)
            for kind, found in _PATTERNS.items()
            for match in found.finditer(text)
        ),
        key=lambda cue: (cue.start, cue.end),
    )[:_MOST]
    asked = f" {' '.join(_words(question))} "
    seen: set[str] = set()
    spans: list[Cue] = []
    for cue in singles:
        following = " ".join(text[cue.start : cue.end + _LOOP].split())
        if (following in seen and len(following) > _LOOP) or _is_copied(text, cue, asked):
            continue
        seen.add(following)
        last = spans[-1] if spans else None
        if last and cue.start - last.end <= _APART and not any(last.end <= place <= cue.start for place in keeps_apart):
            kind = min(last.kind, cue.kind, key=list(LEXICON).index)
            spans[-1] = Cue(last.start, max(last.end, cue.end), kind)
        else:
            spans.append(cue)
    return spans


def _first_letter(text: str, start: int) -> int:
    while start < len(text) and not text[start].isalnum():
        start += 1
    return start


def _is_copied(text: str, cue: Cue, asked: str) -> bool:
    """The cue stands in words of the question: eight in a row, or as many as the text has around it."""
    before, after = _words(text[max(0, cue.start - 80) : cue.start]), _words(text[cue.start : cue.end + 80])
    words = before[-_COPIED + 1 :] + after[:_COPIED]
    windows = (words[i : i + _COPIED] for i in range(len(words) - _COPIED + 1))
    return asked != "  " and any(f" {' '.join(window)} " in asked for window in windows)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
