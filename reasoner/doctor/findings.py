"""The doctor's findings: one line for each subject, with a severity and, where possible, settings that help."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum


class Severity(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    WARNING = "warning"  # the run works, perhaps not as intended
    ERROR = "error"  # the run will not work


_COLOURS = {Severity.OK: 32, Severity.WARNING: 33, Severity.ERROR: 31}


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    severity: Severity
    subject: str
    message: str
    suggestion: str = ""  # arguments of `reasoner train` that help


def format_finding(finding: Finding) -> str:
    """Format a finding as one line, with its severity in colour on a terminal."""
    severity = f"{finding.severity:<7}"
    if sys.stdout.isatty():
        severity = f"\033[{_COLOURS[finding.severity]}m{severity}\033[0m"
    return f"{severity} {finding.subject:<11} {finding.message}"


def summary(findings: Sequence[Finding]) -> str:
    """List the suggested settings of all findings, and count the findings of each severity."""
    counts = Counter(finding.severity for finding in findings)
    totals = f"{counts[Severity.OK]} ok, {counts[Severity.WARNING]} warnings, {counts[Severity.ERROR]} errors"
    suggestions = dict.fromkeys(f"  {one.suggestion:<50} {one.subject}" for one in findings if one.suggestion)
    return "\n".join([*(["suggested settings:"] if suggestions else []), *suggestions, totals])
