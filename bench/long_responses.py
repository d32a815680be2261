"""Memory and time of long responses: `python bench/long_responses.py [--size 135M] [--tokens 1024 2048 4096 8192]`.

One response to a prompt of 64 tokens, forward and backward pass in float32: attention with a mask and without one
(reasoner/models/prefix_attention.py), activations stored and recomputed, each in a fresh process. Peak: what the pass
adds to weights and gradients, as the kernel counts resident memory. Linux. Prints a table in Markdown.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import time
from itertools import product

PROMPT = 64  # tokens
ATTENTION = ("mask", "no mask")
WAYS = ("stored", "recomputed")


def measure(size: str, tokens: int, attention: str, way: str, repeats: int) -> dict[str, float]:
    """Median seconds of forward and backward pass, and bytes of the peak above weights and gradients."""
    import torch
    from memory import NAMES, SIZES
    from transformers import AutoModelForCausalLM
    from workloads import forget_peak, peak, resident

    from reasoner.models import prefix_attention
    from reasoner.models.loading import completion_logprobs, completion_states, encode_prompts
    from reasoner.models.recompute import recompute_layers

    prefix_attention.LONG_COMPLETION = 2**62 if attention == "mask" else 2
    torch.manual_seed(0)
    kind, sizes = SIZES[size]
    shape = dict(zip(NAMES, sizes, strict=True))
    config = kind(**shape, max_position_embeddings=16_384, tie_word_embeddings=True)
    model = AutoModelForCausalLM.from_config(config, dtype=torch.float32).eval()
    if way == "recomputed":
        recompute_layers(model.base_model)
    one, lengths = torch.tensor([0]), torch.tensor([PROMPT])
    prompt, response = (
        torch.randint(2, config.vocab_size, (1, PROMPT)),
        torch.randint(2, config.vocab_size, (1, tokens)),
    )

    def gradient(ids: torch.Tensor) -> float:
        began = time.perf_counter()
        prompts = encode_prompts(model, prompt, lengths)
        leaves = prompts.leaves()
        states = completion_states(model, leaves, one, ids)
        logprobs, _ = completion_logprobs(model, states, ids, torch.tensor([ids.shape[1]]), temperature=1.0)
        logprobs.mean().backward()
        prompts.backward(leaves)
        return time.perf_counter() - began

    gradient(response[:, :16])  # gradients and buffers are there
    before = resident()
    forget_peak()
    seconds = [gradient(response) for _ in range(repeats)]
    return {"seconds": statistics.median(seconds), "peak": peak() - before}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", default="5M", help="5M, 30M or 135M: shapes of bench/memory.py, random weights [5M]")
    parser.add_argument("--tokens", type=int, nargs="+", default=[1024, 2048, 4096, 8192], help="of the response")
    parser.add_argument("--ways", choices=WAYS, nargs="+", default=list(WAYS), help="activations [both]")
    parser.add_argument(
        "--repeats", type=int, default=1, help="passes of each process; the seconds are their median [1]"
    )
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--worker", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.worker:
        import torch

        torch.set_num_threads(args.threads)
        print(json.dumps(measure(args.size, args.tokens[0], *args.worker, args.repeats)))
        return
    print("| tokens | activations | mask, MiB | no mask, MiB | ratio | mask, s | no mask, s | ratio |")
    print("|---:|---|---:|---:|---:|---:|---:|---:|")
    for tokens, way in product(args.tokens, args.ways):
        results = [_in_new_process(args, tokens, attention, way) for attention in ATTENTION]
        peaks, seconds = ([one[key] for one in results] for key in ("peak", "seconds"))
        memory = f"{peaks[0] / 2**20:,.0f} | {peaks[1] / 2**20:,.0f} | {peaks[1] / peaks[0]:.2f}"
        times = f"{seconds[0]:.1f} | {seconds[1]:.1f} | {seconds[1] / seconds[0]:.2f}"
        print(f"| {tokens:,} | {way} | {memory} | {times} |", flush=True)


def _in_new_process(args: argparse.Namespace, tokens: int, attention: str, way: str) -> dict[str, float]:
    """measure() in a process in which whatever is freed goes back to the system."""
    own = {"MALLOC_MMAP_THRESHOLD_": "65536", "MALLOC_TRIM_THRESHOLD_": "65536", "OMP_NUM_THREADS": str(args.threads)}
    command = [sys.executable, __file__, "--size", args.size, "--tokens", str(tokens), "--worker", attention, way]
    command += ["--threads", str(args.threads), "--repeats", str(args.repeats)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | own)
    if done.returncode:
        raise RuntimeError(done.stderr[-3000:])
    answer: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return answer


if __name__ == "__main__":
    main()
