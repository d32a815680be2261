"""The process that runs an environment of another library: reasoning-gym, or Prime Intellect's `verifiers`.

    python worker.py SECONDS MEMORY_MIB [FOLDER]

It is started by its path and imports nothing of this project by name, because our package `verifiers` has the name of
theirs: our checkout is taken from the module path, and FOLDER (of `pip install --target`) comes first on it. The hash
seed is 0, since some generators iterate over sets. The interpreter may be another one, of Python 3.10 or later.

Its tasks are "load", "tasks", "turn" and "score". Its messages are those of verifiers/worker.py: {"loading": seconds or
0} around the start of an environment, and {"result": ...}. The parent enforces the time limits; the limits set here
hold if it cannot.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
from collections.abc import Callable, Iterator
from importlib.util import module_from_spec, spec_from_file_location
from math import ceil, isfinite
from pathlib import Path
from time import perf_counter
from typing import Any

FOLDER = Path(__file__).resolve().parent
ROOT = FOLDER.parents[1]
LOADING_SECONDS = 120.0  # for the start of a process and its imports on a busy machine
ENVIRONMENT_SECONDS = 900.0  # for the start of an environment in a process that scores
MAX_STRETCH = 5  # wall time limit of an item, as a multiple of its processor seconds
ALARM_DELAY = 5  # seconds after the time at which the parent should have killed this process
RECURSION_LIMIT = 3_000
KINDS = {"gym": ("gym.py", "Gym"), "env": ("rubric.py", "RubricEnvironment")}  # file beside this one, and class

Send = Callable[..., None]

_environments: dict[str, Any] = {}  # those that this process has started, by their JSON text


class Channel:
    """This process's side of the lines of JSON of data/child_process.py.

    Its pipes have no other place in this process: standard input, output and, from `ready` on, error lead nowhere.
    """

    def __init__(self) -> None:
        self._input, self._output = os.fdopen(os.dup(0), encoding="ascii"), os.fdopen(os.dup(1), "w", encoding="ascii")
        self._nowhere = os.open(os.devnull, os.O_RDWR)
        self._of_item: dict[str, Any] = {}  # what makes a message one of the item in progress
        os.dup2(self._nowhere, 0)
        os.dup2(2, 1)  # what is printed before `ready` tells why a start fails

    def ready(self) -> None:
        """Tell the parent that the start is over."""
        os.dup2(self._nowhere, 1)
        os.dup2(self._nowhere, 2)
        self._write({"ready": True})

    def items(self) -> Iterator[tuple[str, list[Any]]]:
        """(task, item) of each item, until the parent closes its side or ends. Each needs one `send` of a result."""
        for line in self._input:
            request = json.loads(line)
            for number, item in zip(request["numbers"], request["items"], strict=True):
                self._of_item = {"token": request["token"], "number": number}
                yield request["task"], item

    def send(self, **message: Any) -> None:
        """Send a message about the item in progress."""
        self._write({**message, **self._of_item})

    def _write(self, message: dict[str, Any]) -> None:
        self._output.write(json.dumps(message) + "\n")
        self._output.flush()


def limit_memory(memory_mib: int) -> None:
    """Limit address space and recursion of this process, and write no core files."""
    sys.setrecursionlimit(RECURSION_LIMIT)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if sys.platform == "linux":  # elsewhere the kernel refuses or ignores a limit of the address space
        resource.setrlimit(resource.RLIMIT_AS, (memory_mib * 2**20, memory_mib * 2**20))


def set_alarm(seconds: float) -> None:
    """Have the kernel end this process after so many seconds and ALARM_DELAY, even inside a long call into C."""
    signal.alarm(ceil(seconds) + ALARM_DELAY)


def main(seconds: float, memory_mib: int, folder: str = "") -> None:
    """Answer batches until the parent closes standard input or ends."""
    _set_module_path(folder)
    channel = Channel()
    limit_memory(memory_mib)
    channel.ready()
    for task, item in channel.items():
        set_alarm(MAX_STRETCH * seconds)
        channel.send(result=_result(task, channel.send, seconds, item))
        signal.alarm(0)


def _set_module_path(folder: str) -> None:
    """Take this project from the module path; put `folder` first and the working folder last."""
    own = {FOLDER, ROOT} if (ROOT / "pyproject.toml").is_file() else {FOLDER}  # installed, ROOT holds all packages
    sys.path[:] = [entry for entry in sys.path if Path(entry or ".").resolve() not in own]
    if Path.cwd() not in own:
        sys.path.append(str(Path.cwd()))
    if folder:
        sys.path.insert(0, folder)


def _result(task: str, send: Send, seconds: float, item: list[str]) -> dict[str, Any]:
    """The result of an item. Of one that fails {"error": ...}, of a response or a turn a verdict and the reason."""
    start = perf_counter()
    try:
        return TASKS[task](send, seconds, *item)
    except (Exception, SystemExit) as error:
        if task in ("score", "turn"):
            reason = f"{type(error).__name__}: {error}"[:200]
            return {"verdict": "crashed", "layer": reason, "seconds": perf_counter() - start}
        memory = "the environment ran out of memory; verify.memory_mib limits its address space from 4 GiB on"
        return {"error": memory if isinstance(error, MemoryError) else str(error) or type(error).__name__}


def _load(send: Send, seconds: float, name: str, limit: str) -> dict[str, Any]:
    """The first `limit` rows (JSON, null for all) of an environment."""
    environment = _environment(send, seconds, name, start_seconds=seconds)
    set_alarm(seconds)
    return {"rows": environment.rows(json.loads(limit))}


def _tasks(_send: Send, _seconds: float, kind: str) -> dict[str, Any]:
    """The names that a library registers, with a description each."""
    return {"rows": _module(kind).tasks()}


def _score(send: Send, seconds: float, name: str, number: str, response: str, answer: str) -> dict[str, Any]:
    """Score a response to row `number`, whose answer is a JSON text or null: some fields of verifiers.score.Score."""
    environment = _environment(send, seconds, name)
    start = perf_counter()
    result = environment.score(int(number), response, json.loads(answer))
    if not isfinite(result["environment_score"]):
        raise ValueError(f"a score of {result['environment_score']}")
    verdict = "correct" if result["environment_score"] >= 1 else "wrong"
    return {"verdict": verdict, "layer": "environment", "seconds": perf_counter() - start, **result}


def _turn(
    send: Send, seconds: float, name: str, number: str, stored: str, seed: str, text: str, end: str
) -> dict[str, Any]:
    """Add a turn to a rollout of row `number`, which `end` "length" has cut off: {"reply": ..., "state": ...}."""
    environment = _environment(send, seconds, name)
    result: dict[str, Any] = environment.turn(int(number), stored, seed, text, is_truncated=end == "length")
    return result


TASKS: dict[str, Callable[..., dict[str, Any]]] = {"load": _load, "tasks": _tasks, "turn": _turn, "score": _score}


def _environment(send: Send, seconds: float, name: str, *, start_seconds: float = ENVIRONMENT_SECONDS) -> Any:
    """The environment of a JSON text (kind, name, split, parameters), started at its first use."""
    if name not in _environments:
        send(loading=start_seconds)
        set_alarm(start_seconds)
        spec = json.loads(name)
        start = getattr(_module(spec["kind"]), KINDS[spec["kind"]][1])
        _environments[name] = start(spec["name"], spec["split"], spec["parameters"])
        send(loading=0)
        set_alarm(MAX_STRETCH * seconds)
    return _environments[name]


def _module(kind: str) -> Any:
    """The module of a kind, from the file beside this one: it is on no module path here."""
    name = f"environment_{kind}"
    if name not in sys.modules:
        spec = spec_from_file_location(name, FOLDER / KINDS[kind][0])
        assert spec is not None and spec.loader is not None
        sys.modules[name] = module_from_spec(spec)
        spec.loader.exec_module(sys.modules[name])
    return sys.modules[name]


if __name__ == "__main__":
    main(float(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
