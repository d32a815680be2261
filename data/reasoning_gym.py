"""Problems of reasoning-gym (the extra `gym`): procedural tasks whose answer is one number."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from data.problem import Problem
from data.table_rows import problems

DEFAULT_NUM_PROBLEMS = 500  # of a task, which has no natural end
_SEED = 20250101  # constant, so that a task has the same problems everywhere

# Tasks with one numeric answer. The others need reasoning-gym's own scorers.
TASKS = (
    "basic_arithmetic",
    "chain_sum",
    "count_primes",
    "decimal_arithmetic",
    "decimal_chain_sum",
    "gcd",
    "gsm_symbolic",
    "lcm",
    "leg_counting",
    "number_sequence",
    "products",
    "simple_equations",
    "simple_geometry",
)


def load_reasoning_gym(task: str, limit: int | None = None) -> list[Problem]:
    """Load the first `limit` problems of a task. ValueError for a task that is not in TASKS, or without the extra."""
    if task not in TASKS:
        raise ValueError(
            f"unknown task {task!r} of reasoning-gym; those with one number as the answer: {', '.join(TASKS)}"
        )
    try:
        import reasoning_gym
    except ImportError as error:
        raise ValueError("reasoning-gym is not installed; install it with: pip install reasoning-gym") from error
    size = limit or DEFAULT_NUM_PROBLEMS
    table = reasoning_gym.create_dataset(task, size=size, seed=_SEED)
    return list(problems(_rows(task, table, size), source=f"reasoning-gym/{task}", split="test"))


def _rows(task: str, table: Any, size: int) -> Iterator[tuple[str, dict[str, Any]]]:
    for number in range(size):
        row = table[number]
        yield f"{task} {number}", {"question": row["question"], "answer": row["answer"], "subject": task}
