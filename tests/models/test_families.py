"""Families of models: the log-probabilities of trainer and transformers engine are those of the model alone, or the
family is refused by name. tests/bench/test_models.py has all that a family can do.
"""

import json

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoModelForSequenceClassification

from reasoner.config.learning import LoraConfig
from reasoner.config.resolve import resolve
from reasoner.config.schema import EngineConfig
from reasoner.inference.decoding import check_decoding
from reasoner.inference.factory import make_engine
from reasoner.models.families import check_family
from reasoner.models.folder import check_model, context_length
from reasoner.models.loading import context_length as context_of
from reasoner.models.loading import load_policy, load_tokenizer, num_ids, token_logprobs
from reasoner.models.lora import add_adapter
from reasoner.models.reward_model import new_reward_model
from reasoner.rl.batch import collate, collate_rows
from reasoner.rl.passes import RewardModelPasses
from reasoner.trainer.parity import sample
from reasoner.trainer.preflight import preflight
from reasoner.types import SamplingParams
from tests.fixtures.families import FAMILIES, alone, family_model, plain_model, prompts_of, save_family

CPU = torch.device("cpu")


@pytest.mark.parametrize("family", FAMILIES)
def test_trainer_and_engine_have_the_log_probabilities_of_the_model_alone(family, tmp_path):
    folder = save_family(family, tmp_path)
    policy, ids = load_policy(folder, device=CPU), num_ids(load_tokenizer(folder))
    engine = make_engine(EngineConfig(name="transformers"), folder, max_model_len=96, seed=0)
    groups = sample(engine, prompts_of(folder), SamplingParams(num_samples=2, max_tokens=32))
    batch = collate(groups)
    with torch.no_grad():
        logprobs, _ = token_logprobs(
            policy, batch.prompt_ids, batch.prompt_lengths, batch.prompt_of, batch.completion_ids, batch.lengths,
            temperature=1.0,
        )  # fmt: skip
    assert float((logprobs - batch.sampler_logprobs).abs().max()) < 1e-4
    assert int(batch.completion_ids.max()) < ids < policy.config.vocab_size
    plain = plain_model(folder)
    rows = [(group.prompt.token_ids, own.token_ids) for group in groups for own in group.completions]
    for own, (prompt, completion) in zip(logprobs, rows, strict=True):
        expected = alone(plain, prompt, completion, ids)
        assert float((own[: len(completion)] - expected).abs().max()) < 1e-4


def test_a_score_has_the_soft_cap_of_attention(tmp_path):
    folder = save_family("gemma2", tmp_path / "policy")
    model = new_reward_model(folder, load_tokenizer(folder), device=CPU)
    model.score.weight.data.normal_()
    model.save_pretrained(tmp_path / "scorer")
    load, scorer = AutoModelForSequenceClassification.from_pretrained, tmp_path / "scorer"
    ways = ({"attn_implementation": name, "dtype": torch.float32} for name in ("eager", "sdpa"))
    plain, uncapped = (load(scorer, **way).eval() for way in ways)
    rows = [((5, 6, 7), (8, 9, 10)), ((5, 6, 7), (11, 12))]
    scores = RewardModelPasses(model).rewards(collate_rows(rows))
    for score, (prompt, completion) in zip(scores, rows, strict=True):
        ids = torch.tensor([[*prompt, *completion]])
        with torch.no_grad():
            expected, other = (each(input_ids=ids).logits[0, 0] for each in (plain, uncapped))
        assert abs(score - expected) < 1e-4 < abs(score - other) / 100


def test_small_logits_do_not_hide_what_the_model_does_to_them(tmp_path):
    """A soft cap of 30 changes logits of 0.1 by 4e-7. What config.json says and the model does not do is refused."""
    folder = save_family("llama", tmp_path, logit_scale=0.5)
    model = AutoModelForCausalLM.from_pretrained(folder)
    model.get_output_embeddings().weight.data.mul_(1e-5)
    model.save_pretrained(folder)
    with pytest.raises(ValueError, match="its logits"):
        load_policy(folder, device=CPU)


@pytest.mark.parametrize("family", ["bloom", "mamba", "mamba2", "lfm2", "qwen3_next", "falcon_h1", "mpt"])
def test_a_family_that_cannot_share_prompts_is_refused_with_a_reason(family, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": family}))
    for refuse in (lambda: check_model(tmp_path, needs_chat=False), lambda: load_policy(tmp_path, device=CPU)):
        with pytest.raises(ValueError, match=f"'{family}' are not supported: its .* prompt"):
            refuse()


@pytest.mark.parametrize(
    ("family", "values", "message"),
    [
        ("phi3", {"sampling.max_tokens": 100}, "context of 96 tokens"),
        ("gpt2", {"lora.rank": 2}, "Conv1D"),
        ("qwen3_moe", {"lora.rank": 2}, "experts"),
        ("cohere2", {"engine.urls": "http://localhost:1"}, "sliding windows"),
        pytest.param("qwen3_moe", {"engine.name": "vllm"}, "experts", marks=pytest.mark.vllm),
        pytest.param("cohere2", {"engine.name": "vllm"}, "sliding windows", marks=pytest.mark.vllm),
    ],
)
def test_what_a_family_cannot_do_is_refused_before_anything_is_written(family, values, message, tmp_path):
    folder, runs = save_family(family, tmp_path / "model"), tmp_path / "runs"
    own = {"model": str(folder), "run.dir": str(runs), "sampling.max_tokens": 32}
    with pytest.raises(ValueError, match=message):
        preflight(resolve([("test", own | values)]).config, runs / "one")
    assert not runs.exists()
    preflight(resolve([("test", own)]).config, runs / "one")


@pytest.mark.parametrize("family", ["phi3", "deepseek_v3", "gpt_neox"])
def test_a_lora_target_that_names_layers_the_model_lacks_is_refused(family):
    pytest.importorskip("peft")
    with pytest.raises(ValueError, match=r"has no linear layer q_proj"):
        add_adapter(family_model(family), LoraConfig(rank=2, target="attention"), seed=0)


def test_an_adapter_of_transposed_layers_is_not_merged(tmp_path):
    """GPT-2's attention output is square: B A would be added untransposed without an error."""
    folder = save_family("gpt2", tmp_path)
    (folder / "adapter_config.json").write_text("{}")
    with pytest.raises(ValueError, match="Conv1D"):
        load_policy(folder, device=CPU)


def test_quantised_weights_are_refused_by_their_method():
    with pytest.raises(ValueError, match=r"quantised weights \(awq\) cannot be trained"):
        check_family({"model_type": "qwen2", "quantization_config": {"quant_method": "awq", "bits": 4}})


def test_a_model_whose_decoding_has_other_log_probabilities_is_refused(monkeypatch):
    model = family_model("gemma2").eval()
    check_decoding(model)
    forward = model.base_model.forward
    monkeypatch.setattr(model.base_model, "forward", lambda *, attention_mask=None, **arguments: forward(**arguments))
    with pytest.raises(ValueError, match="cannot sample from Gemma2ForCausalLM"):
        check_decoding(model)


def test_longrope_is_trained_within_its_original_context(tmp_path):
    folder = save_family("phi3", tmp_path)
    assert context_of(load_policy(folder, device=CPU)) == check_model(folder, needs_chat=False) == 96
    assert context_length(folder) == 256  # vLLM evaluates it so
    with pytest.raises(ValueError, match="96 tokens"):
        make_engine(EngineConfig(name="transformers"), folder, max_model_len=97, seed=0)


@pytest.mark.vllm
@pytest.mark.parametrize("family", ["qwen3_moe", "cohere2"])
def test_auto_takes_transformers_where_vllm_cannot_follow_the_training(family, tmp_path, capsys):
    folder = save_family(family, tmp_path)
    engine = make_engine(EngineConfig(), folder, max_model_len=64, seed=0, is_updated=True)
    assert engine.name == "transformers"
    assert "vLLM cannot follow the training" in capsys.readouterr().err
    engine.close()
