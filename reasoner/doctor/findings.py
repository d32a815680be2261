"""The doctor's findings: one line for each subject, with a severity and, where possible, settings that help."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any


class Severity(StrEnum):
    """How serious a finding is."""

    OK = "ok"
    WARNING = "warning"  # the run works, perhaps not as intended
    ERROR = "error"  # the run will not work


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

    severity: Severity
    subject: str
    message: str
    suggestion: str = ""  # arguments of `reasoner train` that help
    measurements: Mapping[str, Any] = field(default_factory=dict)  # by subject, for --json

    def __str__(self) -> str:
        return f"{self.severity:<7} {self.subject:<11} {self.message}"


def summary(findings: Sequence[Finding]) -> str:
    """List the suggested settings of all findings, and count the findings of each severity."""
    counts = Counter(finding.severity for finding in findings)
    totals = f"{counts[Severity.OK]} ok, {counts[Severity.WARNING]} warnings, {counts[Severity.ERROR]} errors"
    suggestions = dict.fromkeys(f"  {one.suggestion:<50} {one.subject}" for one in findings if one.suggestion)
    return "\n".join([*(["suggested settings:"] if suggestions else []), *suggestions, totals])
