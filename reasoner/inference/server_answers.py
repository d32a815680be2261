"""Answers of inference servers as typed values, and what a server and its run must agree on. All else that a server
sends is a ServerError: its fault, and no value of the run.
"""

from __future__ import annotations

import reprlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from reasoner.inference.server_client import ServerError
from reasoner.models.families import context_to_train
from reasoner.rollouts.seeds import digest
from reasoner.types import Finish

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedTokenizerBase

    from reasoner.inference.sampling import Sampled

_FINISH: dict[str, Finish] = {"stop": "stop", "length": "length"}
_LOWEST_LOGPROB = -9999.0  # vLLM's value for minus infinity


@dataclass(frozen=True, slots=True)
class ServerInfo:
    """A server's model, and how it is run."""

    model: str  # its name there
    identity: Mapping[str, Any]  # identity() of its model
    has_own_sampler: bool  # whether it samples with (seed, position), as the in-process engine on a CPU
    max_model_len: int
    held_by: str  # name of another run, whose weights it takes


def parse_completion(answer: Mapping[str, Any], *, max_tokens: int, num_ids: int) -> Sampled:
    """The completion in an answer to /v1/completions of vLLM: ids of the model's vocabulary, log-probabilities that are
    finite and at most 0.

    Log-probabilities need no tolerance above 0: vLLM's softmax adds up terms of which the largest is exactly 1.
    """
    match answer:
        case {
            "choices": [
                {"token_ids": [*ids], "logprobs": {"token_logprobs": [*logprobs]}, "finish_reason": str(reason)}, *_
            ]
        }:  # fmt: skip
            pass
        case _:
            raise _malformed(reprlib.repr(answer))
    if reason not in _FINISH:
        raise ServerError(f"a completion was broken off with the finish reason {reprlib.repr(reason)}")
    if not 0 < len(ids) == len(logprobs) <= max_tokens:
        raise _malformed(f"{len(ids)} token ids and {len(logprobs)} log-probabilities; at most {max_tokens} were asked")
    for one in ids:
        if type(one) is not int or not 0 <= one < num_ids:
            raise _malformed(f"the token id {reprlib.repr(one)}; the model has 0 to {num_ids - 1}")
    for one in logprobs:
        _check_logprob(one)
    return ids, logprobs, _FINISH[reason]


def parse_prompt_logprobs(answer: Mapping[str, Any], ids: Sequence[int]) -> list[float]:
    """The log-probabilities of a prompt's tokens, but for the first, in an answer to /v1/completions of vLLM."""
    match answer:
        case {"choices": [{"prompt_logprobs": [None, *entries]}, *_]} if len(entries) == len(ids) - 1:
            pass
        case _:
            raise _malformed(f"no prompt_logprobs of {len(ids)} tokens in {reprlib.repr(answer)}")
    values = []
    for token, entry in zip(ids[1:], entries, strict=True):
        match entry:
            case {} if isinstance(own := entry.get(str(token)), dict):
                values.append(_check_logprob(own.get("logprob")))
            case _:
                raise _malformed(f"no log-probability of the token {token} in {reprlib.repr(entry)}")
    return values


def _check_logprob(value: object) -> float:
    """The log-probability unchanged. ServerError for anything else, NaN too."""
    if type(value) not in (int, float) or not _LOWEST_LOGPROB <= value <= 0:  # type: ignore[operator]
        raise _malformed(f"the log-probability {reprlib.repr(value)}; it lies between {_LOWEST_LOGPROB:g} and 0")
    return value  # type: ignore[return-value]


def parse_server_info(prepared: Mapping[str, Any]) -> ServerInfo:
    """What a server says of itself in its answer to our prepare_rollouts."""
    match prepared:
        case {
            "results": [
                {
                    "model": str(model),
                    "identity": dict(identity),
                    "has_own_sampler": bool(has_own_sampler),
                    "max_model_len": int(max_model_len),
                    "held_by": str(held_by),
                },
                *_,
            ]
        }:
            return ServerInfo(model, identity, has_own_sampler, max_model_len, held_by)
    raise ServerError(f"malformed answer to prepare_rollouts: {reprlib.repr(prepared)}")


def _malformed(what: str) -> ServerError:
    return ServerError(f"malformed answer to POST /v1/completions: {what}")


# Of a model's configuration: what decides the names and shapes of its weights, and what is computed with them. Not all
# of it: token ids, names and limits may differ, and releases of transformers add values.
_MODEL = (
    "model_type", "vocab_size", "hidden_size", "intermediate_size", "num_hidden_layers", "num_attention_heads",
    "num_key_value_heads", "head_dim", "tie_word_embeddings", "num_experts", "num_local_experts",
    "num_experts_per_tok", "norm_topk_prob", "rope_parameters", "rms_norm_eps", "layer_norm_eps", "hidden_act",
    "hidden_activation", "sliding_window", "layer_types", "query_pre_attn_scalar", "attn_logit_softcapping",
    "final_logit_softcapping",
)  # fmt: skip


def identity(
    config: PretrainedConfig, tokenizer: PreTrainedTokenizerBase, dtype: str, max_model_len: int
) -> dict[str, Any]:
    """The identity of a model that is loaded somewhere, as JSON: its model, a hash of its vocabulary, its precision,
    and whether it is loaded for more tokens than can be trained (context_to_train).
    """
    model = {name: getattr(config, name, None) or None for name in _MODEL}  # 0 and False say: without
    context = context_to_train(config.to_dict())
    is_long = context is not None and max_model_len > context
    length = f"above {context}" if is_long else None
    return {**model, "max_model_len": length, "tokenizer": vocabulary_identity(tokenizer), "dtype": dtype}


def vocabulary_identity(tokenizer: PreTrainedTokenizerBase) -> str:
    return digest(sorted((token, number) for token, number in tokenizer.get_vocab().items()))


def check_identity(server: Mapping[str, Any], own: Mapping[str, Any], url: str) -> None:
    """Raise ValueError, naming both values, where what a server says of its model is not `own`."""
    differing = sorted(name for name, value in own.items() if server.get(name) != value)
    if differing:
        pairs = ", ".join(f"{name} {server.get(name)} there and {own[name]} here" for name in differing)
        raise ValueError(f"the server {url} holds another model than this run: {pairs}")
