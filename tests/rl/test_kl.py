"""The controller of the KL penalty: its rule by hand, the KL of a response, and a KL that is brought to its target."""

import pytest
import torch

from reasoner.rl.batch import collate
from reasoner.rl.kl import adapt_coefficient, response_kl
from reasoner.trainer.train import train_step
from tests.fixtures.tiny import tiny_model
from tests.fixtures.toys import config, group, make_trainer, random_groups


@pytest.mark.parametrize(
    ("kl", "share", "factor"),
    [
        (6.0, 0.1, 1.0),
        (6.6, 0.1, 1.01),  # 10 % above the target
        (5.4, 0.1, 0.99),
        (60.0, 0.1, 1.02),  # the error is clipped to 20 %
        (0.0, 0.1, 0.98),
        (-3.0, 0.1, 0.98),  # an estimate may be negative
        (60.0, 2.0, 1.4),
        (0.0, 10.0, 0.0),  # never below 0
    ],
)
def test_controller_multiplies_by_the_clipped_error_times_the_share(kl, share, factor):
    """Ziegler et al. 2019: beta *= 1 + clip(KL / target - 1, -0.2, 0.2) * responses / horizon."""
    assert adapt_coefficient(0.5, kl, 6.0, share=share) == pytest.approx(0.5 * factor)


def test_controller_brings_a_kl_that_answers_to_beta_to_its_target():
    """A KL of 2 / beta nats, 256 responses a step and a horizon of 1,024."""
    beta = 1.0
    for _ in range(100):
        beta = adapt_coefficient(beta, 2 / beta, 6.0, share=256 / 1024)
    assert 2 / beta == pytest.approx(6.0, rel=0.2)


def test_kl_of_a_response_is_the_sum_over_its_tokens_averaged_over_responses():
    mask = torch.tensor([[True, True, True], [True, False, False]])
    logprobs = torch.tensor([[-1.0, -2.0, -1.0], [-1.0, 5.0, 5.0]])
    reference = torch.tensor([[-2.0, -1.5, -1.0], [-4.0, 0.0, 0.0]])
    assert response_kl(logprobs, reference, mask).item() == pytest.approx((0.5 + 3.0) / 2)


def step(**algo):
    """(beta before, metrics) of a step with a reference of other weights."""
    cfg = config(beta=0.05, **algo)
    reference = tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False)
    trainer = make_trainer(cfg, reference=reference)
    batch = trainer.compute_advantages(trainer.compute_logprobs(collate(random_groups())))
    measured = response_kl(batch.policy_logprobs, batch.ref_logprobs, batch.mask)
    return float(measured), train_step(trainer, batch)


@pytest.mark.parametrize("name", ["grpo", "dapo", "rloo"])
def test_trainer_adapts_beta_to_the_kl_of_all_sampled_responses(name):
    measured, metrics = step(kl_target=1e3, name=name, kl_horizon=100)
    assert metrics["kl/response"] == pytest.approx(measured, rel=1e-6)
    assert metrics["beta"] == pytest.approx(0.05 * (1 - 0.2 * 20 / 100))


def test_step_without_an_update_leaves_beta():  # trap A4
    flat = [group([5, 6], [[7, 8], [9], [10], [11]], [1, 1, 1, 1])]
    cfg = config(name="rloo", beta=0.05, kl_target=1.0, kl_horizon=10)
    reference = tiny_model(vocabulary=60, width=32, layers=2, seed=5).requires_grad_(False)
    trainer = make_trainer(cfg, reference=reference)
    batch = trainer.compute_logprobs(collate(flat))
    ready = trainer.compute_advantages(batch)
    ready.advantages.zero_()
    assert train_step(trainer, ready)["beta"] == 0.05
