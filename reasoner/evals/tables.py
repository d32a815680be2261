"""Format the metrics of an evaluation as text tables: one line per data set, and the details of a set."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from reasoner.console import escape_controls
from reasoner.evals.estimators import Estimate, macro
from reasoner.evals.result import EvalResult

Sets = Mapping[str, Mapping[str, EvalResult]]  # data set -> way of answering ("sampled", "greedy") -> metrics
Row = Sequence[str]


def table(sets: Sets) -> str:
    """A table of one line per data set and way, with the macro average where there are several sets."""
    ways = [(name, way, evaluation) for name, by_way in sets.items() for way, evaluation in by_way.items()]
    metrics = list(dict.fromkeys(_title(way, metric) for _, way, evaluation in ways for metric in evaluation.metrics))
    header = ["set", "N", "n", *(f"{m} (95 % CI)" for m in metrics), "se", "se_run", "trunc", "none", "tokens"]
    rows = [_line(name, way, evaluation, metrics) for name, way, evaluation in ways]
    if len(sets) > 1:
        rows += _macro_lines(ways, metrics)
    return "\n".join(align_rows([header, *rows]))


def _set_name(spec: str) -> str:
    """The name of a data set in a table: of a file only its name."""
    return escape_controls(Path(spec.partition("?")[0]).name)


def _title(way: str, metric: str) -> str:
    return "greedy" if way == "greedy" else metric


def _line(name: str, way: str, evaluation: EvalResult, metrics: Sequence[str]) -> Row:
    values = {_title(way, metric): value for metric, value in evaluation.metrics.items()}
    health = evaluation.health
    tokens = health["tokens"]
    return [
        _set_name(name),
        f"{evaluation.num_problems:,}",
        str(evaluation.num_samples),
        *(interval(values.get(metric)) for metric in metrics),
        f"{100 * evaluation.pass_at_1.se:.1f}",
        "-" if evaluation.se_run is None else f"{100 * evaluation.se_run:.1f}",
        percent(health["truncated"]),
        percent(health["no_answer"]),
        "-" if tokens is None else f"{tokens:,.0f}",
    ]


def _macro_lines(ways: Sequence[tuple[str, str, EvalResult]], metrics: Sequence[str]) -> list[Row]:
    """The unweighted mean over the sets of each metric that every set has; +- is one standard error."""
    names = {name for name, _, _ in ways}
    by_title: dict[str, list[Estimate]] = {}
    for _, way, evaluation in ways:
        for metric, value in evaluation.metrics.items():
            by_title.setdefault(_title(way, metric), []).append(value)
    cells = []
    for metric in metrics:
        estimates = by_title[metric]
        mean, se = macro(estimates)
        cells.append(f"{100 * mean:.1f} +- {100 * se:.1f}" if len(estimates) == len(names) else "-")
    return [["macro average", "", "", *cells, "", "", "", "", ""]]


def details(spec: str, ways: Mapping[str, EvalResult]) -> str:
    """Details of a data set, one column per way: format and reasoning, sanity checks, reflection, families, levels."""
    columns = {way: _detail_rows(evaluation) | _by_cell(evaluation) for way, evaluation in ways.items()}
    names = list(dict.fromkeys(name for column in columns.values() for name in column))
    rows = [[name, *(column.get(name, "-") for column in columns.values())] for name in names]
    heads = [
        "greedy" if way == "greedy" else f"{evaluation.num_samples} samples" + _at(evaluation.temperature)
        for way, evaluation in ways.items()
    ]
    return "\n".join(align_rows([[_set_name(spec), *heads], *rows]))


def _detail_rows(evaluation: EvalResult) -> dict[str, str]:
    reflection, health = evaluation.reflection, evaluation.health
    rows = {
        "well-formed": percent(evaluation.well_formed),
        "correct given well-formed": percent(evaluation.correct_given_well_formed),
        "correct, any form (lenient)": str(evaluation.lenient).strip(),
        "lost to the form alone": f"{100 * (evaluation.lenient.value - evaluation.pass_at_1.value):.1f} points",
        "several different answers": percent(health["several_answers"]),
        "grading failed": percent(health["grading_failed"]),
        "tokens: correct, wrong": f"{_count(health['tokens_correct'])}, {_count(health['tokens_wrong'])}",
        "check their own working": percent(reflection.self_check_rate),
        "wrong claims caught": _caught(reflection.errors_caught_share, reflection.wrong_claims),
    }
    if evaluation.votes:
        rows |= {
            "votes of the largest class": percent(evaluation.vote_share),
            "problems with a tied vote": percent(evaluation.ties),
        }
    return rows


def _by_cell(evaluation: EvalResult) -> dict[str, str]:
    if len(evaluation.cells) == 1:
        return {}
    return {f"  {escape_controls(cell)}": str(value).strip() for cell, value in evaluation.cells.items()}


def _at(temperature: float | None) -> str:
    return "" if temperature is None else f" at temperature {temperature:g}"


def _caught(share: float | None, claims: int) -> str:
    return "none to catch" if share is None else f"{percent(share)} of {claims}"


def interval(estimate: Estimate | Mapping[str, float] | None) -> str:
    """Format an estimate, or its values by name, in percent with its interval; "-" for None."""
    if estimate is None:
        return "-"
    values = asdict(estimate) if isinstance(estimate, Estimate) else estimate
    return "{:.1f} [{:.1f}, {:.1f}]".format(*(100 * values[name] for name in ("value", "low", "high")))


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def percent(share: float | None) -> str:
    """Format a share as a percentage; "-" for None."""
    return "-" if share is None else f"{100 * share:.1f} %"


def align_rows(rows: Sequence[Row]) -> list[str]:
    """Pad the cells of each column to one width: the first column flush left, the others flush right."""
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return [
        "  ".join(
            [f"{row[0]:<{widths[0]}}", *(f"{cell:>{w}}" for cell, w in zip(row[1:], widths[1:], strict=True))]
        ).rstrip()
        for row in rows
    ]
