"""`reasoner publish --html`: the dashboard's pages of one run as a single file that opens from disk.

The file holds the scripts of app/static, the replies to their queries (app.api) and a number of rollouts in whole
groups. It needs no server, and its content security policy forbids every request.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app.api import page_facts, run_query
from app.notes import notes_of
from app.run_library import RunLibrary
from reasoner.analysis.failures import classify
from reasoner.analysis.reflection import gallery, study
from reasoner.analysis.run_command import publishable, without_folders
from reasoner.runs.filters import CAUSES
from reasoner.runs.index import RolloutIndex
from verifiers.reflection.outcomes import LABELS

Group = tuple[int, int]  # step and number

CLOSED = (
    "runs", "problems", "evals", "compare", "chat", "notes", "disagreements", "annotate", "difference", "words",
    "export",
)  # fmt: skip
_STATIC = Path(__file__).parent / "static"
_MOST_TOKENS = 300_000  # of all rollouts; of more, the statistics of tokens are left out
_GALLERY = 48  # spans of each label, failures of each cause
_PAGE = 500  # rows per query
_DIGITS = 4  # of the statistics of tokens
_CSP = "default-src 'none'; script-src 'unsafe-inline' data:; style-src 'unsafe-inline'; img-src data:"


@dataclass(frozen=True, slots=True)
class Publication:
    """What a published file holds."""

    rollouts: int
    selection: str  # which rollouts these are


def write_html(run_dir: Path, path: Path, *, most: int) -> Publication:
    """Write the run as one HTML file with at most `most` rollouts. ValueError for a run without rollouts."""
    index = RolloutIndex(run_dir)
    index.refresh()
    study(index)
    classify(index)
    library = RunLibrary(run_dir.parent, run_dir / "heldout")
    try:
        groups, selection = _selection(index, run_dir, most)
        content = _content(library, index, run_dir.name, groups) | {"selection": selection}
    finally:
        library.close()
        index.close()
    path.write_text(_page(run_dir.name, content), "utf-8")
    return Publication(len(content["rows"]), selection)


# ------------------------------------------------------------------------------------------------ selection


def choose_groups(sizes: Mapping[Group, int], preferred: Sequence[Group], most: int) -> list[Group]:
    """Choose groups with at most `most` rollouts in all: the preferred ones, and others at equal distances.

    `sizes`: the number of rollouts of every group, in order.
    """
    chosen: set[Group] = set()
    left = most
    for group in dict.fromkeys(preferred):
        if sizes[group] <= left:
            chosen.add(group)
            left -= sizes[group]
    others = [group for group in sizes if group not in chosen]
    number = min(len(others), left // max(sizes.values()))
    chosen |= {others[i * (len(others) - 1) // max(1, number - 1)] for i in range(number)}
    return [group for group in sizes if group in chosen]


def _selection(index: RolloutIndex, run_dir: Path, most: int) -> tuple[list[Group], str]:
    """The groups to publish, and a description of them."""
    sizes = {(row["step"], row["grp"]): row["size"] for row in index.rows("SELECT step, grp, size FROM groups")}
    if not sizes:
        raise ValueError(f"run {run_dir.name} has no rollouts yet")
    if max(sizes.values()) > most:
        raise ValueError(f"--rollouts is {most}; a group of this run alone has {max(sizes.values())}")
    starred = [group for name in notes_of(run_dir) if (group := _group_of(name)) in sizes]
    spans = [_group_of(card["name"]) for card in gallery(index, limit=most // (4 * max(sizes.values())))]
    groups = choose_groups(sizes, [*starred, *spans], most)
    if len(groups) == len(sizes):
        return groups, "all of the run"
    return groups, (
        f"of {sum(sizes.values()):,}: whole groups, first those with stars or notes, then those with the strongest "
        "reflection spans up to a quarter, the others at equal distances over the run"
    )


def _group_of(name: str) -> Group:
    """The group of a rollout by its name STEP.GROUP.SAMPLE."""
    step, group, _ = name.split(".")
    return int(step), int(group)


# ------------------------------------------------------------------------------------------------ content


def _content(library: RunLibrary, index: RolloutIndex, run: str, groups: Sequence[Group]) -> dict[str, Any]:
    """The replies to the queries that the pages send, with the rollouts of these groups."""

    def ask(query: str, **arguments: Any) -> dict[str, Any]:
        return run_query(library, query, arguments)

    rows = [row for step in sorted({step for step, _ in groups}) for row in _rows(ask, run, step)]
    rows = [row for row in rows if (row["step"], row["group"]) in set(groups)]
    has_tokens = sum(row["tokens"] or 0 for row in rows) <= _MOST_TOKENS
    names = {row["name"] for row in rows}
    failures = [one for cause in CAUSES for one in ask("failures", run=run, cause=cause, limit=_GALLERY)["examples"]]
    causes = {row["id"]: row["cause"] for row in index.rows("SELECT id, cause FROM failures")}
    cards = [card for label in LABELS for card in ask("reflection", run=run, label=label, limit=_GALLERY)["gallery"]]
    members = {f"{step}.{number}": ask("group", run=run, step=step, group=number) for step, number in groups}
    overview = ask("overview", run=run)
    overview["settings"] = publishable(overview["settings"])
    overview["row"] = {name: without_folders(value) for name, value in overview["row"].items()}
    return {
        "replies": {
            "runs": {"folder": "", "runs": [overview["row"]]},
            "overview": overview,
            "reflection": ask("reflection", run=run, limit=0),
            "failures": ask("failures", run=run, limit=0),
        },
        "gallery": sorted((card for card in cards if card["name"] in names), key=lambda card: -card["score"]),
        "failures": [one for one in failures if one["name"] in names],
        "causes": {row["name"]: causes[row["id"]] for row in rows if row["id"] in causes},
        "groups": {name: _group(group) for name, group in members.items()},
        "problems": {
            problem: _problem(ask("problem", run=run, id=problem), names, set(groups))
            for problem in dict.fromkeys(row["problem"] for row in rows)
        },
        "rollouts": {
            name: _rollout(ask("rollout", run=run, name=name, with_formulas=True), set(groups), has_tokens=has_tokens)
            for name in (row["name"] for row in rows)
        },
        "rows": rows,
    }


def _rows(ask: Any, run: str, step: int) -> list[dict[str, Any]]:
    """The rows of a step's rollouts in the list."""
    rows: list[dict[str, Any]] = []
    while True:
        page = ask("rollouts", run=run, where={"step": str(step)}, offset=len(rows), limit=_PAGE)
        rows += page["rows"]
        if len(rows) >= page["total"]:
            return rows


def _group(group: dict[str, Any]) -> dict[str, Any]:
    """A group without the completions, which its rollouts have."""
    return group | {"members": [{**member, "completion": None} for member in group["members"]]}


def _problem(problem: dict[str, Any], names: set[str], groups: set[Group]) -> dict[str, Any]:
    """A problem with the rates of all its visits, and the rollouts and neighbours that the file has."""
    return problem | {
        "neighbours": [one for one in problem["neighbours"] if (one["step"], one["grp"]) in groups],
        "visits": [
            visit | {"rollouts": [one for one in visit["rollouts"] if one["name"] in names]}
            for visit in problem["visits"]
        ],
    }


def _rollout(rollout: dict[str, Any], groups: set[Group], *, has_tokens: bool) -> dict[str, Any]:
    """A rollout with links to groups of the file alone; texts without formulas are not repeated as formulas."""
    visits = [visit for visit in rollout["visits"] if (visit["step"], visit["group"]) in groups]
    content = rollout | {"visits": visits, "note": None}
    if all(isinstance(piece, str) for pieces in rollout["formulas"].values() for piece in pieces):
        del content["formulas"]
    if not has_tokens and rollout["tokens"]:
        return content | {"tokens": None, "tokens_fault": "a file of this size leaves out their statistics"}
    if rollout["tokens"]:
        content["tokens"] = {name: _rounded(column) for name, column in rollout["tokens"].items()}
    return content


def _rounded(column: Any) -> Any:
    return [round(x, _DIGITS) if isinstance(x, float) else x for x in column] if isinstance(column, list) else column


# ------------------------------------------------------------------------------------------------ page


def _page(name: str, content: Mapping[str, Any]) -> str:
    """The HTML file. Its JSON is ASCII without "<", so that no text of a model can end the script element."""
    data = json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")
    title = name.replace("&", "&amp;").replace("<", "&lt;")
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_CSP}">
<meta name="referrer" content="no-referrer">
{page_facts(CLOSED)}
<title>{title}</title>
<style>body {{ margin: 0; }}
{(_STATIC / "app.css").read_text("utf-8")}</style>
<script type="importmap">{json.dumps({"imports": _modules()})}</script>
</head>
<body>
<div id="reasoner"></div>
<script type="application/json" id="published">{data}</script>
<script type="module">import "reasoner/main.js";</script>
</body>
</html>
"""


_SPECIFIER = re.compile(r"""((?:from |import\()["`])(\.\.?)/""")


def _with_base(bases: Mapping[str, str], match: re.Match[str]) -> str:
    """The start of an import with the name of the folder for the dots."""
    return f"{match[1]}{bases[match[2]]}/"


def _modules() -> dict[str, str]:
    """The pages' scripts as data URLs, by the name that they are imported by."""
    modules = {}
    for path in sorted(_STATIC.rglob("*.js")):
        folder = path.parent.relative_to(_STATIC).as_posix()
        if folder == "pages" and path.stem in CLOSED:
            continue
        bases = {".": "reasoner" if folder == "." else f"reasoner/{folder}", "..": "reasoner"}
        source = _SPECIFIER.sub(partial(_with_base, bases), path.read_text("utf-8"))
        encoded = base64.b64encode(source.encode()).decode()
        modules[f"reasoner/{path.relative_to(_STATIC).as_posix()}"] = f"data:text/javascript;base64,{encoded}"
    return modules
