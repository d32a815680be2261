"""The rows of a training step in passes over a data set, of examples or of preferences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from data import sample_indices

Row = TypeVar("Row")


def rows_of_step(rows: Sequence[Row], step: int, *, num: int, epochs: int, seed: int) -> list[Row]:
    """The `num` rows of a training step: a pure function of (seed, step), each row once in an epoch. The last step has
    what is left of the last epoch.
    """
    num = min(num, len(rows))
    places = sample_indices(len(rows), step, num, seed)[: max(0, epochs * len(rows) - step * num)]
    return [rows[place] for place in places]


def num_steps(num_rows: int, *, rows: int, epochs: int) -> int:
    """Number of steps in which each row comes `epochs` times."""
    return -(-epochs * num_rows // min(rows, num_rows))
