"""Grading in processes of their own, under a clock and a memory limit: what a model writes is hostile input.

The parent owns the clocks, of processor time and of the wall. A worker that is late is killed and its item TIMED_OUT.
When one dies, its item is tried once more in a fresh worker, and then it is CRASHED. Either way the other items of its
batch go to another worker, so that verdicts do not depend on how many workers there are, nor on what else was in the
batch. The parent extracts nothing itself: the worker sends what it has extracted before it judges.
"""

from __future__ import annotations

import selectors
import threading
from collections import Counter, deque
from collections.abc import Sequence
from math import ceil
from types import TracebackType
from typing import Any

from data.problem import Problem
from verifiers.extract import EXTRACTORS
from verifiers.limits import too_long
from verifiers.process import WorkerProcess
from verifiers.rewards import DEFAULT_WEIGHTS, RewardWeights, rewarded
from verifiers.rules import known
from verifiers.score import Judgement, RewardInput, Score, Verdict

MEMORY_MIB = 512  # of address space
MAX_BATCH = 32  # items sent to a worker at once
MAX_BATCH_CHARACTERS = 1_000_000  # in them, where they are more than one
MAX_DEATHS = 2  # an item that was in the hands of so many workers when they died is CRASHED
MAX_FAILED_STARTS = 3  # in a row, after which the fault is not an item's

Item = tuple[str, ...]  # the arguments of a task


class VerifierPool:
    """A context manager. For any thread; calls take turns.

    Workers start when there is something to grade, and import the algebra libraries when an item needs them. With
    `preload` all start at once with the libraries, and so does the successor of one that was killed: with two workers,
    one is ready while the other is replaced.
    """

    def __init__(
        self, workers: int = 1, seconds: float = 2.0, memory_mib: int = MEMORY_MIB, *, preload: bool = False
    ) -> None:
        for name, value, least in (("workers", workers, 1), ("seconds", seconds, 0.1), ("memory_mib", memory_mib, 256)):
            if value < least:
                raise ValueError(f"{name} is {value}; it must be at least {least}")
        self.counts: Counter[Verdict] = Counter()  # of all scores given so far
        self.restarts = 0  # workers killed late or found dead
        self._limits = (seconds, memory_mib)
        self._failed_starts = 0
        self._workers: list[WorkerProcess | None] = [None] * workers
        self._selector = selectors.DefaultSelector()
        self._lock = threading.Lock()
        self._is_open = True
        self._preload = preload
        if preload:
            for place in range(workers):
                self._start(place)

    def score(
        self,
        items: Sequence[tuple[str, Problem]],
        weights: RewardWeights = DEFAULT_WEIGHTS,
        *,
        policy: str = "strict",
        tokens: Sequence[int] | None = None,
        max_tokens: int = 0,
    ) -> list[Score]:
        """One score for each (response, problem), in order; `tokens` of each response for the rewards that need them.

        `policy` is the form that an answer must have to count (verifiers.extract.EXTRACTORS). ValueError for an unknown
        one, and for a problem whose rule is unknown.
        """
        if policy not in EXTRACTORS:
            raise ValueError(f"unknown extraction policy {policy!r}; known are {', '.join(EXTRACTORS)}")
        jobs = [(response, problem.answer, known(problem.verifier), policy) for response, problem in items]
        results = self._run("score", jobs)
        scores = [
            rewarded(RewardInput(response, problem, _score(result), size, max_tokens), weights)
            for (response, problem), result, size in zip(items, results, tokens or [0] * len(items), strict=True)
        ]
        self.counts.update(score.verdict for score in scores)
        return scores

    def judge(self, pairs: Sequence[tuple[str, str]], rule: str = "maths") -> list[Judgement]:
        """A judgement of each (prediction, gold), in order."""
        results = self._run("judge", [(*pair, known(rule)) for pair in pairs])
        return [
            Judgement(Verdict(r["verdict"]), r["layer"], r.get("gold_form", ""), r.get("answer_form", ""), r["seconds"])
            for r in results
        ]

    def same(self, pairs: Sequence[tuple[str, str]], rule: str = "maths") -> list[bool]:
        """Whether the two predictions of each pair are one answer, for voting; a pair that takes too long is not."""
        return [result is True for result in self._run("same", [(*pair, known(rule)) for pair in pairs])]

    @property
    def pids(self) -> list[int]:
        """Of the workers that run now."""
        return [worker.pid for worker in self._workers if worker]

    def close(self) -> None:
        """Stop the workers; none is left behind. The pool cannot be used afterwards."""
        with self._lock:
            self._is_open = False
            for place, worker in enumerate(self._workers):
                if worker:
                    self._forget(place)
                    worker.stop()
            self._selector.close()

    def __enter__(self) -> VerifierPool:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # -------------------------------------------------------------------------------------------- one call

    def _run(self, task: str, jobs: Sequence[Item]) -> list[Any]:
        with self._lock:
            if not self._is_open:
                raise ValueError("the pool is closed")
            work = _Work(task, jobs, num_workers=len(self._workers))
            try:
                while work.num_open:
                    self._turn(work)
            finally:
                for place, worker in enumerate(self._workers):
                    if worker and worker.owed:  # after an error: what it still owes must not reach the next call
                        self._forget(place)
                        worker.kill()
            return work.results

    def _turn(self, work: _Work) -> None:
        """Give idle workers a batch, wait for a line or for the nearest deadline, and act on both."""
        for place in range(len(self._workers)):
            worker = self._workers[place] or (self._start(place) if work.waiting else None)
            if worker and not worker.is_busy and work.waiting:
                numbers = work.next_batch()
                worker.give(work.task, numbers, [work.jobs[number] for number in numbers])
        busy = [(place, worker) for place, worker in enumerate(self._workers) if worker and worker.is_busy]
        pause = min(worker.seconds_left() for _, worker in busy)
        ready = {key.data for key, _ in self._selector.select(max(0.001, pause))}
        for place, worker in busy:
            if place in ready:
                events = worker.events()
                if events is None:
                    self._lose(place, worker)
                    work.died(list(worker.owed))
                for number, event in events or ():
                    self._failed_starts = 0
                    if "result" in event:
                        work.finish(number, event["result"])
                    else:
                        work.readings[number] = event["reading"]
            elif worker.seconds_left() <= 0:
                self._lose(place, worker)
                work.timed_out(list(worker.owed), self._limits[0])

    def _start(self, place: int) -> WorkerProcess:
        worker = self._workers[place] = WorkerProcess(*self._limits, preload=self._preload)
        self._selector.register(worker.output, selectors.EVENT_READ, place)
        return worker

    def _forget(self, place: int) -> None:
        worker = self._workers[place]
        assert worker is not None
        self._selector.unregister(worker.output)
        self._workers[place] = None

    def _lose(self, place: int, worker: WorkerProcess) -> None:
        """Get rid of a worker that is late or dead. RuntimeError where workers do not even start."""
        self._forget(place)
        self.restarts += 1
        self._failed_starts += not worker.is_ready
        complaint = worker.complaint()
        worker.kill()
        if self._failed_starts == MAX_FAILED_STARTS:
            raise RuntimeError(f"grading workers do not start: {complaint}")
        if self._preload:
            self._start(place)


class _Work:
    """The items of one call: which wait, what came of them, and how many workers each has cost.

    An item with a text that is too long is REFUSED here, and no worker sees it.
    """

    def __init__(self, task: str, jobs: Sequence[Item], *, num_workers: int) -> None:
        self.task = task
        self.jobs = jobs
        self.results: list[Any] = [None] * len(jobs)
        self.readings: dict[int, dict[str, Any]] = {}  # what was extracted from the items that are not finished
        self.num_open = len(jobs)
        self.waiting: deque[int] = deque()
        self._deaths: Counter[int] = Counter()
        self._batch = max(1, min(MAX_BATCH, ceil(len(jobs) / (4 * num_workers))))
        for number, job in enumerate(jobs):
            if reason := next(filter(None, map(too_long, job)), ""):
                self.finish(number, {"verdict": Verdict.REFUSED, "layer": reason, "seconds": 0.0})
            else:
                self.waiting.append(number)

    def next_batch(self) -> list[int]:
        """Numbers of items for one worker: one at least, and no more than fit into MAX_BATCH_CHARACTERS."""
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
        """Note the result of an item; with what was extracted from it, if its worker got no further than that."""
        reading = self.readings.pop(number, None)
        self.results[number] = {**reading, **result} if reading else result
        self.num_open -= 1

    def timed_out(self, numbers: Sequence[int], seconds: float) -> None:
        """The worker that held these items was late: the first one has timed out, the others wait again."""
        for number in numbers[:1]:
            self.finish(number, {"verdict": Verdict.TIMED_OUT, "layer": "clock", "seconds": seconds})
        self.waiting.extendleft(reversed(numbers[1:]))

    def died(self, numbers: Sequence[int]) -> None:
        """The worker that held these items is dead: the first one may have killed it, the others wait again."""
        self._deaths.update(numbers[:1])
        for number in numbers[:1]:
            if self._deaths[number] == MAX_DEATHS:
                self.finish(number, {"verdict": Verdict.CRASHED, "layer": "death", "seconds": 0.0})
                numbers = numbers[1:]
        self.waiting.extendleft(reversed(numbers))


def _score(result: dict[str, Any]) -> Score:
    """The score that a worker gave, or that of a response that it could not judge: then the form at most is known."""
    return Score(**{"reward": 0.0, "parts": {}, **result, "verdict": Verdict(result["verdict"])})
