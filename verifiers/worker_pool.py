"""Worker processes that answer batches of items under limits of time.

The parent process keeps the clocks, of processor time and of wall time. A worker that exceeds one is killed and its
item is TIMED_OUT. If a worker dies, its item is tried once more in a new worker, and is then CRASHED. In both cases the
other items of the batch go to another worker, so results do not depend on the number of workers or on the rest of the
batch. Equal items of a call are judged once, and what timed out once is not tried again.
"""

from __future__ import annotations

import selectors
import threading
from collections import Counter, deque
from collections.abc import Callable, Sequence
from math import ceil
from types import TracebackType
from typing import Any, Self

from verifiers.limits import too_long
from verifiers.score import Verdict
from verifiers.worker_process import WorkerProcess

MAX_BATCH = 32  # items sent to a worker at once
MAX_BATCH_CHARACTERS = 1_000_000  # in a batch of more than one item
MAX_DEATHS = 2  # an item whose worker died this many times is CRASHED
MAX_FAILED_STARTS = 3  # in a row; then the workers cannot start at all, whatever the item
MAX_LATE = 1_000  # items that are remembered to time out

Item = tuple[str, ...]  # the arguments of a task
OnResult = Callable[[int, Any], object]
LATE: dict[str, Any] = {"verdict": Verdict.TIMED_OUT, "layer": "clock", "seconds": 0.0}


class WorkerPool:
    """A pool of worker processes; a context manager. Thread-safe: calls run one after the other.

    `start` starts one. Workers start when there is something to do; with `preload` all start immediately, and so does
    the replacement of a killed one.
    """

    def __init__(self, start: Callable[[], WorkerProcess], workers: int, seconds: float, *, preload: bool) -> None:
        self.restarts = 0  # workers that were killed or died
        self._start_worker = start
        self._seconds = seconds
        self._failed_starts = 0
        self._workers: list[WorkerProcess | None] = [None] * workers
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._is_open = True
        self._preload = preload
        # The last MAX_LATE items that timed out; True where the first part is an answer that was read in a response.
        self._late: dict[Item, bool] = {}
        if preload:
            for place in range(workers):
                self._start(place)

    @property
    def pids(self) -> list[int]:
        """Process ids of the running workers."""
        return [worker.pid for worker in self._workers if worker]

    def close(self) -> None:
        """Stop all workers. The pool cannot be used afterwards."""
        with self._lock:
            self._is_open = False
            for place, worker in enumerate(self._workers):
                if worker:
                    self._unregister(place)
                    worker.stop()
            self._selector.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def run(self, task: str, jobs: Sequence[Item], on_result: OnResult | None = None) -> list[Any]:
        """The result of a task for each job, in order. `on_result` is called with the place of a job and its result as
        soon as that arrives.
        """
        with self._lock:
            if not self._is_open:
                raise ValueError("the pool is closed")
            work = _Work(task, jobs, self._late, on_result, num_workers=len(self._workers))
            try:
                while work.num_open:
                    self._dispatch_and_collect(work)
            finally:
                for place, worker in enumerate(self._workers):
                    if worker and worker.pending:  # after an error: its results must not reach the next call
                        self._unregister(place)
                        worker.kill()
            return work.results

    def _dispatch_and_collect(self, work: _Work) -> None:
        """Send batches to idle workers, wait for output or the nearest deadline, and handle both."""
        for place in range(len(self._workers)):
            worker = self._workers[place] or (self._start(place) if work.waiting else None)
            if worker and not worker.is_busy and work.waiting:
                numbers = work.next_batch()
                worker.send_batch(work.task, numbers, [work.item(number) for number in numbers])
        busy = [(place, worker) for place, worker in enumerate(self._workers) if worker and worker.is_busy]
        timeout = min(worker.seconds_left() for _, worker in busy)
        ready = {key.data for key, _ in self._selector.select(max(0.001, timeout))}
        for place, worker in busy:
            if place in ready:
                events = worker.events()
                if events is None:
                    self._discard(place, worker)
                    work.on_worker_death(list(worker.pending))
                for number, event in events or ():
                    self._failed_starts = 0
                    if "result" in event:
                        work.finish(number, event["result"])
                    else:
                        work.readings[number] = event["reading"]
            elif worker.seconds_left() <= 0:
                self._discard(place, worker)
                work.on_timeout(list(worker.pending), self._seconds)

    def _start(self, place: int) -> WorkerProcess:
        worker = self._workers[place] = self._start_worker()
        self._selector.register(worker.output, selectors.EVENT_READ, place)
        return worker

    def _unregister(self, place: int) -> None:
        worker = self._workers[place]
        assert worker is not None
        self._selector.unregister(worker.output)
        self._workers[place] = None

    def _discard(self, place: int, worker: WorkerProcess) -> None:
        """Remove a late or dead worker. RuntimeError after MAX_FAILED_STARTS workers in a row that did not start."""
        self._unregister(place)
        self.restarts += 1
        self._failed_starts += not worker.is_ready
        message = worker.startup_error()
        worker.kill()
        if self._failed_starts == MAX_FAILED_STARTS:
            raise RuntimeError(f"grading workers do not start: {message}")
        if self._preload:
            self._start(place)


class _Work:
    """The items of one call: those waiting, their results, and the number of workers that died on each.

    An item with a text over the size limit is REFUSED here and not sent to a worker, and neither is one that is known
    to time out. Of equal items the first is sent.
    """

    def __init__(
        self,
        task: str,
        jobs: Sequence[Item],
        known_late: dict[Item, bool],
        on_result: OnResult | None,
        *,
        num_workers: int,
    ) -> None:
        self.task = task
        self._on_result = on_result
        self.jobs = jobs
        self.results: list[Any] = [None] * len(jobs)
        self.readings: dict[int, dict[str, Any]] = {}  # what was extracted from unfinished items
        self.num_open = len(jobs)
        self.waiting: deque[int] = deque()
        self._deaths: Counter[int] = Counter()
        self._known_late = known_late
        self._batch = max(1, min(MAX_BATCH, ceil(len(jobs) / (4 * num_workers))))
        self._places: dict[Item, list[int]] = {}  # of equal items
        for number, job in enumerate(jobs):
            self._places.setdefault(job, []).append(number)
        for job, (number, *_) in self._places.items():
            if reason := next(filter(None, map(too_long, job)), ""):
                self.finish(number, {"verdict": Verdict.REFUSED, "layer": reason, "seconds": 0.0})
            elif (task, *job) in known_late:
                self.finish(number, LATE)
            else:
                self.waiting.append(number)

    def next_batch(self) -> list[int]:
        """Take the next batch: the numbers of at least one item, and of no more than fit MAX_BATCH_CHARACTERS."""
        batch = [self.waiting.popleft()]
        characters = self._characters(batch[0])
        while self.waiting and len(batch) < self._batch:
            characters += self._characters(self.waiting[0])
            if characters > MAX_BATCH_CHARACTERS:
                break
            batch.append(self.waiting.popleft())
        return batch

    def _characters(self, number: int) -> int:
        return sum(map(len, self.jobs[number]))

    def finish(self, number: int, result: Any) -> None:
        """Store the result of an item and its equals, with what was extracted if its worker stopped after that."""
        reading = self.readings.pop(number, None)
        places = self._places[self.jobs[number]]
        for place in places:
            self.results[place] = {**reading, **result} if reading else result
            if self._on_result is not None:
                self._on_result(place, self.results[place])
        self.num_open -= len(places)

    def item(self, number: int) -> Sequence[Any]:
        """An item as it is sent: with answers, if there are any, that timed out when they were read in a response."""
        job = self.jobs[number]
        end = (self.task, *job[1:])
        answers = [key[1] for key, is_read in self._known_late.items() if is_read and (key[0], *key[2:]) == end]
        return [*job, answers] if answers else job

    def on_timeout(self, numbers: Sequence[int], seconds: float) -> None:
        """Handle the timeout of a worker with these items pending: the first has TIMED_OUT, the others wait again."""
        for number in numbers[:1]:
            answer = self.readings.get(number, {}).get("extracted")
            text, *rest = self.jobs[number]
            self._known_late[self.task, answer or text, *rest] = bool(answer)
            if len(self._known_late) > MAX_LATE:
                del self._known_late[next(iter(self._known_late))]
            self.finish(number, {**LATE, "seconds": seconds})
        self.waiting.extendleft(reversed(numbers[1:]))

    def on_worker_death(self, numbers: Sequence[int]) -> None:
        """Handle the death of a worker with these items pending: all wait again; the first is CRASHED at MAX_DEATHS."""
        self._deaths.update(numbers[:1])
        for number in numbers[:1]:
            if self._deaths[number] == MAX_DEATHS:
                self.finish(number, {"verdict": Verdict.CRASHED, "layer": "death", "seconds": 0.0})
                numbers = numbers[1:]
        self.waiting.extendleft(reversed(numbers))
