"""Hand-made groups of completions, and a learner small enough for them."""

import torch

from data import Problem
from reasoner.config import AlgoConfig, Config, OptimConfig, SamplingConfig
from reasoner.rl.algorithms import resolve
from reasoner.rl.learner import Learner
from reasoner.types import Completion, Group, Prompt
from tests.tiny import tiny_model
from verifiers import Score, Verdict

G = 4
PROBLEM = Problem("t/0", "?", "1", "t", "t")


def score(total):
    return Score(total, {"correct": total}, Verdict.CORRECT if total else Verdict.WRONG)


def group(prompt_ids, rows, rewards):
    completions = tuple(Completion("", tuple(ids), (-1.0,) * len(ids), "stop", 0) for ids in rows)
    return Group(Prompt(PROBLEM, "", "", tuple(prompt_ids)), completions, tuple(map(score, rewards)))


def random_groups(number=5, seed=0, vocabulary=60):
    generator = torch.Generator().manual_seed(seed)

    def ids(low, high):
        size = int(torch.randint(low, high, (1,), generator=generator))
        return torch.randint(3, vocabulary, (size,), generator=generator).tolist()

    return [
        group(
            ids(3, 9), [ids(1, 12) for _ in range(G)], torch.randint(0, 2, (G,), generator=generator).float().tolist()
        )
        for _ in range(number)
    ]


def config(**changes):
    optim = OptimConfig(
        lr=changes.pop("lr", 1e-3), warmup_steps=0, micro_batch_tokens=changes.pop("micro", 10_000), max_grad_norm=1e9
    )
    sampling = SamplingConfig(temperature=changes.pop("temperature", 1.0), max_tokens=16)
    return Config(algo=AlgoConfig(**{"group": G, "beta": 0.0, **changes}), optim=optim, sampling=sampling)


def learner(cfg, model=None, reference=None):
    model = model or tiny_model(vocabulary=60, width=32, layers=2)
    return Learner(model, reference, resolve(cfg.algo), cfg)
