"""Which engine a model gets."""

import json
import sys
from importlib.machinery import ModuleSpec
from types import ModuleType

import pytest
import torch

from reasoner.config.learning import OptimConfig
from reasoner.config.resolve import to_dict
from reasoner.config.schema import Config, EngineConfig, ToolsConfig
from reasoner.inference.factory import VLLM_CPU_HEAD_SIZES, make_engine, training_engine
from reasoner.inference.model_spec import EngineFactory, ModelSpec, engine_identity
from reasoner.runs.run_dir import FORMAT
from tests.fixtures.tiny import perturbed, save_tiny


@pytest.mark.vllm
def test_a_model_whose_heads_vllm_has_no_kernel_for_is_sampled_with_transformers(tmp_path, capsys):
    folder = save_tiny(tmp_path)  # heads of 16 values
    engine = make_engine(EngineConfig(name="auto"), folder, max_model_len=64, seed=0)
    assert engine.name == "transformers"
    assert "heads have 16 values" in capsys.readouterr().err
    engine.close()
    with pytest.raises(ValueError, match=r"16 values.* 32, .*transformers"):
        make_engine(EngineConfig(name="vllm"), folder, max_model_len=64, seed=0)


@pytest.mark.vllm
def test_fp8_is_refused_before_the_run_where_vllm_cannot_sample(tmp_path):
    folder = save_tiny(tmp_path)
    for name in ("auto", "vllm"):
        with pytest.raises(ValueError, match=r"fp8 needs vLLM.*16 values"):
            training_engine(EngineConfig(name=name, dtype="fp8"), folder)
    with pytest.raises(ValueError, match="transformers has no fp8"):
        make_engine(EngineConfig(name="transformers", dtype="fp8"), folder, max_model_len=64, seed=0)


@pytest.mark.vllm
def test_evaluation_of_such_a_model_names_the_engine_that_it_gets(tmp_path):
    model = ModelSpec.of(str(save_tiny(tmp_path)), runs=tmp_path, max_tokens=8)
    config = model.engine_config("auto")
    assert engine_identity(config, ToolsConfig()).startswith("transformers ")
    factory = EngineFactory(model, config, seed=0, longest_prompt=8)
    assert factory().name == "transformers"
    factory.close()
    with pytest.raises(ValueError, match="16 values"):  # vLLM where it was named, and no other in its place
        EngineFactory(model, model.engine_config("vllm"), seed=0, longest_prompt=8)()


def test_model_that_is_replaced_before_it_is_loaded_is_refused(tmp_path):
    """As the best checkpoint of a run that trains: responses would be stored by the fingerprint of the former one."""
    model = ModelSpec.of(str(save_tiny(tmp_path)), runs=tmp_path, max_tokens=8)
    factory = EngineFactory(model, model.engine_config("transformers"), seed=0, longest_prompt=8)
    assert model.fingerprint
    perturbed(tmp_path, 1).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="replaced"):
        factory()


def test_run_that_computed_in_bfloat16_is_sampled_in_it(tmp_path):
    folder = save_tiny(tmp_path / "run" / "checkpoints" / "step-000001")
    for dtype in ("float32", "bfloat16"):
        cfg = Config(optim=OptimConfig(dtype=dtype))
        (tmp_path / "run" / "config.json").write_text(json.dumps({"format": FORMAT, "config": to_dict(cfg)}))
        assert ModelSpec.of(str(folder), runs=tmp_path).engine_config("auto").dtype == dtype


@pytest.mark.vllm
def test_head_sizes_are_those_that_vllm_knows_on_a_cpu():
    from vllm.v1.attention.backends.cpu_attn import CPUAttentionBackend

    assert list(VLLM_CPU_HEAD_SIZES) == sorted(CPUAttentionBackend.get_supported_head_sizes())


@pytest.mark.vllm
def test_vllm_that_cannot_be_imported_is_an_error_with_its_reason(tmp_path, monkeypatch):
    save_tiny(tmp_path, heads=2)
    model = ModelSpec.of(str(tmp_path), runs=tmp_path, max_tokens=8)
    broken = ModuleType("vllm")
    broken.__spec__ = ModuleSpec("vllm", None)
    monkeypatch.setitem(sys.modules, "vllm", broken)
    with pytest.raises(ValueError, match=r"vllm .*--engine transformers"):
        EngineFactory(model, model.engine_config("auto"), seed=0, longest_prompt=8)()


@pytest.mark.parametrize(("free", "expected"), [(24, 0.9), (12, 0.46)])
def test_an_evaluation_takes_no_more_of_a_gpu_than_is_free(tmp_path, monkeypatch, free, expected):
    """vLLM counts its share against the whole memory, and refuses to start where less is free."""
    asked = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "empty_cache", lambda: None)
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda: (free, 24))
    monkeypatch.setattr("reasoner.inference.model_spec.make_engine", lambda config, *_, **__: asked.append(config))
    model = ModelSpec.of(str(save_tiny(tmp_path)), runs=tmp_path, max_tokens=8)
    EngineFactory(model, model.engine_config("vllm"), seed=0, longest_prompt=8)()
    assert asked[0].gpu_memory == pytest.approx(expected)
