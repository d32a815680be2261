"""The gold answer of a worked solution: after `####` as in GSM8K, or in the last `\\boxed{}` as in MATH."""

from __future__ import annotations

import re
from collections import deque

from data.boxes import box_spans

# `\boxed 2` and `\fbox2` of some solutions of MATH: to the next space, or the end of the formula.
_UNBRACED = re.compile(r"(?<!\\)\\(?:boxed|fbox)(?:\s+(?!\{)|(?=\d))((?:\\[a-zA-Z]+|\\[^a-zA-Z()\[\]\\]|[^\s$\\])+)")


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
