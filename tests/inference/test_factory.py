"""Which engine a model gets."""

import pytest

from reasoner.config.schema import EngineConfig
from reasoner.inference.factory import make_engine
from reasoner.inference.vllm_engine import UnsupportedModelError
from tests.fixtures.tiny import save_tiny


@pytest.mark.vllm
def test_a_model_whose_heads_vllm_has_no_kernel_for_is_sampled_with_transformers(tmp_path, capsys):
    folder = save_tiny(tmp_path)  # heads of 16 values
    engine = make_engine(EngineConfig(name="auto"), folder, max_model_len=64, seed=0)
    assert engine.name == "transformers"
    assert "heads have 16 values" in capsys.readouterr().err
    engine.close()
    with pytest.raises(UnsupportedModelError, match=r"16 values, and vLLM knows 32, .*use --engine.name transformers"):
        make_engine(EngineConfig(name="vllm"), folder, max_model_len=64, seed=0)
