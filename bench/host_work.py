"""What a step of long responses does in Python and by copies while GPUs wait, on one rank: `python bench/host_work.py`.

Synthetic completions: collated, sent between ranks (pickled and read again), with statistics of every token, written,
and searched for the metrics. The last line: how long the loop waits for the file that a thread writes while the metrics
are computed, and nothing else. Prints a table: seconds of the processor, and by the clock.
"""

from __future__ import annotations

import argparse
import pickle
import random
import time
from array import array
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from tables import table

from data import Problem
from reasoner.distributed.world import World
from reasoner.rl.batch import Batch, collate
from reasoner.rl.token_stats import TokenStats
from reasoner.runs import rollouts as store
from reasoner.trainer.step_metrics import rollout_metrics
from reasoner.types import Completion, Prompt, RolloutGroup
from verifiers import Score, Verdict

GROUP, PROMPT, VOCABULARY = 16, 256, 150_000
Seconds = dict[str, tuple[float, float]]


class PickledWorld(World):
    """The first of two ranks, the other of which has nothing: values are pickled and read again."""

    def gather(self, value: Any, waiting_for: str) -> list[Any]:
        return [pickle.loads(pickle.dumps(value))]

    gather_to_first = gather


def groups_of(rows: int, tokens: int) -> list[RolloutGroup]:
    """Groups of completions of `tokens` tokens, some of which are frequent, as in text."""
    draw, generator = random.Random(0), torch.Generator().manual_seed(0)
    words = "Let me think about what is asked here, and which of these numbers can be used before the others. "
    sentences = [f"{words}So {a} + {b} = {a + b}, {b} of which are sold. " for a in range(40) for b in range(40)]

    def completion() -> Completion:
        uniform = torch.rand(2, tokens, generator=generator)
        text = "".join(draw.choices(sentences, k=tokens // 32))
        ranks = (VOCABULARY ** uniform[0]).int().tolist()
        return Completion(text, array("i", ranks), array("f", uniform[1].log().tolist()), "stop", 0)

    prompt = Prompt(Problem("a/1", "2+2?", "4", "bench"), "What is 2+2?", "<think>", tuple(range(PROMPT)))
    score = Score(1.0, {"correct": 1.0}, Verdict.CORRECT)
    sizes = [GROUP] * (rows // GROUP)
    return [RolloutGroup(prompt, tuple(completion() for _ in range(size)), (score,) * size) for size in sizes]


def statistics_of(batch: Batch, micro_batch: int) -> TokenStats:
    """Three values of every token, recorded by micro-batch and combined."""
    stats = TokenStats(keeps_tokens=True)
    for _, rows in batch.micro_batches(micro_batch):
        values = {"entropy": -rows.sampler_logprobs, "kl": rows.sampler_logprobs, "loss": rows.sampler_logprobs}
        stats.record(rows.row_index, rows.lengths, values)
    stats.combine(PickledWorld(size=2))
    return stats


def parts(groups: list[RolloutGroup], folder: Path, seconds: Seconds, micro_batch: int) -> None:
    """Measure each part of the work."""

    def timed(name: str, work: Callable[[], Any]) -> Any:
        start = time.process_time(), time.perf_counter()
        value = work()
        seconds[name] = time.process_time() - start[0], time.perf_counter() - start[1]
        return value

    batch = timed("collate", lambda: collate(groups))
    timed("send and read", lambda: pickle.loads(pickle.dumps(groups)))
    tokens = timed("token statistics", lambda: statistics_of(batch, micro_batch)).tokens
    arguments = (folder, 0, groups, batch.rewards.tolist(), tokens)
    timed("write", lambda: store.write_step(*arguments))
    timed("metrics", lambda: rollout_metrics(groups))
    with ThreadPoolExecutor(1) as writer:
        writing = writer.submit(store.write_step, *arguments)
        rollout_metrics(groups)
        timed("wait for the write", writing.result)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, default=1024, help="completions [1024]")
    parser.add_argument("--tokens", type=int, default=4096, help="tokens of each [4096]")
    args = parser.parse_args()
    seconds: Seconds = {}
    with TemporaryDirectory() as folder:
        (Path(folder) / "rollouts").mkdir()
        parts(groups_of(GROUP, 64), Path(folder), {}, 256)  # what is imported at first use
        parts(groups_of(args.rows, args.tokens), Path(folder), seconds, 4 * args.tokens)
    rows = [[name, *(f"{value:.2f}" for value in own)] for name, own in seconds.items()]
    print(table(["part", "seconds of the processor", "by the clock"], rows))


if __name__ == "__main__":
    main()
