"""What the engines have in common: how a token is sampled, where a completion ends, and the text of its tokens.

Tokens are sampled by a counter-based random generator, a function of (seed, position) alone. Batch, engine and history
do not matter: rows need no generator objects, and both engines sample the same tokens from the same log-probabilities.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from transformers import GenerationConfig, PreTrainedTokenizerBase

from reasoner.models.loading import load_config
from reasoner.rollouts.prompts import turn_end, up_to_stop_text
from reasoner.types import Completion, Finish, OnGroupDone, Prompt, SamplingParams

Sampled = tuple[Sequence[int], Sequence[float], Finish]  # token ids, their log-probabilities, why there are no more


def processed_logprobs(logits: Tensor, sampling: SamplingParams) -> Tensor:
    """[B, V] logits -> [B, V] log-probabilities after temperature and top-p; excluded tokens are -inf."""
    logits = logits / (sampling.temperature or 1.0)
    if sampling.top_p < 1:
        sorted_logits, order = logits.sort(dim=-1, descending=True)
        probabilities = sorted_logits.softmax(dim=-1)
        before = _cumulative(probabilities) - probabilities
        outside = torch.zeros_like(logits, dtype=torch.bool).scatter(1, order, before >= sampling.top_p)
        logits = logits.masked_fill(outside, -torch.inf)
    return logits.log_softmax(dim=-1)


def _cumulative(probabilities: Tensor) -> Tensor:
    """Sums of [B, V] probabilities up to each token. A GPU sums integers: its sums of fractions have no fixed order."""
    if probabilities.device.type == "cpu":
        return probabilities.cumsum(dim=-1)
    return (probabilities.double() * 2.0**52).long().cumsum(dim=-1).double() * 2.0**-52


def sample_tokens(log_softmax: Tensor, seeds: Sequence[int], positions: Sequence[int]) -> Tensor:
    """[N, V] log-probabilities, N seeds (64 bits) and N positions -> [N] tokens, one sampled from each row.

    The token with the smallest E_v / p_v is sampled, E_v exponential (the Gumbel-max trick). E_v is computed from 23
    bits of a hash of (seed, position, v), so probabilities below 1e-7 are not resolved.
    """
    streams = _streams(seeds, positions).to(log_softmax.device)
    counters = torch.arange(log_softmax.shape[1], dtype=torch.int32, device=log_softmax.device) * _GOLDEN
    rows = max(1, _IN_CACHE // len(counters)) if log_softmax.device.type == "cpu" else len(streams)
    blocks = zip(torch.split(log_softmax, rows), torch.split(streams, rows), strict=True)
    return torch.cat([_gumbel_max(block, counters, block_streams) for block, block_streams in blocks])


_IN_CACHE = 2**19  # elements per block: small enough to stay in a CPU's cache over some thirty passes


def _gumbel_max(log_softmax: Tensor, counters: Tensor, streams: Tensor) -> Tensor:
    """log_softmax [N, V], counters [V], streams [N, 2] -> sampled tokens [N]."""
    bits = _mix(_mix(counters ^ streams[:, :1]).bitwise_xor_(streams[:, 1:]))
    bits = (bits >> 9).bitwise_and_(0x7FFFFF)
    uniform = bits.float().add_(0.5).mul_(2.0**-23)  # in (0, 1), exact
    return (log_softmax - uniform.log_().neg_().log_()).argmax(dim=1)


_GOLDEN = -1640531527  # 0x9E3779B9, 2^32 over the golden ratio, as int32


def _mix(x: Tensor) -> Tensor:
    """MurmurHash3's 32-bit finaliser, in place. int32 overflow wraps; masks make the shifts logical."""
    x.bitwise_xor_((x >> 16).bitwise_and_(0xFFFF)).mul_(-2048144789)  # 0x85EBCA6B
    x.bitwise_xor_((x >> 13).bitwise_and_(0x7FFFF)).mul_(-1028477387)  # 0xC2B2AE35
    return x.bitwise_xor_((x >> 16).bitwise_and_(0xFFFF))


def _streams(seeds: Sequence[int], positions: Sequence[int]) -> Tensor:
    """N seeds and positions -> [N, 2] int32: output `position` of SplitMix64 from `seed` (Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        x = np.array(seeds, dtype=np.uint64)
        x = x + (np.array(positions, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return torch.from_numpy(x.view(np.int32).reshape(-1, 2))


def end_token_ids(folder: Path, tokenizer: PreTrainedTokenizerBase) -> frozenset[int]:
    """All tokens that end a completion: the tokenizer's end token, those of the generation or model config, and that
    which ends a turn in the chat template: of base models it is often none of the others (Qwen2.5's <|im_end|>).
    """
    if (folder / "generation_config.json").is_file():
        config_ids = GenerationConfig.from_pretrained(folder).eos_token_id
    else:
        config_ids = load_config(folder).eos_token_id
    ids = {*config_ids} if isinstance(config_ids, list) else {config_ids}
    return frozenset(i for i in {*ids, tokenizer.eos_token_id, turn_end(tokenizer)} if i is not None)


def stop_token_ids(sampling: SamplingParams, tokenizer: PreTrainedTokenizerBase) -> tuple[list[int], tuple[str, ...]]:
    """Split the stop texts into (ids of those that are added tokens, the others): a token is cheaper to check for.

    Only an added token represents its text in every context; an ordinary one ("and") may be part of others (" hand"),
    and so may an added one that is a part of another: two line breaks of three (Gemma).
    """
    vocabulary = tokenizer.get_added_vocab()
    alone = {text for text in sampling.stop if [text] == [token for token in vocabulary if text in token]}
    others = tuple(text for text in sampling.stop if text not in alone)
    return [vocabulary[text] for text in sampling.stop if text in alone], others


class StopTexts:
    """Says when a completion's last token completes a stop text. Only tokens that may do so are decoded with others."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase) -> None:
        self._decode = partial(tokenizer.decode, skip_special_tokens=False)
        self._may_complete: dict[tuple[int, tuple[str, ...]], bool] = {}

    def are_complete(self, texts: tuple[str, ...], tokens: list[int]) -> bool:
        """Whether the last token completes one of the texts, which may begin in earlier tokens."""
        if not texts:
            return False
        may_complete = self._may_complete.get(key := (tokens[-1], texts))
        if may_complete is None:
            # It contains the last character of one, or a part of a character. A text whose last character is white
            # space may end with any token: decoders drop it from a single token.
            last = self._decode(tokens[-1:])
            may_complete = any(text[-1] in last or text[-1].isspace() or "\ufffd" in last for text in texts)
            self._may_complete[key] = may_complete
        if not may_complete:
            return False
        recent = tokens[-2 * max(map(len, texts)) :]
        after, before = self._decode(recent), self._decode(recent[:-1])
        return any(text in after and text not in before for text in texts)


def decode_completions(
    rows: Sequence[Sequence[int]], ends: frozenset[int], stop_texts: Sequence[str], tokenizer: PreTrainedTokenizerBase
) -> list[str]:
    """Decode each row without a final end token, up to and including the first stop text.

    Special tokens are kept, since a tag may be one. If the last token continues past a stop text (a newline after
    "</answer>", say), the rest is in the row's ids and not in its text.
    """
    without_end = [list(row[:-1] if row and row[-1] in ends else row) for row in rows]
    texts = tokenizer.batch_decode(without_end, skip_special_tokens=False, clean_up_tokenization_spaces=False)
    return [up_to_stop_text(text, stop_texts) for text in texts]


class Groups:
    """The completions of a call of an engine: those of a prompt are made when the last of them has ended."""

    def __init__(
        self,
        seeds: Sequence[Sequence[int]],
        version: int,
        ends: frozenset[int],
        stop_texts: Sequence[str],
        tokenizer: PreTrainedTokenizerBase,
        on_group_done: OnGroupDone | None,
    ) -> None:
        """`version`: of the weights; for the rest see Engine.generate and decode_completions."""
        self.completions: list[tuple[Completion, ...]] = [()] * len(seeds)
        self.num_ended = self.num_tokens = 0
        self._sampled: list[dict[int, Sampled]] = [{} for _ in seeds]
        self._sizes, self._version, self._on_group_done = list(map(len, seeds)), version, on_group_done
        self._decode = partial(decode_completions, ends=ends, stop_texts=stop_texts, tokenizer=tokenizer)

    def add(self, place: int, number: int, sampled: Sampled) -> None:
        """Add what was sampled with seed `number` of the prompt at the place."""
        own = self._sampled[place]
        own[number] = sampled
        self.num_ended, self.num_tokens = self.num_ended + 1, self.num_tokens + len(sampled[0])
        if len(own) < self._sizes[place]:
            return
        rows = [row for _, row in sorted(own.items())]
        self.completions[place] = tuple(
            Completion(text, array("i", ids), array("f", logprobs), finish, self._version)
            for text, (ids, logprobs, finish) in zip(self._decode([ids for ids, _, _ in rows]), rows, strict=True)
        )
        if self._on_group_done is not None:
            self._on_group_done(place, self.completions[place])


def max_completion_tokens(prompt: Prompt, sampling: SamplingParams, max_model_len: int) -> int:
    """Maximum tokens that are sampled after the prompt. ValueError if the context leaves no room for one."""
    room = max_model_len - len(prompt.token_ids)
    if room < 1:
        raise ValueError(
            f"the prompt of problem {prompt.problem.id} has {len(prompt.token_ids)} tokens; "
            f"fewer than {max_model_len} are allowed"
        )
    return min(sampling.max_tokens - prompt.num_completed, room)
