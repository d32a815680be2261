"""LoRA against W + alpha / r B A written out, its reference, its merged weights and its files."""

import json
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

pytest.importorskip("peft")

from reasoner.config.learning import LoraConfig
from reasoner.models import lora as adapters
from reasoner.models.folder import BaseModel, model_fingerprint
from reasoner.models.loading import load_policy, token_logprobs
from reasoner.models.lora import adapter_off, add_adapter, load_weights, merged_state, trained_parameters
from reasoner.models.resolve import full_folder
from tests.fixtures.tiny import save_tiny, tiny_model, tiny_tokenizer

CPU = torch.device("cpu")
LORA = LoraConfig(rank=3, alpha=5.0)
PROMPTS = torch.tensor([[0, 7, 8, 9], [4, 5, 6, 11]]), torch.tensor([3, 4]), torch.tensor([0, 0, 1])
ROWS = torch.tensor([[5, 6, 7], [9, 8, 2], [3, 3, 0]]), torch.tensor([3, 3, 2])


def base_model():
    return tiny_model(vocabulary=60, width=32, layers=2)


def policy_with_adapter(model=None, lora=LORA, spread=0.1):
    """A policy whose B is not 0."""
    policy = model or base_model()
    add_adapter(policy, lora, seed=4)
    generator = torch.Generator().manual_seed(1)
    for name, parameter in trained_parameters(policy):
        if ".lora_B." in name:
            parameter.data.normal_(0, spread, generator=generator)
    return policy


def logprobs(model):
    return token_logprobs(model, *PROMPTS, *ROWS, temperature=0.8)[0]


def saved(tmp_path, policy=None):
    """(folder of the base, folder of the adapter, the policy)."""
    base, folder = tmp_path / "base", tmp_path / "adapter"
    save_tiny(base, vocabulary=60, width=32)
    policy = policy or policy_with_adapter(load_policy(base, device=CPU))
    adapters.save_policy(policy, folder, BaseModel("tiny", str(base), model_fingerprint(base)))
    tiny_tokenizer().save_pretrained(folder)
    return base, folder, policy


@pytest.mark.parametrize("is_low", [False, True])
@pytest.mark.parametrize(("target", "num_layers"), [("all-linear", 14), ("attention", 8)])
def test_gradient_equals_that_of_peft_s_own_layers_to_the_bit(target, num_layers, is_low):
    """Three of a layer's seven linear layers have a bias; alpha / rank is no power of two, so that products round."""
    policies = [policy_with_adapter(lora=replace(LORA, target=target)) for _ in range(2)]
    layers = [module for module in policies[1].modules() if hasattr(module, "lora_A")]
    assert len(layers) == num_layers and all(vars(layer).pop("forward") for layer in layers)
    for policy in policies:
        with torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_low):
            loss = (logprobs(policy) * torch.tensor([1, 2, 3])[:, None]).sum()
        loss.backward()
    pairs = zip(*(trained_parameters(policy) for policy in policies), strict=True)
    assert all(torch.equal(own.grad, pefts.grad) for (_, own), (_, pefts) in pairs)
    with torch.no_grad(), torch.autocast("cpu", dtype=torch.bfloat16, enabled=is_low):
        assert torch.equal(*(logprobs(policy) for policy in policies))


@torch.no_grad()
def test_reference_is_the_base_to_the_bit_and_the_new_adapter_changes_nothing():
    base, policy = base_model(), policy_with_adapter()
    fresh = base_model()
    add_adapter(fresh, LORA, seed=0)
    assert torch.equal(logprobs(fresh), logprobs(base))
    assert float((logprobs(policy) - logprobs(base)).abs().max()) > 0.01
    with adapter_off(policy):
        assert torch.equal(logprobs(policy), logprobs(base))
    assert float((logprobs(policy) - logprobs(base)).abs().max()) > 0.01
    with adapter_off(base):
        assert torch.equal(logprobs(base), logprobs(base_model()))


@torch.no_grad()
def test_merged_weights_have_the_names_of_the_base_and_leave_the_policy_as_it_is():
    policy, plain = policy_with_adapter(), base_model()
    before = deepcopy(policy.state_dict())
    merged = dict(merged_state(policy))
    assert merged.keys() == plain.state_dict().keys()
    plain.load_state_dict(merged)
    assert float((logprobs(policy) - logprobs(plain)).abs().max()) < 1e-5
    assert all(torch.equal(before[name], tensor) for name, tensor in policy.state_dict().items())


def test_adapter_starts_from_its_seed_alone():
    def matrices(seed):
        model = base_model()
        torch.rand(seed)  # the global generator has no part
        add_adapter(model, LORA, seed=4 if seed < 9 else 5)
        return torch.cat([p.detach().flatten() for n, p in trained_parameters(model) if ".lora_A." in n])

    assert torch.equal(matrices(1), matrices(2))
    assert not torch.equal(matrices(1), matrices(9))


@pytest.mark.parametrize("target", ["all-linear", "attention"])
def test_parameters_of_an_adapter_are_counted_before_it_exists(target):
    lora = LoraConfig(rank=3, target=target)
    model = base_model()
    expected = adapters.num_adapter_parameters(model, lora)
    add_adapter(model, lora, seed=0)
    assert expected == sum(parameter.numel() for _, parameter in trained_parameters(model)) > 0


@torch.no_grad()
def test_folder_holds_the_adapter_alone_and_loads_into_policy_and_full_model(tmp_path):
    base, folder, policy = saved(tmp_path)
    assert full_folder(folder) == base
    assert (folder / "adapter_model.safetensors").stat().st_size < (base / "model.safetensors").stat().st_size / 2
    assert not (folder / "model.safetensors").exists()
    loaded = load_policy(folder, device=CPU)
    assert all(torch.equal(tensor, loaded.state_dict()[name]) for name, tensor in merged_state(policy))
    other = load_policy(base, device=CPU)
    add_adapter(other, LORA, seed=9)
    load_weights(other, folder)
    assert torch.equal(logprobs(other), logprobs(policy))


def test_whole_weights_are_read_into_the_host_s_memory_and_copied_in_place(tmp_path):
    base, _, _ = saved(tmp_path)
    policy = tiny_model(vocabulary=60, width=32, layers=2, seed=3)
    places = {name: tensor.data_ptr() for name, tensor in policy.state_dict().items()}
    load_weights(policy, base)
    stored = base_model().state_dict()
    for name, tensor in policy.state_dict().items():
        assert torch.equal(tensor, stored[name]) and tensor.data_ptr() == places[name]
    with pytest.warns(UserWarning, match="which is a no-op"):  # a model on this device could not even be checked
        load_weights(policy.to("meta"), base)


@torch.no_grad()
def test_peft_reads_the_folder(tmp_path):
    from peft import PeftModel

    base, folder, policy = saved(tmp_path)
    model = PeftModel.from_pretrained(load_policy(base, device=CPU), str(folder)).eval()
    ids = torch.tensor([[5, 6, 7, 8]])
    assert torch.equal(model(input_ids=ids).logits, policy(input_ids=ids).logits)


@pytest.mark.parametrize("cache", ["", "/hub/models--ada--tiny/snapshots/1"])
def test_adapter_of_a_download_names_its_base_on_the_hub(tmp_path, cache):
    folder = cache or str(tmp_path)
    assert BaseModel("ada/tiny", folder, "0").public_name == ("ada/tiny" if cache else folder)


def test_adapter_is_refused_with_another_base_or_none(tmp_path):
    base, folder, _ = saved(tmp_path)
    about = json.loads((folder / "base_model.json").read_text())
    (folder / "base_model.json").write_text(json.dumps(about | {"fingerprint": "0" * 16}))
    with pytest.raises(ValueError, match=f"'tiny' .*{'0' * 16}"):
        load_policy(folder, device=CPU)
    (folder / "base_model.json").unlink()
    with pytest.raises(ValueError, match="its base is not known"):
        load_policy(folder, device=CPU)
    other = load_policy(base, device=CPU)
    add_adapter(other, LoraConfig(rank=2), seed=0)
    with pytest.raises(ValueError, match="the rank and the alpha"):
        load_weights(other, folder)
