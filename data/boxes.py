"""Boxed answers, the contents of `\\boxed{}` and `\\fbox{}` in a text, and the gold answer of a worked solution: after
`####` as in GSM8K, or in the last box as in MATH.
"""

from __future__ import annotations

import re
from collections import deque

_BRACE_OR_ESCAPE = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)

# From the end of one box to the content of the next where a comma, "and" or "or" joins the two.
_SPACE = r"(?:[\s$~]|\\[()\[\],;: ]|\\q?quad(?![a-z]))*"
_NAME = r"[A-Za-z](?:_\w|_\{\w{1,3}\})?"
_JOINT = re.compile(
    rf"\}}{_SPACE}[,;，；、]?{_SPACE}(?:(?:\\text\s?\{{\s?)?(and|or|和|与|或)\s?\}}?)?{_SPACE}"
    rf"(?:{_NAME}{_SPACE}={_SPACE})?\\(?:boxed|fbox)\s*\{{"
)
_NAMED = re.compile(rf"(?<![A-Za-z_\\])({_NAME}){_SPACE}={_SPACE}\\(?:boxed|fbox)\s*\{{$")
# `\boxed 2` and `\fbox2` of some solutions of MATH: to the next space, or the end of the formula.
_UNBRACED = re.compile(r"(?<!\\)\\(?:boxed|fbox)(?:\s+(?!\{)|(?=\d))((?:\\[a-zA-Z]+|\\[^a-zA-Z()\[\]\\]|[^\s$\\])+)")
_THIN_SPACE = re.compile(r"\\[,;]")
_MAX_JOINT = 60  # characters: the expression would be slow on long runs of spaces
_MAX_BOXES = 20


def box_contents(text: str) -> list[str]:
    """The contents of the complete, innermost `\\boxed{}` (and `\\fbox{}`), in order."""
    return [text[start:end] for start, end in box_spans(text)]


def box_spans(text: str) -> list[tuple[int, int]]:
    """(start, end) of the content of each complete box that contains no other complete box, in order.

    One pass over the text. The spans do not overlap, so copying all of them is linear in the text however deeply the
    boxes are nested.
    """
    if "box" not in text:
        return []
    spans: list[tuple[int, int]] = []
    open_braces: list[int | None] = []  # start of the content for a brace that opens a box, None for other braces
    for token in _BRACE_OR_ESCAPE.finditer(text):
        match token[0][-1], len(token[0]):
            case "{", 1:
                open_braces.append(None)
            case "{", length if length > 2:
                open_braces.append(token.end())
            case "}", 1 if open_braces:
                start = open_braces.pop()
                if start is not None and not (spans and spans[-1][0] > start):
                    spans.append((start, token.start()))
    return spans


def last_box(text: str) -> str | None:
    """The content of the box that opens last, or None; b for `\\boxed{a \\boxed{b}}`."""
    spans = box_spans(text)
    return text[slice(*spans[-1])] if spans else None


def final_boxes(text: str) -> str | None:
    r"""The last box, or as a list the last boxes that a comma, "and" or "or" joins: `1, 2` of `\boxed{1}, \boxed{2}`.

    Equal boxes count once; boxes that all have a name in front, `x = \boxed{1}, y = \boxed{2}`, keep it. None without
    a box.
    """
    spans = box_spans(text)
    first = len(spans) - 1
    while first > 0 and len(spans) - first < _MAX_BOXES and _is_joint(text[spans[first - 1][1] : spans[first][0]]):
        first -= 1
    spans = spans[max(first, 0) :]
    names = [_NAMED.search(text, max(start - _MAX_JOINT, 0), start) for start, _ in spans]
    contents = dict.fromkeys(text[start:end] for start, end in spans)
    if len(spans) > 1 and all(names) and len({name[1] for name in names if name}) == len(names):
        contents = {
            f"{name[1]} = {text[start:end]}": None for name, (start, end) in zip(names, spans, strict=True) if name
        }
    return ", ".join(contents) if contents else None


def _is_joint(text: str) -> bool:
    """Whether a text between the contents of two boxes joins them."""
    match = _JOINT.fullmatch(text) if len(text) <= _MAX_JOINT else None
    return match is not None and (match[1] is not None or not set(",;，；、").isdisjoint(_THIN_SPACE.sub("", text)))


def final_answer(solution: str) -> str:
    """The gold answer of a solution in either form; a text in neither form is itself the answer, trimmed."""
    return gold_answer(solution)[1]


def gold_answer(solution: str) -> tuple[bool, str]:
    """(whether the text marks its answer by #### or a box, the answer trimmed)."""
    _, hashes, rest = solution.rpartition("####")
    spans = box_spans(solution)
    is_heading = bool(spans) and ("\n" in rest.strip() or "box" in rest)  # of a solution in Markdown
    if hashes and not is_heading:
        return True, rest.strip()
    unbraced = deque(_UNBRACED.finditer(solution), maxlen=1)
    if unbraced and not (spans and spans[-1][0] > unbraced[0].start()):
        return True, unbraced[0][1].rstrip(".,;:")
    return (True, solution[slice(*spans[-1])].strip()) if spans else (False, solution.strip())
