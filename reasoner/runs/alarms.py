"""Alarms of a run, and RUN/alarms.jsonl in which they are recorded."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from pathlib import Path

from reasoner.runs.io import write_bytes
from reasoner.runs.json_files import COUNT, NUMBER, TEXT, Torn, checked_line, read_lines


@dataclass(frozen=True, slots=True)
class Alarm:
    """A health check that failed, with the value and the limit that it exceeded."""

    name: str
    step: int  # the step, as in metrics.jsonl, after which the check failed
    since: int  # the first step that the check looked at: the cause lies there, or before
    value: float
    limit: float
    when: str
    meaning: str
    help: str

    @property
    def text(self) -> str:
        """One paragraph for the console."""
        event = f"{self.name} at step {self.step}: {self.when} ({self.value:.3g}, limit {self.limit:.3g})"
        return f"ALARM  {event}. {self.meaning} What helps: {self.help}"


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
