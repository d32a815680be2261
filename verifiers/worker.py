"""The worker process of the pool: `python -m verifiers.worker SECONDS MEMORY_MIB [preload]` grades batches of items.

Input: one JSON line per batch, {"task": name, "items": [[argument, ...], ...]}. Output: one JSON line per event,
{"ready": true} once, {"loading": true or false} around the import of the algebra libraries, {"reading": ...} with what
was extracted from a response before it is judged, {"result": ...} for each item in order; all with "cpu", the seconds
of processor time this process has used. The parent enforces the time limits; the limits set here (memory, and an alarm
that kills the process) hold if the parent cannot.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from math import ceil
from time import process_time
from typing import Any

from verifiers import peer, symbolic
from verifiers.answers.explanation import explain
from verifiers.equivalence import judge, same_answer
from verifiers.maths import answer_part
from verifiers.questions import decode
from verifiers.rewards import Reading, judge_response
from verifiers.score import Verdict

LOADING_SECONDS = 120.0  # for the import of the algebra libraries on a busy machine
MAX_STRETCH = 5  # wall time limit of an item, as a multiple of its processor seconds
ALARM_DELAY = 5  # seconds after the time at which the parent should have killed this process
RECURSION_LIMIT = 3_000


def _score(
    send: Callable[..., None], response: str, gold: str, rule: str, policy: str, facts: str = ""
) -> dict[str, Any]:
    def on_read(reading: Reading) -> None:
        send(reading={"extracted": reading.extraction.answer, "well_formed": reading.well_formed})

    return asdict(judge_response(response, gold, rule, policy, question=decode(facts), on_read=on_read))


def _judge(_send: Callable[..., None], prediction: str, gold: str, rule: str, facts: str = "") -> dict[str, Any]:
    return asdict(judge(prediction, gold, rule, decode(facts)))


def _same(_send: Callable[..., None], left: str, right: str, rule: str) -> bool:
    return same_answer(left, right, rule)


def _peer(_send: Callable[..., None], prediction: str, gold: str) -> dict[str, Any]:
    return asdict(peer.judge(prediction, gold))


def _explain(_send: Callable[..., None], prediction: str, gold: str) -> dict[str, Any]:
    return {"explanation": asdict(explain(answer_part(gold), answer_part(prediction)))}


TASKS: dict[str, Callable[..., Any]] = {
    "score": _score,
    "judge": _judge,
    "same": _same,
    "peer": _peer,
    "explain": _explain,
}


def serve(seconds: float, memory_mib: int, *, preload: bool) -> None:
    """Grade batches until the parent closes standard input or ends."""
    send = _private_channel()
    _limit(memory_mib)
    if preload:
        symbolic.warm_up()

    def on_loading(begins: bool) -> None:
        send(loading=begins)
        _alarm(LOADING_SECONDS if begins else MAX_STRETCH * seconds)

    symbolic.watch_loading(on_loading)
    send(ready=True)
    for line in sys.stdin:
        batch = json.loads(line)
        for item in batch["items"]:
            _alarm(MAX_STRETCH * seconds)
            send(result=_run_task(partial(TASKS[batch["task"]], send), item))
        signal.alarm(0)


def _run_task(task: Callable[..., Any], item: list[str]) -> Any:
    """The task's result; CRASHED with the name of the exception if foreign code raises, MemoryError included."""
    try:
        return task(*item)
    except Exception as error:
        return {"verdict": Verdict.CRASHED, "layer": type(error).__name__, "seconds": 0.0}


def _private_channel() -> Callable[..., None]:
    """A function that sends events to the parent. Standard output and error are redirected to nowhere."""
    channel = os.fdopen(os.dup(1), "w", encoding="ascii")
    devnull = os.open(os.devnull, os.O_WRONLY)
    os.dup2(devnull, 1)
    os.dup2(devnull, 2)

    def send(**event: Any) -> None:
        channel.write(json.dumps({**event, "cpu": process_time()}) + "\n")
        channel.flush()

    return send


def _limit(memory_mib: int) -> None:
    sys.setrecursionlimit(RECURSION_LIMIT)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere the kernel refuses or ignores a limit of the address space
        resource.setrlimit(resource.RLIMIT_AS, (memory_mib * 2**20, memory_mib * 2**20))


def _alarm(seconds: float) -> None:
    """Have the kernel end this process after so many seconds and ALARM_DELAY, even inside a long call into C."""
    signal.alarm(ceil(seconds) + ALARM_DELAY)


if __name__ == "__main__":
    serve(float(sys.argv[1]), int(sys.argv[2]), preload=sys.argv[3:] == ["preload"])
