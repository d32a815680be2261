"""Prefetching of rollouts: the next step's rollouts are generated in a thread while this step trains, with the weights
from before this step's update (Noukhovitch et al. 2024, "Asynchronous RLHF").
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Generic, TypeVar

Rollouts = TypeVar("Rollouts")


class RolloutPrefetcher(Generic[Rollouts]):
    """Generates a step's rollouts, in advance after start(). A context manager; on exit it waits for the thread."""

    def __init__(self) -> None:
        self._pending: tuple[int, Future[Rollouts]] | None = None
        self._thread = ThreadPoolExecutor(1)

    def start(self, step: int, generate: Callable[[int], Rollouts]) -> None:
        """Start generating the step's rollouts in the background."""
        self._pending = step, self._thread.submit(generate, step)

    def wait(self) -> None:
        """Wait for the background generation, after which the engine's weights may be replaced."""
        if self._pending is not None:
            wait([self._pending[1]])

    def take(self, step: int, generate: Callable[[int], Rollouts]) -> Rollouts:
        """Return the step's rollouts: the prefetched ones, or new ones if none or another step's were prefetched."""
        pending, self._pending = self._pending, None
        return pending[1].result() if pending is not None and pending[0] == step else generate(step)

    def __enter__(self) -> RolloutPrefetcher[Rollouts]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown(cancel_futures=True)
