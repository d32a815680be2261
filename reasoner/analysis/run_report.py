"""`reasoner report RUN`: a one-page report of a run, as self-contained HTML and as Markdown with a PNG file beside it.

Its contents come from the run's folder: settings, versions, metrics, rollouts, and the held-out evaluations before and
after training (runs/NAME/heldout).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from reasoner.analysis.plots import draw
from reasoner.analysis.report_format import Block, Paragraph, Picture, Quote, Section, Table, as_html, as_markdown
from reasoner.evals import eval_log
from reasoner.evals.paired import PairedTest, difference, format_p
from reasoner.runs.json_files import OBJECT, read_object
from reasoner.runs.metrics import read_metrics
from reasoner.runs.parquet_files import read_table
from reasoner.runs.run_dir import read_settings, stage_of
from reasoner.runs.sync_certificate import read_certificate
from verifiers.reflection import reflect

_TRACES = 4  # problems of each kind
_MAX_CHARACTERS = 1_500  # of a response that is shown


def write_report(run_dir: Path) -> list[Path]:
    """Write report.html, report.md and report.png into the run's folder; returns their paths.

    ValueError for a run without a step, and for an imported one.
    """
    if (run_dir / "config.json").is_file() and "imported" in read_settings(run_dir)["config"]:
        raise ValueError(f"{run_dir} was imported: there is no training to report on; open it with `reasoner app`")
    picture = draw(run_dir, run_dir / "report.png")
    title, sections = f"Run {run_dir.name}", contents(run_dir, picture)
    page, text = run_dir / "report.html", run_dir / "report.md"
    page.write_text(as_html(title, sections), "utf-8")
    text.write_text(as_markdown(title, sections), "utf-8")
    return [page, text, picture]


# ------------------------------------------------------------------------------------------------ contents


def contents(run_dir: Path, picture: Path) -> list[Section]:
    """The report as sections of plain values. `picture`: the PNG file of the curves."""
    settings_file = read_settings(run_dir)
    stage = stage_of(settings_file)
    summary: list[Block] = [Paragraph(_SUMMARIES[stage](settings_file["config"], len(read_metrics(run_dir))))]
    sections: list[Section] = [("The run", summary)]
    held_out = _held_out(run_dir)
    if stage == "reward-model":
        sections += _of_preferences(run_dir)
    elif held_out is None:
        summary.append(Paragraph("No table of before and after: the run is not finished, or its evaluation is off."))
    else:
        sections += _held_out_sections(run_dir, *held_out)
    sections.append(("Curves of the training", [Picture(picture)]))
    if verdicts := _verdicts(run_dir):
        sections.append(("Verdicts of the grader", verdicts))
    if held_out is not None:
        sections.append(("Problems that changed (greedy answers)", _traces(*held_out)))
    versions = [[name, str(version)] for name, version in read_object(run_dir / "versions.json").items()]
    certificate = read_certificate(run_dir)
    sync = [Paragraph(f"Weight sync: {certificate}.")] if certificate else []
    return [
        *sections,
        ("Settings that are not the defaults", [Table(_settings(settings_file))]),
        ("Versions", [Table([["package", "version"], *versions]), *sync]),
    ]


def _held_out_sections(run_dir: Path, before: Lines, after: Lines) -> list[Section]:
    """The sections on the held-out problems, with the control rewards where the folder has runs of them."""
    sections: list[Section] = [
        ("Held-out problems, before and after", [Table(_differences(before, after))]),
        ("Format and reasoning", _split(before, after)),
    ]
    control_runs = _control_runs(run_dir)
    if len({row[0] for row in control_runs[1:]}) > 1:
        caption = "Runs in the same folder whose settings differ only in the seed and in the control reward."
        sections.append(("Control rewards", [Paragraph(caption), Table(control_runs)]))
    return [*sections, ("By family and level", [Table(_cells(run_dir))])]


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
        spec = next(iter(eval_log.read_manifest(folder)["data"]))
        lines: Lines = {}
        for line in eval_log.read_samples(folder, spec):
            lines.setdefault(line["filter"], []).append(line)
        sides.append(lines)
    return sides[0], sides[1]


def _summary(cfg: Mapping[str, Any], steps: int) -> str:
    return (
        f"{cfg['model']} was trained by {cfg['algo.name']} for {steps} of {cfg['steps']} steps on {cfg['data.train']}: "
        f"{cfg['data.prompts_per_step']} prompts per step, {cfg['algo.group_size']} completions of each, "
        f"learning rate {cfg['optim.lr']:g}, KL coefficient {cfg['algo.beta']:g}, seed {cfg['seed']}."
    )


def _sft_summary(cfg: Mapping[str, Any], steps: int) -> str:
    return (
        f"{cfg['model']} was trained by supervised finetuning for {steps} of {cfg['steps']} steps on "
        f"{cfg['sft.data']}: {cfg['sft.rows']} examples per step, {cfg['sft.epochs']} epochs, loss on "
        f"{cfg['sft.loss_on']}, learning rate {cfg['optim.lr']:g}, seed {cfg['seed']}."
    )


def _reward_model_summary(cfg: Mapping[str, Any], steps: int) -> str:
    return (
        f"A reward model on {cfg['model']} was trained for {steps} of {cfg['steps']} steps on {cfg['rm.data']}: "
        f"{cfg['rm.prompts']} prompts per step, {cfg['rm.epochs']} epochs, learning rate {cfg['optim.lr']:g}, seed "
        f"{cfg['seed']}."
    )


_SUMMARIES = {"rl": _summary, "sample": _summary, "sft": _sft_summary, "reward-model": _reward_model_summary}


def _of_preferences(run_dir: Path) -> list[Section]:
    """The section on the held-out preferences of a reward model; none before the end of its training."""
    path = run_dir / "report.txt"
    return [("Held-out preferences", [Quote("report.txt", path.read_text("utf-8"))])] if path.is_file() else []


def _differences(before: Lines, after: Lines) -> list[list[str]]:
    rows = [["metric", "before", "after", "difference (95 % CI)", "p", "problems won / tied / lost"]]
    for way, lines in after.items():
        for metric in lines[0]["metrics"]:
            rows.append(_difference_row(metric, *(_column(side[way], metric) for side in (before, after))))
    return rows


def _difference_row(name: str, before: Sequence[float], after: Sequence[float]) -> list[str]:
    change = _change(before, after)
    counts = ["-", "-"]
    if change is not None:
        counts = [format_p(change.p), f"{change.wins} / {change.ties} / {change.losses}"]
    return [name, _mean(before), _mean(after), _gain(before, after), *counts]


def _change(before: Sequence[float], after: Sequence[float]) -> PairedTest | None:
    """After minus before; None for a single problem, which gives no estimate."""
    return difference(after, before) if len(after) > 1 else None


def _gain(before: Sequence[float], after: Sequence[float]) -> str:
    change = _change(before, after)
    return "-" if change is None else str(change)


_REAL_REWARD = "correct answers"
# Settings in which runs with control rewards may differ.
_MAY_DIFFER = ("control", "seed", "threads", "run.", "verify.", "engine.")


def _control_runs(run_dir: Path) -> list[list[str]]:
    """A table of this run and the finished runs beside it that differ only in the seed or the control reward."""

    def recipe(cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in cfg.items() if not key.startswith(_MAY_DIFFER)}

    settings = {}
    for path in sorted(run_dir.absolute().parent.glob("*/config.json")):
        with suppress(ValueError):  # another run's settings may be damaged
            settings[path.parent] = read_settings(path.parent)["config"]
    own, rows = recipe(settings[run_dir.absolute()]), []
    for folder, cfg in settings.items():
        held_out = _held_out(folder) if recipe(cfg) == own else None
        if held_out is not None:
            was, now = (_column(side["none"], "pass@1") for side in held_out)
            reward = cfg.get("control") or _REAL_REWARD
            rows.append([reward, folder.name, str(cfg["seed"]), _mean(was), _mean(now), _gain(was, now)])
    return [
        ["reward for", "run", "seed", "pass@1 before", "after", "gain (95 % CI)"],
        *sorted(rows, key=_real_reward_first),
    ]


def _real_reward_first(row: Sequence[str]) -> tuple[bool, Sequence[str]]:
    """Sort key of the table of control rewards."""
    return row[0] != _REAL_REWARD, row


def _split(before: Lines, after: Lines) -> list[Block]:
    """Split the gain of pass@1 in two terms that sum to it: correct in any form, minus correct but not well-formed."""
    strict = [_column(side["none"], "pass@1") for side in (before, after)]
    lenient = [_column(side["none"], "lenient") for side in (before, after)]
    form = [[s - q for s, q in zip(a, b, strict=True)] for a, b in zip(strict, lenient, strict=True)]
    rows = [["", "before", "after", "gain (95 % CI)"]]
    for name, (was, now) in {
        "pass@1 (correct and well-formed)": strict,
        "reasoning: correct in any form": lenient,
        "format: correct but not well-formed": form,
    }.items():
        rows.append([name, _mean(was), _mean(now), _gain(was, now)])
    caption = (
        "The gain of pass@1 is the sum of the two rows below it: more answers correct, and fewer of them lost to the "
        "format."
    )
    return [Paragraph(caption), Table(rows)]


def _cells(run_dir: Path) -> list[list[str]]:
    results = read_object(run_dir / "report.json", {"before": OBJECT, "after": OBJECT})
    sides = [results[when] for when in ("before", "after")]
    rows = [["family and level", "before: sampled", "greedy", "after: sampled", "greedy"]]
    for cell in sides[0]["sampled"]["cells"]:
        values = [side[way]["cells"][cell]["value"] for side in sides for way in ("sampled", "greedy")]
        rows.append([cell, *(f"{100 * value:.1f}" for value in values)])
    return rows


def _verdicts(run_dir: Path) -> list[Block]:
    """Counts and shares of the grader's verdicts, in training and on the held-out problems; empty where none was."""
    shards = sorted((run_dir / "rollouts").glob("step-*.parquet"))
    damaged: list[str] = []
    columns = {"training": Counter[str]()}
    for path in shards:
        try:
            columns["training"].update(_verdict_column(path))
        except ValueError:
            damaged.append(path.name)
    blocks: list[Block] = [Paragraph(f"damaged, and left out of the counts: {', '.join(damaged)}")] if damaged else []
    for when in ("before", "after"):
        path = run_dir / "heldout" / when / "samples.parquet"
        if path.is_file():
            columns[f"held-out, {when}"] = Counter(_verdict_column(path))
    columns = {when: column for when, column in columns.items() if column}
    names = sorted({name for column in columns.values() for name in column})
    totals = {when: column.total() for when, column in columns.items()}
    rows = [
        [name, *(f"{column[name]:,} ({100 * column[name] / totals[when]:.1f} %)" for when, column in columns.items())]
        for name in names
    ]
    return [*blocks, *([Table([["verdict", *columns], *rows])] if rows else [])]


def _verdict_column(path: Path) -> list[str]:
    return read_table(path, ["verdict"])["verdict"].to_pylist()  # type: ignore[no-any-return]


def _traces(before: Lines, after: Lines) -> list[Block]:
    """Greedy answers to problems that changed from wrong to correct, and from correct to wrong."""
    pairs = list(zip(before["greedy"], after["greedy"], strict=True))
    kinds = {
        "wrong before, correct after": [(was, now) for was, now in pairs if now["greedy"] > was["greedy"]],
        "correct before, wrong after": [(was, now) for was, now in pairs if now["greedy"] < was["greedy"]],
    }
    blocks: list[Block] = []
    for kind, pairs_of_kind in kinds.items():
        blocks.append(Paragraph(f"{kind}: {len(pairs_of_kind)} of {len(pairs)} problems"))
        for was, now in _varied(pairs_of_kind)[:_TRACES]:
            doc = was["doc"]
            blocks.append(Quote(f"{doc['id']} (gold: {doc['answer']})", doc["question"]))
            blocks.append(Quote("before", _greedy(was)[:_MAX_CHARACTERS].strip()))
            blocks.append(Quote("after", _greedy(now)[:_MAX_CHARACTERS].strip()))
    return blocks


def _varied(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Sort the pairs so that every subject comes once before any comes twice, most self-corrections first."""
    counts: Counter[str] = Counter()
    ranked = []
    for pair in sorted(pairs, key=lambda pair: -reflect(_greedy(pair[1])).errors_caught):
        subject = str(pair[0]["doc"].get("subject"))
        ranked.append((counts[subject], pair))
        counts[subject] += 1
    return [pair for _, pair in sorted(ranked, key=lambda item: item[0])]


def _greedy(line: Mapping[str, Any]) -> str:
    return str(line["resps"][0][0])


def _settings(settings_file: Mapping[str, Any]) -> list[list[str]]:
    origin = settings_file["origin"]
    rows = [
        [key, str(value), origin[key]] for key, value in settings_file["config"].items() if origin[key] != "default"
    ]
    return [["setting", "value", "from"], *rows]


def _column(lines: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(line[name]) for line in lines]


def _mean(values: Sequence[float]) -> str:
    return f"{100 * sum(values) / len(values):.1f}"
