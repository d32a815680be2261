"""The final answer inside a worked solution: after `####` as in GSM8K, or in the last `\\boxed{}` as in MATH."""

from __future__ import annotations

import re

_BRACE_OR_ESCAPE = re.compile(r"\\(?:boxed|fbox)\s*\{|\\.|[{}]", re.DOTALL)


def last_boxed(text: str) -> str | None:
    """The content of the last complete `\\boxed{}` (or `\\fbox{}`), or None. One pass over the text, whatever is in it.

    The last one is the one that opens last: in `\\boxed{a \\boxed{b}}` that is b.
    """
    boxed = None
    boxed_start = -1
    open_braces: list[int | None] = []  # where the content starts for a brace that opens a box, None for any other
    for token in _BRACE_OR_ESCAPE.finditer(text):
        match token[0][-1], len(token[0]):
            case "{", 1:
                open_braces.append(None)
            case "{", length if length > 2:
                open_braces.append(token.end())
            case "}", 1 if open_braces:
                start = open_braces.pop()
                if start is not None and start > boxed_start:
                    boxed, boxed_start = text[start : token.start()], start
    return boxed


def final_answer(solution: str) -> str:
    """The gold answer in a solution of either form; a text of neither form is the answer itself, trimmed."""
    if "####" in solution:
        return solution.rpartition("####")[2].strip()
    boxed = last_boxed(solution)
    return (solution if boxed is None else boxed).strip()
