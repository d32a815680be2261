"""The randomness of a draw as a function of (seed, position): batch, engine and history change nothing.

A counter-based generator instead of one with a state: rows need no generator object each, a request that is taken up
again draws what it would have drawn, and both engines draw the same tokens from the same log-probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


def draw(log_softmax: Tensor, seeds: Sequence[int], positions: Sequence[int]) -> Tensor:
    """[N, V] log-probabilities, N seeds (64 bits) and N positions -> [N] tokens, one drawn from each row.

    A race: token v arrives after E_v / p_v, E_v exponential, and the first to arrive is drawn (the Gumbel-max trick).
    E_v comes from 23 bits that are a hash of (seed, position, v): events rarer than 1e-7 are not told apart.
    """
    streams = _streams(seeds, positions).to(log_softmax.device)
    counters = torch.arange(log_softmax.shape[1], dtype=torch.int32, device=log_softmax.device) * _GOLDEN
    rows = max(1, _IN_CACHE // len(counters)) if log_softmax.device.type == "cpu" else len(streams)
    blocks = zip(log_softmax.split(rows), streams.split(rows), strict=True)
    return torch.cat([_race(some, counters, own) for some, own in blocks])


_IN_CACHE = 2**19  # numbers that thirty passes over them find in a CPU's cache


def _race(log_softmax: Tensor, counters: Tensor, streams: Tensor) -> Tensor:
    """[N, V], [V] and [N, 2] -> [N]"""
    bits = _mixed(_mixed(counters ^ streams[:, :1]).bitwise_xor_(streams[:, 1:]))
    bits = (bits >> 9).bitwise_and_(0x7FFFFF)
    uniform = bits.float().add_(0.5).mul_(2.0**-23)  # in (0, 1), exact
    return (log_softmax - uniform.log_().neg_().log_()).argmax(dim=1)


_GOLDEN = -1640531527  # 0x9E3779B9, 2^32 over the golden ratio, as int32


def _mixed(x: Tensor) -> Tensor:
    """The 32-bit finaliser of MurmurHash3, in place; int32 wraps around, and shifts are made logical by a mask."""
    x.bitwise_xor_((x >> 16).bitwise_and_(0xFFFF)).mul_(-2048144789)  # 0x85EBCA6B
    x.bitwise_xor_((x >> 13).bitwise_and_(0x7FFFF)).mul_(-1028477387)  # 0xC2B2AE35
    return x.bitwise_xor_((x >> 16).bitwise_and_(0xFFFF))


def _streams(seeds: Sequence[int], positions: Sequence[int]) -> Tensor:
    """N seeds and positions -> [N, 2] int32: number `position` of SplitMix64's stream `seed` (Steele et al. 2014)."""
    with np.errstate(over="ignore"):
        x = np.array(seeds, dtype=np.uint64)
        x = x + (np.array(positions, dtype=np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x ^= x >> np.uint64(31)
    return torch.from_numpy(x.view(np.int32).reshape(-1, 2))
