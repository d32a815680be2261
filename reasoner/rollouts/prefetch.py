"""Sampling one step ahead of learning: the next step's groups are drawn in a thread, by the weights from before this
step's update (Noukhovitch et al. 2024, "Asynchronous RLHF").
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType

from reasoner.types import Group

Drawn = tuple[list[Group], list[Group]]  # to learn from; flat and replaced


class Ahead:
    """The groups of a step, begun early or not. A context manager; on leaving it waits for what is under way."""

    def __init__(self) -> None:
        self._begun: tuple[int, Future[Drawn]] | None = None
        self._thread = ThreadPoolExecutor(1)

    def begin(self, step: int, draw: Callable[[int], Drawn]) -> None:
        self._begun = step, self._thread.submit(draw, step)

    def settle(self) -> None:
        """Wait until nothing is drawn any more: the engine can take other weights."""
        if self._begun is not None:
            wait([self._begun[1]])

    def take(self, step: int, draw: Callable[[int], Drawn]) -> Drawn:
        """What was begun for the step, or else drawn now: also where the run has gone back to another step since."""
        begun, self._begun = self._begun, None
        return begun[1].result() if begun is not None and begun[0] == step else draw(step)

    def __enter__(self) -> Ahead:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown(cancel_futures=True)
