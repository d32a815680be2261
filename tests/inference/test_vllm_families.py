"""vLLM beside the trainer in one process, by family: log-probabilities agree as loaded and after new weights, and the
classes of the trainer's models stay as they are.
"""

import pytest

pytest.importorskip("vllm")

from reasoner.config.schema import EngineConfig
from reasoner.inference.factory import make_engine
from reasoner.models.loading import context_length, load_policy, load_tokenizer, num_ids
from reasoner.models.lora import policy_state
from reasoner.trainer.parity import _logprob_gap, sample
from reasoner.types import SamplingParams
from tests.fixtures.families import save_family
from tests.fixtures.tiny import perturb
from tests.models.test_families import CPU, prompts_of

pytestmark = pytest.mark.vllm
FAMILIES = (
    "gemma2", "gemma3_text", "gpt2", "gpt_neox", "granite", "mistral", "olmo2", "olmo3", "phi3", "smollm3",
)  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("family", FAMILIES)
def test_vllm_has_the_trainer_s_log_probabilities_and_leaves_its_classes_alone(family, tmp_path):
    folder = save_family(family, tmp_path)
    policy = load_policy(folder, device=CPU)
    methods = dict(vars(type(policy.base_model)))
    engine = make_engine(EngineConfig(name="vllm"), folder, max_model_len=context_length(policy), seed=0)
    assert dict(vars(type(policy.base_model))) == methods
    prompts, sampling = prompts_of(folder), SamplingParams(num_samples=2, max_tokens=32)
    groups = sample(engine, prompts, sampling)
    assert _logprob_gap(groups, policy, 1.0) < 1e-4
    assert max(id for group in groups for one in group.completions for id in one.token_ids) < num_ids(
        load_tokenizer(folder)
    )
    perturb(policy)
    assert _logprob_gap(groups, policy, 1.0) > 1e-2
    engine.update_weights(policy_state(policy), version=1)
    assert _logprob_gap(sample(engine, prompts, sampling), policy, 1.0) < 1e-4
    engine.close()


@pytest.mark.parametrize("family", ["qwen3_moe", "cohere2"])
def test_auto_takes_transformers_where_vllm_cannot_follow_the_training(family, tmp_path, capsys):
    folder = save_family(family, tmp_path)
    engine = make_engine(EngineConfig(), folder, max_model_len=64, seed=0, is_updated=True)
    assert engine.name == "transformers"
    assert "vLLM cannot follow the training" in capsys.readouterr().err
    engine.close()
