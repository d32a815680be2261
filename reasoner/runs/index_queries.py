"""Queries over the tables of an index of rollouts (reasoner.runs.index_schema) that the dashboard's pages show."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from reasoner.runs.filters import ROWS, ids_of_step
from reasoner.runs.index import RolloutIndex
from reasoner.runs.word_search import match

Rows = list[dict[str, Any]]

# The orders of problem_rows, by name.
PROBLEM_ORDERS = {
    "first solved": "CASE WHEN first_solved IS NULL THEN 1 ELSE 0 END, first_solved, problem",
    "rate": "rate, problem",
    "-rate": "rate DESC, problem",
    "groups": "num_groups, problem",
    "-groups": "num_groups DESC, problem",
    "problem": "problem",
    "-problem": "problem DESC",
    "first sampled": "first_sampled, problem",
    "flips": "flips DESC, num_groups DESC, problem",
}
# What a row of the map of problems stands for: one problem, or all problems of a family and level.
PROBLEM_ROWS = {"family": "TRIM(COALESCE(subject, 'no family') || ' ' || COALESCE(level, ''))", "problem": "problem"}

# Tenths of the run, of at least a step each.
_TENTHS = "WITH run AS (SELECT MIN(step) AS low, MAX(step) - MIN(step) + 1 AS width FROM steps)"
_TENTH = "CAST(10 * (step - low) / MAX(width, 10) AS INTEGER)"


def step_rows(index: RolloutIndex, *, first_step: int = 0) -> Rows:
    """The rows of table `steps` from `first_step` on, in order."""
    return index.rows("SELECT * FROM steps WHERE step >= ? ORDER BY step", [first_step])


def group_row(index: RolloutIndex, step: int, group: int) -> dict[str, Any]:
    return index.rows("SELECT * FROM groups WHERE step = ? AND grp = ?", [step, group])[0]


def group_range(index: RolloutIndex, step: int) -> list[int]:
    row = index.rows("SELECT MIN(grp) AS first, MAX(grp) AS last FROM groups WHERE step = ?", [step])[0]
    return [row["first"], row["last"]]


def group_members(index: RolloutIndex, step: int, group: int) -> Rows:
    """Sample number, reward, advantage and verdict of the rollouts of a group, in order."""
    return index.rows(
        'SELECT sample, reward, advantage, verdict FROM rollouts WHERE id BETWEEN ? AND ? AND "group" = ? '
        "ORDER BY sample",
        [*ids_of_step(step), group],
    )


def group_ids(index: RolloutIndex, step: int, group: int) -> list[int]:
    rows = index.rows(
        'SELECT id FROM rollouts WHERE id BETWEEN ? AND ? AND "group" = ? ORDER BY id', [*ids_of_step(step), group]
    )
    return [row["id"] for row in rows]


def groups_of_problem(index: RolloutIndex, problem: str) -> Rows:
    return index.rows("SELECT * FROM groups WHERE problem = ? ORDER BY step, grp", [problem])


def rollouts_of_problem(index: RolloutIndex, problem: str) -> Rows:
    """Name, place, verdict, reward, advantage, tokens and answer of every rollout of a problem, in order."""
    return index.rows(
        "SELECT step || '.' || \"group\" || '.' || sample AS name, step, \"group\" AS grp, sample, verdict, reward, "
        "advantage, tokens, answer FROM rollouts WHERE problem = ? ORDER BY id",
        [problem],
    )


def problem_means(index: RolloutIndex, *, step: int | None = None) -> Rows:
    """By problem: number of rollouts, share of correct ones, mean reward and tokens, id of the first."""
    return index.rows(
        "SELECT problem, COUNT(*) AS rollouts, AVG(verdict = 'correct') AS correct, AVG(reward) AS reward, "
        "AVG(tokens) AS tokens, MIN(id) AS first FROM rollouts WHERE id BETWEEN ? AND ? "
        "GROUP BY problem ORDER BY problem",
        [0, 2**62] if step is None else ids_of_step(step),
    )


def problem_rows(
    index: RolloutIndex, *, by: str, order: str, subject: str = "", offset: int = 0, limit: int = 200
) -> tuple[int, Rows, list[list[Any]]]:
    """(number of all rows, a page of the rows, their cells) of the map of problems by steps.

    `by`: a key of PROBLEM_ROWS. `order`: a key of PROBLEM_ORDERS. `subject`: only this family; "" is all. A cell is
    [row, step, correct, size]; several groups of a row at one step are one cell.
    """
    count = f"SELECT COUNT(DISTINCT {PROBLEM_ROWS[by]}) AS n FROM problems WHERE ? = '' OR subject = ?"
    total = index.rows(count, [subject, subject])[0]["n"]
    rows = index.rows(
        f"SELECT {PROBLEM_ROWS[by]} AS problem, subject, level, MIN(question) AS question, "
        "SUM(num_groups) AS num_groups, SUM(correct) AS correct, SUM(size) AS size, "
        "1.0 * SUM(correct) / SUM(size) AS rate, MIN(first_sampled) AS first_sampled, "
        "MIN(first_solved) AS first_solved, SUM(flips) AS flips FROM problems WHERE ? = '' OR subject = ? "
        f"GROUP BY {PROBLEM_ROWS[by]} ORDER BY {PROBLEM_ORDERS[order]} LIMIT ? OFFSET ?",
        [subject, subject, limit, offset],
    )
    row_numbers = {row["problem"]: number for number, row in enumerate(rows)}
    cells = index.rows(
        f"SELECT {PROBLEM_ROWS[by]} AS problem, step, SUM(correct) AS correct, SUM(size) AS size "
        f"FROM {'family_steps' if by == 'family' else 'groups'} "
        f"WHERE {PROBLEM_ROWS[by]} IN ({', '.join('?' * len(rows))}) GROUP BY {PROBLEM_ROWS[by]}, step",
        [*row_numbers],
    )
    return total, rows, [[row_numbers[cell["problem"]], cell["step"], cell["correct"], cell["size"]] for cell in cells]


def neighbours(index: RolloutIndex, visit: dict[str, Any], *, number: int) -> Rows:
    """The groups of other problems of a group's family and level (of any level where it has no such others): the
    `number` nearest before it and after it, in order.

    `visit`: a row of table `groups`. `is_first`: whether the step is the first that sampled the problem.
    """
    columns = (
        "SELECT step, grp, problem, level, question, correct, size, step = "
        "(SELECT MIN(step) FROM groups AS own WHERE own.problem = groups.problem) AS is_first FROM groups"
    )
    values = [visit[name] for name in ("problem", "subject", "level", "step", "grp")]
    for level in ("level IS ?", "(1 OR level IS ?)"):
        of_kind = f"{columns} WHERE problem <> ? AND subject IS ? AND {level} AND (step, grp)"
        before = index.rows(f"{of_kind} < (?, ?) ORDER BY step DESC, grp DESC LIMIT ?", [*values, number])
        after = index.rows(f"{of_kind} > (?, ?) ORDER BY step, grp LIMIT ?", [*values, number])
        if before or after:
            break
    return [*reversed(before), *after]


def sampling_counts(index: RolloutIndex, *, subject: str = "") -> dict[str, int]:
    """Number of `problems`, and of those that were sampled `once`."""
    query = (
        "SELECT COUNT(*) AS problems, COALESCE(SUM(num_groups = 1), 0) AS once FROM problems "
        "WHERE ? = '' OR subject = ?"
    )
    return index.rows(query, [subject, subject])[0]


def exposure_rates(index: RolloutIndex, *, subject: str = "") -> Rows:
    """By tenth of the run, and by whether the step is the first that sampled the problem (`is_first`): number of
    groups, and sum and sum of squares of their pass rates.
    """
    return index.rows(
        f"{_TENTHS} SELECT {_TENTH} AS part, is_first, MIN(step) AS first, MAX(step) AS last, SUM(groups) AS groups, "
        "SUM(sum) AS sum, SUM(squares) AS squares FROM exposures, run WHERE ? = '' OR subject = ? "
        "GROUP BY part, is_first ORDER BY part",
        [subject, subject],
    )


def solve_rates(index: RolloutIndex) -> Rows:
    """Number of groups by tenth of the run, size and number of correct completions."""
    return index.rows(
        f"{_TENTHS} SELECT {_TENTH} AS part, MIN(step) AS first, MAX(step) AS last, "
        "correct, size, SUM(groups) AS groups FROM solved_groups, run GROUP BY part, correct, size "
        "ORDER BY part, size, correct"
    )


def subjects(index: RolloutIndex) -> list[str]:
    rows = index.rows("SELECT DISTINCT subject FROM problems WHERE subject IS NOT NULL ORDER BY subject")
    return [row["subject"] for row in rows]


def word_counts(index: RolloutIndex, text: str) -> dict[int, int]:
    """Number of completions that match the search, by step. ValueError for a text that cannot be searched."""
    query = f"SELECT rowid / {ROWS} AS step, COUNT(*) AS n FROM words WHERE words MATCH ? GROUP BY 1"
    return {row["step"]: row["n"] for row in index.rows(query, [match(text)])}


def first_self_correction(index: RolloutIndex, labels: Sequence[str]) -> str | None:
    """The name of the first rollout with a correct answer and a reflection span of one of the labels."""
    marks = ", ".join("?" * len(labels))
    rows = index.rows(f"SELECT id FROM spans WHERE label IN ({marks}) AND correct ORDER BY id LIMIT 1", labels)
    return index.name(rows[0]["id"]) if rows else None
