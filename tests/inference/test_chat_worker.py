"""The Play page's worker process: a bad request does not prevent the next answer."""

import json
from pathlib import Path

import pytest

from tests.fixtures.forkserver import TRAINING, forkserver
from tests.fixtures.tiny import tiny_model, tiny_tokenizer

REQUEST = {"step": "", "prompt": "none", "begin": "", "gold": "", "temperature": 1.0, "samples": 1, "max_tokens": 2}
BAD = {
    "a question with half of a surrogate pair": ({"question": "1 + \ud83d?"}, "half of a surrogate pair ('\\ud83d')"),
    "a beginning with half of one": ({"begin": "\udc00 Wait,"}, "the beginning of the response holds half"),
    "an unknown prompt style": ({"prompt": "unheard-of"}, "unknown prompt style 'unheard-of'"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("model")
    tiny_model(vocabulary=len(tiny_tokenizer()), width=32, layers=1).save_pretrained(path)
    tiny_tokenizer().save_pretrained(path)
    return path


def test_chat_worker_refuses_bad_request_and_answers_next(folder, tmp_path):
    request = REQUEST | {"model": str(folder), "seed": 0, "question": "1 + 1?"}
    lines = [line for changes, _ in BAD.values() for line in (request | changes, request)]
    text = "{\n" + "".join(json.dumps(line) + "\n" for line in lines)
    worker = forkserver(TRAINING).start("--runs", tmp_path, module="reasoner.inference.chat_worker", text=text)
    assert worker.wait(timeout=250) == 0
    events = [json.loads(line) for line in worker.output().splitlines()]
    ends = [event for event in events if "error" in event or "done" in event]
    assert ["error" in end for end in ends] == [True] + [True, False] * len(BAD), worker.errors()
    assert [reason in end["error"] for end, (_, reason) in zip(ends[1::2], BAD.values(), strict=True)] == [True] * 3
