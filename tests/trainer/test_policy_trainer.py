"""The trainer on tiny models: what must not change a gradient, what must, and that a toy learns."""

import math
from copy import deepcopy
from dataclasses import replace

import pytest
import torch

from reasoner.models.loading import load_policy, token_logprobs
from reasoner.rl.batch import collate
from reasoner.trainer.checkpoint import load, save
from reasoner.trainer.train import train_step
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, group, make_trainer, random_groups, take_step


def gradient(cfg, groups, reference=None):
    made = make_trainer(cfg, reference=reference)
    made.optimizer.step = lambda: None  # keep the gradient to look at
    take_step(made, groups)
    return torch.cat([torch.zeros(p.numel()) if p.grad is None else p.grad.flatten() for p in made.model.parameters()])


def test_shared_prompts_and_padding_do_not_change_a_logprob():  # trap 17
    model = tiny_model(vocabulary=60, width=32, layers=2)
    groups = random_groups()
    batch = collate(groups)
    found, _ = token_logprobs(
        model, batch.prompt_ids, batch.prompt_lengths, batch.prompt_of, batch.completion_ids, batch.lengths,
        temperature=0.7,
    )  # fmt: skip
    row = 0
    for g in groups:
        for completion in g.completions:
            ids = torch.tensor([[*g.prompt.token_ids, *completion.token_ids]])
            log_softmax = (model(input_ids=ids).logits / 0.7).log_softmax(-1)[0, len(g.prompt.token_ids) - 1 : -1]
            expected = log_softmax.gather(1, torch.tensor(completion.token_ids)[:, None])[:, 0]
            assert torch.allclose(found[row, : len(expected)], expected, atol=2e-5)
            assert (found[row, len(expected) :] == 0).all()
            row += 1


def test_the_mask_comes_from_lengths_even_where_the_pad_token_ends_a_completion():  # trap 13
    batch = collate([group([5, 6], [[7, 0], [0], [7, 8, 0], [9]], [0, 1, 0, 1])])
    assert batch.mask.sum(dim=1).tolist() == [2, 1, 3, 1]


def test_groups_of_unequal_size_are_refused():  # trap 6
    with pytest.raises(ValueError, match="same number of completions"):
        collate([group([5], [[7], [8]], [0, 1]), group([5], [[7], [8], [9]], [0, 1, 1])])


@pytest.mark.parametrize("how", ["token", "sequence", "constant"])
def test_minibatches_of_unequal_size_add_up_to_the_gradient_of_the_whole(how):
    groups = random_groups(5)  # in four minibatches: 2, 1, 1 and 1 groups
    whole = gradient(config(loss_aggregation=how), groups)
    made, total = make_trainer(config(loss_aggregation=how, minibatches=4)), torch.zeros_like(whole)

    def add_gradient():
        total.add_(torch.cat([p.grad.flatten() for p in made.model.parameters()]))

    made.optimizer.step = add_gradient
    take_step(made, groups)
    assert torch.allclose(total / 4, whole, atol=1e-6 * float(whole.abs().max()), rtol=1e-4)


def test_equal_rewards_take_the_step_of_a_zero_gradient():
    flat = [group([5, 6], [[7, 8], [9], [10], [11]], [1, 1, 1, 1])]
    made, expected = make_trainer(config(lr=1e-3)), make_trainer(config(lr=1e-3))
    for trainer in (made, expected):
        take_step(trainer, random_groups())
    before = [p.clone() for p in made.model.parameters()]
    take_step(made, flat)
    for parameter in expected.model.parameters():
        parameter.grad = torch.zeros_like(parameter)
    expected.optimizer.step()
    pairs = list(zip(made.model.parameters(), expected.model.parameters(), before, strict=True))
    assert all(torch.equal(a, b) for a, b, _ in pairs)
    assert any((a != was).any() for a, _, was in pairs)  # the momentum of the step before


def test_zero_variance_groups_have_no_gradient_without_reference():  # trap 4
    flat = [group([5, 6], [[7, 8], [9], [10], [11]], [1, 1, 1, 1])]
    assert (gradient(config(), flat) == 0).all()
    other = random_groups(2)
    alone, beside = (gradient(config(loss_aggregation="token"), groups) for groups in (other, other + flat))
    tokens = [sum(len(c.token_ids) for g in gs for c in g.completions) for gs in (other, other + flat)]
    rounding = 1e-5 * float(alone.abs().max())
    assert torch.allclose(alone * tokens[0] / tokens[1], beside, atol=rounding)  # they stay in the denominator
    dapo = config(name="dapo")
    own, both = (gradient(dapo, groups) for groups in (other, other + flat))
    assert torch.allclose(own, both, atol=rounding)  # where the row says so, they do not


def test_ratio_is_one_before_the_first_update_and_old_logprobs_stay_fixed():  # traps 9, 29
    cfg = config(epochs=3, lr=1e-2)
    made = make_trainer(cfg)
    batch = made.compute_advantages(made.compute_logprobs(collate(random_groups())))
    now = made.passes.all_logprobs(batch)
    assert (now - batch.old_logprobs).abs().max() < 1e-6
    figures = train_step(made, batch)
    assert figures["clip_ratio"] > 0  # the later epochs are off-policy


def test_a_small_learning_rate_still_changes_every_weight():  # trap 30
    made = make_trainer(config(lr=1e-6))
    before = [p.clone() for p in made.model.parameters()]
    take_step(made, random_groups())
    assert all((a != b).any() for a, b in zip(before, made.model.parameters(), strict=True))


def test_training_does_not_change_reference_weights():  # trap 28
    model = tiny_model(vocabulary=60, width=32, layers=2)
    reference = deepcopy(model).requires_grad_(False)
    before = [p.clone() for p in reference.parameters()]
    made = make_trainer(config(beta=0.1), model, reference)
    take_step(made, random_groups())
    figures = take_step(made, random_groups())
    assert figures["kl"] > 0
    assert all(torch.equal(a, b) for a, b in zip(before, reference.parameters(), strict=True))


def test_a_gradient_that_is_not_finite_is_left_out_and_counted():  # pain 18
    made = make_trainer(config())
    batch = made.compute_advantages(collate(random_groups()))
    before = [p.clone() for p in made.model.parameters()]
    figures = train_step(made, replace(batch, advantages=batch.advantages * float("inf")))
    assert figures["skipped_updates"] == 1 and not math.isfinite(figures["grad_norm"])
    assert all(torch.equal(a, b) for a, b in zip(before, made.model.parameters(), strict=True))


def test_a_checkpoint_resumes_bit_for_bit(tmp_path):  # trap 40
    cfg = config()
    straight = make_trainer(cfg)
    for seed in range(4):
        take_step(straight, random_groups(seed=seed))
    first = make_trainer(cfg)
    for seed in range(2):
        take_step(first, random_groups(seed=seed))
    path = save(tmp_path, 2, first, tiny_tokenizer(), keep=1)
    second = make_trainer(cfg, load_policy(path, device=torch.device("cpu")))
    assert load(path, second) == 2
    for seed in range(2, 4):
        take_step(second, random_groups(seed=seed))
    assert all(torch.equal(a, b) for a, b in zip(straight.model.parameters(), second.model.parameters(), strict=True))


@pytest.mark.parametrize("name", ["dapo", *(pytest.param(own, marks=pytest.mark.slow) for own in ("grpo", "dr_grpo"))])
def test_training_raises_reward_of_toy_task(name):
    """Four questions (tokens 10 to 13), the right answer to each is the token plus 10: from chance to nearly always."""
    torch.manual_seed(0)
    size = 24
    cfg = config(name=name, lr=3e-3, group_size=size)
    made = make_trainer(cfg, tiny_model(vocabulary=30, width=32, layers=1))
    shares = []
    for _ in range(60):
        groups = []
        for question in (10, 11, 12, 13):
            with torch.no_grad():
                logits = made.model(input_ids=torch.tensor([[5, question]])).logits[0, -1]
            drawn = torch.multinomial(logits.softmax(0), size, replacement=True).tolist()
            groups.append(group([5, question], [[d] for d in drawn], [float(d == question + 10) for d in drawn]))
        shares.append(sum(s.reward for g in groups for s in g.scores) / (4 * size))
        take_step(made, groups)
    assert sum(shares[:3]) / 3 < 0.4
    assert sum(shares[-10:]) / 10 > 0.8


@pytest.mark.parametrize("name", ["grpo", "ppo"])
def test_gradients_that_are_freed_after_a_step_change_no_later_step(name):
    results = []
    for is_freed in (False, True):
        trainer = make_trainer(config(name=name))
        for seed in (1, 2):
            metrics = train_step(trainer, trainer.compute_advantages(trainer.prepare_batch(random_groups(seed=seed))))
            if is_freed:
                trainer.free_gradients()
                own = [] if trainer.critic is None else list(trainer.critic.own.parameters())
                assert all(parameter.grad is None for parameter in (*trainer.model.parameters(), *own))
        results.append((metrics, [parameter.detach() for parameter in trainer.model.parameters()]))
    assert results[0][0] == results[1][0]
    assert all(torch.equal(one, other) for one, other in zip(results[0][1], results[1][1], strict=True))
