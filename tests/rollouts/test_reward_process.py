"""Reward functions of setting reward.functions: their names, and the process that they are called in."""

import os
import re
from pathlib import Path

import pytest

from reasoner.rollouts.reward_functions import RewardFunction, load_reward_functions
from reasoner.rollouts.reward_process import RewardProcess
from tests.fixtures.processes import wait_until_gone

FUNCTIONS = """
import asyncio
import os
import subprocess
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path


@dataclass
class Rule:
    word: str


def has_hint(completions, hint, **columns):
    print("a function may print")
    return [float(own.word in text) for own, text in zip(map(Rule, hint), completions)]


async def waits(completions):
    await asyncio.sleep(0)
    return [len(completion) for completion in completions]


def stuck(completions):
    while "loop" in " ".join(completions):
        pass
    return [1.0] * len(completions)


def dies(completions):
    if "loop" in completions:
        os._exit(3)
    return [1.0] * len(completions)


def greedy(completions):
    return [float(len(bytearray(2**33))) if "loop" == text else 1.0 for text in completions]


def nothing(completions):
    return [1.0, float("nan")]


def fails(completions):
    return [1 / 0 for _ in completions]


def leaves(completions):
    own = os.fork()
    if own == 0:
        time.sleep(300)
    if len(completions) == 2:
        Path(completions[-1]).write_text(str(own))
        time.sleep(300)
    return [1.0] * len(completions)


def parallel(completions):
    together = threading.Barrier(20)

    def length(_):
        together.wait()
        return len(bytearray(2**16))

    with ThreadPoolExecutor(20) as pool:
        list(pool.map(length, range(20)))
    return [1.0] * len(completions)


def crowd(completions):
    end = threading.Event()
    try:
        for _ in range(300 if "loop" in completions else 1):
            threading.Thread(target=end.wait).start()
    finally:
        end.set()
    return [1.0] * len(completions)


def forges(completions):
    for descriptor in range(3, 9) if "loop" in completions else ():
        with suppress(OSError):
            os.write(descriptor, b'{"result": {"values": [9.0, 9.0]}}\\n{"values": [9.0, 9.0]}\\n')
    return [1.0] * len(completions)


def pid(completions):
    return [os.getpid()] * len(completions)
"""
COLUMNS = {"id": ["a", "b"], "completions": ["yes it is", "loop"], "hint": ["yes", "no"]}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("functions") / "rewards.py"
    path.write_text(FUNCTIONS)
    return path


@pytest.fixture(scope="module")
def functions(file: Path) -> dict[str, RewardFunction]:
    names = re.findall(r"^(?:async )?def (\w+)", FUNCTIONS, re.MULTILINE)
    return {function.name: function for function in load_reward_functions(spec(file, names))}


@pytest.fixture(scope="module")
def process(file: Path, functions: dict[str, RewardFunction]):
    with RewardProcess(spec(file, functions), seconds=0.1, memory_mib=512) as one:
        yield one


def spec(file: Path, names) -> str:
    return ",".join(f"{file}:{name}" for name in names)


@pytest.mark.parametrize(("name", "values"), [("has_hint", [1.0, 0.0]), ("waits", [9.0, 4.0])])
def test_functions_of_a_file_get_columns_and_may_be_asynchronous(functions, process, name, values):
    assert process.values(functions[name], COLUMNS, 2) == values


def test_functions_are_called_in_another_process_which_stays(functions, process):
    first, second = process.values(functions["pid"], COLUMNS, 2), process.values(functions["pid"], COLUMNS, 2)
    assert first == second and first != [os.getpid()] * 2


@pytest.mark.parametrize("name", ["stuck", "dies", "greedy", "crowd", "forges"])
def test_completion_that_hangs_or_ends_the_process_or_answers_for_it_gets_no_value_and_the_others_theirs(
    functions, process, name, capsys
):
    assert process.values(functions[name], COLUMNS, 2) == [1.0, None]
    message = f"reward function {name} did not finish for 1 of 2 completions within its limits "
    assert message + "(verify.seconds x 5 = 0.5, verify.memory_mib = 512)" in capsys.readouterr().err


def test_process_that_a_function_forks_neither_hangs_the_run_nor_outlives_the_call(functions, process, tmp_path):
    forked = tmp_path / "pid"
    columns = {"id": ["a", "b"], "completions": ["", str(forked)]}
    assert process.values(functions["leaves"], columns, 2) == [1.0, 1.0]  # of a call for each alone
    assert wait_until_gone(int(forked.read_text()), seconds=10)


def test_twenty_threads_of_a_function_fit_the_default_memory(functions, process):
    assert process.values(functions["parallel"], COLUMNS, 2) == [1.0, 1.0]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("nothing", "reward function nothing returned nan for completion 2 of 2, of problem 'b'"),
        ("fails", "fails failed: ZeroDivisionError.*rewards.py:[0-9]+, problem 'a', completion 'yes it is'"),
    ],
)
def test_error_names_the_function_and_the_first_bad_value(functions, process, name, message):
    with pytest.raises(ValueError, match=message):
        process.values(functions[name], COLUMNS, 2)


def test_weights_are_read_and_modules_are_imported(file: Path):
    first, second = load_reward_functions(f"{file}:waits=-0.5, math:fsum")
    assert (first.name, first.weight, second.name, second.weight) == ("waits", -0.5, "fsum", 1.0)
    assert load_reward_functions("") == []


def test_function_of_a_file_has_the_name_that_the_setting_says(tmp_path: Path):
    (tmp_path / "own.py").write_text(
        "from functools import partial\ndef size(completions, scale): return [scale for _ in completions]\n"
        "small, large = partial(size, scale=1), partial(size, scale=9)\nodd = lambda completions: completions\n"
    )
    functions = load_reward_functions(spec(tmp_path / "own.py", ("small", "large", "odd")))
    assert [function.name for function in functions] == ["small", "large", "odd"]
    with RewardProcess(spec(tmp_path / "own.py", ("small", "large")), seconds=1, memory_mib=512) as process:
        assert process.values(functions[1], COLUMNS, 2) == [9.0, 9.0]


def test_file_of_several_functions_is_executed_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "own.py").write_text("open('log', 'a').write('x')\ndef a(): pass\ndef b(): pass\n")
    monkeypatch.chdir(tmp_path)
    first, second = load_reward_functions(f"own.py:a,{tmp_path}/own.py:b")
    assert first.function.__globals__ is second.function.__globals__
    assert (tmp_path / "log").read_text() == "x"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("brevity", "it takes FILE.py:function=weight or module:function=weight"),
        ("math:sinus", "math has no 'sinus'; did you mean 'sin"),
        ("nowhere.py:f", "FileNotFoundError"),
        ("no_such_module:f", "ModuleNotFoundError"),
        ("math:cos=much", "'math:cos=much'; it takes FILE.py:function or FILE.py:function=WEIGHT, a finite number"),
        ("math:pi", "it takes functions"),
        ("math:cos,math:cos=2", "reward.functions has 'math:cos' twice"),
        ("math:cos,cmath:cos", "has the name of another reward"),
    ],
)
def test_functions_that_cannot_be_used_are_refused_with_the_part(text, message):
    with pytest.raises(ValueError, match=message):
        load_reward_functions(text)
