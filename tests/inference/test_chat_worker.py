"""The worker process of the dashboard's Chat page: prompts, responses, models that change, bad requests."""

import json
import os
from pathlib import Path

import pytest
from tokenizers.processors import TemplateProcessing

from reasoner.inference.chat_worker import _answer, _files, _Model
from reasoner.rollouts.prompts import Template, render
from tests.fixtures.forkserver import TRAINING, forkserver
from tests.fixtures.tiny import END, OTHER_END, save_tiny, tiny_tokenizer

REQUEST = {"step": "", "prompt": "none", "begin": "", "gold": "", "temperature": 1.0, "samples": 1, "max_tokens": 2}
BAD = {
    "a question with half of a surrogate pair": ({"question": "1 + \ud83d?"}, "half of a surrogate pair ('\\ud83d')"),
    "a beginning with half of one": ({"begin": "\udc00 Wait,"}, "the beginning of the response holds half"),
    "an unknown prompt style": ({"prompt": "unheard-of"}, "unknown prompt style 'unheard-of'"),
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("model"), width=32, layers=1)


def test_chat_worker_refuses_bad_request_and_answers_next(folder, tmp_path):
    request = REQUEST | {"model": str(folder), "seed": 0, "question": "1 + 1?"}
    items = [[item] for changes, _ in BAD.values() for item in (request | changes, request)]
    batch = {"token": "t", "task": "sample", "numbers": list(range(len(items))), "items": items}
    text = json.dumps(batch) + "\n"
    worker = forkserver(TRAINING).start("--runs", tmp_path, module="reasoner.inference.chat_worker", text=text)
    assert worker.wait(timeout=250) == 0
    events = [json.loads(line) for line in worker.output().splitlines()]
    ends = [event["result"] for event in events if "result" in event]
    assert ["error" in end for end in ends] == [True, False] * len(BAD), worker.errors()
    assert [reason in end["error"] for end, (_, reason) in zip(ends[::2], BAD.values(), strict=True)] == [True] * 3


class Engine:
    """An engine that keeps its prompts, around a real one."""

    def __init__(self, engine):
        self.engine, self.calls = engine, []

    def generate(self, prompts, sampling, seeds):
        self.engine.on_token = self.on_token
        completions = self.engine.generate(prompts, sampling, seeds)
        self.calls.append((prompts[0], completions[0][0]))
        return completions


def answers(folder, request, tokenizer=None):
    """(prompt, completion) of each sample, and the events."""
    model, events = _Model(folder), []
    model.tokenizer = tokenizer or model.tokenizer
    model.engine = Engine(model.engine)
    _answer(model, REQUEST | {"seed": 0, "question": "1 + 1?"} | request, lambda **event: events.append(event))
    return model.engine.calls, events


def test_beginning_of_the_response_keeps_the_begin_token(folder):
    tokenizer = tiny_tokenizer()
    tokenizer.backend_tokenizer.post_processor = TemplateProcessing(
        single=f"{OTHER_END} $A {END}",
        special_tokens=[(one, tokenizer.convert_tokens_to_ids(one)) for one in (OTHER_END, END)],
    )
    tokenizer.bos_token = OTHER_END
    (((prompt, _),), _) = answers(folder, {"begin": " Wait, so"}, tokenizer)
    expected = render(prompt.problem, Template("{question} Wait, so"), tokenizer)
    assert prompt.token_ids == expected.token_ids and prompt.token_ids[0] == tokenizer.bos_token_id
    assert (prompt.text, prompt.prefill) == ("1 + 1? Wait, so", " Wait, so")


def test_response_to_grade_is_that_of_the_reward(folder, tmp_path):
    """Up to the stop text, which ends inside of a token, and with the special tokens that the stream leaves out."""
    (tmp_path / "t.toml").write_text('text = "{question}"\nprefill = "<think>"\nstop = ["s"]')
    request = {"prompt": str(tmp_path / "t.toml"), "samples": 16, "max_tokens": 40, "begin": "So"}
    calls, events = answers(folder, request)
    ended = [event["response"] for event in events if "ended" in event]
    assert ended == [prompt.prefill + completion.text for prompt, completion in calls]
    streams = ["".join(event.get("text", "") for event in events if event.get("sample") == i) for i in range(16)]
    assert any(len(stream) > len(response) for stream, response in zip(streams, ended, strict=True))
    assert all(response.startswith("<think>So") and response.count("s") <= 1 for response in ended)


def test_model_whose_files_were_replaced_is_another_one(folder, tmp_path):
    best = tmp_path / "best"
    best.mkdir()
    (best / "best.json").write_text("1")
    before = _files(best)
    assert _files(best) == before
    (tmp_path / "beside").mkdir()
    (tmp_path / "beside" / "best.json").write_text("2")
    os.utime(tmp_path / "beside" / "best.json", ns=(10**18, 10**18))
    (best / "best.json").unlink()
    best.rmdir()
    (tmp_path / "beside").rename(best)
    assert _files(best) != before
