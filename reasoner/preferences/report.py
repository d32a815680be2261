"""The report on a reward model as text and as values for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from reasoner.evals.tables import align_rows
from reasoner.preferences.best_of_n import CurvePoint
from reasoner.preferences.evaluation import RewardModelReport

Curves = Mapping[str, Sequence[CurvePoint]]


def report_text(report: RewardModelReport, curves: Curves | None = None) -> str:
    """The report as lines of text: accuracy beside its baselines and limits, calibration, what scores go with."""
    lines = [f"{report.pairs:,} pairs of {report.problems:,} problems", *align_rows(_accuracy_rows(report)), ""]
    lines += align_rows(
        [["says", "was", "pairs"], *([_percent(b.said), _percent(b.was), f"{b.pairs:,}"] for b in report.calibration)]
    )
    lines += ["", *_relations(report)]
    for name, points in (curves or {}).items():
        lines += ["", f"best of n by {name}", *align_rows(_curve_rows(points))]
    return "\n".join(lines)


def report_values(report: RewardModelReport, curves: Curves | None = None) -> dict[str, Any]:
    """The report for a JSON file."""
    values = asdict(report) | {"share_of_bayes": report.share_of_bayes}
    return values | {"best_of_n": {name: [asdict(one) for one in points] for name, points in (curves or {}).items()}}


def _accuracy_rows(report: RewardModelReport) -> list[list[str]]:
    rows = [["", "labels (95 % CI)", "NLL"], ["reward model", str(report.accuracy), f"{report.nll:.3f}"]]
    for (most, accuracy), number in zip(report.by_margin, range(1, 5), strict=False):
        rows.append([f"  quartile {number} of {report.margin}, up to {most:.2f}", str(accuracy), ""])
    if report.bayes_accuracy is not None and report.bayes_nll is not None:
        rows.append(["Bayes limit", f"{100 * report.bayes_accuracy:5.1f} %", f"{report.bayes_nll:.3f}"])
        rows.append(["reward model, expected over labels", str(report.expected_accuracy), ""])
        rows.append(["reward model, true order", str(report.true_order), ""])
    rows.append(["shorter wins", str(report.shorter), ""])
    if report.rule is not None:
        rows.append(["rule: right, then shorter", str(report.rule), ""])
    return rows


def _relations(report: RewardModelReport) -> list[str]:
    lines = []
    if report.share_of_bayes is not None:
        lines.append(f"share of the way from chance to the Bayes limit: {_percent(report.share_of_bayes)}")
    if report.correct_auc is not None:
        lines.append(f"AUC for correct answers: {report.correct_auc:.3f}")
    if report.length_correlation is not None:
        lines.append(f"correlation of score and length: {report.length_correlation:+.2f}")
    finishes = [f"{name} {mean:+.2f} ({number:,})" for name, (mean, number) in report.score_by_finish.items()]
    lines.append(f"mean score: {report.mean_score:+.2f}" + (f"; by finish {', '.join(finishes)}" if finishes else ""))
    return lines


def _curve_rows(points: Sequence[CurvePoint]) -> list[list[str]]:
    rows = [["n", "KL", "score", "utility", "se", "correct (95 % CI)", "tokens"]]
    for one in points:
        utility, error = ("-" if value is None else f"{value:.2f}" for value in (one.utility, one.utility_se))
        cells = [
            str(one.n),
            f"{one.kl:.2f}",
            f"{one.score:+.2f}",
            utility,
            error,
            str(one.correct),
            f"{one.tokens:.0f}",
        ]
        rows.append(cells)
    return rows


def _percent(share: float) -> str:
    return f"{100 * share:.1f} %"
