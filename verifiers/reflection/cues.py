"""Reflection cues: words that mark a self-check or a change of mind, in context ("Wait, that is wrong", not "waiter").

The lexicon includes the published ones (DeepSeek-R1 Nature, extended data fig. 1; Liu et al. 2025, understand-r1-zero;
SimpleRL-Zoo) and requires a context that separates a cue from the same word in a word problem: most cues must open a
clause or be followed by typical words. A cue is no evidence that an answer changed: verifiers.reflection.outcomes
decides that.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

# The start of a clause: at the start of the text, or after a stop or comma, with optional marks and small words. The
# repeats are bounded and possessive (the plus): the text may be 200,000 line ends.
_STOP = r"[.!?:;\n…>(–—]"
_OPENS = (
    rf"(?:^|(?<={_STOP})(?!{_STOP})|(?<=[,-] ))[\W_]{{0,12}}+"
    r"(?:(?:but|and|oh|ah|hmm+|okay|ok|well|so|now|no|actually|then)[,.!\s]{1,4}+){0,3}"
)
_GO = r"(?:let(?:'s| me| us)|I(?:'ll| will| should| need to| must| want to| have to)|we (?:should|need to|must))"
_LOOK_AGAIN = (
    r"(?:start over|backtrack|redo|restart|retry|rethink|try again|think again|reconsider|revisit"
    r"|re-?evaluate|re-?examine|re-?assess|re-?analy[sz]e|go over (?:the steps|my|this|it)"
    r"|go back (?:and|over|to (?:step|my|our|where|the (?:start|beginning|problem|question|original|first|previous))))"
)
_WRONG = r" (?:not (?:right|correct|possible(?=\s*[.!?]))|wrong|incorrect|a mistake|an error)\b(?! to\b)"

# In order of strength: a span of several cues has the kind that comes first here.
LEXICON: dict[str, tuple[str, ...]] = {
    "aha": (
        r"\baha\b(?! (?-i:[A-Z]))",
        r"\beureka\b",
        r"\bnow I (?:get it|understand|see(?=\s*[,.:;!…–—-]|\s*$| (?:that|why|how|what|where|it|my)\b))\b",
    ),
    "error": (
        r"\bI(?:'ve| have)?(?: must have| may have| might have)? ?(?:made|make|see|found|spot(?:ted)?)"
        r" (?:(?:a|an|my|the|another|some) )?(?:\w{1,20} )?(?:mistakes?|errors?)\b",
        r"\bmy mistake\b",
        r"\bthere(?:'s| is| was| must be) (?:a|an|some) (?:mistake|error) (?:in my|here|above|somewhere)\b",
        r"\bI (?:was wrong|mis(?:read|calculated|counted|understood|remembered|took|applied))\b",
        # not "the chance that it is wrong", nor "each answer that is wrong"
        r"(?<!that )(?<!if )(?<!when )(?<!whether )\b(?:that's|(?:this|it)(?:'s| is| was))" + _WRONG,
        rf"(?:{_OPENS}|\bI think )that (?:is|was){_WRONG}",
        r"\b(?:that|this|it) (?:isn't|wasn't) (?:right|correct)\b",
        _OPENS + r"(?:oops|whoops|scratch that)\b",
    ),
    "backtrack": (
        rf"\b{_GO} {_LOOK_AGAIN}\b",
        _OPENS + rf"(?:{_LOOK_AGAIN}|on second thou?ght)\b",
    ),
    "doubt": (
        _OPENS + r"wait\b(?=[\s\"'*_]*+(?:[,.!?…–—-]|$)|\s+(?:a (?:minute|second|moment|sec)|no|that|let|I|is|this|but"
        r"|what|actually|maybe|it|there|did|if|wait)\b)",
        _OPENS + r"(?:hold on(?! to\b)|hang on(?! to\b)|hmm+|not so fast)\b",
        r"\bsomething(?:'s| is| seems| must be) (?:off|wrong|not right|amiss)\b",
        r"\b(?:that|this|it) (?:can't|cannot|couldn't) be(?: right| correct)?\s*[.!?,;]",
        r"\b(?:that|this|it) (?:does not|doesn't) (?:make (?:any )?sense|add up(?! to\b)"
        r"|(?:seem|look|sound) (?:right|correct|possible|plausible|reasonable))\b",
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
_PATTERNS = {kind: re.compile("|".join(patterns), re.IGNORECASE) for kind, patterns in LEXICON.items()}
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_MAX_GAP = 120  # characters; cues that are closer form one span
_QUOTE_WORDS = 8  # consecutive words that are also in the question: a quotation
# Characters after a cue (at the end of the text: before it) that mark a repeat if equal to those of an earlier cue.
_REPEAT_CHARACTERS = 60
_MAX_CUES = 200  # cues that are examined


@dataclass(frozen=True, slots=True)
class Cue:
    """A span of one or several cues, and the strongest kind among them."""

    start: int
    end: int
    kind: str


def cues(text: str, question: str = "", *, separators: tuple[int, ...] = ()) -> list[Cue]:
    """Find the cue spans of a text, in order. Cues with a position of `separators` between them are not merged.

    Code, words copied from the question, and repeats in a loop are skipped.
    """
    text = _CODE.sub(lambda code: "\n" * len(code[0]), text.replace("’", "'"))
    question_words = f" {' '.join(_words(question))} "
    contexts: set[tuple[str, str]] = set()
    spans: list[Cue] = []
    for cue in _singles(text):
        after = text[cue.start : cue.start + _REPEAT_CHARACTERS]
        before = text[max(0, cue.end - _REPEAT_CHARACTERS) : cue.end]
        is_repeat = (cue.kind, after if len(after) == _REPEAT_CHARACTERS else before) in contexts
        contexts |= {(cue.kind, after), (cue.kind, before)}
        if is_repeat or _is_quote(text, cue, question_words):
            continue
        last = spans[-1] if spans else None
        if (
            last
            and cue.start - last.end <= _MAX_GAP
            and not any(last.end <= place <= cue.start for place in separators)
        ):
            kind = min(last.kind, cue.kind, key=list(LEXICON).index)
            spans[-1] = Cue(last.start, max(last.end, cue.end), kind)
        else:
            spans.append(cue)
    return spans


@lru_cache(maxsize=1)  # a text is looked through with and without separators; of a long one this takes most of the time
def _singles(text: str) -> list[Cue]:
    """The first _MAX_CUES cues of a text, in order; they may overlap."""
    found = (
        Cue(_first_letter(text, match.start()), match.end(), kind)
        for kind, pattern in _PATTERNS.items()
        for match in pattern.finditer(text)
    )
    return sorted(found, key=lambda cue: (cue.start, cue.end))[:_MAX_CUES]


def _first_letter(text: str, start: int) -> int:
    while start < len(text) and not text[start].isalnum():
        start += 1
    return start


def _is_quote(text: str, cue: Cue, question_words: str) -> bool:
    """Whether the cue's first word is among eight consecutive words that are also in the question."""
    before, after = _words(text[max(0, cue.start - 80) : cue.start]), _words(text[cue.start : cue.end + 80])
    words = before[-_QUOTE_WORDS + 1 :] + after[:_QUOTE_WORDS]
    windows = (words[i : i + _QUOTE_WORDS] for i in range(len(words) - _QUOTE_WORDS + 1))
    return question_words != "  " and any(f" {' '.join(window)} " in question_words for window in windows)


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())
