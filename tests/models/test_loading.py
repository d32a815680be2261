"""Loading models from folders: what is refused, and what must not change a log-probability."""

import math

import pytest
import torch
from transformers import ByT5Tokenizer, GPT2Config, GPT2LMHeadModel, MistralConfig

from reasoner.models.loading import completion_logprobs, load_policy, load_tokenizer, token_logprobs
from tests.fixtures.tiny import tiny_model, tiny_tokenizer

CPU = torch.device("cpu")
PROMPTS = torch.tensor([[0, 5, 6], [7, 8, 9]]), torch.tensor([2, 3])
ROWS = torch.tensor([0, 1, 1]), torch.tensor([[10, 11, 12], [13, 0, 0], [14, 15, 0]]), torch.tensor([3, 1, 2])


def logprobs(model, temperature=1.0):
    return token_logprobs(model, *PROMPTS, *ROWS, temperature=temperature)


def test_folder_without_model_and_tokenizer_without_end_token_are_refused(tmp_path):
    with pytest.raises(ValueError, match="no language model can be loaded from") as error:
        load_policy(tmp_path, device=CPU)
    assert "\n" not in str(error.value)
    with pytest.raises(ValueError, match="no tokenizer can be loaded from") as error:
        load_tokenizer(tmp_path)
    assert "\n" not in str(error.value)
    tokenizer = tiny_tokenizer()
    tokenizer.eos_token = None
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="no end token"):
        load_tokenizer(tmp_path)


def test_tokenizer_outside_of_the_library_tokenizers_is_refused(tmp_path):
    ByT5Tokenizer().save_pretrained(tmp_path)
    with pytest.raises(ValueError, match=r"ByT5Tokenizer\) has no form in"):
        load_tokenizer(tmp_path)


def test_tokenizer_json_is_read_beside_mistrals_own_file(tmp_path):
    tokenizer = tiny_tokenizer()
    tokenizer.save_pretrained(tmp_path)
    MistralConfig().save_pretrained(tmp_path)
    (tmp_path / "tekken.json").write_text("{}")
    assert load_tokenizer(tmp_path).get_vocab() == tokenizer.get_vocab()


def test_load_policy_has_float32_weights_and_no_dropout(tmp_path):  # traps 29, 30
    config = GPT2Config(vocab_size=40, n_embd=16, n_layer=2, n_head=2, n_positions=32, bos_token_id=0, eos_token_id=0)
    assert config.attn_pdrop > 0
    GPT2LMHeadModel(config).to(torch.bfloat16).save_pretrained(tmp_path)
    policy = load_policy(tmp_path, device=CPU)
    assert {p.dtype for p in policy.parameters()} == {torch.float32}
    assert torch.equal(logprobs(policy)[0], logprobs(policy)[0])
    assert all(module.p == 0 for module in policy.modules() if isinstance(module, torch.nn.Dropout))


def test_equal_logits_give_log_vocabulary_at_any_temperature():
    model = tiny_model(vocabulary=40, width=32)
    model.get_output_embeddings().weight.data.zero_()
    sampled_logprobs, entropy = logprobs(model, temperature=0.6)
    mask = torch.tensor([[1, 1, 1], [1, 0, 0], [1, 1, 0]]).bool()
    assert sampled_logprobs[mask].tolist() == pytest.approx([-math.log(40)] * 6)
    assert entropy[mask].tolist() == pytest.approx([math.log(40)] * 6)
    assert (sampled_logprobs[~mask] == 0).all() and (entropy[~mask] == 0).all()


def test_log_softmax_is_float32_under_bfloat16():  # trap 31
    model = tiny_model(vocabulary=60, width=32, layers=2)
    states, ids = torch.randn(2, 3, 32), torch.tensor([[5, 6, 7], [8, 9, 10]])
    with torch.autocast("cpu", dtype=torch.bfloat16):
        sampled_logprobs, entropy = completion_logprobs(model, states, ids, torch.ones(2, 3) > 0, temperature=1.0)
        logits = model.get_output_embeddings()(states)
    assert sampled_logprobs.dtype == entropy.dtype == torch.float32 and logits.dtype == torch.bfloat16
    expected = logits.float().log_softmax(-1).gather(2, ids[..., None])[..., 0]
    assert torch.equal(sampled_logprobs, expected)
