"""Sums over the groups of a run's rollouts that the dashboard's pages show."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from typing import Any

from reasoner.runs.filters import Filter
from reasoner.runs.rollout_table import RolloutTable, short_answer

Rows = list[dict[str, Any]]
Key = Callable[[dict[str, Any]], Any]

# The orders of problem_rows, by name; rows that are equal by them are in the order of their names.
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


def rollouts_of_problem(table: RolloutTable, problem: str) -> Rows:
    """Name, place, verdict, reward, advantage, tokens and answer of every rollout of a problem, in order."""
    names = ("step", "sample", "verdict", "reward", "advantage", "tokens")
    return [
        {"name": "{step}.{group}.{sample}".format(**row), "grp": row["group"], "answer": short_answer(row)}
        | {name: row[name] for name in names}
        for row in table.rows(Filter(problem=problem)).to_pylist()
    ]


def problem_rows(
    table: RolloutTable, *, by: str, order: str, subject: str = "", offset: int = 0, limit: int = 200
) -> tuple[int, Rows, list[list[Any]]]:
    """(number of all rows, a page of the rows, their cells) of the map of problems by steps.

    `by`: a key of PROBLEM_ROWS. `order`: a key of PROBLEM_ORDERS. `subject`: only this family; "" is all. A cell is
    [row, step, correct, size]; several groups of a row at one step are one cell.
    """
    groups_of = defaultdict(list)
    for group in _of(table, subject):
        groups_of[PROBLEM_ROWS[by](group)].append(group)
    rows = [_problem_row(name, groups_of[name]) for name in sorted(groups_of, reverse=order == "-problem")]
    page = sorted(rows, key=PROBLEM_ORDERS[order])[offset : offset + limit]
    cells: dict[tuple[int, int], list[int]] = defaultdict(lambda: [0, 0])
    for number, row in enumerate(page):
        for group in groups_of[row["problem"]]:
            cell = cells[number, group["step"]]
            cell[0] += group["correct"]
            cell[1] += group["size"]
    return len(rows), page, [[*place, *counts] for place, counts in cells.items()]


def _problem_row(name: str, groups: Rows) -> dict[str, Any]:
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


def neighbours(table: RolloutTable, visit: dict[str, Any], *, number: int) -> Rows:
    """The groups of other problems of a group's family and level (of any level where it has no such others): the
    `number` nearest before it and after it, in order.
    """
    others = [one for one in table.groups if one["problem"] != visit["problem"] and one["subject"] == visit["subject"]]
    alike = [one for one in others if one["level"] == visit["level"]] or others
    num_before = sum((one["step"], one["grp"]) < (visit["step"], visit["grp"]) for one in alike)
    return alike[max(0, num_before - number) : num_before + number]


def sampling_counts(table: RolloutTable, *, subject: str = "") -> dict[str, int]:
    """Number of `problems`, and of those that were sampled `once`."""
    visits = Counter(group["problem"] for group in _of(table, subject))
    return {"problems": len(visits), "once": sum(number == 1 for number in visits.values())}


def exposure_rates(table: RolloutTable, *, subject: str = "") -> Rows:
    """By tenth of the run, and by whether the step is the first that sampled the problem (`is_first`): number of
    groups, and sum and sum of squares of their pass rates.
    """
    part_of, rates = _tenths(table), defaultdict(list)
    for group in _of(table, subject):
        rates[part_of(group["step"]), group["is_first"]].append((group["step"], group["correct"] / group["size"]))
    return [
        {"part": part, "is_first": is_first, "first": own[0][0], "last": own[-1][0], "groups": len(own)}
        | {"sum": sum(rate for _, rate in own), "squares": sum(rate**2 for _, rate in own)}
        for (part, is_first), own in sorted(rates.items())
    ]


def solve_rates(table: RolloutTable) -> Rows:
    """Number of groups by tenth of the run, size and number of correct completions."""
    part_of, steps = _tenths(table), defaultdict(list)
    for group in table.groups:
        steps[part_of(group["step"]), group["size"], group["correct"]].append(group["step"])
    return [
        {"part": part, "first": own[0], "last": own[-1], "correct": correct, "size": size, "groups": len(own)}
        for (part, size, correct), own in sorted(steps.items())
    ]


def subjects(table: RolloutTable) -> list[str]:
    return sorted({group["subject"] for group in table.groups if group["subject"] is not None})


def _of(table: RolloutTable, subject: str) -> Rows:
    """The groups of a family; "" is all."""
    return [group for group in table.groups if subject in ("", group["subject"])]


def _tenths(table: RolloutTable) -> Callable[[int], int]:
    """A function of a step: the tenth of the run, of at least a step each, that it is in."""
    steps = [row["step"] for row in table.steps]
    width = max(10, steps[-1] - steps[0] + 1) if steps else 10
    return lambda step: 10 * (step - steps[0]) // width
