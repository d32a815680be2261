"""`reasoner report RUN`: one page about a run, as HTML that needs no other file and as Markdown with a picture beside.

Everything on it is read from the run's folder: settings, versions, metrics, rollouts, and the held-out evaluations
before and after (runs/NAME/heldout). What a model wrote is shown as text and never as markup.
"""

from __future__ import annotations

import base64
import html
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from reasoner.analysis.plots import draw
from reasoner.console import visible
from reasoner.evals import eval_log as files
from reasoner.evals.paired import difference, shown_p
from reasoner.runs.metrics import read_metrics
from reasoner.runs.rollouts import readable
from reasoner.runs.run_dir import read_settings
from verifiers.reflection import reflect

_TRACES = 4  # problems of each kind
_LONGEST = 1_500  # characters of a response that are shown


@dataclass(frozen=True, slots=True)
class Words:
    """A paragraph."""

    text: str


@dataclass(frozen=True, slots=True)
class Table:
    """The first row is the header."""

    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A PNG file."""

    path: Path


@dataclass(frozen=True, slots=True)
class Quote:
    """What a model wrote, under a caption."""

    caption: str
    text: str


Block = Words | Table | Picture | Quote
Section = tuple[str, list[Block]]


def write_report(run_dir: Path) -> list[Path]:
    """Write report.html, report.md and report.png into the run's folder. ValueError for a run without a step."""
    if (run_dir / "config.json").is_file() and "imported" in read_settings(run_dir)["config"]:
        raise ValueError(f"{run_dir} was imported: there is no training to report on; look at it with `reasoner app`")
    picture = draw(run_dir, run_dir / "report.png")
    title, sections = f"Run {run_dir.name}", contents(run_dir, picture)
    page, text = run_dir / "report.html", run_dir / "report.md"
    page.write_text(as_html(title, sections), "utf-8")
    text.write_text(as_markdown(title, sections), "utf-8")
    return [page, text, picture]


# ------------------------------------------------------------------------------------------------ contents


def contents(run_dir: Path, picture: Path) -> list[Section]:
    """The page as sections of plain values."""
    stored = read_settings(run_dir)
    metrics = read_metrics(run_dir)
    sections: list[Section] = [("What was done", [Words(_summary(stored["config"], len(metrics)))])]
    held_out = _held_out(run_dir)
    if held_out is None:
        sections[0][1].append(Words("There is no table before against after: the run is not finished, or made none."))
    else:
        before, after = held_out
        sections += [
            ("Held-out problems, before and after", [Table(_differences(before, after))]),
            ("Format and reasoning", _split(before, after)),
            ("By family and level", [Table(_cells(run_dir))]),
        ]
        arms = _arms(run_dir)
        if len({row[0] for row in arms[1:]}) > 1:
            told = "Runs beside this one with the same settings but for the seed and what was rewarded."
            sections.insert(2, ("Beside rewards that cannot teach", [Words(told), Table(arms)]))
    sections.append(("While it learnt", [Picture(picture)]))
    shards = sorted((run_dir / "rollouts").glob("step-*.parquet"))
    lost = [path.name for path in shards if not readable(path)]
    note: list[Block] = [Words(f"damaged, and left out of the counts: {', '.join(lost)}")] if lost else []
    sections.append(("Health of the grading", [*note, Table(_verdicts(run_dir, filter(readable, shards)))]))
    if held_out is not None:
        sections.append(("Problems that changed (greedy answers)", _traces(*held_out)))
    sections.append(("Settings that are not the defaults", [Table(_settings(stored))]))
    versions = json.loads((run_dir / "versions.json").read_text("utf-8"))
    sections.append(("Versions", [Table([["what", "version"], *([k, str(v)] for k, v in versions.items())])]))
    return sections


Lines = dict[str, list[dict[str, Any]]]  # filter -> lines of samples_SET.jsonl


def _held_out(run_dir: Path) -> tuple[Lines, Lines] | None:
    found = []
    for when in ("before", "after"):
        folder = run_dir / "heldout" / when
        if not (folder / "evaluation.json").is_file():
            return None
        spec = next(iter(files.read_about(folder)["data"]))
        lines: Lines = {}
        for line in files.read_samples(folder, spec):
            lines.setdefault(line["filter"], []).append(line)
        found.append(lines)
    return found[0], found[1]


def _summary(cfg: Mapping[str, Any], steps: int) -> str:
    return (
        f"{cfg['model']} was trained by {cfg['algo.name']} for {steps} of {cfg['steps']} steps on {cfg['data.train']}: "
        f"{cfg['data.prompts_per_step']} questions a step, {cfg['algo.group']} completions of each, "
        f"learning rate {cfg['optim.lr']:g}, KL coefficient {cfg['algo.beta']:g}, seed {cfg['seed']}."
    )


def _differences(before: Lines, after: Lines) -> list[list[str]]:
    rows = [["metric", "before", "after", "difference (95 % CI)", "p", "problems won / tied / lost"]]
    for way, lines in after.items():
        for metric in lines[0]["metrics"]:
            rows.append(_difference_row(metric, *(_column(side[way], metric) for side in (before, after))))
    return rows


def _difference_row(name: str, before: Sequence[float], after: Sequence[float]) -> list[str]:
    found = difference(after, before)
    return [
        name,
        _mean(before),
        _mean(after),
        str(found),
        shown_p(found.p),
        f"{found.wins} / {found.ties} / {found.losses}",
    ]


_OF_AN_ARM = ("control", "seed", "threads", "run.", "verify.", "engine.")  # settings in which arms may differ


def _arms(run_dir: Path) -> list[list[str]]:
    """This run and the finished ones beside it that differ in the seed or the control arm alone."""

    def recipe(cfg: Mapping[str, Any]) -> dict[str, Any]:
        return {key: value for key, value in cfg.items() if not key.startswith(_OF_AN_ARM)}

    settings = {}
    for path in sorted(run_dir.absolute().parent.glob("*/config.json")):
        with suppress(ValueError):  # the damaged settings of another run
            settings[path.parent] = read_settings(path.parent)["config"]
    own, rows = recipe(settings[run_dir.absolute()]), []
    for folder, cfg in settings.items():
        held_out = _held_out(folder) if recipe(cfg) == own else None
        if held_out is not None:
            was, now = (_column(side["none"], "pass@1") for side in held_out)
            reward = cfg.get("control") or "right answers"
            rows.append([reward, folder.name, str(cfg["seed"]), _mean(was), _mean(now), str(difference(now, was))])
    return [["rewarded for", "run", "seed", "pass@1 before", "after", "gain (95 % CI)"], *sorted(rows, reverse=True)]


def _split(before: Lines, after: Lines) -> list[Block]:
    """pass@1 = right in any form - right but lost to the form: the two parts of the gain add up to it."""
    strict = [_column(side["none"], "pass@1") for side in (before, after)]
    lenient = [_column(side["none"], "lenient") for side in (before, after)]
    form = [[s - q for s, q in zip(a, b, strict=True)] for a, b in zip(strict, lenient, strict=True)]
    rows = [["", "before", "after", "gain (95 % CI)"]]
    for name, (was, now) in {
        "pass@1 (right, in the form asked for)": strict,
        "reasoning: right in any form": lenient,
        "format: right, but lost to the form": form,
    }.items():
        rows.append([name, _mean(was), _mean(now), str(difference(now, was))])
    told = (
        "The gain of pass@1 is the sum of the two rows below it: what is right more often, and what is lost less often."
    )
    return [Words(told), Table(rows)]


def _cells(run_dir: Path) -> list[list[str]]:
    figures = json.loads((run_dir / "report.json").read_text("utf-8"))
    sides = [figures[when] for when in ("before", "after")]
    rows = [["family and level", "before: sampled", "greedy", "after: sampled", "greedy"]]
    for cell in sides[0]["sampled"]["cells"]:
        values = [side[way]["cells"][cell]["value"] for side in sides for way in ("sampled", "greedy")]
        rows.append([cell, *(f"{100 * value:.1f}" for value in values)])
    return rows


def _verdicts(run_dir: Path, shards: Iterable[Path]) -> list[list[str]]:
    """How often the grader said what, in training and on the held-out problems."""
    columns = {"training": Counter[str]()}
    for path in shards:
        columns["training"].update(pq.read_table(path, columns=["verdict"])["verdict"].to_pylist())
    for when in ("before", "after"):
        path = run_dir / "heldout" / when / "samples.parquet"
        if path.is_file():
            columns[f"held-out, {when}"] = Counter(pq.read_table(path, columns=["verdict"])["verdict"].to_pylist())
    names = sorted({name for column in columns.values() for name in column})
    totals = {when: max(1, column.total()) for when, column in columns.items()}
    return [
        ["verdict", *columns],
        *(
            [
                name,
                *(f"{column[name]:,} ({100 * column[name] / totals[when]:.1f} %)" for when, column in columns.items()),
            ]
            for name in names
        ),
    ]


def _traces(before: Lines, after: Lines) -> list[Block]:
    """Greedy answers to problems that were wrong and are right, and the other way round."""
    pairs = list(zip(before["greedy"], after["greedy"], strict=True))
    kinds = {
        "wrong before, right after": [(was, now) for was, now in pairs if now["greedy"] > was["greedy"]],
        "right before, wrong after": [(was, now) for was, now in pairs if now["greedy"] < was["greedy"]],
    }
    blocks: list[Block] = []
    for kind, those in kinds.items():
        blocks.append(Words(f"{kind}: {len(those)} of {len(pairs)} problems"))
        for was, now in _varied(those)[:_TRACES]:
            doc = was["doc"]
            blocks.append(Quote(f"{doc['id']} (gold: {doc['answer']})", doc["question"]))
            blocks.append(Quote("before", _greedy(was)[:_LONGEST].strip()))
            blocks.append(Quote("after", _greedy(now)[:_LONGEST].strip()))
    return blocks


def _varied(pairs: Sequence[tuple[dict[str, Any], dict[str, Any]]]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """One of each subject first, and of those the one that mended most slips of its own."""
    seen: Counter[str] = Counter()
    ranked = []
    for pair in sorted(pairs, key=lambda pair: -reflect(_greedy(pair[1])).caught):
        subject = str(pair[0]["doc"].get("subject"))
        ranked.append((seen[subject], pair))
        seen[subject] += 1
    return [pair for _, pair in sorted(ranked, key=lambda item: item[0])]


def _greedy(line: Mapping[str, Any]) -> str:
    return str(line["resps"][0][0])


def _settings(stored: Mapping[str, Any]) -> list[list[str]]:
    origin = stored["origin"]
    rows = [[key, str(value), origin[key]] for key, value in stored["config"].items() if origin[key] != "default"]
    return [["setting", "value", "from"], *rows]


def _column(lines: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [float(line[name]) for line in lines]


def _mean(values: Sequence[float]) -> str:
    return f"{100 * sum(values) / len(values):.1f}"


# ------------------------------------------------------------------------------------------------ HTML

_STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1rem 0; font-variant-numeric: tabular-nums; }
th, td { padding: .2rem .8rem; text-align: right; border-bottom: 1px solid #8884; }
th:first-child, td:first-child { text-align: left; }
img { max-width: 100%; background: white; border-radius: 4px; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; background: #8881; padding: .6rem .8rem; margin: 0; }
figure { margin: .6rem 0; } figcaption { font-size: .85rem; opacity: .75; }
.scroll { overflow-x: auto; }
"""


def as_html(title: str, sections: Sequence[Section]) -> str:
    """One file: styles inside, the picture inside, no script, nothing fetched."""
    body = "\n".join(
        f"<section><h2>{_text(name)}</h2>\n" + "\n".join(map(_html, blocks)) + "</section>" for name, blocks in sections
    )
    policy = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{_text(title)}</title>\n'
        f'<meta name="viewport" content="width=device-width"><meta http-equiv="Content-Security-Policy" '
        f'content="{policy}">\n<style>{_STYLE}</style></head><body><h1>{_text(title)}</h1>\n{body}\n</body></html>\n'
    )


def _text(text: str) -> str:
    return html.escape(visible(text))


def _html(block: Block) -> str:
    match block:
        case Words(text):
            return f"<p>{_text(text)}</p>"
        case Table(rows):
            lines = ["".join(f"<th>{_text(cell)}</th>" for cell in rows[0])]
            lines += ["".join(f"<td>{_text(cell)}</td>" for cell in row) for row in rows[1:]]
            return '<div class="scroll"><table>' + "".join(f"<tr>{line}</tr>" for line in lines) + "</table></div>"
        case Picture(path):
            data = base64.b64encode(path.read_bytes()).decode("ascii")
            return f'<img alt="curves of the run" src="data:image/png;base64,{data}">'
        case Quote(caption, text):
            return f"<figure><figcaption>{_text(caption)}</figcaption><pre>{_text(text)}</pre></figure>"


# ------------------------------------------------------------------------------------------------ Markdown


def as_markdown(title: str, sections: Sequence[Section]) -> str:
    """For a repository or an issue; the picture is a file beside it."""
    parts = [f"# {_line(title)}"]
    for name, blocks in sections:
        parts += [f"## {_line(name)}", *map(_markdown, blocks)]
    return "\n\n".join(parts) + "\n"


def _markdown(block: Block) -> str:
    match block:
        case Words(text):
            return _line(text)
        case Table(rows):
            lines = ["| " + " | ".join(map(_line, row)) + " |" for row in rows]
            return "\n".join([lines[0], "|---|" + "---:|" * (len(rows[0]) - 1), *lines[1:]])
        case Picture(path):
            return f"![curves of the run]({path.name})"
        case Quote(caption, text):
            fence = "`" * (1 + max([2, *(len(run) for run in re.findall(r"`+", text))]))
            return f"{_line(caption)}\n\n{fence}\n{visible(text)}\n{fence}"


def _line(text: str) -> str:
    """One line in which nothing is markup."""
    return re.sub(r"[\\`*_{}\[\]<>#|~$]", r"\\\g<0>", visible(" ".join(text.split())))
