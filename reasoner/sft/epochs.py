"""The rows of a training step in passes over a data set, of examples or of preferences."""

from __future__ import annotations

from data import sample_indices


def indices_of_step(num_rows: int, step: int, *, rows: int, epochs: int, seed: int) -> list[int]:
    """The indices of a training step's rows: a pure function of (seed, step), each row once in an epoch. The last step
    has what is left of the last epoch.
    """
    rows = min(rows, num_rows)
    return sample_indices(num_rows, step, rows, seed)[: max(0, epochs * num_rows - step * rows)]


def num_steps(num_rows: int, *, rows: int, epochs: int) -> int:
    """Number of steps in which each row comes `epochs` times."""
    return -(-epochs * num_rows // min(rows, num_rows))
