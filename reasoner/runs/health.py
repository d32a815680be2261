"""Alarms of a run: which health checks fail after a step, and which of them are new.

Alarms are a function of the lines of metrics.jsonl alone, so a resumed run raises the same ones. They are recorded in
RUN/alarms.jsonl (reasoner.runs.alarms). The checks are the rows of CHECKS (reasoner.runs.health_checks).
"""

from __future__ import annotations

from reasoner.runs.alarms import Alarm, forget, read_alarms, record, rewrite
from reasoner.runs.health_checks import CHECKS, Check, Lines
from reasoner.runs.repetition import repeats, repetition

__all__ = [
    "CHECKS",
    "Alarm",
    "Check",
    "active_alarms",
    "all_alarms",
    "forget",
    "new_alarms",
    "read_alarms",
    "record",
    "repeats",
    "repetition",
    "rewrite",
]

_QUIET = 10  # steps for which a check must have passed before its alarm is raised again


def active_alarms(history: Lines) -> list[Alarm]:
    """The alarms of the checks that fail after the newest of the steps, new or not."""
    return [alarm for check in CHECKS if (alarm := check.of(history))]


def new_alarms(history: Lines) -> list[Alarm]:
    """The new alarms: of the checks that fail after the newest step and passed after each of the ten steps before."""

    def failed_before(check: Check) -> bool:
        return any(check.of(history[:-ago]) for ago in range(1, _QUIET + 1))

    return [alarm for check in CHECKS if (alarm := check.of(history)) and not failed_before(check)]


def all_alarms(history: Lines) -> list[Alarm]:
    """All alarms of a run with these steps, in order: those of `alarms` after each step, with one check per step."""
    raised: list[Alarm] = []
    last_failed: dict[str, int] = {}  # by check: the number of steps after which it failed last
    for end in range(1, len(history) + 1):
        for alarm in active_alarms(history[:end]):
            if alarm.name not in last_failed or end - last_failed[alarm.name] > _QUIET:
                raised.append(alarm)
            last_failed[alarm.name] = end
    return raised
