"""Grading in worker processes with limits of time and memory, because model output is hostile input.

What happens to an item whose worker is late or dies is told in worker_pool.py. The parent extracts nothing itself: a
worker reports what it extracted before it judges. Responses to problems of an environment (docs/DATA.md) then
go to a second pool, whose workers run the environment's own scorer.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from data.child_process import CHECKOUT
from data.environments.spec import VERIFIER, EnvironmentRow, worker_command
from data.problem import Problem
from verifiers.equivalence import check_verifier
from verifiers.extract import check_extraction
from verifiers.questions import Question, encode, question_of
from verifiers.rewards import DEFAULT_WEIGHTS, RewardWeights, add_reward
from verifiers.score import UNJUDGED, Judgement, RewardInput, Score, Verdict
from verifiers.worker_pool import Item, OnResult, WorkerPool
from verifiers.worker_process import WorkerProcess, grader_command

MEMORY_MIB = 512  # of address space
FAILED = "failed: "  # begins the state of a rollout whose environment did


class VerifierPool(WorkerPool):
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
        self._limits = (seconds, memory_mib)
        self._environments: dict[str, WorkerPool] = {}  # by interpreter or folder
        start = partial(WorkerProcess, grader_command(seconds, memory_mib, preload=preload), seconds, CHECKOUT)
        super().__init__(start, workers, seconds, preload=preload)

    def score(
        self,
        items: Sequence[tuple[str, Problem]],
        weights: RewardWeights = DEFAULT_WEIGHTS,
        *,
        extract: str = "strict",
        questions: Sequence[Question] | None = None,
        tokens: Sequence[int] | None = None,
        max_tokens: int = 0,
        tool_calls: Sequence[int] | None = None,
        states: Sequence[str] | None = None,
    ) -> list[Score]:
        """Score each (response, problem), in order. `tokens` is the length of each response, and `tool_calls` the
        number of its calls that did not fail, for rewards that use them.

        `extract` names the form that an answer must have to count (verifiers.extract.EXTRACTORS). `questions`: what the
        questions say about the answers, by default as read from the problems. `states`: of the environments at the end
        (`reply`), by which rollouts of several turns are scored. ValueError for an unknown extraction, for a problem
        whose verifier is unknown, and for one of several turns without a state.
        """
        check_extraction(extract)
        facts = [question_of(problem) for _, problem in items] if questions is None else questions
        jobs = [
            (response, problem.answer, check_verifier(problem.verifier), extract, encode(question))
            for (response, problem), question in zip(items, facts, strict=True)
        ]
        none = [0] * len(items)
        scored = [_score(result) for result in self.run("score", jobs)]
        judged = self._environment_scores(items, scored, states or [""] * len(items))
        scores = [
            add_reward(RewardInput(response, problem, score, size, max_tokens, calls), weights)
            for (response, problem), score, size, calls in zip(
                items, judged, tokens or none, tool_calls or none, strict=True
            )
        ]
        self.counts.update(score.verdict for score in scores)
        return scores

    def judge(
        self, pairs: Sequence[tuple[str, str]], verifier: str = "maths", *, questions: Sequence[Question] | None = None
    ) -> list[Judgement]:
        """Judge each (prediction, gold), in order, by what its question says about the answer where one is given."""
        texts = map(encode, questions or [Question()] * len(pairs))
        jobs = [(*pair, check_verifier(verifier), text) for pair, text in zip(pairs, texts, strict=True)]
        return list(map(_judgement, self.run("judge", jobs)))

    def judge_by_peer(self, pairs: Sequence[tuple[str, str]]) -> list[Judgement]:
        """math-verify's own judgement on each (prediction, gold), in order: verifiers.peer."""
        return list(map(_judgement, self.run("peer", list(pairs))))

    def same(self, pairs: Sequence[tuple[str, str]], verifier: str = "maths") -> list[bool]:
        """Whether the two predictions of each pair count as one answer in a vote. A pair that times out does not."""
        return [result is True for result in self.run("same", [(*pair, check_verifier(verifier)) for pair in pairs])]

    @property
    def environment_pids(self) -> list[int]:
        """Process ids of the running workers of environments."""
        return [pid for pool in self._environments.values() for pid in pool.pids]

    def close(self) -> None:
        """Stop all workers. The pool cannot be used afterwards."""
        super().close()
        for pool in self._environments.values():
            pool.close()

    def reply(self, turns: Sequence[tuple[Problem, Item]], on_reply: Callable[[int, str | None, str], object]) -> None:
        """Have environments reply to turns: to a problem's (state of the rollout, "" at first; seed; the model's text;
        "length" where it was cut off). `on_reply` gets the place of a turn, the reply, None where the rollout has ended
        or failed, and the state, as soon as they are there.
        """

        def on_result(place: int, result: Any) -> None:
            failure = "" if "state" in result else f"{FAILED}{result['verdict']}, {result['layer']}"
            on_reply(place, result.get("reply"), failure or result["state"])

        self._run_in_environments("turn", dict(enumerate(turns)), on_result)

    def _run_in_environments(self, task: str, jobs: Mapping[int, tuple[Problem, Item]], on_result: OnResult) -> None:
        """Run a task of the workers of environments for each (problem, further arguments)."""
        by_python: dict[str, list[int]] = {}
        for number, (problem, _) in jobs.items():
            by_python.setdefault(_environment_of(problem).env_python, []).append(number)
        for python, numbers in by_python.items():
            items = []
            for problem, arguments in map(jobs.__getitem__, numbers):
                place = _environment_of(problem)
                items.append((place.name, str(place.row), *arguments))

            def on_item(place: int, result: Any, numbers: Sequence[int] = numbers) -> None:
                on_result(numbers[place], result)

            self._environment_pool(python).run(task, items, on_item)

    def _environment_scores(
        self, items: Sequence[tuple[str, Problem]], scores: list[Score], states: Sequence[str]
    ) -> list[Score]:
        """Replace the verdicts on responses to problems of an environment by those of its own scorer.

        reasoning-gym scores the extracted answer, so a response without one keeps its verdict; a rubric scores the
        whole response, whatever its form, or the state of a rollout of several turns.
        """
        jobs: dict[int, tuple[Problem, Item]] = {}
        for number, ((response, problem), score, state) in enumerate(zip(items, scores, states, strict=True)):
            if problem.verifier != VERIFIER or score.verdict in UNJUDGED:
                continue
            place = _environment_of(problem)
            if place.has_turns and not state:
                raise ValueError(f"problem {problem.id!r} has several turns: only what was sampled with them is scored")
            if state.startswith(FAILED):
                scores[number] = replace(score, verdict=Verdict.CRASHED, layer=state)
            elif score.extracted is not None or json.loads(place.name)["kind"] == "env":
                jobs[number] = (problem, (state or response, json.dumps(score.extracted)))

        def on_score(number: int, result: Any) -> None:
            own = replace(scores[number], **{**result, "verdict": Verdict(result["verdict"])})
            scores[number] = replace(own, lenient=own.lenient or own.correct)

        self._run_in_environments("score", jobs, on_score)
        return scores

    def _environment_pool(self, python: str) -> WorkerPool:
        with self._lock:
            if python not in self._environments:
                start = partial(WorkerProcess, worker_command(python, *self._limits), self._limits[0])
                self._environments[python] = WorkerPool(start, len(self._workers), self._limits[0], preload=False)
            return self._environments[python]


def _environment_of(problem: Problem) -> EnvironmentRow:
    """Which row of which environment a problem is. ValueError for a problem that was not loaded from one."""
    place = problem.columns.get("environment")
    if not isinstance(place, EnvironmentRow):
        raise ValueError(f"problem {problem.id!r} has the verifier {VERIFIER!r}, but was not loaded from gym: or env:")
    return place


def _judgement(result: dict[str, Any]) -> Judgement:
    forms = result.get("gold_form", ""), result.get("answer_form", "")
    return Judgement(Verdict(result["verdict"]), result["layer"], *forms, result["seconds"])


def _score(result: dict[str, Any]) -> Score:
    """A worker's result as a Score. For a response that could not be judged, only the form may be known."""
    return Score(**{"reward": 0.0, "parts": {}, **result, "verdict": Verdict(result["verdict"])})
