"""Seeds as hashes of what they are for, so that neither batching nor resuming changes them."""

from __future__ import annotations

import hashlib


def sample_seed(run_seed: int, step: int | str, problem_id: str, sample: int) -> int:
    """The seed of one completion: 63 bits of a hash of (run seed, step, problem, sample)."""
    key = f"{run_seed}\0{step}\0{problem_id}\0{sample}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest()) >> 1
