"""The pretraining mix: its gradient is that of the mean likelihood, and weight 0 changes no byte."""

import json
from dataclasses import replace

import pytest
import torch

from reasoner.config.learning import PtxConfig
from reasoner.models.loading import load_tokenizer
from reasoner.models.resolve import BASE
from reasoner.models.sharding import DistributedModel
from reasoner.pretrain.corpus import document
from reasoner.rl.model_passes import ModelPasses
from reasoner.sft.examples import Example
from reasoner.trainer.preflight import check_pretraining_mix
from reasoner.trainer.pretraining_mix import PretrainingMix, load_pretraining_mix
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, group, make_trainer, random_groups, take_step

TEXTS = [Example((5,), (6, 7, 8)), Example((5,), (9,)), Example((11,), (12, 13))]


def gradient_of(model):
    return torch.cat([p.grad.flatten() for p in model.parameters() if p.grad is not None])


@pytest.mark.parametrize("tokens", [1, 4, 10_000])
def test_gradient_is_the_weight_times_that_of_the_mean_negative_log_likelihood(tokens):
    model = tiny_model(vocabulary=60, width=32, layers=2)
    rows = [torch.tensor([[*text.prompt_ids, *text.completion_ids]]) for text in TEXTS]
    losses = [-model(input_ids=ids).logits.log_softmax(-1)[0, :-1].gather(1, ids[0, 1:, None]).sum() for ids in rows]
    nll = sum(losses) / 6
    (0.3 * nll).backward()
    expected = gradient_of(model)
    model.zero_grad()
    passes = ModelPasses(
        DistributedModel(model), "float32", 0.7, tokens
    )  # the temperature of sampling is not that of the likelihood
    assert PretrainingMix(lambda _: TEXTS, 0.3).add_gradient(passes, 0) == pytest.approx(nll.item(), rel=1e-5)
    assert torch.allclose(gradient_of(model), expected, atol=1e-6)


def trained(mix, steps=3, groups=None, **algo):
    trainer = make_trainer(config(**{"minibatches": 2, **algo}), pretraining_mix=mix)
    metrics = [take_step(trainer, groups or random_groups()) for _ in range(steps)]
    return trainer, metrics


def test_each_optimiser_step_has_its_own_texts_and_raises_their_likelihood():
    numbers = []

    def texts(number):
        numbers.append(number)
        return TEXTS

    _, metrics = trained(PretrainingMix(texts, 1.0))
    assert numbers == [0, 1, 2, 3, 4, 5]
    assert metrics[-1]["ptx/nll"] < metrics[0]["ptx/nll"]


def test_mix_learns_where_no_completion_has_an_advantage():
    flat = [group([5, 6], [[7, 8], [9], [10], [11]], [1, 1, 1, 1])]
    _, metrics = trained(PretrainingMix(lambda _: TEXTS, 1.0), groups=flat, minibatches=1)
    assert metrics[0]["grad_norm"] > 0 and metrics[-1]["ptx/nll"] < metrics[0]["ptx/nll"]


def test_weight_zero_is_no_mix_and_changes_no_byte():
    cfg = replace(config(), ptx=PtxConfig(data="corpus:base", weight=0.0))
    assert load_pretraining_mix(cfg, tiny_tokenizer(), 512) is None
    (plain, before), (none, after) = trained(None), trained(load_pretraining_mix(cfg, tiny_tokenizer(), 512))
    assert before == after and "ptx/nll" not in after[0]
    assert all(torch.equal(a, b) for a, b in zip(plain.policy.parameters(), none.policy.parameters(), strict=True))


def test_corpus_gives_documents_of_the_base_by_number_and_seed():
    tokenizer = load_tokenizer(BASE)
    mixes = [
        load_pretraining_mix(replace(config(), seed=seed, ptx=PtxConfig("corpus:base", rows=3)), tokenizer, 512)
        for seed in (0, 1)
    ]
    texts = [tokenizer.decode((*text.prompt_ids, *text.completion_ids)) for text in mixes[0].texts(2)]
    assert texts == [document(0, i) + "<|end|>" for i in (6, 7, 8)]
    assert mixes[0].texts(2) == mixes[0].texts(2) != mixes[1].texts(2)


def test_file_of_texts_comes_once_in_an_epoch_and_other_files_are_refused(tmp_path):
    path = tmp_path / "texts.jsonl"
    path.write_text("".join(json.dumps({"text": f"What is {n} plus 30?"}) + "\n" for n in range(4)))
    cfg = replace(config(), ptx=PtxConfig(str(path), rows=2))
    mix = load_pretraining_mix(cfg, tiny_tokenizer(), 512)
    assert len({text for number in (0, 1) for text in mix.texts(number)}) == 4
    check_pretraining_mix(str(path))
    for name in ("corpus:other", str(tmp_path / "none.jsonl"), str(tmp_path)):
        with pytest.raises(ValueError, match=r"ptx.data is .*; known are corpus:base and files that exist, .jsonl or"):
            check_pretraining_mix(name)
