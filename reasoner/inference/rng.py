"""Sampling of tokens by a counter-based random generator: a function of (seed, position) alone.

Unlike a generator with state, it does not depend on batch, engine or history: rows need no generator objects, a resumed
request samples the same tokens, and both engines sample the same tokens from the same log-probabilities.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor


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
