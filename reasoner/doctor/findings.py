"""The doctor's findings: one line for each subject, with a mark and, where possible, settings that help."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How serious a finding is: green, yellow, red."""

    OK = "ok"
    LOOK = "look"  # the run will work; the user should know this first
    NO = "no"  # the run will not work


_COLOURS = {Severity.OK: 32, Severity.LOOK: 33, Severity.NO: 31}


@dataclass(frozen=True, slots=True)
class Finding:
    """One finding."""

    mark: Severity
    subject: str
    text: str
    proposed: str = ""  # arguments of `reasoner train` that help


def format_finding(line: Finding) -> str:
    """Format a line for printing, with its mark in colour on a terminal."""
    mark = f"{line.mark:<5}"
    if sys.stdout.isatty():
        mark = f"\033[{_COLOURS[line.mark]}m{mark}\033[0m"
    return f"{mark} {line.subject:<11} {line.text}"


def summary(lines: Sequence[Finding]) -> str:
    """List the proposed settings of all lines, and count the lines of each mark."""
    counts = Counter(line.mark for line in lines)
    totals = ", ".join(
        f"{counts[mark]} {meaning}"
        for mark, meaning in ((Severity.OK, "ok"), (Severity.LOOK, "to look at"), (Severity.NO, "that will not work"))
    )
    proposals = dict.fromkeys(f"  {line.proposed:<50} {line.subject}" for line in lines if line.proposed)
    return "\n".join([*(["proposed settings:"] if proposals else []), *proposals, totals])
