"""`reasoner report RUN`: a report of a run in Markdown, with a PNG file beside it.

Its contents come from the run's folder: settings, versions, metrics, rollouts, and the held-out evaluations before and
after training (runs/NAME/heldout).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any

from reasoner.analysis.plots import draw
from reasoner.analysis.report_format import Section, as_markdown, paragraph, quote, table
from reasoner.analysis.run_command import repetition
from reasoner.evals import eval_log
from reasoner.evals.compare import samples_by_problem
from reasoner.evals.paired import difference, format_p
from reasoner.runs.json_files import OBJECT, read_object
from reasoner.runs.metrics import read_metrics
from reasoner.runs.parquet_files import read_table
from reasoner.runs.run_dir import read_settings, stage_of
from reasoner.runs.sync_certificate import read_certificate
from verifiers.reflection import reflect

_TRACES = 4  # problems of each kind
_MAX_CHARACTERS = 1_500  # of a response that is shown


def write_report(run_dir: Path) -> list[Path]:
    """Write report.md and report.png into the run's folder; returns their paths.

    ValueError for a run without a step, and for an imported one.
    """
    if (run_dir / "config.json").is_file() and "imported" in read_settings(run_dir)["config"]:
        raise ValueError(f"{run_dir} was imported: there is no training to report on; open it with `reasoner app`")
    picture = draw(run_dir, run_dir / "report.png")
    text = run_dir / "report.md"
    text.write_text(as_markdown(f"Run {run_dir.name}", contents(run_dir, picture)), "utf-8")
    return [text, picture]


# ------------------------------------------------------------------------------------------------ contents


def contents(run_dir: Path, picture: Path) -> list[Section]:
    """The report as sections of plain values. `picture`: the PNG file of the curves."""
    settings_file = read_settings(run_dir)
    stage = stage_of(settings_file)
    call, _ = repetition(settings_file)
    steps = f"{len(read_metrics(run_dir))} of {settings_file['config']['steps']} steps"
    kind = {"sft": "supervised finetuning", "reward-model": "a reward model"}.get(stage, "reinforcement learning")
    summary = [paragraph(f"{steps}, {kind}."), quote("It is repeated by", call)]
    sections: list[Section] = [("The run", summary)]
    held_out = _held_out(run_dir)
    if stage == "reward-model":
        sections += _of_preferences(run_dir)
    elif held_out is None:
        summary.append(paragraph("No table of before and after: the run is not finished, or its evaluation is off."))
    else:
        sections.append(("Held-out problems, before and after", _differences(*held_out)))
        sections.append(("By family and level", [table(_cells(run_dir))]))
    sections.append(("Curves of the training", [f"![curves of the run]({picture.name})"]))
    if verdicts := _verdicts(run_dir):
        sections.append(("Verdicts of the grader", verdicts))
    if held_out is not None:
        sections.append(("Problems that changed (greedy answers)", _traces(*held_out)))
    versions = [[name, str(version)] for name, version in read_object(run_dir / "versions.json").items()]
    certificate = read_certificate(run_dir)
    sync = [paragraph(f"Weight sync: {certificate}.")] if certificate else []
    return [*sections, ("Versions", [table([["package", "version"], *versions]), *sync])]


Lines = dict[str, list[dict[str, Any]]]  # filter -> lines of samples_SET.jsonl


def _held_out(run_dir: Path) -> tuple[Lines, Lines] | None:
    """The held-out evaluations before and after training; None where they are missing or incomplete."""
    if not (run_dir / "report.json").is_file():
        return None
    sides = []
    for when in ("before", "after"):
        folder = run_dir / "heldout" / when
        if not (folder / "evaluation.json").is_file():
            return None
        (spec, *_) = eval_log.read_manifest(folder)["data"]
        sides.append({way: [*lines.values()] for way, lines in samples_by_problem(folder, spec).items()})
    return sides[0], sides[1]


def _of_preferences(run_dir: Path) -> list[Section]:
    """The section on the held-out preferences of a reward model; none before the end of its training."""
    path = run_dir / "report.txt"
    return [("Held-out preferences", [quote("report.txt", path.read_text("utf-8"))])] if path.is_file() else []


def _differences(before: Lines, after: Lines) -> list[str]:
    """A table of the metrics. The gain of pass@1 is also split in two terms that sum to it: correct in any form, minus
    correct but not well-formed.
    """
    rows = [["metric", "before", "after", "difference (95 % CI)", "p", "problems won / tied / lost"]]
    for way, lines in after.items():
        for metric in lines[0]["metrics"]:
            rows.append(_difference_row(metric, *(_column(side[way], metric) for side in (before, after))))
    if "none" not in after:
        return [table(rows)]
    strict, lenient = ([_column(side["none"], name) for side in (before, after)] for name in ("pass@1", "lenient"))
    form = [[s - q for s, q in zip(a, b, strict=True)] for a, b in zip(strict, lenient, strict=True)]
    rows.append(_difference_row("reasoning: correct in any form", *lenient))
    rows.append(_difference_row("format: correct but not well-formed", *form))
    return [table(rows), paragraph("The difference of pass@1 is the sum of those of reasoning and format.")]


def _difference_row(name: str, before: Sequence[float], after: Sequence[float]) -> list[str]:
    """After minus before; a single problem gives no estimate."""
    if len(after) < 2:
        return [name, _mean(before), _mean(after), "-", "-", "-"]
    change = difference(after, before)
    counts = f"{change.wins} / {change.ties} / {change.losses}"
    return [name, _mean(before), _mean(after), str(change), format_p(change.p), counts]


def _cells(run_dir: Path) -> list[list[str]]:
    results = read_object(run_dir / "report.json", {"before": OBJECT, "after": OBJECT})
    sides = [results[when] for when in ("before", "after")]
    rows = [["family and level", "before: sampled", "greedy", "after: sampled", "greedy"]]
    for cell in sides[0]["sampled"]["cells"]:
        values = [side[way]["cells"][cell]["value"] for side in sides for way in ("sampled", "greedy")]
        rows.append([cell, *(f"{100 * value:.1f}" for value in values)])
    return rows


def _verdicts(run_dir: Path) -> list[str]:
    """Counts and shares of the grader's verdicts, in training and on the held-out problems; empty where none was."""
    shards = sorted((run_dir / "rollouts").glob("step-*.parquet"))
    damaged: list[str] = []
    columns = {"training": Counter[str]()}
    for path in shards:
        try:
            columns["training"].update(_verdict_column(path))
        except ValueError:
            damaged.append(path.name)
    blocks = [paragraph(f"damaged, and left out of the counts: {', '.join(damaged)}")] if damaged else []
    for when in ("before", "after"):
        path = run_dir / "heldout" / when / "samples.parquet"
        if path.is_file():
            columns[f"held-out, {when}"] = Counter(_verdict_column(path))
    columns = {when: column for when, column in columns.items() if column}
    names = sorted({name for column in columns.values() for name in column})
    rows = [
        [name, *(f"{column[name]:,} ({100 * column[name] / column.total():.1f} %)" for column in columns.values())]
        for name in names
    ]
    return [*blocks, *([table([["verdict", *columns], *rows])] if rows else [])]


def _verdict_column(path: Path) -> list[str]:
    return read_table(path, ["verdict"])["verdict"].to_pylist()  # type: ignore[no-any-return]


def _traces(before: Lines, after: Lines) -> list[str]:
    """Greedy answers to problems that changed from wrong to correct, and from correct to wrong."""
    pairs = list(zip(before["greedy"], after["greedy"], strict=True))
    kinds = {
        "wrong before, correct after": [(was, now) for was, now in pairs if now["greedy"] > was["greedy"]],
        "correct before, wrong after": [(was, now) for was, now in pairs if now["greedy"] < was["greedy"]],
    }
    blocks = []
    for kind, pairs_of_kind in kinds.items():
        blocks.append(paragraph(f"{kind}: {len(pairs_of_kind)} of {len(pairs)} problems"))
        for was, now in _varied(pairs_of_kind)[:_TRACES]:
            doc = was["doc"]
            blocks.append(quote(f"{doc['id']} (gold: {doc['answer']})", doc["question"]))
            blocks.append(quote("before", _greedy(was)[:_MAX_CHARACTERS].strip()))
            blocks.append(quote("after", _greedy(now)[:_MAX_CHARACTERS].strip()))
    return blocks


def _varied(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Sort the pairs so that every subject comes once before any comes twice, most self-corrections first."""
    by_subject: dict[str, list[tuple[dict[str, Any], dict[str, Any]]]] = {}
    for pair in sorted(pairs, key=lambda pair: -reflect(_greedy(pair[1])).errors_caught):
        by_subject.setdefault(str(pair[0]["doc"].get("subject")), []).append(pair)
    return [pair for row in zip_longest(*by_subject.values()) for pair in row if pair is not None]


def _greedy(line: Mapping[str, Any]) -> str:
    return str(line["resps"][0][0])


def _column(lines: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(line[name]) for line in lines]


def _mean(values: Sequence[float]) -> str:
    return f"{100 * sum(values) / len(values):.1f}"
