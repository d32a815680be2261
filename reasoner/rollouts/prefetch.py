"""Prefetching of rollouts: those of later steps are generated in a thread while a step trains, with weights from before
its update (Noukhovitch et al. 2024, "Asynchronous RLHF").
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from types import TracebackType
from typing import Generic, TypeVar

Rollouts = TypeVar("Rollouts")


class RolloutPrefetcher(Generic[Rollouts]):
    """Generates the rollouts of steps in the order of their start() in one thread. A context manager; on exit it waits
    for the generation that is running.
    """

    def __init__(self, set_up_thread: Callable[[], object] | None = None) -> None:
        """`set_up_thread` is called once, in the thread, before the first generation."""
        self._pending: deque[tuple[int, Future[Rollouts]]] = deque()  # in the order of steps; not taken yet
        self._thread = ThreadPoolExecutor(1, initializer=set_up_thread)

    @property
    def steps(self) -> list[int]:
        """The steps that have been started and not taken yet."""
        return [step for step, _ in self._pending]

    def start(self, step: int, generate: Callable[[], Rollouts]) -> None:
        """Generate the step's rollouts in the background, after those of the steps before. Fails as they do."""
        previous = self._pending[-1][1] if self._pending else None

        def generate_next() -> Rollouts:
            if previous is not None:
                previous.result()
            return generate()

        self._pending.append((step, self._thread.submit(generate_next)))

    def wait(self) -> None:
        """Wait for all steps that have been started, after which the engine's weights may be replaced."""
        wait([future for _, future in self._pending])

    def take(self, step: int) -> Rollouts | None:
        """The step's rollouts. None, and no step is left, if another step comes next or none: after a rollback."""
        if self.steps[:1] != [step]:
            self._pending.clear()
            return None
        return self._pending.popleft()[1].result()

    def __enter__(self) -> RolloutPrefetcher[Rollouts]:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._thread.shutdown(cancel_futures=True)
