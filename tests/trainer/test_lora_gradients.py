"""Gradient of an adapter for every row of the algorithm table, against autograd on weights that are written out."""

from dataclasses import replace

import pytest
import torch

pytest.importorskip("peft")

from reasoner.config.learning import LoraConfig
from reasoner.models.lora import adapter_of, add_adapter, trained_parameters
from reasoner.rl.algorithms import ALGORITHMS
from reasoner.rl.batch import collate
from reasoner.rl.objective import token_terms
from reasoner.trainer import trainer as trainer_file
from reasoner.trainer.train import train_step
from tests.fixtures.tiny import tiny_model
from tests.fixtures.toys import config, group, make_trainer

LORA = LoraConfig(rank=3, alpha=5.0)
STEPS = [[(1, 1.0), (2, 0.0)], [(0, 1.0)], [(3, 0.0)], [(0, 0.0), (1, 1.0)]]  # (token, reward) of each row of a group
GROUPS = [
    group([5, 6], [[7, 8, 9, 10], [11], [12, 13, 14, 15], [16, 17]], (1.0, 0.0, 0.0, 1.0)),
    group([3, 4, 8], [[9, 7, 9, 20], [12], [30, 31, 5, 6], [16, 41]], (0.0, 0.0, 1.0, 0.0)),
]


def base_model():
    return tiny_model(vocabulary=60, width=32, layers=2)


def trainer_of(name):
    """A trainer in float64 whose adapter has a B that is not 0, and takes one update of a step's completions."""
    cfg = replace(config(name=name, beta=0.05, micro=13, epochs=1, minibatches=1), lora=LORA)
    policy = base_model()
    add_adapter(policy, LORA, seed=4)
    generator = torch.Generator().manual_seed(1)
    for parameter_name, parameter in trained_parameters(policy):
        if ".lora_B." in parameter_name:
            parameter.data.normal_(0, 0.1, generator=generator)
    policy.double()
    return make_trainer(cfg, policy, policy)


def batch_of(trainer, name):
    """A batch whose old policy differs from the policy: ratios are not 1, and some are clipped."""
    steps = STEPS * len(GROUPS) if ALGORITHMS[name].returns == "process" else None
    batch = trainer.compute_advantages(trainer.compute_logprobs(collate(GROUPS, steps)))
    own = trainer.passes.all_logprobs(batch)
    noise = 0.3 * torch.randn(own.shape, generator=torch.Generator().manual_seed(2))
    return replace(batch, old_logprobs=own + noise * batch.mask)


def learner_gradient(trainer, batch, monkeypatch):
    """The gradient with which the update begins, by parameter."""
    gradients = {}

    def keep(*_):
        gradients.update({name: parameter.grad.clone() for name, parameter in trained_parameters(trainer.policy)})
        return 1.0, {}

    monkeypatch.setattr(trainer_file, "constrained_update", keep)
    monkeypatch.setattr(trainer, "apply_gradient", lambda lr_factor: keep()[0])
    train_step(trainer, batch)
    return gradients


def plain_gradient(trainer, batch):
    """The gradient of the same loss, row by row without padding, of a model with weights W + alpha / rank B A."""
    adapter, plain = adapter_of(trainer.policy), base_model().double()
    leaves = {name: tensor.clone().requires_grad_() for name, tensor in adapter.tensors.items()}
    weights = dict(plain.named_parameters())
    for layer in adapter.layers:
        delta = leaves[f"{layer}.lora_B.weight"] @ leaves[f"{layer}.lora_A.weight"]
        weights[f"{layer}.weight"] = weights[f"{layer}.weight"].detach() + (5.0 / 3) * delta
    rows, width = [], batch.completion_ids.shape[1]
    for row, length in enumerate(batch.lengths.tolist()):
        prompt = batch.prompt_ids[batch.prompt_of[row]][-int(batch.prompt_lengths[batch.prompt_of[row]]) :]
        ids = torch.cat([prompt, batch.completion_ids[row, :length]])[None]
        logits = torch.func.functional_call(plain, weights, (), {"input_ids": ids}).logits
        log_softmax = logits[0, len(prompt) - 1 : -1].log_softmax(-1)
        own = log_softmax.gather(1, ids[0, len(prompt) :, None])[:, 0]
        rows.append(torch.nn.functional.pad(own, (0, width - length)))
    logprobs, algo = torch.stack(rows), trainer.cfg.algo
    coefficients = {"correction": "none", "beta": trainer.policy_loss.beta, "penalty": trainer.policy_loss.penalty}
    terms = token_terms(logprobs, torch.zeros_like(logprobs), batch, trainer.algorithm, algo, **coefficients)
    (trainer.policy_loss.weights(batch) * terms.loss).sum().backward()
    return {name: leaf.grad for name, leaf in leaves.items()}


@pytest.mark.parametrize("name", ALGORITHMS)
def test_gradient_of_the_adapter_equals_autograd_s_for_every_algorithm(name, monkeypatch):
    trainer = trainer_of(name)
    batch = batch_of(trainer, name)
    expected = plain_gradient(trainer, batch)
    gradients = learner_gradient(trainer, batch, monkeypatch)
    assert len(gradients) == len(expected) == 2 * 2 * 7  # A and B of seven layers in two blocks
    assert any(float(gradient.norm()) > 1e-3 for gradient in gradients.values())
    for own, gradient in gradients.items():
        plain = expected[own.replace(".default.", ".")]
        assert float((gradient - plain).norm()) <= 1e-4 * float(plain.norm()), own  # log-probabilities are in float32
