"""Compiled norms and feed-forwards: the numbers of those as they are, in a bounded number of graphs."""

from dataclasses import replace
from importlib.util import find_spec

import pytest
import torch
from torch._dynamo.utils import counters

from reasoner.config.check import check_run
from reasoner.config.learning import LoraConfig
from reasoner.models import compiled_layers
from reasoner.models.compiled_layers import compile_layers
from reasoner.models.folder import BaseModel
from reasoner.models.lora import add_adapter
from reasoner.rl.batch import collate
from reasoner.trainer.train import train_step
from tests.fixtures.tiny import tiny_llama, tiny_model
from tests.fixtures.toys import config, make_trainer, random_groups

MOST_GRAPHS = 2 * 2 * 3  # norm and feed-forward, with and without a gradient, of one row, of one token and of several
CASES = {
    "reference and several updates": {"beta": 0.05, "epochs": 2, "minibatches": 2},
    "shared critic": {"name": "ppo", "critic_backbone": "shared"},
    "recomputed": {"recompute": True},
}
if find_spec("peft"):
    CASES["adapter that is off for the reference"] = {"lora": True, "beta": 0.05}


@pytest.fixture(autouse=True)
def _graphs(monkeypatch):
    """Graphs of torch's own kernels, which are made in a second; the slow test compiles them."""
    monkeypatch.setattr(compiled_layers, "BACKEND", "aot_eager")
    compiled_layers._compiled.cache_clear()
    torch._dynamo.reset()
    counters.clear()
    yield
    compiled_layers._compiled.cache_clear()
    torch._dynamo.reset()


def steps(*, compiles: bool, model=None, lora: bool = False, recompute: bool = False, dtype="float32", **algo):
    """Metrics and log-probabilities of three training steps on rows of other lengths."""
    cfg = config(micro=300, **algo)
    cfg = replace(cfg, optim=replace(cfg.optim, compile=compiles, recompute=recompute, dtype=dtype))
    policy = model or tiny_llama(4)
    if lora:
        cfg = replace(cfg, lora=LoraConfig(rank=4))
        add_adapter(policy, cfg.lora, seed=0)
    reference = tiny_model(vocabulary=60, width=32, layers=2, seed=3).requires_grad_(False)
    reference = policy if lora else reference if cfg.algo.beta else None
    trainer = make_trainer(cfg, policy, reference)
    trainer.base_model = BaseModel("a", "a", "0")
    values = []
    for seed in range(3):
        batch = trainer.compute_advantages(trainer.compute_logprobs(collate(random_groups(4 + seed, seed=seed))))
        values += train_step(trainer, batch).values()
    return values, torch.cat([own.detach().flatten() for own in trainer.model.parameters() if own.requires_grad])


def assert_same(one, other):
    assert one[0] == pytest.approx(other[0], rel=1e-4, abs=1e-5)
    assert torch.allclose(one[1], other[1], rtol=1e-3, atol=1e-5)


@pytest.mark.parametrize(
    "case", [pytest.param(own, marks=[pytest.mark.slow] if own == "shared critic" else []) for own in CASES]
)
def test_compiled_layers_have_the_numbers_of_others_in_few_graphs(case):
    expected = steps(compiles=False, **CASES[case])
    assert not counters["stats"]
    assert_same(steps(compiles=True, **CASES[case]), expected)
    assert 0 < counters["stats"]["unique_graphs"] <= MOST_GRAPHS
    assert "lora" in CASES[case] or not counters["graph_break"]


def test_what_cannot_be_compiled_is_refused(monkeypatch):
    with pytest.raises(ValueError, match="no layers that can be compiled"):
        compile_layers(torch.nn.Linear(2, 2))
    monkeypatch.setattr("torch._inductor.config.cpp.cxx", ("no-such-compiler",))
    monkeypatch.delenv("CXX", raising=False)
    with pytest.raises(ValueError, match="no C\\+\\+ compiler"):
        compile_layers(tiny_llama(1))
    cfg = config(trust="constrained")
    with pytest.raises(ValueError, match=r"optim.compile .*TRPO"):
        check_run(replace(cfg, optim=replace(cfg.optim, compile=True)))


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize(("dtype", "gap"), [("float32", 1e-4), ("bfloat16", 3e-2)])
def test_kernels_of_inductor_have_the_numbers_of_torch(monkeypatch, dtype, gap):
    monkeypatch.setattr(compiled_layers, "BACKEND", "inductor")
    one, other = (steps(compiles=compiles, dtype=dtype)[0] for compiles in (True, False))
    assert counters["stats"]["unique_graphs"] and one == pytest.approx(other, rel=gap, abs=gap)
