"""What the doctor says: a line a subject, with a mark and, where something can be done, the settings that do it."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Mark(StrEnum):
    """Green, yellow, red."""

    OK = "ok"
    LOOK = "look"  # the run can be made; this should be known first
    NO = "no"  # will not work


_COLOURS = {Mark.OK: 32, Mark.LOOK: 33, Mark.NO: 31}


@dataclass(frozen=True, slots=True)
class Line:
    """One finding."""

    mark: Mark
    subject: str
    text: str
    proposed: str = ""  # arguments of `reasoner train`


def shown(line: Line) -> str:
    """The line as it is printed, in colour on a terminal."""
    mark = f"{line.mark:<5}"
    if sys.stdout.isatty():
        mark = f"\033[{_COLOURS[line.mark]}m{mark}\033[0m"
    return f"{mark} {line.subject:<11} {line.text}"


def summary(lines: Sequence[Line]) -> str:
    """The proposals of all lines, and how many lines of each mark there are."""
    counts = Counter(line.mark for line in lines)
    told = ", ".join(
        f"{counts[mark]} {meaning}"
        for mark, meaning in ((Mark.OK, "ok"), (Mark.LOOK, "to look at"), (Mark.NO, "that will not work"))
    )
    proposals = dict.fromkeys(f"  {line.proposed:<50} {line.subject}" for line in lines if line.proposed)
    return "\n".join([*(["proposed settings:"] if proposals else []), *proposals, told])
