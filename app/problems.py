"""Pages of problems: one problem across the steps, and a map of all problems by steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field

from app.arguments import Count
from app.run_library import RunLibrary
from reasoner.runs.rollout_queries import (
    PROBLEM_ORDERS,
    PROBLEM_ROWS,
    exposure_rates,
    neighbours,
    problem_rows,
    rollouts_of_problem,
    sampling_counts,
    solve_rates,
    subjects,
)

_NEIGHBOURS = 5  # groups of the same family and level before and after the first of a problem


def problem(library: RunLibrary, run: str, id: str) -> dict[str, Any]:
    """All groups of a problem: pass rates, answers and lengths; the step that first solved it, and its flips.

    `neighbours`: the groups of other problems of its family, and level if it has others, nearest to its first group.
    ValueError for an unknown problem.
    """
    table = library.rollouts(run)
    groups = [group for group in table.groups if group["problem"] == id]
    if not groups:
        raise ValueError(f"run {run} has no problem {id!r}")
    rows_of: dict[tuple[int, int], list[dict[str, Any]]] = defaultdict(list)
    for row in rollouts_of_problem(table, id):
        rows_of[row["step"], row["grp"]].append(row)
    first = table.group_rows(groups[0]["step"], groups[0]["grp"])[0]
    steps = [row["step"] for row in table.steps]
    others = neighbours(table, groups[0], number=_NEIGHBOURS)
    visits = [_visit(group, rows_of[group["step"], group["grp"]]) for group in groups]
    solved_steps = [visit["step"] for visit in visits if visit["correct"]]
    return {
        "problem": id,
        **{name: first[name] for name in ("question", "gold", "source", "subject", "level", "verifier")},
        "visits": visits,
        "first_solved": solved_steps[0] if solved_steps else None,
        "flips": _flips(visits),
        "steps": [steps[0], steps[-1]],
        "neighbours": others,
    }


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
        "answers": [
            {"answer": answer, "is_correct": is_correct, "count": count}
            for (answer, is_correct), count in answers.most_common(12)
        ],
        "rollouts": rows,
    }


def _flips(visits: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The pairs of consecutive visits between which most completions became correct, or became wrong."""
    flips = []
    for before, after in pairwise(visits):
        was_solved, is_solved = (2 * visit["correct"] > visit["size"] for visit in (before, after))
        if was_solved != is_solved:
            flips.append({"from": before["step"], "to": after["step"], "became_correct": is_solved})
    return flips


def problems(
    library: RunLibrary,
    run: str,
    by: str = "family",
    sort: str = "problem",
    subject: str = "",
    offset: Count = 0,
    limit: Annotated[int, Field(ge=0, le=1000)] = 200,
) -> dict[str, Any]:
    """A page of the map of families or problems by steps, a histogram of the groups by correct completions, and the
    mean pass rates of problems that are sampled for the first time and again, with 95 % intervals. With `limit` 0, with
    which an open page asks whether there is something new, the steps alone.

    A missing cell means that the step had no group of the problem, and not a pass rate of 0.
    """
    if by not in PROBLEM_ROWS:
        raise ValueError(f"unknown rows {by!r}; known are {', '.join(PROBLEM_ROWS)}")
    if sort not in PROBLEM_ORDERS:
        raise ValueError(f"unknown order {sort!r}; known are {', '.join(PROBLEM_ORDERS)}")
    table = library.rollouts(run)
    steps = [row["step"] for row in table.steps]
    if not limit:
        return {"steps": steps}
    total, rows, cells = problem_rows(table, by=by, order=sort, subject=subject, offset=offset, limit=limit)
    return {
        "total": total,
        "rows": rows,
        "cells": cells,
        "steps": steps,
        "solve_rates": solve_rates(table),
        "exposures": [_exposure(row) for row in exposure_rates(table, subject=subject)],
        "sampled": sampling_counts(table, subject=subject),
        "subjects": subjects(table),
    }


def _exposure(row: dict[str, Any]) -> dict[str, Any]:
    """The mean pass rate of the groups of a row of exposure_rates, and its 95 % interval where they differ."""
    number, mean = row["groups"], row["sum"] / row["groups"]
    fields = {name: row[name] for name in ("part", "first", "last", "groups")}
    fields |= {"is_first": bool(row["is_first"]), "rate": mean}
    squares = row["squares"] - number * mean**2
    if squares < 1e-9:  # one group, or all alike
        return fields
    half = 1.96 * (squares / (number - 1) / number) ** 0.5
    return fields | {"low": max(0.0, mean - half), "high": min(1.0, mean + half)}
