"""Experts of a mixture under autocast."""

from copy import deepcopy

import pytest
import torch
from transformers.integrations import moe

from reasoner.models.loading import load_policy
from tests.fixtures.families import save_family

IDS = torch.tensor([[1, 2, 3, 4, 5, 6]])


@pytest.mark.parametrize("family", ["qwen3_moe", "mixtral", "gpt_oss"])
def test_experts_are_multiplied_in_the_precision_of_autocast_and_learn_in_float32(family, tmp_path, monkeypatch):
    policy = load_policy(save_family(family, tmp_path), device=torch.device("cpu"))
    dtypes, product = [], moe._grouped_mm

    def recorded(states, weight, *rest, **more):
        dtypes.append(weight.dtype)
        return product(states, weight, *rest, **more)

    monkeypatch.setattr(moe, "_grouped_mm", recorded)
    copy = deepcopy(policy)  # a critic's backbone
    with torch.autocast("cpu", dtype=torch.bfloat16):
        policy(input_ids=IDS).logits.float().square().sum().backward()
    assert set(dtypes) == {torch.bfloat16}
    experts = [(name, weight) for name, weight in policy.named_parameters() if ".experts." in name]
    assert all(weight.dtype == weight.grad.dtype == torch.float32 for _, weight in experts)
    assert sum(bool(weight.grad.any()) for _, weight in experts) == len(experts)
    with torch.no_grad():
        for weight in copy.parameters():
            weight.zero_()
        dtypes.clear()
        assert not copy(input_ids=IDS).logits.any() and policy(input_ids=IDS).logits.any()
    assert set(dtypes) == {torch.float32}
