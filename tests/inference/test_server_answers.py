"""Answers of servers become typed values, or an error of the server."""

import pytest

from reasoner.inference.server_answers import ServerInfo, parse_completion, parse_server_info
from reasoner.inference.server_client import ServerError

GOOD = {"token_ids": [0, 9], "logprobs": {"token_logprobs": [-0.1, 0]}, "finish_reason": "length"}


def logprobs(*values):
    return {"token_ids": [1] * len(values), "logprobs": {"token_logprobs": list(values)}}


MALFORMED = {
    "no token": {"token_ids": [], "logprobs": {"token_logprobs": []}}, "no token ids": {"token_ids": None},
    "ids as a text": {"token_ids": "12"}, "no log-probabilities": {"logprobs": None},
    "fewer log-probabilities": {"logprobs": {"token_logprobs": [-0.1]}}, "too many tokens": logprobs(*[-1] * 25),
    "negative id": {"token_ids": [1, -1]}, "id behind the vocabulary": {"token_ids": [1, 10]},
    "huge id": {"token_ids": [1, 2**40]}, "id as a fraction": {"token_ids": [1, 2.0]},
    "id as a truth value": {"token_ids": [1, True]}, "null": logprobs(None), "truth value": logprobs(False),
    "above 0": logprobs(50.0), "just above 0": logprobs(1e-3), "huge": logprobs(-1e308),
    "400 digits": logprobs(-(10**400)), "NaN": logprobs(float("nan")), "minus infinity": logprobs(float("-inf")),
    "broken off": {"finish_reason": "abort"}, "finish reason as a list": {"finish_reason": ["stop"]},
    "no finish reason": {"finish_reason": None},
}  # fmt: skip


def test_completion_is_read_into_typed_values():
    parsed = parse_completion({"choices": [GOOD]}, max_tokens=2, num_ids=10)
    assert parsed == ([0, 9], [-0.1, 0], "length")
    _, floor, _ = parse_completion({"choices": [GOOD | logprobs(-9999.0)]}, max_tokens=2, num_ids=10)
    assert floor == [-9999.0]  # vLLM's value for minus infinity


def test_completion_with_a_value_that_is_none_is_a_fault_of_the_server():
    whole = [{"choices": [GOOD | change]} for change in MALFORMED.values()]
    whole += [{}, {"choices": {}}, {"choices": []}, {"choices": ["x"]}, {"choices": "x"}, {"choices": [None]}]
    for answer in whole:
        with pytest.raises(ServerError, match=r"malformed answer|broken off") as error:
            parse_completion(answer, max_tokens=24, num_ids=10)
        assert len(str(error.value)) < 300, answer


PREPARED = {"model": "m", "identity": {"a": 1}, "has_own_sampler": True, "max_model_len": 64, "held_by": ""}


def test_server_says_what_it_is_in_typed_values():
    assert parse_server_info({"results": [PREPARED]}) == ServerInfo("m", {"a": 1}, True, 64, "")
    for name, value in {"model": 3, "identity": [1], "max_model_len": 1e400, "has_own_sampler": 1}.items():
        with pytest.raises(ServerError, match="malformed answer"):
            parse_server_info({"results": [PREPARED | {name: value}]})
