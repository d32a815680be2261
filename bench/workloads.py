"""What bench/step.py gives to both sides: models, prompts, how long each response is, which reward it gets, and the
meters of time, memory and arithmetic.
"""

from __future__ import annotations

import math
import random
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import torch

from reasoner.rl.batch import Batch

END = 0  # the end token of the embedded base's tokenizer, which all the models here use
PARTS = ("sampling", "grading", "logprobs", "learning", "sync")


@dataclass(frozen=True, slots=True)
class Workload:
    """One GRPO step: `prompts` questions, `group` responses of given lengths to each, one optimiser step."""

    vocabulary: int
    width: int
    layers: int
    prompts: int
    group: int
    shortest: int  # tokens of the shortest response, and of the longest; the end token included
    longest: int
    flat: float  # share of the groups whose rewards are all equal
    beta: float  # coefficient of the KL to the frozen reference

    def lengths(self, step: int) -> list[int]:
        """Of each of the step's responses, spread evenly on a logarithmic scale."""
        draw, count = random.Random(step), self.prompts * self.group
        low, high = math.log(self.shortest), math.log(self.longest)
        lengths = [round(math.exp(low + (high - low) * i / (count - 1))) for i in range(count)]
        draw.shuffle(lengths)
        return lengths

    def rewards(self, step: int) -> list[float]:
        """0 or 1 for each response; in the flat groups 0."""
        draw = random.Random(step)
        flat = set(draw.sample(range(self.prompts), round(self.flat * self.prompts)))
        return [float(group not in flat and i % 2) for group in range(self.prompts) for i in range(self.group)]


WORKLOADS = {
    "equal": Workload(512, 256, 6, prompts=32, group=8, shortest=128, longest=128, flat=0.0, beta=0.04),
    "realistic": Workload(512, 256, 6, prompts=32, group=8, shortest=25, longest=250, flat=0.4, beta=0.0),
    "wide vocabulary": Workload(49_152, 192, 4, prompts=16, group=8, shortest=128, longest=128, flat=0.0, beta=0.04),
}


def make_model(workload: Workload, folder: Path) -> None:
    """A Qwen2 of random weights with the embedded base's tokenizer, which unused tokens widen to its vocabulary."""
    from transformers import Qwen2Config, Qwen2ForCausalLM

    from reasoner.models.loading import load_tokenizer
    from reasoner.models.resolve import resolve_model

    torch.manual_seed(0)
    heads = workload.width // 32
    config = Qwen2Config(
        vocab_size=workload.vocabulary,
        hidden_size=workload.width,
        intermediate_size=workload.width * 11 // 4,
        num_hidden_layers=workload.layers,
        num_attention_heads=heads,
        num_key_value_heads=heads,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=END,
        pad_token_id=1,
    )
    Qwen2ForCausalLM(config).save_pretrained(folder)
    tokenizer = load_tokenizer(resolve_model("base", runs=Path("runs")))
    # Log-probabilities are computed over the tokenizer's ids alone, so it needs as many as the model.
    tokenizer.add_tokens([f"<unused {number}>" for number in range(len(tokenizer), workload.vocabulary)])
    tokenizer.save_pretrained(folder)


def batch_of(prompts: int, group: int, prompt: int, response: int, vocabulary: int) -> Batch:
    """Random tokens; every second response rewarded. Prompts of several lengths: attention has a mask, as in a run."""
    rows = prompts * group
    return Batch(
        prompt_ids=torch.randint(2, vocabulary, (prompts, prompt)),
        prompt_lengths=prompt - torch.arange(prompts) % 4,
        prompt_of=torch.arange(prompts).repeat_interleave(group),
        completion_ids=torch.randint(2, vocabulary, (rows, response)),
        lengths=torch.full((rows,), response),
        missing_eos=torch.zeros(rows, dtype=torch.bool),
        row_index=torch.arange(rows),
        rewards=(torch.arange(rows) % 2).float(),
        correct=torch.arange(rows) % 2 == 1,
        sampler_logprobs=torch.full((rows, response), -5.0),
        advantages=torch.randn(rows, 1).expand(rows, response).contiguous(),
        weights=torch.ones(rows, response),
    )


class Meter:
    """Seconds of the parts of a step, and the memory of this process."""

    def __init__(self) -> None:
        self.seconds = dict.fromkeys(PARTS, 0.0)

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        self.seconds[name] += time.perf_counter() - began

    def timed(self, name: str, function: Callable) -> Callable:
        def call(*args: object, **kwargs: object) -> object:
            with self.part(name):
                return function(*args, **kwargs)

        return call


def size_of(*models: torch.nn.Module | None) -> int:
    """Bytes of the weights of the policy and, where there is one, the reference."""
    return sum(p.numel() * p.element_size() for model in models if model is not None for p in model.parameters())


def resident() -> int:
    """Bytes of this process in memory now."""
    return _status("VmRSS")


def peak() -> int:
    """The most since forget_peak."""
    return _status("VmHWM")


def forget_peak() -> None:
    Path("/proc/self/clear_refs").write_text("5")


def _status(name: str) -> int:
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(1024 * int(line.split()[1]) for line in lines if line.startswith(name))


def ceiling(size: int = 1024, times: int = 15, *, dtype: str = "float32") -> float:
    """Floating-point operations a second of matrix products, median."""
    left, right = torch.randn(2, size, size).to(getattr(torch, dtype))
    rates = []
    for _ in range(times):
        began = time.perf_counter()
        left @ right
        rates.append(2 * size**3 / (time.perf_counter() - began))
    return statistics.median(rates)
