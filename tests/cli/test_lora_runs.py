"""A run that trained an adapter as the model of another run."""

from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

pytest.importorskip("peft")

from reasoner.cli.main import main
from reasoner.models.loading import load_policy
from reasoner.models.resolve import resolve_model
from tests.fixtures.tiny import tiny_model, tiny_tokenizer

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "engine.name": "transformers", "steps": 1, "data.prompts_per_step": 2, "algo.group_size": 2,
    "sampling.max_tokens": 8, "validation.interval": 0, "eval.heldout_problems": 0, "threads": 1, "algo.beta": 0.1,
    "optim.lr": 0.05, "optim.warmup_steps": 0, "data.train": ROOT / "tests" / "fixtures" / "sums.jsonl",
}  # fmt: skip


def train(runs, name, model, *more):
    settings = SETTINGS | {"run.dir": runs, "run.name": name, "model": model}
    flags = [str(part) for key, value in settings.items() for part in (f"--{key}", value)]
    threads = torch.get_num_threads()
    try:
        assert main(["train", *flags, *more]) == 0
    finally:
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(threads)
    return runs / name


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The runs folder with a run `adapter` on a tiny model, whose adapter has values as after many steps."""
    runs = tmp_path_factory.mktemp("runs")
    tiny_model(vocabulary=len(tiny_tokenizer()), width=32).save_pretrained(runs / "tiny")
    tiny_tokenizer().save_pretrained(runs / "tiny")
    train(runs, "adapter", runs / "tiny", "--lora.rank", "2")
    set_values(resolve_model("adapter", runs=runs) / "adapter_model.safetensors")
    return runs


def set_values(path):
    """Set B of the adapter in a file to random values."""
    generator = torch.Generator().manual_seed(0)
    tensors = {
        name: torch.empty_like(tensor).normal_(0, 0.3, generator=generator) if ".lora_B." in name else tensor
        for name, tensor in load_file(path).items()
    }
    save_file(tensors, path)


def weights_of(path):
    return load_policy(path, device=torch.device("cpu")).state_dict()


@pytest.mark.parametrize("rank", ["0", "2"])
def test_training_starts_from_a_run_s_adapter_and_its_base_together(runs, rank):
    path = resolve_model("adapter", runs=runs)
    train(runs, f"next-{rank}", path, "--lora.rank", rank, "--optim.lr", "1e-30")
    last = resolve_model(f"next-{rank}", runs=runs)
    assert (last / "adapter_model.safetensors").exists() == (rank == "2")
    begun, ended = weights_of(path), weights_of(last)
    assert all(torch.equal(tensor, ended[name]) for name, tensor in begun.items())
    base = weights_of(runs / "tiny")
    assert any(not torch.equal(tensor, base[name]) for name, tensor in begun.items())
