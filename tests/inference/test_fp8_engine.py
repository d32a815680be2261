"""vLLM quantises what it is sent, on a CPU as on a GPU: after an update it samples as if it had loaded the weights."""

import weakref
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from reasoner.config.schema import Config, EngineConfig
from reasoner.inference.factory import make_engine
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.trainer.sync_certificate import LIMITS, certify_sync
from reasoner.types import Prompt, SamplingParams
from tests.fixtures.tiny import perturbed, save_tiny
from tests.fixtures.toys import PROBLEM, trainer_and_generator

FP8 = EngineConfig(name="vllm", dtype="fp8")
PROMPTS = [Prompt(PROBLEM, "", "", (5, 6, 7 + number)) for number in range(8)]
SAMPLED = SamplingParams(num_samples=2, max_tokens=24)


def opened(folder: Path):
    return closing(make_engine(FP8, folder, max_model_len=64, seed=0, is_updated=True))


def samples(engine):
    groups = engine.generate(PROMPTS, SAMPLED, [[2 * i, 2 * i + 1] for i in range(len(PROMPTS))])
    return [(list(one.token_ids), list(one.logprobs)) for group in groups for one in group]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    pytest.importorskip("vllm")
    return save_tiny(tmp_path_factory.mktemp("tiny"), heads=2, key_value_heads=1)


@pytest.mark.slow  # each run asks for a certificate: reasoner.trainer.sync_certificate
def test_fp8_engine_quantises_updates_as_what_it_loads_has_its_limit_and_is_refused_with_old_weights(folder, tmp_path):
    """One engine for all that an update says, and one that loads."""
    model = perturbed(folder)
    model.save_pretrained(tmp_path)
    load_tokenizer(folder).save_pretrained(tmp_path)
    with opened(folder) as engine:
        dtypes = engine._llm.apply_model(lambda model: {weight.dtype for weight in model.parameters()})[0]
        assert torch.float8_e4m3fn in dtypes
        before = samples(engine)
        engine.update_weights(model.state_dict().items(), version=1)
        updated = samples(engine)
        engine.update_weights(load_policy(folder, device=torch.device("cpu")).state_dict().items(), version=2)
        assert samples(engine) == before != updated
        trainer, generator = trainer_and_generator(folder, engine, replace(Config(), engine=FP8))
        certificate = certify_sync(trainer, generator)
        assert 0.05 < certificate.changed < certificate.limit == LIMITS["fp8"]
        assert len(certificate.unseen) < certificate.groups
        engine._llm.collective_rpc = lambda name, kwargs: None  # takes nothing
        with pytest.raises(RuntimeError, match="does not sample from the weights"):
            certify_sync(trainer, generator)
        weights = engine._llm.apply_model(lambda model: [weakref.ref(own) for own in model.parameters()])[0]
    assert all(own() is None for own in weights)  # on a GPU vLLM would start no second engine beside them
    with opened(tmp_path) as engine:
        assert samples(engine) == updated
