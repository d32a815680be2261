"""The worker process of the pool: `python -m verifiers.worker SECONDS MEMORY_MIB [preload]` grades batches of items.

Its messages: {"loading": seconds or 0} around the import of the algebra libraries, {"reading": ...} with what was
extracted from a response before it is judged, and {"result": ...}. The parent enforces the time limits; the limits set
here (memory, and an alarm that kills the process) hold if the parent cannot.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

from data.environments.worker import LOADING_SECONDS, MAX_STRETCH, Channel, limit_memory, set_alarm
from verifiers import peer, symbolic
from verifiers.equivalence import judge, same_answer
from verifiers.questions import decode
from verifiers.rewards import Reading, judge_response
from verifiers.score import Verdict


class KnownTimeoutError(Exception):
    """The answer of a response is known to time out."""


def _score(
    send: Callable[..., None],
    response: str,
    gold: str,
    verifier: str,
    extract: str,
    facts: str = "",
    late: Sequence[str] = (),
) -> dict[str, Any]:
    """Judge a response; `late` are answers that are known to time out."""

    def on_read(reading: Reading) -> None:
        send(reading={"extracted": reading.extraction.answer, "well_formed": reading.well_formed})
        if reading.extraction.answer in late:
            raise KnownTimeoutError

    return asdict(judge_response(response, gold, verifier, extract, question=decode(facts), on_read=on_read))


def _judge(_send: Callable[..., None], prediction: str, gold: str, verifier: str, facts: str = "") -> dict[str, Any]:
    return asdict(judge(prediction, gold, verifier, decode(facts)))


def _same(_send: Callable[..., None], left: str, right: str, verifier: str) -> bool:
    return same_answer(left, right, verifier)


def _peer(_send: Callable[..., None], prediction: str, gold: str) -> dict[str, Any]:
    return asdict(peer.judge(prediction, gold))


TASKS: dict[str, Callable[..., Any]] = {"score": _score, "judge": _judge, "same": _same, "peer": _peer}


def serve(seconds: float, memory_mib: int, *, preload: bool) -> None:
    """Grade batches until the parent closes standard input or ends."""
    channel = Channel()
    limit_memory(memory_mib)
    if preload:
        symbolic.warm_up()

    def on_loading(begins: bool) -> None:
        channel.send(loading=LOADING_SECONDS if begins else 0)
        set_alarm(LOADING_SECONDS if begins else MAX_STRETCH * seconds)

    symbolic.watch_loading(on_loading)
    channel.ready()
    for task, item in channel.items():
        set_alarm(MAX_STRETCH * seconds)
        channel.send(result=_run_task(partial(TASKS[task], channel.send), item))
        signal.alarm(0)


def _run_task(task: Callable[..., Any], item: list[str]) -> Any:
    """The task's result; CRASHED with the name of the exception if foreign code raises, MemoryError included."""
    try:
        return task(*item)
    except KnownTimeoutError:
        return {"verdict": Verdict.TIMED_OUT, "layer": "clock", "seconds": 0.0}
    except Exception as error:
        return {"verdict": Verdict.CRASHED, "layer": type(error).__name__, "seconds": 0.0}


if __name__ == "__main__":
    serve(float(sys.argv[1]), int(sys.argv[2]), preload=sys.argv[3:] == ["preload"])
