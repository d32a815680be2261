"""What the vLLM engine asks of vLLM where there is a GPU, and of the model inside it: without vLLM, without a GPU."""

import os
import sys
import weakref
from collections.abc import Callable
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch
from transformers import LlamaConfig

from reasoner.config.schema import EngineConfig
from reasoner.inference.vllm_engine import VllmEngine, _set_environment
from reasoner.inference.vllm_model import mask_ids
from reasoner.models.loading import load_config
from reasoner.models.resolve import resolve_model
from reasoner.types import SamplingParams


class RecordedLLM:
    """Foreign vLLM's entry point, which records what it is asked."""

    def __init__(self, folder: str, **arguments: object) -> None:
        self.folder, self.arguments, self.calls = folder, arguments, []
        self.model = SimpleNamespace(config=load_config(Path(folder)), compute_logits=None)

    def sleep(self, level: int) -> None:
        self.calls.append(f"sleep {level}")

    def wake_up(self, tags: list[str] | None) -> None:
        self.calls.append(f"wake up {tags}")

    def reset_prefix_cache(self) -> bool:
        return False  # a request still holds blocks

    def apply_model(self, function: Callable[[object], object]) -> list[object]:
        return [function(self.model)]

    def collective_rpc(self, name: str, kwargs: dict) -> None:
        self.calls.append((name, [name for name, _ in kwargs["weights_iterator"]]))


class Vllm(ModuleType):
    """vLLM, which keeps an error of its first import, and with it the frames that it was imported from."""

    def __getattr__(self, name: str) -> object:
        if name != "LLM":
            raise AttributeError(name)
        try:
            raise ModuleNotFoundError("torchcodec")
        except ModuleNotFoundError as error:
            self.error = error
        return RecordedLLM


@pytest.fixture
def engine(monkeypatch, tmp_path):
    vllm = Vllm("vllm")
    monkeypatch.setitem(sys.modules, "vllm", vllm)
    transformers_backend = ModuleType("vllm.model_executor.models.transformers")
    transformers_backend.base = SimpleNamespace()
    monkeypatch.setitem(sys.modules, transformers_backend.__name__, transformers_backend)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    cfg = EngineConfig(name="vllm", dtype="bfloat16", gpu_memory=0.3)
    return VllmEngine(resolve_model("base", runs=tmp_path), cfg, max_model_len=128, seed=7)


def test_import_of_vllm_holds_nothing_of_who_starts_an_engine(engine):
    def start() -> weakref.ref:
        trainer = ModuleType("a trainer")
        VllmEngine(Path(engine._llm.folder), EngineConfig(name="vllm"), max_model_len=128, seed=7)
        return weakref.ref(trainer)

    assert start()() is None


def test_engine_on_a_gpu_asks_for_memory_sleep_mode_cuda_graphs_and_fp8_as_on_a_cpu(engine):
    arguments = engine._llm.arguments
    expected = {"gpu_memory_utilization": 0.3, "enable_sleep_mode": True, "enforce_eager": False, "dtype": "bfloat16"}
    assert {name: arguments[name] for name in expected} == expected
    assert "block_size" not in arguments
    assert (engine._llm.arguments["dtype"], engine._llm.arguments["quantization"]) == ("bfloat16", None)
    cfg = EngineConfig(name="vllm", dtype="fp8")
    arguments = VllmEngine(Path(engine._llm.folder), cfg, max_model_len=128, seed=7)._llm.arguments
    assert (arguments["dtype"], arguments["quantization"]) == ("bfloat16", "fp8_per_channel")


@pytest.mark.parametrize(("dtype", "accepts"), [("float32", False), ("bfloat16", True), ("fp8", True)])
def test_adapters_are_merged_in_float32_for_which_vllm_has_no_kernel_on_a_gpu(engine, dtype, accepts):
    cfg = EngineConfig(name="vllm", dtype=dtype)
    own = VllmEngine(Path(engine._llm.folder), cfg, max_model_len=128, seed=7, adapter_rank=8)
    assert (own.accepts_adapter, "enable_lora" in own._llm.arguments) == (accepts, accepts)


def test_engine_on_a_gpu_sleeps_and_wakes_and_reloads_weights_in_process(engine):
    """Weights that an update replaces are neither kept nor beside its cache while they are loaded."""
    for keeps_weights in (True, False):
        engine.sleep(keeps_weights=keeps_weights)
        engine.wake_up()
        engine.update_weights([("a", torch.zeros(1))], version=3)
    update = ("reload_weights", ["a"])
    expected = ["sleep 1", "wake up None", update, "sleep 2", "wake up ['weights']", update, "wake up ['kv_cache']"]
    assert engine._llm.calls == expected
    engine.accepts_adapter = True  # the weights under the adapter are not sent
    engine.sleep(keeps_weights=False)
    assert engine._llm.calls[-1] == "sleep 1"


def test_prefixes_that_vllm_keeps_are_an_error(engine):
    """Those of older weights would be used for the next completions."""
    with pytest.raises(RuntimeError, match="did not empty its prefix cache"):
        engine.generate([], SamplingParams(num_samples=1), [])


@pytest.mark.parametrize(("dtype", "has_gpu", "expected"), [
    ("float32", True, "ieee"), ("bfloat16", True, None), ("float32", False, None),
])  # fmt: skip
def test_attention_in_float32_on_a_gpu_is_not_computed_in_tf32(monkeypatch, dtype, has_gpu, expected):
    """Its kernel there is a kernel of Triton's, which reads this variable."""
    for name in ("VLLM_ENABLE_V1_MULTIPROCESSING", "TRITON_F32_DEFAULT"):  # and what else is set goes with the test
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(torch.cuda, "is_available", lambda: has_gpu)
    _set_environment(EngineConfig(name="vllm", dtype=dtype))
    assert os.environ.get("TRITON_F32_DEFAULT") == expected


def test_ids_without_text_are_masked_once_however_often_a_server_is_asked():
    calls = []

    class Model:
        config = LlamaConfig(vocab_size=4)

        def compute_logits(self, states):
            calls.append(states)
            return torch.zeros(len(states), 4)

    model = Model()
    for _ in range(2000):  # admissions, more than a stack has room for
        mask_ids(model, 3)
    assert model.compute_logits(torch.zeros(1, 2)).tolist() == [[0, 0, 0, -torch.inf]] and len(calls) == 1
