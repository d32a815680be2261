"""Grading in worker processes with limits of time and memory, because model output is hostile input.

The parent process keeps the clocks, of processor time and of wall time. A worker that exceeds one is killed and its
item is TIMED_OUT. If a worker dies, its item is tried once more in a new worker, and is then CRASHED. In both cases the
other items of the batch go to another worker, so verdicts do not depend on the number of workers or on the rest of the
batch. The parent extracts nothing itself: a worker reports what it extracted before it judges.
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
from verifiers.answers.explanation import Explanation
from verifiers.equivalence import check_rule
from verifiers.extract import EXTRACTORS
from verifiers.limits import too_long
from verifiers.questions import Question, encode, question_of
from verifiers.rewards import DEFAULT_WEIGHTS, RewardWeights, add_reward
from verifiers.score import Judgement, RewardInput, Score, Verdict
from verifiers.worker_process import WorkerProcess

MEMORY_MIB = 512  # of address space
MAX_BATCH = 32  # items sent to a worker at once
MAX_BATCH_CHARACTERS = 1_000_000  # in a batch of more than one item
MAX_DEATHS = 2  # an item whose worker died this many times is CRASHED
MAX_FAILED_STARTS = 3  # in a row; then the workers cannot start at all, whatever the item

Item = tuple[str, ...]  # the arguments of a task


class VerifierPool:
    """A pool of grading workers; a context manager. Thread-safe: calls run one after the other.

    Workers start when there is something to grade, and import the algebra libraries when an item needs them. With
    `preload` all workers start immediately and with the libraries loaded, and so does the replacement of a killed one:
    with two workers, one is ready while the other is replaced.
    """

    def __init__(
        self, workers: int = 1, seconds: float = 2.0, memory_mib: int = MEMORY_MIB, *, preload: bool = False
    ) -> None:
        for name, value, least in (("workers", workers, 1), ("seconds", seconds, 0.1), ("memory_mib", memory_mib, 256)):
            if value < least:
                raise ValueError(f"{name} is {value}; it must be at least {least}")
        self.counts: Counter[Verdict] = Counter()  # of all scores so far
        self.restarts = 0  # workers that were killed or died
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
        questions: Sequence[Question] | None = None,
        tokens: Sequence[int] | None = None,
        max_tokens: int = 0,
    ) -> list[Score]:
        """Score each (response, problem), in order. `tokens` is the length of each response, for rewards that use it.

        `policy` names the form that an answer must have to count (verifiers.extract.EXTRACTORS). `questions`: what the
        questions say about the answers, by default as read from the problems. ValueError for an unknown policy, and for
        a problem whose rule is unknown.
        """
        if policy not in EXTRACTORS:
            raise ValueError(f"unknown extraction policy {policy!r}; known are {', '.join(EXTRACTORS)}")
        facts = [question_of(problem) for _, problem in items] if questions is None else questions
        jobs = [
            (response, problem.answer, check_rule(problem.verifier), policy, encode(question))
            for (response, problem), question in zip(items, facts, strict=True)
        ]
        results = self._run("score", jobs)
        scores = [
            add_reward(RewardInput(response, problem, _score(result), size, max_tokens), weights)
            for (response, problem), result, size in zip(items, results, tokens or [0] * len(items), strict=True)
        ]
        self.counts.update(score.verdict for score in scores)
        return scores

    def judge(
        self, pairs: Sequence[tuple[str, str]], rule: str = "maths", *, questions: Sequence[Question] | None = None
    ) -> list[Judgement]:
        """Judge each (prediction, gold), in order, by what its question says about the answer where one is given."""
        texts = map(encode, questions or [Question()] * len(pairs))
        jobs = [(*pair, check_rule(rule), text) for pair, text in zip(pairs, texts, strict=True)]
        return list(map(_judgement, self._run("judge", jobs)))

    def judge_by_peer(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """math-verify's own judgement on each (prediction, gold), in order: verifiers.peer."""
        return list(map(_judgement, self._run("peer", list(pairs))))

    def explain(self, pairs: Sequence[tuple[str, str]]) -> list[Explanation]:
        """What the grammar reads in each (prediction, gold), and how they differ; empty texts where that fails."""
        results = self._run("explain", list(pairs))
        return [Explanation(**result.get("explanation", {"gold": "", "answer": ""})) for result in results]

    def same(self, pairs: Sequence[tuple[str, str]], rule: str = "maths") -> list[bool]:
        """Whether the two predictions of each pair count as one answer in a vote. A pair that times out does not."""
        return [result is True for result in self._run("same", [(*pair, check_rule(rule)) for pair in pairs])]

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
                worker.send_batch(work.task, numbers, [work.jobs[number] for number in numbers])
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
                work.on_timeout(list(worker.pending), self._limits[0])

    def _start(self, place: int) -> WorkerProcess:
        worker = self._workers[place] = WorkerProcess(*self._limits, preload=self._preload)
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

    An item with a text over the size limit is REFUSED here and not sent to a worker.
    """

    def __init__(self, task: str, jobs: Sequence[Item], *, num_workers: int) -> None:
        self.task = task
        self.jobs = jobs
        self.results: list[Any] = [None] * len(jobs)
        self.readings: dict[int, dict[str, Any]] = {}  # what was extracted from unfinished items
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
        """Store the result of an item, with what was extracted from it if its worker stopped after extraction."""
        reading = self.readings.pop(number, None)
        self.results[number] = {**reading, **result} if reading else result
        self.num_open -= 1

    def on_timeout(self, numbers: Sequence[int], seconds: float) -> None:
        """Handle the timeout of a worker with these items pending: the first has TIMED_OUT, the others wait again."""
        for number in numbers[:1]:
            self.finish(number, {"verdict": Verdict.TIMED_OUT, "layer": "clock", "seconds": seconds})
        self.waiting.extendleft(reversed(numbers[1:]))

    def on_worker_death(self, numbers: Sequence[int]) -> None:
        """Handle the death of a worker with these items pending: all wait again; the first is CRASHED at MAX_DEATHS."""
        self._deaths.update(numbers[:1])
        for number in numbers[:1]:
            if self._deaths[number] == MAX_DEATHS:
                self.finish(number, {"verdict": Verdict.CRASHED, "layer": "death", "seconds": 0.0})
                numbers = numbers[1:]
        self.waiting.extendleft(reversed(numbers))


def _judgement(result: dict[str, Any]) -> Judgement:
    forms = result.get("gold_form", ""), result.get("answer_form", "")
    return Judgement(Verdict(result["verdict"]), result["layer"], *forms, result["seconds"])


def _score(result: dict[str, Any]) -> Score:
    """A worker's result as a Score. For a response that could not be judged, only the form may be known."""
    return Score(**{"reward": 0.0, "parts": {}, **result, "verdict": Verdict(result["verdict"])})
