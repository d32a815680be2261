"""A run that trained an adapter as the model of another run."""

import json
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM

pytest.importorskip("peft")

from reasoner.cli.main import main
from reasoner.models.checksums import write_checksums
from reasoner.models.loading import load_policy
from reasoner.models.lora import write_merged
from reasoner.models.resolve import resolve_model
from tests.fixtures.forkserver import TRAINING, forkserver
from tests.fixtures.tiny import save_tiny
from tests.fixtures.trainings import flags

ROOT = Path(__file__).parents[2]
SETTINGS = {
    "engine.name": "transformers", "steps": 1, "data.prompts_per_step": 2, "algo.group_size": 2,
    "sampling.max_tokens": 8, "validation.interval": 0, "eval.heldout_problems": 0, "threads": 1, "algo.beta": 0.1,
    "optim.lr": 0.05, "optim.warmup_steps": 0, "data.train": ROOT / "tests" / "fixtures" / "sums.jsonl",
}  # fmt: skip


def train(runs, name, model, *more):
    settings = SETTINGS | {"run.dir": runs, "run.name": name, "model": model}
    assert main(["train", *flags(settings), *more]) == 0
    return runs / name


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    """The runs folder with a run `adapter` on a tiny model, whose adapter has values as after many steps."""
    runs = tmp_path_factory.mktemp("runs")
    save_tiny(runs / "tiny", width=32)
    train(runs, "adapter", runs / "tiny", "--lora.rank", "2")
    set_values(resolve_model("adapter", runs=runs) / "adapter_model.safetensors")
    return runs


def set_values(path):
    """Set B of the adapter in a file to random values."""
    generator, tensors = torch.Generator().manual_seed(0), load_file(path)
    for name in tensors:
        if ".lora_B." in name:
            tensors[name].normal_(0, 0.3, generator=generator)
    save_file(tensors, path)
    write_checksums(path.parent)


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


@pytest.fixture(scope="module")
def merged(runs):
    """The run `adapter` as a full model folder."""
    write_merged(resolve_model("adapter", runs=runs), runs / "merged")
    return runs / "merged"


def test_merged_export_has_the_weights_of_the_checkpoint(runs, tmp_path):
    assert main(["export", str(runs / "adapter"), "--out", str(tmp_path / "out")]) == 0
    assert not (tmp_path / "out" / "adapter_config.json").exists()
    exported = AutoModelForCausalLM.from_pretrained(tmp_path / "out").state_dict()
    checkpoint = load_policy(resolve_model("adapter", runs=runs), device=torch.device("cpu")).state_dict()
    assert exported.keys() == checkpoint.keys()
    assert all(torch.equal(exported[name], weights) for name, weights in checkpoint.items())


def test_evaluation_of_a_run_samples_its_base_with_the_adapter(runs, merged):
    sampling = ("--prompt", "r1-zero", "--temperature", "1", "--top-p", "1", "--max-tokens", "8", "--seed", "3")
    texts = {}
    for model in ("adapter", str(merged), str(runs / "tiny")):
        name = Path(model).name
        where = ("--runs", str(runs), "--out", str(runs / "evals"), "--name", name, "--engine", "transformers")
        words = ["--model", model, "--problems", "2", "--pass@1", "--num-samples", "2"]
        assert main(["eval", *words, *where, *sampling]) == 0
        texts[name] = pq.read_table(runs / "evals" / name / "samples.parquet").column("text").to_pylist()
    assert len(texts["adapter"]) == 4
    assert texts["adapter"] == texts["merged"] != texts["tiny"]


@pytest.mark.slow  # chat: tests/inference/test_chat_worker.py; an adapter as a model: above
def test_chat_worker_answers_with_the_adapter_of_a_run(runs, merged):
    request = {"step": "", "prompt": "none", "begin": "", "gold": "", "question": "1 + 1?", "seed": 0, "samples": 2}
    request |= {"temperature": 1.0, "max_tokens": 8}  # top-p is always 1
    models = ("adapter", str(merged), str(runs / "tiny"))
    items = [[request | {"model": model}] for model in models]
    text = json.dumps({"token": "t", "task": "sample", "numbers": [0, 1, 2], "items": items}) + "\n"
    worker = forkserver(TRAINING).start("--runs", runs, module="reasoner.inference.chat_worker", text=text)
    assert worker.wait(timeout=250) == 0, worker.errors()
    answers = [[]]
    for event in map(json.loads, worker.output().splitlines()[1:]):  # the first says that it is ready
        if "result" in event:
            assert event["result"] == {"done": True}
            answers.append([])
        else:
            answers[-1].append({name: value for name, value in event.items() if name not in ("token", "number")})
    adapter, of_merged, of_base, rest = answers
    assert sum("ended" in event for event in adapter) == 2 and rest == []
    assert adapter == of_merged != of_base
