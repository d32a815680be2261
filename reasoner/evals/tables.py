"""The figures of an evaluation as people read them: one line a set, then what stands behind it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

from reasoner.console import visible
from reasoner.evals.estimators import Estimate, macro
from reasoner.evals.result import Evaluation

Sets = Mapping[str, Mapping[str, Evaluation]]  # set -> way of answering ("sampled", "greedy") -> figures
Row = Sequence[str]


def table(sets: Sets) -> str:
    """One line a set and way, and the macro average of several sets."""
    ways = [(name, way, found) for name, by_way in sets.items() for way, found in by_way.items()]
    metrics = list(dict.fromkeys(_title(way, metric) for _, way, found in ways for metric in found.metrics))
    header = ["set", "N", "n", *(f"{m} (95 % CI)" for m in metrics), "se", "se_run", "trunc", "none", "tokens"]
    rows = [_line(name, way, found, metrics) for name, way, found in ways]
    if len(sets) > 1:
        rows += _macro_lines(ways, metrics)
    return "\n".join(aligned([header, *rows]))


def _shown(spec: str) -> str:
    """A set as it is named in a table: a file by its name alone."""
    return visible(Path(spec.partition("?")[0]).name)


def _title(way: str, metric: str) -> str:
    return "greedy" if way == "greedy" else metric


def _line(name: str, way: str, found: Evaluation, metrics: Sequence[str]) -> Row:
    values = {_title(way, metric): value for metric, value in found.metrics.items()}
    health = found.health
    tokens = health["tokens"]
    return [
        _shown(name),
        f"{found.problems:,}",
        str(found.samples),
        *(_interval(values.get(metric)) for metric in metrics),
        f"{100 * found.pass_at_1.se:.1f}",
        "-" if found.se_run is None else f"{100 * found.se_run:.1f}",
        percent(health["truncated"]),
        percent(health["no_answer"]),
        "-" if tokens is None else f"{tokens:,.0f}",
    ]


def _macro_lines(ways: Sequence[tuple[str, str, Evaluation]], metrics: Sequence[str]) -> list[Row]:
    """The mean over the sets, unweighted, of each metric that every set has; +- is one standard error."""
    names = {name for name, _, _ in ways}
    by_title: dict[str, list[Estimate]] = {}
    for _, way, found in ways:
        for metric, value in found.metrics.items():
            by_title.setdefault(_title(way, metric), []).append(value)
    cells = []
    for metric in metrics:
        estimates = by_title[metric]
        mean, se = macro(estimates)
        cells.append(f"{100 * mean:.1f} +- {100 * se:.1f}" if len(estimates) == len(names) else "-")
    return [["macro average", "", "", *cells, "", "", "", "", ""]]


def details(spec: str, ways: Mapping[str, Evaluation]) -> str:
    """What is behind the lines of a set, a column a way: form against reasoning, health, checks, families, levels."""
    columns = {way: _behind(found) | _by_cell(found) for way, found in ways.items()}
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    rows = [[name, *(column.get(name, "-") for column in columns.values())] for name in names]
    heads = [
        "greedy" if way == "greedy" else f"{found.samples} samples" + _at(found.temperature)
        for way, found in ways.items()
    ]
    return "\n".join(aligned([[_shown(spec), *heads], *rows]))


def _behind(found: Evaluation) -> dict[str, str]:
    reflection, health = found.reflection, found.health
    rows = {
        "in the form asked for": percent(found.well_formed),
        "right given that form": percent(found.right_given_well_formed),
        "right, any form (lenient)": str(found.lenient).strip(),
        "lost to the form alone": f"{100 * (found.lenient.value - found.pass_at_1.value):.1f} points",
        "several different answers": percent(health["several_answers"]),
        "grading failed": percent(health["grading_failed"]),
        "tokens: right, wrong": f"{_count(health['tokens_right'])}, {_count(health['tokens_wrong'])}",
        "check their own working": percent(reflection.checks),
        "wrong claims caught": _caught(reflection.caught_share, reflection.wrong_claims),
    }
    if found.votes:
        rows |= {
            "votes of the largest class": percent(found.vote_share),
            "problems with a tied vote": percent(found.ties),
        }
    return rows


def _by_cell(found: Evaluation) -> dict[str, str]:
    if len(found.cells) == 1:
        return {}
    return {f"  {visible(cell)}": str(value).strip() for cell, value in found.cells.items()}


def _at(temperature: float | None) -> str:
    return "" if temperature is None else f" at temperature {temperature:g}"


def _caught(share: float | None, claims: int) -> str:
    return "none to catch" if share is None else f"{percent(share)} of {claims}"


def _interval(value: Estimate | None) -> str:
    if value is None:
        return "-"
    return f"{100 * value.value:.1f} [{100 * value.low:.1f}, {100 * value.high:.1f}]"


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def percent(share: float | None) -> str:
    return "-" if share is None else f"{100 * share:.1f} %"


def aligned(rows: Sequence[Row]) -> list[str]:
    """The rows with columns of one width: the first to the left, the others to the right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            [f"{row[0]:<{widths[0]}}", *(f"{cell:>{w}}" for cell, w in zip(row[1:], widths[1:], strict=True))]
        ).rstrip()
        for row in rows
    ]
