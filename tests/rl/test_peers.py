"""Our losses beside TRL's, on the same random tensors: `pip install -e ".[peers]"`, `python -m pytest -m peers`.

TRL's own method is called with a stub trainer that has only the settings it reads. docs/FROM_TRL_AND_VERL.md has the
conventions that differ.
"""

from collections import defaultdict
from types import SimpleNamespace

import pytest
import torch

from reasoner.rl.advantages import EPS, outcome_advantages
from reasoner.rl.kl import KL
from reasoner.rl.losses import RATIOS, token_weights
from reasoner.rl.surrogates import SURROGATES

pytestmark = pytest.mark.peers
N, T, LONGEST = 8, 12, 16


@pytest.fixture
def tensors():
    generator = torch.Generator().manual_seed(0)

    def random(scale):
        return scale * torch.randn(N, T, generator=generator, dtype=torch.float64)

    old = -random(1.0).abs()
    lengths = torch.randint(1, T + 1, (N,), generator=generator)
    return SimpleNamespace(
        logp=(old + random(0.3)).requires_grad_(),
        old=old,
        ref=old + random(0.3),
        mask=torch.arange(T) < lengths[:, None],
        advantages=torch.randn(N, 1, generator=generator, dtype=torch.float64),
    )


def theirs(t, *, old=True, beta=0.0, **settings):
    trl = pytest.importorskip("trl.trainer.grpo_trainer")
    options = {
        "loss_type": "grpo", "epsilon_low": 0.2, "epsilon_high": 0.2, "importance_sampling_level": "token",
        "delta": None, "use_bias_correction_kl": False,
    } | settings  # fmt: skip
    whole = SimpleNamespace(reduce=lambda x, **_: x, gather=lambda x: x, num_processes=1, sync_gradients=True)
    trainer = SimpleNamespace(
        **options,
        args=SimpleNamespace(**options, steps_per_generation=1),
        beta=beta,
        accelerator=whole,
        aux_loss_enabled=False,
        top_entropy_quantile=1.0,
        off_policy_mask_threshold=None,
        use_vllm=False,
        model=SimpleNamespace(training=True),
        current_gradient_accumulation_steps=1,
        max_completion_length=LONGEST,
        _entropy_bonus_enabled=False,
        _metrics={"train": defaultdict(list)},
        _get_per_token_logps_and_entropies=lambda *_, **__: (t.logp, torch.zeros_like(t.old), None),
    )
    inputs = {
        "prompt_ids": torch.ones(N, 1).long(),
        "prompt_mask": torch.ones(N, 1).long(),
        "completion_ids": torch.ones(N, T).long(),
        "completion_mask": t.mask.long(),
        "advantages": t.advantages[:, 0],
        "ref_per_token_logps": t.ref,
        "num_items_in_batch": t.mask.sum(),
    } | ({"old_per_token_logps": t.old} if old else {})
    return trl.GRPOTrainer._compute_loss(trainer, None, inputs)


def ours(t, *, old=True, surrogate="clip", ratio="token", weights="sequence", beta=0.0, kl="k3", **clip):
    before = t.old if old else t.logp.detach()
    ratios = RATIOS[ratio](t.logp, before, t.mask)
    clip = {"low": 0.2, "high": 0.2, "dual": 0.0} | clip
    per_token = SURROGATES[surrogate].loss(ratios, t.logp, t.advantages.expand(N, T), **clip)
    per_token = per_token + beta * KL[kl](t.logp, t.ref)
    return (token_weights(t.mask, weights, max_tokens=LONGEST).double() * per_token).sum()


@pytest.mark.parametrize(
    ("our", "their"),
    [
        ({}, {}),
        ({"beta": 0.04}, {"beta": 0.04}),
        ({"weights": "token", "beta": 0.04}, {"loss_type": "bnpo", "beta": 0.04}),
        ({"weights": "constant"}, {"loss_type": "dr_grpo"}),
        ({"weights": "token", "high": 0.28}, {"loss_type": "dapo", "epsilon_high": 0.28}),
        ({"surrogate": "clip_weight", "weights": "token", "high": 0.28}, {"loss_type": "cispo", "epsilon_high": 1.28}),
        (
            {"ratio": "sequence", "low": 3e-4, "high": 4e-4},
            {"importance_sampling_level": "sequence", "epsilon_low": 3e-4, "epsilon_high": 4e-4},
        ),
        ({"ratio": "sequence"}, {"importance_sampling_level": "sequence"}),
        ({"dual": 1.5}, {"delta": 1.5}),
        ({"old": False, "kl": "k3_reverse", "beta": 0.5}, {"old": False, "beta": 0.5, "use_bias_correction_kl": True}),
        ({"old": False}, {"old": False}),
    ],
)
def test_loss_and_gradient_equal_trl(tensors, our, their):
    mine, other = ours(tensors, **our), theirs(tensors, **their)
    gradients = [torch.autograd.grad(loss, tensors.logp)[0] for loss in (mine, other)]
    assert mine.item() == pytest.approx(other.item(), rel=1e-5)
    assert torch.allclose(gradients[0], gradients[1], rtol=1e-5, atol=1e-9)
    assert gradients[0].abs().max() > 0


def test_advantages_equal_trl_up_to_deviation_and_epsilon():
    rewards = torch.tensor([[1.0, 0.0, 0.3, 1.0], [0.2, 0.2, 1.2, 0.2]])
    flat = rewards.reshape(-1, 1)
    mine = outcome_advantages(flat, torch.ones_like(flat).bool(), group=4).view(2, 4).double()
    centred = rewards - rewards.mean(dim=1, keepdim=True)
    trl = centred / (rewards.std(dim=1, keepdim=True) + 1e-4)
    population = rewards.std(dim=1, keepdim=True, correction=0)
    converted = mine * (population + EPS) / (population * (4 / 3) ** 0.5 + 1e-4)
    assert torch.allclose(converted, trl.double(), rtol=1e-5)
