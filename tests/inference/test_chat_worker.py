"""The Play page's worker process: a bad request does not prevent the next answer."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fixtures.tiny import tiny_model, tiny_tokenizer

ROOT = Path(__file__).parents[2]
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
    process = subprocess.run(
        [sys.executable, "-m", "reasoner.inference.chat_worker", "--runs", str(tmp_path)],
        input="{\n" + "".join(json.dumps(line) + "\n" for line in lines),
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        timeout=250,
    )
    events = [json.loads(line) for line in process.stdout.splitlines()]
    ends = [event for event in events if "error" in event or "done" in event]
    assert ["error" in end for end in ends] == [True] + [True, False] * len(BAD), process.stderr
    assert [reason in end["error"] for end, (_, reason) in zip(ends[1::2], BAD.values(), strict=True)] == [True] * 3
