"""Pages of problems: one problem across the steps, and a map of all problems by steps."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise
from typing import Any

from app.run_library import Library
from reasoner.runs.index import RolloutIndex

_SORTS = {
    "first solved": "CASE WHEN first_solved IS NULL THEN 1 ELSE 0 END, first_solved, problem",
    "rate": "rate DESC, problem",
    "-rate": "rate, problem",
    "seen": "seen DESC, problem",
    "problem": "problem",
    "flips": "flips DESC, seen DESC, problem",
}
_MOST = 1000  # rows of the map per page
_ROWS = {"family": "TRIM(COALESCE(subject, 'no family') || ' ' || COALESCE(level, ''))", "problem": "problem"}


def problem(library: Library, run: str, id: str) -> dict[str, Any]:
    """All groups of a problem: pass rates, answers and lengths; the step that first solved it, and its flips.

    ValueError for an unknown problem.
    """
    with library.index(run) as index:
        groups = index.rows("SELECT * FROM groups WHERE problem = ? ORDER BY step, grp", [id])
        if not groups:
            raise ValueError(f"run {run} has no problem {id!r}")
        rows = index.rows(
            "SELECT step, grp, sample, verdict, reward, advantage, tokens, answer FROM rollouts WHERE problem = ? "
            "ORDER BY id",
            [id],
        )
        first = index.rollout(index.find(_name(rows[0])).id)
        span = index.rows("SELECT MIN(step) AS first, MAX(step) AS last FROM steps")[0]
    visits = [
        _visit(group, [row for row in rows if (row["step"], row["grp"]) == (group["step"], group["grp"])])
        for group in groups
    ]
    solved = [visit["step"] for visit in visits if visit["correct"]]
    return {
        "run": run,
        "problem": id,
        **{name: first.get(name) for name in ("question", "gold", "source", "subject", "level", "verifier")},
        "visits": visits,
        "first_solved": solved[0] if solved else None,
        "flips": _flips(visits),
        "steps": [span["first"], span["last"]],
    }


def _name(row: dict[str, Any]) -> str:
    return f"{row['step']}.{row['grp']}.{row['sample']}"


def _visit(group: dict[str, Any], rows: list[dict[str, Any]]) -> dict[str, Any]:
    answers = Counter((row["answer"] or "no answer", row["verdict"] == "correct") for row in rows)
    lengths = [row["tokens"] for row in rows if row["tokens"] is not None]
    return {
        "step": group["step"],
        "group": group["grp"],
        "size": group["size"],
        "correct": group["correct"],
        "reward": group["reward_mean"],
        "tokens": sum(lengths) / len(lengths) if lengths else None,
        "answers": [{"answer": answer, "right": right, "count": n} for (answer, right), n in answers.most_common(12)],
        "rollouts": [{"name": _name(row), **row} for row in rows],
    }


def _flips(visits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pairs of consecutive visits between which most completions became correct, or became wrong."""
    flips = []
    for before, after in pairwise(visits):
        was, now = (2 * visit["correct"] > visit["size"] for visit in (before, after))
        if was != now:
            flips.append({"from": before["step"], "to": after["step"], "learnt": now})
    return flips


def problems(
    library: Library,
    run: str,
    by: str = "family",
    sort: str = "problem",
    subject: str = "",
    offset: int = 0,
    limit: int = 200,
) -> dict[str, Any]:
    """A page of the map of families or problems by steps, and a histogram of the groups by correct completions.

    A missing cell means that the step had no group of the problem, and not a pass rate of 0.
    """
    if by not in _ROWS:
        raise ValueError(f"unknown rows {by!r}; known are {', '.join(_ROWS)}")
    if sort not in _SORTS:
        raise ValueError(f"unknown order {sort!r}; known are {', '.join(_SORTS)}")
    if not 0 <= limit <= _MOST:
        raise ValueError(f"limit is {limit}; it must lie between 0 and {_MOST}")
    with library.index(run) as index:
        columns = f"{_ROWS[by]} AS problem, problem AS problem_id, step, grp, subject, level, question, correct, size"
        chosen = f"WITH visits AS (SELECT {columns} FROM groups WHERE ? = '' OR subject = ?)"
        values = [subject, subject]
        rows = index.rows(
            f"{chosen} SELECT * FROM ({_PROBLEMS}) ORDER BY {_SORTS[sort]} LIMIT ? OFFSET ?", [*values, limit, offset]
        )
        cells = _cells(index, chosen, values, [row["problem"] for row in rows])
        total = index.rows(f"{chosen} SELECT COUNT(DISTINCT problem) AS n FROM visits", values)[0]["n"]
        return {
            "run": run,
            "total": total,
            "offset": offset,
            "rows": rows,
            "cells": cells,
            "steps": [row["step"] for row in index.rows("SELECT step FROM steps ORDER BY step")],
            "solve_rates": _solve_rates(index),
            "by": by,
            "sorts": list(_SORTS),
            "subjects": [
                row["subject"]
                for row in index.rows("SELECT DISTINCT subject FROM groups WHERE subject IS NOT NULL ORDER BY subject")
            ],
        }


_PROBLEMS = """
SELECT problem, subject, level, MIN(question) AS question, COUNT(*) AS seen, SUM(correct) AS correct, SUM(size) AS size,
    1.0 * SUM(correct) / SUM(size) AS rate, MIN(CASE WHEN correct > 0 THEN step END) AS first_solved,
    COALESCE(SUM(solved <> previous), 0) AS flips
FROM (
    SELECT *, 2 * correct > size AS solved,
        LAG(2 * correct > size) OVER (PARTITION BY problem_id ORDER BY step, grp) AS previous
    FROM visits
) GROUP BY problem
"""


def _cells(index: RolloutIndex, chosen: str, values: list[Any], names: list[str]) -> list[list[Any]]:
    """[row, step, correct, size] of the rows' groups; several groups of a row at one step are one cell."""
    place = {name: row for row, name in enumerate(names)}
    marks = ", ".join("?" * len(names))
    cells = index.rows(
        f"{chosen} SELECT problem, step, SUM(correct) AS correct, SUM(size) AS size FROM visits "
        f"WHERE problem IN ({marks}) GROUP BY problem, step",
        [*values, *names],
    )
    return [[place[cell["problem"]], cell["step"], cell["correct"], cell["size"]] for cell in cells]


def _solve_rates(index: RolloutIndex) -> list[dict[str, Any]]:
    """Number of groups by tenth of the run, size and number of correct completions."""
    return index.rows(
        "WITH run AS (SELECT MIN(step) AS low, MAX(step) - MIN(step) + 1 AS width FROM steps) "
        "SELECT CAST(10 * (step - low) / MAX(width, 10) AS INTEGER) AS part, MIN(step) AS first, MAX(step) AS last, "
        "correct, size, COUNT(*) AS groups FROM groups, run GROUP BY part, correct, size ORDER BY part, size, correct"
    )
