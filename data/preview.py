"""What was understood of a file, a folder or a data set of the hub, and what was left out and why."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import takewhile

from data.files import Row
from data.problem import Problem
from data.spec import Part
from data.table_rows import USUAL_COLUMNS, RowFault
from data.tables import read_table, table_rows

_MAX_REASONS = 10
_MAX_ROWS = 5  # named for each reason
_LEAST_WORDS = 4  # of an instruction


@dataclass(slots=True)
class Preview:
    """Counts over all rows of a table."""

    num_rows: int = 0  # without lines that cannot be read
    table_columns: Counter[str] = field(default_factory=Counter)  # rows that have the column
    mapping: dict[str, Counter[str]] = field(default_factory=lambda: defaultdict(Counter))  # field -> its columns
    faults: list[RowFault] = field(default_factory=list)  # rows that a run refuses, or leaves out by ?faulty=skip
    bad_golds: list[RowFault] = field(default_factory=list)  # rows that a run leaves out
    repeats: Counter[str] = field(default_factory=Counter)  # others that it leaves out, by the reason
    problems: list[Problem] = field(default_factory=list)

    def lines(self) -> Iterator[str]:
        """The counts as lines of text."""
        num_left_out = len(self.faults) + len(self.bad_golds) + self.repeats.total()
        num_rows = len(self.problems) + num_left_out
        yield f"rows: {num_rows:,}, problems: {len(self.problems):,}, left out: {num_left_out:,}"
        yield f"columns: {_times(self.table_columns, self.num_rows) or 'none'}"
        for name in USUAL_COLUMNS:
            if columns := self.mapping.get(name):
                yield f"{name} is read from {_times(columns, len(self.problems))}"
        if ending := shared_ending([problem.question for problem in self.problems]):
            yield f"each question ends with {ending!r}, beside what --prompt says"
        yield from self._fault_lines()
        yield from (f"left out, {number:,}: they {reason}" for reason, number in self.repeats.items())

    def _fault_lines(self) -> Iterator[str]:
        places: dict[str, list[str]] = defaultdict(list)
        for fault in (*self.faults, *self.bad_golds):
            places[fault.reason].append(fault.where)
        for reason, rows in list(places.items())[:_MAX_REASONS]:
            more = f" and {len(rows) - _MAX_ROWS:,} more" if len(rows) > _MAX_ROWS else ""
            yield f"left out, {len(rows):,}: {reason}\n    {'; '.join(rows[:_MAX_ROWS])}{more}"
        if len(places) > _MAX_REASONS:
            number = sum(map(len, list(places.values())[_MAX_REASONS:]))
            yield f"left out, {number:,}: for {len(places) - _MAX_REASONS:,} other reasons"


def preview_table(table: Part, gold_fault: Callable[[Problem], str]) -> Preview:
    """Read all rows. `gold_fault` says why the gold answer of a problem cannot be graded, "" if it can."""
    preview = Preview()

    def rows() -> Iterator[Row]:
        for where, row in table_rows(table, preview.faults.append):
            preview.num_rows += 1
            preview.table_columns.update(row.keys())
            yield where, row

    for reading in read_table(table, rows(), preview.faults.append, preview.repeats):
        if reason := gold_fault(reading.problem):
            preview.bad_golds.append(RowFault(reading.where, f"the gold answer cannot be graded ({reason})"))
            continue
        preview.problems.append(reading.problem)
        for name, column in reading.columns.items():
            preview.mapping[name][column] += 1
    return preview


def shared_ending(questions: Sequence[str]) -> str:
    """The words that all of several questions end with: an instruction on the form of the answer. Empty without one."""
    backwards = {tuple(reversed(question.split())) for question in questions}
    if len(backwards) < 2:
        return ""
    pairs = zip(min(backwards), max(backwards), strict=False)  # what these two have in common, all have
    words = [word for word, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)]
    return " ".join(reversed(words)) if len(words) >= _LEAST_WORDS else ""


def _times(counts: Counter[str], total: int) -> str:
    """Names with their counts where they are not all."""
    names = (name if number == total else f"{name} ({number:,} rows)" for name, number in counts.most_common())
    return ", ".join(names)
