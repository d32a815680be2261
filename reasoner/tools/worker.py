"""The worker process that runs calls of tools: `python -m reasoner.tools.worker NAMES SECONDS MEMORY_MIB JSON|CODE`.

Code of the tool `python` runs in Monty, an interpreter in a process below this one that has no files, no network, none
of this machine's modules, and a fixed clock and random seed: the answer is a function of the call. Functions of the
user's run in this process. A result is {"output": text, "is_error": bool}; the parent keeps the clock.
"""

from __future__ import annotations

import json
import signal
import sys
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from data.environments.worker import MAX_STRETCH, Channel, limit_memory, set_alarm
from reasoner.tools.names import function_tools, split_names

MAX_OUTPUT = 1 << 20  # bytes that a call may print
MAX_CHARACTERS = 20_000  # of an answer, before it is cut to tokens
SANDBOX_MIB = 64
TIME, MEMORY = "TimeoutError: the call took too long", "MemoryError: the call used too much memory"
ENDED = "RuntimeError: the tool ended"

Result = Mapping[str, object]


class Sandbox:
    """Monty, with a new process for each call."""

    def __init__(self, seconds: float) -> None:
        import pydantic_monty

        self._monty, self._seconds = pydantic_monty, seconds
        self._pool = pydantic_monty.Monty(
            min_processes=1, max_processes=1, max_checkouts_per_worker=1, request_timeout=2 * seconds
        ).__enter__()

    def run(self, code: str) -> Result:
        """What the code prints, and the value of its last line."""
        monty, printed, message, value = self._monty, self._monty.CollectString(MAX_OUTPUT), "", None
        session = self._pool.checkout(
            script_name="call.py",
            limits={
                "max_feed_duration_secs": self._seconds,
                "max_memory": SANDBOX_MIB << 20,
                "max_recursion_depth": 200,
                "max_suspensions": 100,
            },
            os_policy={"random_start": {"seed": 0}, "datetime": datetime(2000, 1, 1, tzinfo=UTC), "sleep": "zero"},
        )
        try:
            with session as running:
                value = running.feed_run(code, print_callback=printed)
        except monty.MontyCrashedError as error:
            message = TIME if error.timed_out else ENDED
        except monty.MontyError as error:
            message = error_message(error.exception())
        is_cut = message in (TIME, ENDED)  # at a moment that is another one in another run
        return answer("" if is_cut else printed.output + ("" if value is None else str(value)), message)


def error_message(error: BaseException) -> str:
    """The last line of a traceback; without the figures of a limit, which differ from machine to machine."""
    if isinstance(error, TimeoutError | MemoryError):
        return TIME if isinstance(error, TimeoutError) else MEMORY
    return f"{type(error).__name__}: {error}"


def answer(text: str, message: str = "") -> Result:
    """The result of a call that printed the text, and failed with the message if there is one."""
    lines = [part[:MAX_CHARACTERS] for part in (text.strip("\n"), message) if part]
    return {"output": "\n".join(lines), "is_error": bool(message)}


def run_call(call: str, tools: Mapping[str, Callable[..., Any]], *, is_json: bool) -> Result:
    """Run a call: the code of the tool python, or {"name": ..., "arguments": {...}} of any tool."""
    if not call.strip():
        return answer("", "SyntaxError: the call is empty")
    try:
        name, arguments = "python", {"code": call}
        if is_json:
            parsed = json.loads(call)
            name, arguments = parsed["name"], parsed["arguments"]
        tool = tools[name]
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        return answer(
            "", f'{type(error).__name__}: a call is {{"name": NAME, "arguments": {{...}}}} ({", ".join(tools)})'
        )
    try:
        result = tool(**arguments)
    except (Exception, SystemExit) as error:
        return answer("", error_message(error))
    return result if name == "python" else answer(str(result))


def serve(names: str, seconds: float, memory_mib: int, *, is_json: bool) -> None:
    """Run calls until the parent closes standard input or ends."""
    channel = Channel()
    tools: dict[str, Callable[..., Any]] = function_tools(names)
    limit_memory(memory_mib)
    if "python" in split_names(names):
        sandbox = Sandbox(seconds)
        tools["python"] = lambda code: sandbox.run(str(code))
    channel.ready()
    for _, (call, *_) in channel.items():
        set_alarm(MAX_STRETCH * seconds)
        channel.send(result=run_call(call, tools, is_json=is_json))
        signal.alarm(0)


if __name__ == "__main__":
    serve(sys.argv[1], float(sys.argv[2]), int(sys.argv[3]), is_json=sys.argv[4] == "JSON")
