"""A child process that answers by lines of JSON: what it may say, and its clock."""

import sys

import pytest

from data.child_process import ChildProcess

CHILD = """
import json, sys, time
print('{"ready": true}', flush=True)
for line in sys.stdin:
    request = json.loads(line)
    token, items, numbers = request["token"], request["items"], request["numbers"]
    def say(value, number=numbers[0], token=token, **more):
        print(json.dumps({"token": token, "number": number, "result": value, **more}), flush=True)
    exec(request["task"])
"""
DISHONEST = {
    "no token": """print('{"result": 9, "number": 4}', flush=True)""",
    "the token of no request": "say(9, token='0' * 32)",
    "the number of the next item": "say(9, number=numbers[1])",
    "no JSON": "print('9', flush=True)",
    "JSON that is too deep": "print('[' * 100_000, flush=True)",
    "a second start": """print('{"ready": true}', flush=True)""",
}
HONEST = "for number, item in zip(numbers, items): say(item, number)"


@pytest.fixture
def child():
    process = ChildProcess([sys.executable, "-c", CHILD])
    yield process
    process.kill()


def results(child: ChildProcess, task: str, items: list[str]) -> list[object]:
    child.send(task, items, 20.0, range(4, 4 + len(items)))
    return [event and event["result"] for event in (child.next_event() for _ in items)]


def test_items_have_the_results_that_the_child_gives_them(child: ChildProcess) -> None:
    assert results(child, HONEST, ["a", "b"]) == ["a", "b"] and not child.is_busy
    assert results(child, HONEST, ["c" * 200_000]) == ["c" * 200_000]


@pytest.mark.parametrize("message", DISHONEST)
def test_a_child_that_says_what_it_was_not_asked_for_is_dead(child: ChildProcess, message: str) -> None:
    assert results(child, HONEST, ["a"]) == ["a"]
    assert results(child, DISHONEST[message], ["b", "c"])[0] is None


def test_a_message_without_an_end_is_no_longer_read_beyond_a_limit(child: ChildProcess, monkeypatch) -> None:
    monkeypatch.setattr("data.child_process.MOST_BYTES", 2**22)
    assert results(child, "while True: sys.stdout.write('x' * 2**20)", ["a"]) == [None]
    assert child.seconds_left() > 0


def test_a_message_too_many_is_not_the_result_of_the_next_request(child: ChildProcess) -> None:
    assert results(child, "say('a'); say(9); say(9); time.sleep(0.1)", ["a"]) == ["a"]
    assert results(child, HONEST, ["b"]) == [None]


def test_a_late_child_and_one_that_has_ended_have_no_result(child: ChildProcess) -> None:
    child.send("time.sleep(60)", ["a"], 0.1)
    assert child.next_event() is None and child.is_running
    ended = ChildProcess([sys.executable, "-c", "import sys; sys.exit('why')"])
    assert ended.next_event() is None and ended.startup_error() == "why" and ended.stop() == 1
