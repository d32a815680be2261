"""Rows that cannot be used: the error, and what a reader does with it."""

from __future__ import annotations

from collections.abc import Callable


class RowFault(ValueError):
    """A row that cannot be used: its position ("FILE, line 3") and the reason."""

    def __init__(self, where: str, reason: str) -> None:
        super().__init__(f"{where}: {reason}")
        self.where, self.reason = where, reason


OnFault = Callable[[RowFault], None]  # returns to leave the row out, or raises


def refuse(fault: RowFault) -> None:
    """Raise the fault."""
    raise fault
