"""Format the metrics of an evaluation as text tables: one line per data set, and the details of a set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from reasoner.console import escape_controls
from reasoner.evals.estimators import Estimate, macro
from reasoner.evals.result import EvalResult

Ways = Mapping[str, EvalResult]  # by way of answering: "sampled" or "greedy"
Sets = Mapping[str, Ways]  # by data set
Row = Sequence[str]


def to_dicts(ways: Ways) -> dict[str, dict[str, Any]]:
    """All metrics by way of answering, as JSON objects."""
    return {way: result.to_dict() for way, result in ways.items()}


def table(sets: Sets) -> str:
    """A table of one line per data set and way, with the macro average where there are several sets."""
    ways = [(name, way, evaluation) for name, by_way in sets.items() for way, evaluation in by_way.items()]
    metrics = list(dict.fromkeys(_title(way, metric) for _, way, evaluation in ways for metric in evaluation.metrics))
    header = ["set", "N", "n", *(f"{m} (95 % CI)" for m in metrics), "se", "se_run", "trunc", "none", "tokens"]
    rows = [_line(name, way, evaluation, metrics) for name, way, evaluation in ways]
    if len(sets) > 1:
        rows += _macro_lines(ways, metrics)
    return "\n".join(align_rows([header, *rows]))


def set_name(spec: str) -> str:
    """The name of a data set in a table: of a file only its name."""
    return escape_controls(Path(spec.partition("?")[0]).name)


def _title(way: str, metric: str) -> str:
    return "greedy" if way == "greedy" else metric


def _line(name: str, way: str, evaluation: EvalResult, metrics: Sequence[str]) -> Row:
    values = {_title(way, metric): value for metric, value in evaluation.metrics.items()}
    health = evaluation.health
    tokens = health["tokens"]
    return [
        set_name(name),
        f"{evaluation.num_problems:,}",
        str(evaluation.num_samples),
        *(interval(values.get(metric)) for metric in metrics),
        _points(evaluation.pass_at_1.se),
        _points(evaluation.se_run),
        percent(health["truncated"]),
        percent(health["no_answer"]),
        "-" if tokens is None else f"{tokens:,.0f}",
    ]


def _points(se: float | None) -> str:
    """Format a standard error in percentage points; "-" where scores that are all equal, or one, say nothing of it."""
    return f"{100 * se:.1f}" if se else "-"


def _macro_lines(ways: Sequence[tuple[str, str, EvalResult]], metrics: Sequence[str]) -> list[Row]:
    """The unweighted mean over the sets of each metric that every set has."""
    names = {name for name, _, _ in ways}
    by_title: dict[str, list[Estimate]] = {}
    for _, way, evaluation in ways:
        for metric, value in evaluation.metrics.items():
            by_title.setdefault(_title(way, metric), []).append(value)
    own = (by_title[metric] for metric in metrics)
    cells = (interval(macro(estimates) if len(estimates) == len(names) else None) for estimates in own)
    return [["macro average", "", "", *cells, "", "", "", "", ""]]


def _tokens(name: str) -> Callable[[EvalResult], str]:
    """Read a mean length of EvalResult.health."""
    return lambda one: "-" if one.health[name] is None else f"{one.health[name]:.1f}"


def _caught(one: EvalResult) -> str:
    rates = one.reflection
    share = rates.errors_caught_share
    return "none to catch" if share is None else f"{percent(share)} ({rates.errors_caught} of {rates.wrong_claims})"


DETAILS: dict[str, Callable[[EvalResult], str]] = {
    "well-formed": lambda one: percent(one.well_formed),
    "correct given well-formed": lambda one: percent(one.correct_given_well_formed),
    "correct, format ignored": lambda one: str(one.lenient),
    "several different answers": lambda one: percent(one.health["several_answers"]),
    "grading failed": lambda one: percent(one.health["grading_failed"]),
    "response tokens": _tokens("tokens"),
    "  of correct responses": _tokens("tokens_correct"),
    "  of wrong responses": _tokens("tokens_wrong"),
    "truncated at the limit": lambda one: percent(one.health["truncated"]),
    "check their own working": lambda one: percent(one.reflection.self_check_rate),
    'say "wait"': lambda one: percent(one.reflection.wait_rate),
    "wrong claims caught": _caught,
    "  replaced without a word": lambda one: str(one.reflection.errors_replaced_silently),
    "false alarms": lambda one: str(one.reflection.false_alarms),
    "wrong steps inside checks": lambda one: str(one.reflection.errors_in_checks),
}
_VOTES: dict[str, Callable[[EvalResult], str]] = {
    "votes of the largest class": lambda one: percent(one.vote_share),
    "problems with a tied vote": lambda one: percent(one.ties),
}


def detail_rows(columns: Sequence[EvalResult]) -> list[Row]:
    """The details of evaluations, one column each; of votes where there was one."""
    table = DETAILS | (_VOTES if any(one.votes for one in columns) else {})
    return [[name, *map(show, columns)] for name, show in table.items()]


def details(spec: str, ways: Ways) -> str:
    """Details of a data set, one column per way: format and reasoning, sanity checks, reflection, families, levels."""
    heads = [
        "greedy" if way == "greedy" else f"{evaluation.num_samples} samples" + _at(evaluation.temperature)
        for way, evaluation in ways.items()
    ]
    columns = list(ways.values())
    cells = [cell for cell in columns[0].cells if len(columns[0].cells) > 1]
    by_cell = [[f"  {cell}", *(str(one.cells[cell]).strip() for one in columns)] for cell in cells]
    return "\n".join(align_rows([[set_name(spec), *heads], *detail_rows(columns), *by_cell]))


def _at(temperature: float | None) -> str:
    return "" if temperature is None else f" at temperature {temperature:g}"


def interval(estimate: Estimate | Mapping[str, float] | None) -> str:
    """Format an estimate, or its values by name, in percent with its interval; "-" for None."""
    if estimate is None:
        return "-"
    values = asdict(estimate) if isinstance(estimate, Estimate) else estimate
    return "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * values[name] for name in ("value", "low", "high")))


def percent(share: float | None) -> str:
    """Format a share as a percentage; "-" for None. Some are never rounded to none, nor nearly all to all."""
    if share is None:
        return "-"
    text = f"{100 * share:.1f} %"
    return text if share in (0, 1) else {"0.0 %": "< 0.1 %", "100.0 %": "> 99.9 %"}.get(text, text)


def align_rows(rows: Sequence[Row]) -> list[str]:
    """Pad the cells of each column to one width: the first column flush left, the others flush right. Control
    characters and line ends are escaped: names and texts of others stand in the cells.
    """
    rows = [[escape_controls(cell).replace("\n", "\\n") for cell in row] for row in rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            [f"{row[0]:<{widths[0]}}", *(f"{cell:>{w}}" for cell, w in zip(row[1:], widths[1:], strict=True))]
        ).rstrip()
        for row in rows
    ]
