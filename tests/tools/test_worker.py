"""The pool of workers that run calls: what a call returns, and what it cannot do."""

import os
import signal
from functools import partial
from pathlib import Path
from threading import Thread
from time import monotonic, sleep

import pytest

from reasoner.config.schema import ToolsConfig
from reasoner.tools.pool import ToolPool
from reasoner.tools.worker import MAX_CHARACTERS
from tests.tools.hostile import PROGRAMS, SECRET

pytest.importorskip("pydantic_monty")


@pytest.fixture(scope="module")
def pool():
    with ToolPool(ToolsConfig(names="python", seconds=0.5), is_json=False) as running:
        yield running


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("print(12 * 34)", "408"),
        ("12 * 34", "408"),
        ("x = 3\nprint(x)\nx + 1", "3\n4"),
        ("import math\nprint(math.comb(10, 3))", "120"),
        ("import random, time\nprint(random.random(), time.time())", "0.8444218515250481 946684800.0"),
        ("x = 1", ""),
        ("print(1)\n1 / 0", "1\nZeroDivisionError: division by zero"),
        ("print(y)", "NameError: name 'y' is not defined"),
        ("while True: pass", "TimeoutError: the call took too long"),
        ("print(1)\nwhile True: pass", "TimeoutError: the call took too long"),  # what it printed depends on the clock
        ("x = 'a' * 10**10", "MemoryError: the call used too much memory"),
        ("", "SyntaxError: the call is empty"),
    ],
)
def test_answer_is_what_the_code_prints_and_its_last_value_or_the_last_line_of_its_traceback(pool, code, text):
    (answer,) = pool.answers([code])
    assert (answer.text, answer.is_error) == (text, "Error: " in text)


def test_calls_share_nothing(pool):
    calls = ["x = 1\nprint(x)", "print(x)", "import random\nrandom.seed(9)", "import random\nrandom.random()"]
    answers = pool.answers(calls)
    assert [one.is_error for one in answers] == [False, True, False, False]
    assert answers[3].text == "0.8444218515250481"


@pytest.fixture
def traps(tmp_path, monkeypatch):
    """A working folder with a secret, which is in the environment as well."""
    (tmp_path / "secret.txt").write_text(SECRET)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("TOOL_TEST_SECRET", SECRET)
    return tmp_path


def test_hostile_programs_read_nothing_write_nothing_and_end(traps):
    programs = [program for own in PROGRAMS.values() for program in own]
    assert len(programs) > 240
    began = monotonic()
    with ToolPool(ToolsConfig(names="python", seconds=0.1), is_json=False) as pool:
        answers = pool.answers(programs)
        assert pool.answers(["print(6 * 7)"])[0].text == "42"  # the pool lives on
    seconds = monotonic() - began
    assert seconds < len(programs) * 0.5  # most end at once, a loop at its limit
    for program, answer in zip(programs, answers, strict=True):
        assert SECRET not in answer.text and "root:" not in answer.text, program
        assert len(answer.text) <= 2 * MAX_CHARACTERS + 100, program
    assert [path.name for path in traps.iterdir()] == ["secret.txt"]
    assert not Path("/tmp/written.txt").exists()
    refused = [p for kind in ("reads", "other reads", "writes", "memory") for p in PROGRAMS[kind]]
    by_program = dict(zip(programs, answers, strict=True))
    assert [p for p in refused if not by_program[p].is_error] == []


def children(pid):
    """The processes that a worker has started: its interpreters."""
    path = Path(f"/proc/{pid}/task/{pid}/children")
    return [int(child) for child in path.read_text().split()] if path.exists() else []


def wait_until(is_true):
    end = monotonic() + 30
    while not is_true():
        assert monotonic() < end
        sleep(0.02)


def starts_its_interpreter(pool, known):
    return pool.pids and pool.pids[0] not in known and children(pool.pids[0])


def test_a_killed_worker_takes_its_interpreter_with_it_and_the_call_is_tried_once_more():
    answers, killed, below = [], [], []
    with ToolPool(ToolsConfig(names="python", seconds=30.0), is_json=False) as pool:
        thread = Thread(target=lambda: answers.extend(pool.answers(["while True: pass"])))
        thread.start()
        for _ in range(2):
            wait_until(partial(starts_its_interpreter, pool, killed))
            killed += pool.pids
            below += children(pool.pids[0])
            sleep(0.2)  # the call is running
            os.kill(killed[-1], signal.SIGKILL)
        thread.join(timeout=30)
        assert [(one.text, one.is_error) for one in answers] == [("RuntimeError: the tool ended", True)]
    assert len(below) == 2
    wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in below))
