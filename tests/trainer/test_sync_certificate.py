"""The sync certificate: an engine that does not take what it is sent is refused, and the weights stay as they were."""

import re
from contextlib import closing
from dataclasses import replace

import pytest
import torch
from safetensors.torch import load_file

from data import Problem
from reasoner.config.learning import LoraConfig
from reasoner.config.schema import Config, EngineConfig
from reasoner.inference.factory import make_engine
from reasoner.inference.hf_engine import TransformersEngine
from reasoner.models.loading import load_meta_model, load_policy
from reasoner.models.saving import as_saved
from reasoner.trainer.parity import logprobs_of, sample
from reasoner.trainer.sync_certificate import LIMITS, certify_sync
from reasoner.types import Prompt, SamplingParams
from tests.fixtures.families import save_family
from tests.fixtures.tiny import save_tiny
from tests.fixtures.toys import trainer_and_generator

CPU = torch.device("cpu")


def settings(**changes):
    return replace(Config(), **changes)


@pytest.mark.parametrize(
    ("name", "lora"),
    [("transformers", 0), ("transformers", 2), pytest.param("vllm", 0, marks=[pytest.mark.vllm, pytest.mark.slow])],
)
def test_an_engine_that_takes_every_weight_is_certified_and_no_bit_changes(name, lora, tmp_path):
    folder, cfg = save_tiny(tmp_path, width=128), settings(engine=EngineConfig(name=name), lora=LoraConfig(rank=lora))
    with closing(make_engine(cfg.engine, folder, max_model_len=64, seed=0, is_updated=True)) as engine:
        trainer, generator = trainer_and_generator(folder, engine, cfg)
        before = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
        certificate = certify_sync(trainer, generator)
    after = trainer.model.state_dict()
    assert all(torch.equal(before[name].view(torch.int32), after[name].view(torch.int32)) for name in before)
    assert certificate.changed < 1e-4 and certificate.restored < 1e-4
    assert (certificate.engine, certificate.lora, certificate.unseen) == (name, lora > 0, ())
    assert certificate.groups == 14


def test_a_trainer_that_computes_in_bfloat16_has_the_limit_of_bfloat16(tmp_path):
    """An engine in float32 is off by the trainer's rounding."""
    folder, cfg = save_tiny(tmp_path, width=128), settings(lora=LoraConfig(rank=2, base_dtype="bfloat16"))
    with closing(make_engine(EngineConfig(name="transformers"), folder, max_model_len=64, seed=0)) as engine:
        certificate = certify_sync(*trainer_and_generator(folder, engine, cfg))
    assert LIMITS["float32"] < certificate.changed < certificate.limit == LIMITS["bfloat16"]


@pytest.mark.parametrize(("layers", "factor"), [(2, 1), pytest.param(32, 2, marks=pytest.mark.slow)])
def test_an_engine_in_bfloat16_is_certified_for_models_in_which_rounding_grows(layers, factor, tmp_path):
    """A change of every weight by much makes a deep model round by more than the limit, in pretrained ones too."""
    folder = save_tiny(tmp_path, layers=layers)
    cfg = settings(engine=EngineConfig(name="transformers", dtype="bfloat16"))
    policy = load_policy(folder, device=CPU)
    for name, weight in policy.named_parameters():
        weight.data *= factor if "_proj.weight" in name else 1
    policy.save_pretrained(folder)
    with closing(make_engine(cfg.engine, folder, max_model_len=64, seed=0, is_updated=True)) as engine:
        certificate = certify_sync(*trainer_and_generator(folder, engine, cfg))
    assert len(certificate.unseen) <= 1


def test_an_engine_in_bfloat16_is_certified_whose_rounding_loses_what_was_learnt(tmp_path):
    """As after many updates that are smaller than a weight's rounding: the float32 weights are another model."""
    cfg = settings(engine=EngineConfig(name="transformers", dtype="bfloat16"))
    folder = save_tiny(tmp_path, width=128, layers=32)
    load_policy(folder, device=CPU).bfloat16().save_pretrained(folder)
    with closing(make_engine(cfg.engine, folder, max_model_len=64, seed=0, is_updated=True)) as engine:
        trainer, generator = trainer_and_generator(folder, engine, cfg)
        trainer.model(torch.arange(64)[None]).logits[..., 5].sum().backward()  # one token becomes likely everywhere
        for weight in trainer.model.parameters():
            weight.data += 0.0016 * weight.data.abs() * weight.grad.sign()
        trainer.model.zero_grad()
        generator.update_weights(trainer.model, version=0)
        prompt = Prompt(Problem("probe", "", "0"), "", "", tuple(range(16)))
        groups = sample(engine, [prompt], SamplingParams(num_samples=4, max_tokens=8))
        compared = [logprobs_of(groups, trainer.model, 1.0, dtype) for dtype in ("bfloat16", "float32")]
        assert certify_sync(trainer, generator).restored < LIMITS["bfloat16"]
    rounded, exact = (float((sampled - own).abs().mean()) for sampled, own in compared)
    assert rounded < LIMITS["bfloat16"] < exact


class StaleEngine(TransformersEngine):
    """Does not take the weights whose names end as `left_out`."""

    left_out = ""

    def update_weights(self, named, version):
        super().update_weights(((name, t) for name, t in named if not name.endswith(self.left_out)), version)


@pytest.mark.parametrize(
    ("left_out", "told"),
    [
        ("up_proj.weight", "model.layers.*.mlp.up_proj.weight"),
        ("q_proj.bias", "model.layers.*.self_attn.q_proj.bias"),
        ("model.norm.weight", "model.norm.weight"),
        ("1.mlp.up_proj.weight", "model.layers.*.mlp.up_proj.weight"),  # of one layer alone
        ("layernorm.weight", "model.layers.*.post_attention_layernorm.weight"),  # of two names
    ],
)
def test_an_engine_that_leaves_out_weights_is_refused(left_out, told, tmp_path):
    cfg = settings(engine=EngineConfig(name="transformers"))
    with closing(StaleEngine(save_tiny(tmp_path), cfg.engine, max_model_len=64)) as engine:
        engine.left_out = left_out
        trainer, generator = trainer_and_generator(tmp_path, engine, cfg)
        before = {name: weight.clone() for name, weight in trainer.model.state_dict().items()}
        with pytest.raises(RuntimeError, match="does not sample from the weights") as error:
            certify_sync(trainer, generator)
    stale = re.findall(r"after an update of (\S+?)[,;]", str(error.value))
    assert told in stale and all(name.endswith(left_out.removeprefix("1")) for name in stale)
    assert all(torch.equal(before[name], weight) for name, weight in trainer.model.state_dict().items())


@pytest.mark.vllm
@pytest.mark.slow
@pytest.mark.parametrize("family", ["qwen3_moe", "gpt_oss", "mixtral"])
def test_vllm_on_a_cpu_is_refused_for_a_mixture_of_experts(family, tmp_path, monkeypatch):
    monkeypatch.setattr("reasoner.inference.factory.vllm_obstacle", lambda *_, **__: "")
    folder, cfg = save_family(family, tmp_path), settings(engine=EngineConfig(name="vllm"))
    engine = make_engine(cfg.engine, folder, max_model_len=64, seed=0, is_updated=True)
    with closing(engine), pytest.raises(RuntimeError, match="does not sample from the weights"):
        certify_sync(*trainer_and_generator(folder, engine, cfg))


@pytest.mark.parametrize("family", ["qwen3_moe", "mixtral", "gpt_oss", "llama", "gpt2"])
def test_weights_are_sent_as_save_pretrained_writes_them(family, tmp_path):
    folder = save_family(family, tmp_path)
    policy, written = load_policy(folder, device=CPU), load_file(folder / "model.safetensors")
    sent = dict(as_saved(load_meta_model(folder), policy.state_dict().items()))
    assert sent.keys() >= written.keys()
    assert all(torch.equal(sent[name], weight) for name, weight in written.items())
    if family != "gpt2":  # its head is tied, and sent under its own name too
        assert sent.keys() == written.keys()
