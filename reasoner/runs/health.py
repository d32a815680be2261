"""Alarms of a run: which health checks fail after a step, which of them are new, and RUN/alarms.jsonl.

Alarms are a function of the lines of metrics.jsonl alone, so a resumed run raises the same ones. The checks are the
rows of CHECKS (reasoner.runs.health_checks).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, fields
from pathlib import Path

from reasoner.runs.health_checks import CHECKS, Alarm, Check, Lines
from reasoner.runs.io import write_bytes
from reasoner.runs.json_files import COUNT, NUMBER, TEXT, Torn, checked_line, read_lines

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


# ------------------------------------------------------------------------------------------------ alarms.jsonl

_KIND_OF = {"str": TEXT, "int": COUNT, "float": NUMBER}
_FIELDS = {field.name: _KIND_OF[str(field.type)] for field in fields(Alarm)}


def read_alarms(run_dir: Path, *, torn: Torn = "never") -> list[Alarm]:
    """Read the alarms of a run, the oldest first. ValueError for a damaged file; `torn` as in read_lines."""
    lines = read_lines(run_dir / "alarms.jsonl", _FIELDS, torn=torn)
    return [Alarm(**{name: line[name] for name in _FIELDS}) for line in lines]


def record(run_dir: Path, alarms: Sequence[Alarm]) -> None:
    """Add alarms to those of the run. The file is replaced as a whole."""
    if alarms:
        rewrite(run_dir, [*read_alarms(run_dir), *alarms])


def forget(run_dir: Path, start: int) -> None:
    """Keep only the alarms of the first `start` steps, for a run that is resumed after them."""
    if alarms := read_alarms(run_dir):
        rewrite(run_dir, [alarm for alarm in alarms if alarm.step < start])


def rewrite(run_dir: Path, alarms: Sequence[Alarm]) -> None:
    """Replace the alarms of the run. The file is replaced as a whole."""
    write_bytes(run_dir / "alarms.jsonl", b"".join(checked_line(asdict(alarm)) for alarm in alarms))
