"""Functions of the user's as tools: how a prompt tells them, how a call reaches them, and that none ends a run."""

import json

import pytest

from reasoner.config.schema import EngineConfig, ToolsConfig
from reasoner.inference.model_spec import engine_identity
from reasoner.rollouts.prompts import TEMPLATES
from reasoner.tools.names import check_tools, with_tools
from reasoner.tools.pool import ToolPool

FILE = '''
import os
import time

NUMBERS = {"one": 1, "two": 2}


def number_of(word: str, times: int = 1) -> int:
    """The number that a word names.

    Args:
        word: A word, such as "one".
        times: A factor.
    """
    return NUMBERS[word] * times


def hang(seconds: float) -> str:
    """Wait."""
    time.sleep(seconds)


def leave():
    """End the process."""
    os._exit(3)


def fill(size: int) -> list[int]:
    """A long list."""
    return [0] * size
'''
NAMES = ("number_of", "hang", "leave", "fill")


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    path = tmp_path_factory.mktemp("functions") / "mine.py"
    path.write_text(FILE)
    return ",".join(f"{path}:{name}" for name in NAMES)


def call(name, **arguments):
    return json.dumps({"name": name, "arguments": arguments})


def test_calls_reach_functions_by_name_and_failures_are_answers(spec):
    cases = {
        call("number_of", word="two", times=3): ("6", False), f"\n{call('number_of', word='one')}\n": ("1", False),
        call("number_of", word="ten"): ("KeyError: 'ten'", True), call("number_of", letters="x"): (None, True),
        call("hang", seconds=100): ("TimeoutError: the call took too long", True),
        call("leave"): ("RuntimeError: the tool ended", True),
        call("fill", size=10**10): ("MemoryError: the call used too much memory", True), call("nothing"): (None, True),
        "{": (None, True), "[]": (None, True), "null": (None, True), '{"name": ["a"], "arguments": {}}': (None, True),
        '{"name": "number_of", "arguments": [1]}': (None, True), '{"name": "number_of"}': (None, True),
        "[" * 100_000: (None, True),
    }  # fmt: skip
    with ToolPool(ToolsConfig(names=spec, seconds=0.5), is_json=True) as pool:
        answers = pool.answers(list(cases))
    for (text, is_error), answer, request in zip(cases.values(), answers, cases, strict=True):
        assert answer.is_error == is_error and answer.text, request[:60]
        assert text in (None, answer.text), request[:60]


def test_python_is_called_beside_functions(spec):
    pytest.importorskip("pydantic_monty")
    calls = [call("python", code="print(6 * 7)"), call("number_of", word="two"), call("python", code=["x"])]
    with ToolPool(ToolsConfig(names=f"python,{spec}", seconds=1.0), is_json=True) as pool:
        one, two, three = pool.answers(calls)
    assert (one.text, two.text, three.text) == ("42", "2", "['x']")


def test_prompt_of_a_chat_has_the_schemas_and_no_other_prompt_changes(spec):
    cfg = ToolsConfig(names=f"python,{spec}")
    system = with_tools(TEMPLATES["chat"], cfg, "chat").system
    lines = system.partition("<tools>\n")[2].partition("\n</tools>")[0].split("\n")
    functions = [json.loads(line)["function"] for line in lines]
    assert [one["name"] for one in functions] == ["python", *NAMES]
    assert functions[1]["parameters"] == {
        "type": "object",
        "properties": {"word": {"type": "string"}, "times": {"type": "integer"}},
        "required": ["word"],
    }
    assert functions[1]["description"].startswith("The number that a word names. Args: word:")
    assert functions[2]["parameters"]["properties"] == {"seconds": {"type": "number"}}
    assert with_tools(TEMPLATES["r1-zero"], ToolsConfig(names="python"), "r1-zero") is TEMPLATES["r1-zero"]
    assert with_tools(TEMPLATES["chat"], ToolsConfig(), "chat") is TEMPLATES["chat"]


def test_tools_that_cannot_be_run_are_refused(spec, tmp_path):
    for names, style, message in (
        (spec, "r1-zero", "qwen3"),
        (f"{tmp_path}/none.py:f", "chat", "none.py"),
        ("os:no_such_name", "chat", "no_such_name"),
        ("pyton", "chat", "pyton"),
    ):
        with pytest.raises(ValueError, match=message):
            check_tools(ToolsConfig(names=names), style)
    check_tools(ToolsConfig(names=spec), "chat")


def test_responses_of_another_version_of_a_tool_are_others(tmp_path):
    file = tmp_path / "mine.py"
    tools = ToolsConfig(names=f"{file}:number_of", form="qwen3")

    def identity(text):
        file.write_text(text)
        return engine_identity(EngineConfig(), tools)

    first = identity(FILE)
    assert identity(FILE) == first != identity(FILE.replace("* times", "+ times"))
