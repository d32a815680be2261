"""Memory and time of an update by the way of holding the weights: `torchrun --standalone --nproc-per-node 2
bench/shards.py WAY` with replicated, gathered or sharded. Linux. Prints a line of a Markdown table.

Two updates of a Llama of 69M parameters with random weights in float32, two prompts of 20 tokens with four responses of
30 tokens each. Measured: MiB of the weights and moments that the rank holds, the most resident memory of the second
update above that of a process without a model, and its seconds. MALLOC_MMAP_THRESHOLD_=1048576 in the environment lets
malloc return freed memory, which it otherwise keeps.
"""

from __future__ import annotations

import gc
import sys
import time
from pathlib import Path

import torch
from torch.distributed.tensor import DTensor
from transformers import AutoModelForCausalLM, LlamaConfig

from reasoner.config.learning import AlgoConfig, OptimConfig
from reasoner.config.schema import Config
from reasoner.distributed.world import open_world
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.trainer.train import train_step
from reasoner.trainer.trainer import Trainer
from reasoner.types import Completion, Prompt, RolloutGroup
from tests.fixtures.toys import PROBLEM, score

SHAPE = {
    "hidden_size": 768, "intermediate_size": 2048, "num_attention_heads": 12, "num_key_value_heads": 4,
    "num_hidden_layers": 9, "vocab_size": 16384,
}  # fmt: skip


def groups() -> list[RolloutGroup]:
    draw = torch.Generator().manual_seed(0)
    ids = torch.randint(3, 16384, (2, 5, 30), generator=draw).tolist()
    completions = [[Completion("", tuple(row), (-1.0,) * 30, "stop", 0) for row in rows[1:]] for rows in ids]
    return [
        RolloutGroup(Prompt(PROBLEM, "", "", tuple(rows[0][:20])), tuple(own), tuple(map(score, (1, 0, 0, 1))))
        for rows, own in zip(ids, completions, strict=True)
    ]


def resident(name: str) -> int:
    """Bytes of VmRSS or VmHWM of this process."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def main(weights: str) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    with open_world() as world:
        empty = resident("VmRSS")
        config = LlamaConfig(**SHAPE, tie_word_embeddings=True)
        policy = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
        cfg = Config(algo=AlgoConfig(group_size=4, beta=0.0), optim=OptimConfig(sharding=weights))
        trainer = Trainer(policy, None, resolve_algorithm(cfg.algo), cfg, None, world)
        train_step(trainer, trainer.compute_advantages(trainer.prepare_batch(groups())))
        trainer.free_gradients()
        gc.collect()
        Path("/proc/self/clear_refs").write_text("5")  # the peak begins anew
        start = time.monotonic()
        train_step(trainer, trainer.compute_advantages(trainer.prepare_batch(groups())))
        seconds, peak = time.monotonic() - start, resident("VmHWM") - empty
        state = trainer.optimizer.state_dict()["state"].values()
        own = [*policy.parameters(), *(moments[name] for moments in state for name in ("exp_avg", "exp_avg_sq"))]
        held = sum((t.to_local() if isinstance(t, DTensor) else t).nbytes for t in own)
        if world.is_first:
            parameters = sum(parameter.numel() for parameter in policy.parameters())
            print(f"| {weights} | {parameters / 1e6:.0f}M | {held / 2**20:.0f} | {peak / 2**20:.0f} | {seconds:.1f} |")


if __name__ == "__main__":
    main(sys.argv[1])
