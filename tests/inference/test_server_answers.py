"""Answers of servers become typed values, or an error of the server."""

import json
from array import array

import pytest

from reasoner.inference.server_answers import (
    SampledTokens,
    ServerInfo,
    parse_completion,
    parse_response,
    parse_server_info,
)
from reasoner.inference.server_client import ServerError

GOOD = {"token_ids": [0, 9], "logprobs": {"token_logprobs": [-0.1, 0]}, "finish_reason": "length"}


def logprobs(*values):
    return {"token_ids": [1] * len(values), "logprobs": {"token_logprobs": list(values)}}


MALFORMED = {
    "no token": {"token_ids": [], "logprobs": {"token_logprobs": []}},
    "no token ids": {"token_ids": None},
    "ids as a text": {"token_ids": "12"},
    "no log-probabilities": {"logprobs": None},
    "fewer log-probabilities": {"logprobs": {"token_logprobs": [-0.1]}},
    "too many tokens": logprobs(*[-1] * 25),
    "negative id": {"token_ids": [1, -1]},
    "id behind the vocabulary": {"token_ids": [1, 10]},
    "huge id": {"token_ids": [1, 2**40]},
    "id as a fraction": {"token_ids": [1, 2.0]},
    "id as a truth value": {"token_ids": [1, True]},
    "null": logprobs(None),
    "truth value": logprobs(False),
    "above 0": logprobs(50.0),
    "just above 0": logprobs(1e-3),
    "huge": logprobs(-1e308),
    "400 digits": logprobs(-(10**400)),
    "NaN": logprobs(float("nan")),
    "minus infinity": logprobs(float("-inf")),
    "broken off": {"finish_reason": "abort"},
    "finish reason as a list": {"finish_reason": ["stop"]},
    "no finish reason": {"finish_reason": None},
}


def test_completion_is_read_into_typed_values():
    parsed = parse_completion({"choices": [GOOD]}, max_tokens=2, num_ids=10)
    assert parsed == SampledTokens(array("i", [0, 9]), array("f", [-0.1, 0.0]), "length")
    assert all(type(one) is float for one in parsed.logprobs)
    floor = parse_completion({"choices": [GOOD | logprobs(-9999.0)]}, max_tokens=2, num_ids=10)
    assert [*floor.logprobs] == [-9999.0]  # vLLM's value for minus infinity


def test_completion_with_a_value_that_is_none_is_a_fault_of_the_server():
    whole = [{"choices": [GOOD | change]} for change in MALFORMED.values()]
    whole += [{}, {"choices": {}}, {"choices": []}, {"choices": ["x"]}, {"choices": "x"}, {"choices": [None]}]
    for answer in whole:
        with pytest.raises(ServerError, match=r"malformed answer|broken off") as error:
            parse_completion(answer, max_tokens=24, num_ids=10)
        assert len(str(error.value)) < 300, answer


PREPARED = {"identity": {"a": 1}, "has_own_sampler": True, "max_model_len": 64}


def test_server_says_what_it_is_in_typed_values():
    models = {"data": [{"id": "m"}]}
    assert parse_server_info(models, {"results": [PREPARED]}) == ServerInfo("m", {"a": 1}, True, 64)
    for name, value in {"identity": [1], "max_model_len": 1e400, "has_own_sampler": 1}.items():
        with pytest.raises(ServerError, match="malformed answer"):
            parse_server_info(models, {"results": [PREPARED | {name: value}]})
    with pytest.raises(ServerError, match="malformed answer"):
        parse_server_info({"data": [{"id": 3}]}, {"results": [PREPARED]})


def chat(text="3", **choice):
    return {"choices": [{"message": {"content": text}, "finish_reason": "stop"} | choice]}


def test_response_has_the_text_the_count_and_the_finish_reason_of_an_answer():
    reasoned = chat(message={"content": "3", "reasoning": "1+2"})
    for answer, expected in (
        (chat(), ("3", None, "stop")),
        (reasoned, ("<think>1+2</think>3", None, "stop")),
        (chat(None, finish_reason="content_filter"), ("", None, "abort")),
        (chat(finish_reason=None), ("3", None, "abort")),
        ({"choices": [{"text": "3", "finish_reason": "length"}], "usage": None}, ("3", None, "length")),
        *((chat() | {"usage": {"completion_tokens": n}}, ("3", n, "stop")) for n in (0, 7)),
        *((chat() | {"usage": {"completion_tokens": n}}, ("3", None, "stop")) for n in (-1, 10**20, True, 7.5, "7")),
    ):
        assert parse_response(json.loads(json.dumps(answer))) == expected
    for answer in (
        {}, {"choices": []}, {"choices": [None]}, chat(["3"]), chat(message=None), chat(message="3"),
        chat(finish_reason=["stop"]), chat(finish_reason={}), {"choices": [{"text": None, "finish_reason": "stop"}]},
    ):  # fmt: skip
        with pytest.raises(ServerError, match="malformed answer"):
            parse_response(answer)


def test_half_of_a_surrogate_pair_becomes_the_sign_for_what_cannot_be_decoded():
    text, _, _ = parse_response(json.loads(json.dumps(chat("\ud83d a \U0001f600"))))
    assert text == "\ufffd a \U0001f600"
