"""Pages of problems: one problem across the steps, and a map of all problems by steps."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from itertools import pairwise
from typing import Annotated, Any

from pydantic import Field

from app.arguments import Count
from app.run_library import RunLibrary
from reasoner.evals.estimators import estimate_share
from reasoner.runs.filters import Filter
from reasoner.runs.rollout_table import RolloutTable, short_answer

Rows = list[dict[str, Any]]
Key = Callable[[dict[str, Any]], Any]

_NEIGHBOURS = 5  # groups of the same family and level before and after the first of a problem

# The orders of the rows of the map, by name; rows that are equal by them are in the order of their names.
PROBLEM_ORDERS: dict[str, Key] = {
    "first solved": lambda row: (row["first_solved"] is None, row["first_solved"]),
    "rate": lambda row: row["rate"],
    "-rate": lambda row: -row["rate"],
    "groups": lambda row: row["num_groups"],
    "-groups": lambda row: -row["num_groups"],
    "problem": lambda row: 0,
    "-problem": lambda row: 0,
    "first sampled": lambda row: row["first_sampled"],
    "flips": lambda row: (-row["flips"], -row["num_groups"]),
}


def _family(group: dict[str, Any]) -> str:
    subject = "no family" if group["subject"] is None else group["subject"]
    return f"{subject} {'' if group['level'] is None else group['level']}".strip()


# What a row of the map of problems stands for: one problem, or all problems of a family and level.
PROBLEM_ROWS: dict[str, Callable[[dict[str, Any]], str]] = {
    "family": _family,
    "problem": lambda group: group["problem"],
}


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
    others = _neighbours(table.groups, groups[0])
    visits = [_visit(group, rows_of[group["step"], group["grp"]]) for group in groups]
    solved_steps = [visit["step"] for visit in visits if visit["correct"]]
    return {
        "problem": id,
        **{name: first[name] for name in ("question", "gold", "source", "subject", "level", "verifier")},
        "visits": visits,
        "first_solved": solved_steps[0] if solved_steps else None,
        "flips": [
            {"from": before["step"], "to": after["step"], "became_correct": 2 * after["correct"] > after["size"]}
            for before, after in pairwise(groups)
            if after["flip"]
        ],
        "steps": [steps[0], steps[-1]],
        "neighbours": others,
    }


def rollouts_of_problem(table: RolloutTable, problem: str) -> Rows:
    """Name, place, verdict, reward, advantage, tokens and answer of every rollout of a problem, in order."""
    names = ("step", "sample", "verdict", "reward", "advantage", "tokens")
    return [
        {"name": "{step}.{group}.{sample}".format(**row), "grp": row["group"], "answer": short_answer(row)}
        | {name: row[name] for name in names}
        for row in table.rows(Filter(problem=problem)).to_pylist()
    ]


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


def _neighbours(groups: Rows, visit: dict[str, Any]) -> Rows:
    """The groups of other problems of a group's family and level (of any level where it has no such others): the
    nearest before it and after it, in order.
    """
    others = [one for one in groups if one["problem"] != visit["problem"] and one["subject"] == visit["subject"]]
    alike = [one for one in others if one["level"] == visit["level"]] or others
    num_before = sum((one["step"], one["grp"]) < (visit["step"], visit["grp"]) for one in alike)
    return alike[max(0, num_before - _NEIGHBOURS) : num_before + _NEIGHBOURS]


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
    groups = [group for group in table.groups if subject in ("", group["subject"])]
    width = max(10, steps[-1] - steps[0] + 1) if steps else 10  # of the run in steps, at least one for each tenth

    def part_of(group: dict[str, Any]) -> int:
        """The tenth of the run that a group is in."""
        return int(10 * (group["step"] - steps[0]) // width)

    total, rows, cells = _map(groups, by=by, order=sort, offset=offset, limit=limit)
    visits = Counter(group["problem"] for group in groups)
    return {
        "total": total,
        "rows": rows,
        "cells": cells,
        "steps": steps,
        "solve_rates": _solve_rates(groups, part_of),
        "exposures": _exposures(groups, part_of),
        "sampled": {"problems": len(visits), "once": sum(number == 1 for number in visits.values())},
        "subjects": sorted({group["subject"] for group in table.groups} - {None}),
    }


def _map(groups: Rows, *, by: str, order: str, offset: int, limit: int) -> tuple[int, Rows, list[list[Any]]]:
    """(number of all rows, a page of the rows, their cells) of the map of problems by steps. A cell is
    [row, step, correct, size]; several groups of a row at one step are one cell.
    """
    groups_of = defaultdict(list)
    for group in groups:
        groups_of[PROBLEM_ROWS[by](group)].append(group)
    rows = [_row(name, groups_of[name]) for name in sorted(groups_of, reverse=order == "-problem")]
    page = sorted(rows, key=PROBLEM_ORDERS[order])[offset : offset + limit]
    cells: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for number, row in enumerate(page):
        for group in groups_of[row["problem"]]:
            cell = cells[number, group["step"]]
            cell[0] += group["correct"]
            cell[1] += group["size"]
    return len(rows), page, [[*place, *counts] for place, counts in cells.items()]


def _row(name: str, groups: Rows) -> dict[str, Any]:
    correct, size = (sum(group[key] for group in groups) for key in ("correct", "size"))
    return {
        "problem": name,
        **{key: groups[0][key] for key in ("subject", "level", "question")},
        "num_groups": len(groups),
        "correct": correct,
        "size": size,
        "rate": correct / size,
        "first_sampled": groups[0]["step"],
        "first_solved": next((group["step"] for group in groups if group["correct"]), None),
        "flips": sum(group["flip"] for group in groups),
    }


def _solve_rates(groups: Rows, part_of: Callable[[dict[str, Any]], int]) -> Rows:
    """Number of groups by tenth of the run, size and number of correct completions."""
    steps = defaultdict(list)
    for group in groups:
        steps[part_of(group), group["size"], group["correct"]].append(group["step"])
    return [
        {"part": part, "first": own[0], "last": own[-1], "correct": correct, "size": size, "groups": len(own)}
        for (part, size, correct), own in sorted(steps.items())
    ]


def _exposures(groups: Rows, part_of: Callable[[dict[str, Any]], int]) -> Rows:
    """By tenth of the run, and by whether the step is the first that sampled the problem (`is_first`): the mean pass
    rate of the groups, and its 95 % interval over problems.
    """
    groups_of = defaultdict(list)
    for group in groups:
        groups_of[part_of(group), group["is_first"]].append(group)
    rows = []
    for (part, is_first), own in sorted(groups_of.items()):
        rates: dict[str, list[float]] = defaultdict(list)
        for group in own:
            rates[group["problem"]].append(group["correct"] / group["size"])
        mean = estimate_share(list(map(sum, rates.values())), list(map(len, rates.values())))
        row = {"part": part, "first": own[0]["step"], "last": own[-1]["step"], "groups": len(own)}
        rows.append(row | {"is_first": is_first, "rate": mean.value, "low": mean.low, "high": mean.high})
    return rows
