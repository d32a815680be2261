"""Seeds and identities as hashes of what they are for, so that neither batching nor resuming changes them."""

from __future__ import annotations

import hashlib
import json


def sample_seed(run_seed: int, step: int | str, problem_id: str, sample: int) -> int:
    """The seed of one completion: 63 bits of a hash of (run seed, step, problem, sample)."""
    key = f"{run_seed}\0{step}\0{problem_id}\0{sample}".encode()
    return int.from_bytes(hashlib.blake2b(key, digest_size=8).digest()) >> 1


def sample_seeds(run_seed: int, step: int | str, problem_id: str, num: int, *, first: int = 0) -> list[int]:
    """The seeds of `num` completions of a problem, from number `first` on."""
    return [sample_seed(run_seed, step, problem_id, sample) for sample in range(first, first + num)]


def turn_seed(seed: int, turn: int) -> int:
    """The seed of a completion's part after the answer number `turn` of its tools; `seed` is that of its first part."""
    return int.from_bytes(hashlib.blake2b(f"{seed}\0{turn}".encode(), digest_size=8).digest()) >> 1


def round_seed(run_seed: int, number: int) -> int:
    """The seed of the samples of round `number` of expert iteration."""
    return run_seed + 1_000_033 * (number - 1)


def replacement_seed(run_seed: int) -> int:
    """The seed of the order of prompts that replace groups in dynamic sampling."""
    return run_seed + 1_000_003


def minibatch_seed(run_seed: int, step: int, epoch: int) -> int:
    """The seed of the order of groups in an epoch. Python's hash of a tuple of ints is the same in every process."""
    return hash((run_seed, step, epoch)) % 2**63


def digest(value: object, length: int = 16) -> str:
    """First hex digits of the SHA-256 of the value's JSON with sorted keys."""
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:length]
