"""Tokens that a tool returned between sampled ones: no statistic, no denominator and no gradient counts them.

The gradient of every algorithm is compared with formulas written out for one trajectory at a time, over lists that have
the sampled tokens alone.
"""

from dataclasses import replace

import pytest
import torch

from reasoner.rl.algorithms import ALGORITHMS, resolve_algorithm
from reasoner.rl.batch import collate
from reasoner.rl.process_rewards import step_rewards
from reasoner.rl.token_stats import TokenStats
from reasoner.trainer.step_metrics import StepUpdate
from reasoner.trainer.train import accumulate_gradient
from reasoner.types import Completion, Observation
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import G, config, group, make_trainer

# The parts of each completion, sampled and returned in turn.
PARTS = [
    [[[7, 8, 9], [20, 21], [10], [22], [11, 12]], [[13]], [[14, 15], [23, 24, 25], [16, 17, 18]], [[19, 8]]],
    [[[9, 9], [26], [30]], [[31, 32, 33, 34]], [[35], [27, 28, 29], [36]], [[37, 38], [20], [39, 40]]],
    [[[41], [21], [42]], [[43, 44]], [[45], [22, 23], [46]], [[47]]],
]
PROMPTS = [[5, 6, 7], [8], [9, 10]]
REWARDS = [[1.0, 0.0, 0.5, 0.0], [0.0, 1.0, 1.0, 0.0], [1.0, 1.0, 1.0, 1.0]]
STEPS = [(0, 1.0), (1, 0.0)]  # (number of a sampled token, reward), in completions of at least three sampled tokens


def with_parts(parts, completion):
    places, start = [], 0
    for number, part in enumerate(parts):
        if number % 2:
            places.append(Observation(start, start + len(part), 0, 0, is_error=False))
        start += len(part)
    logprobs = [0.0 if number % 2 else -1.0 for number, part in enumerate(parts) for _ in part]
    ids = tuple(token for part in parts for token in part)
    return replace(completion, token_ids=ids, logprobs=logprobs, observations=tuple(places))


def trajectories():
    groups = [group(prompt, [[1]] * G, rewards) for prompt, rewards in zip(PROMPTS, REWARDS, strict=True)]
    return [
        replace(one, completions=tuple(map(with_parts, parts, one.completions)))
        for one, parts in zip(groups, PARTS, strict=True)
    ]


def sampled_places(parts):
    """For each sampled token its place in the completion."""
    flags = [number % 2 for number, part in enumerate(parts) for _ in part]
    return [place for place, is_returned in enumerate(flags) if not is_returned]


def steps_of(parts):
    places = sampled_places(parts)
    return STEPS if len(places) >= 3 else []


def logits_of(model, prompt, parts, temperature):
    ids = torch.tensor([[*prompt, *(token for part in parts for token in part)]])
    logits = model(input_ids=ids).logits[0, len(prompt) - 1 : -1] / temperature
    return logits[sampled_places(parts)].log_softmax(-1), ids[0, len(prompt) :][sampled_places(parts)]


def logprobs_of(model, prompt, parts, temperature):
    log_softmax, ids = logits_of(model, prompt, parts, temperature)
    return log_softmax.gather(1, ids[:, None])[:, 0], -(log_softmax.exp() * log_softmax).sum(-1)


def values_of(critic, prompt, parts):
    ids = torch.tensor([[*prompt, *(token for part in parts for token in part)]])
    states = critic.base_model(input_ids=ids).last_hidden_state[0, len(prompt) - 1 :]
    return critic.head(states)[:, 0][sampled_places(parts)]


def estimates(row, rewards, values, lam):
    """Returns less baseline where each token has its own: (advantages, returns) of one trajectory."""
    advantages, following, value_after = [0.0] * len(rewards), 0.0, 0.0
    for t in reversed(range(len(rewards))):
        following = rewards[t] + value_after - values[t] + lam * following
        advantages[t], value_after = following, values[t]
    return advantages, [a + v for a, v in zip(advantages, values, strict=True)]


def deviation(values):
    mean = sum(values) / len(values)
    return (sum((value - mean) ** 2 for value in values) / len(values)) ** 0.5


def written_advantages(row, cfg, rewards, values):
    """Per trajectory a list over its sampled tokens; `rewards` and `values` likewise. Also the critic's targets."""
    totals = [sum(own) for own in rewards]
    if row.returns == "gae":
        both = [estimates(row, own, v, cfg.critic.lam) for own, v in zip(rewards, values, strict=True)]
        advantages, returns = [a for a, _ in both], [r for _, r in both]
    else:
        advantages, returns = [], None
        for i, own in enumerate(rewards):
            mates = totals[i // G * G : i // G * G + G]
            baseline = {
                "none": 0.0,
                "batch": sum(totals) / len(totals),
                "group": sum(mates) / G,
                "leave_one_out": (sum(mates) - totals[i]) / (G - 1),
            }[row.baseline]
            if row.baseline in ("group", "leave_one_out") and max(mates) - min(mates) < 1e-5:
                advantages.append([0.0] * len(own))
                continue
            to_go = [sum(own[t:]) if row.returns == "to_go" else totals[i] for t in range(len(own))]
            scale = deviation(mates) + 1e-6 if row.scale == "group" else 1.0
            advantages.append([(r - baseline) / scale for r in to_go])
    if row.scale == "batch":
        flat = [a for own in advantages for a in own]
        mean, scale = sum(flat) / len(flat), deviation(flat) + 1e-6
        advantages = [[(a - mean) / scale for a in own] for own in advantages]
    return advantages, returns


def written_process_advantages():
    """DeepSeekMath's, gated: an intermediate step weighs 1 / their number, and the answer 1."""
    advantages = []
    for parts_of_group, rewards in zip(PARTS, REWARDS, strict=True):
        every = [r for parts, reward in zip(parts_of_group, rewards, strict=True)
                 for r in [*(r for _, r in steps_of(parts)), reward]]  # fmt: skip
        mean, scale = sum(every) / len(every), deviation(every)
        for parts, reward in zip(parts_of_group, rewards, strict=True):
            size, steps = len(sampled_places(parts)), steps_of(parts)
            weighed = [(at, (r - mean) / (scale + 1e-6) / len(steps)) for at, r in steps]
            weighed.append((size - 1, (reward - mean) / (scale + 1e-6)))
            is_flat = max(every) - min(every) < 1e-5
            advantages.append([0.0 if is_flat else sum(r for at, r in weighed if at >= t) for t in range(size)])
    return advantages


def written_loss(cfg, row, model, reference, critic):
    """(the policy's loss, the critic's) before any update, one trajectory after another."""
    rows = [(prompt, parts) for prompt, own in zip(PROMPTS, PARTS, strict=True) for parts in own]
    passes = [logprobs_of(model, *one, cfg.sampling.temperature) for one in rows]
    refs = [logprobs_of(reference, *one, cfg.sampling.temperature)[0].detach() for one in rows]
    values = [values_of(critic, *one) for one in rows] if critic else [None] * len(rows)
    rewards = []
    for (logp, _), ref, reward in zip(passes, refs, [r for own in REWARDS for r in own], strict=True):
        own = [0.0] * (len(logp) - 1) + [reward]
        if row.kl_in == "reward":
            sampler = logp.detach() if row.updates > 1 else torch.full_like(ref, -1.0)  # the policy that sampled
            own = [r - cfg.algo.beta * float(kl) for r, kl in zip(own, sampler - ref, strict=True)]
        rewards.append(own)
    old_values = [v.tolist() if v is not None else None for v in values]
    advantages, returns = written_advantages(row, cfg, rewards, old_values)
    if row.returns == "process":
        advantages = written_process_advantages()
    kept = [i for i in range(len(rows)) if not row.filter_zero_advantages or len(set(REWARDS[i // G])) > 1]
    num_tokens = sum(len(passes[i][0]) for i in kept)
    loss, value_loss = 0.0, 0.0
    for i in kept:
        (logp, entropy), ref = passes[i], refs[i]
        share = {
            "token": 1 / num_tokens,
            "sequence": 1 / (len(kept) * len(logp)),
            "constant": 1 / (len(kept) * cfg.sampling.max_tokens),
        }[row.loss_aggregation]
        change = logp - logp.detach()
        ratio = change.mean().exp().expand(len(logp)) if row.ratio == "sequence" else change.exp()
        ratio = logp if row.surrogate == "clip_weight" else ratio
        per_token = -ratio * torch.tensor(advantages[i]) - cfg.algo.entropy_coef * entropy
        if row.kl_in == "loss":
            per_token = per_token + cfg.algo.beta * ((ref - logp).exp() - (ref - logp) - 1)
        loss = loss + share * per_token.sum()
        if critic:
            value_loss = value_loss + share * ((values[i] - torch.tensor(returns[i])) ** 2 / 2).sum()
    return loss, value_loss


def collated(row):
    steps = [
        [*((sampled_places(parts)[at], reward) for at, reward in steps_of(parts)), (sampled_places(parts)[-1], last)]
        for own, rewards in zip(PARTS, REWARDS, strict=True)
        for parts, last in zip(own, rewards, strict=True)
    ]
    return collate(trajectories(), steps if row.returns == "process" else None)


@pytest.mark.parametrize("name", ALGORITHMS)
def test_gradient_equals_formula_over_sampled_tokens_alone(name):
    cfg = config(name=name, beta=0.05, entropy_coef=0.01, temperature=0.8, micro=12)
    row, model = resolve_algorithm(cfg.algo), tiny_model(vocabulary=60, width=32, layers=2)
    reference = tiny_model(vocabulary=60, width=32, layers=2, seed=3).requires_grad_(False)
    trainer = make_trainer(cfg, model, reference)
    critic = trainer.critic
    if critic:
        torch.manual_seed(1)
        torch.nn.init.normal_(critic.head.weight)
    loss, value_loss = written_loss(cfg, row, model, reference, critic)
    expected = torch.autograd.grad(loss, list(model.parameters()))
    batch = trainer.compute_advantages(trainer.compute_logprobs(collated(row)))
    weighed, update = trainer.weigh_tokens(batch), StepUpdate(TokenStats(), 1.0)
    with trainer.gradient():
        accumulate_gradient(trainer, weighed, update)
    for parameter, gradient in zip(model.parameters(), expected, strict=True):
        assert torch.allclose(parameter.grad, gradient, atol=1e-6, rtol=1e-5)
    assert update.token_stats.sums["tokens"] == weighed.mask.sum()
    assert float(update.token_stats.sums["loss"]) == pytest.approx(loss.item(), abs=1e-5)
    if critic:
        critic.step = lambda **_: True  # keep the gradient for inspection
        critic.update(weighed, lr_factor=1.0)
        parameters = list(critic.own.parameters())
        for parameter, gradient in zip(parameters, torch.autograd.grad(value_loss, parameters), strict=True):
            assert torch.allclose(
                parameter.grad, gradient, atol=1e-6 * max(1.0, float(gradient.abs().max())), rtol=1e-5
            )


def test_returned_tokens_are_context_and_change_what_follows():
    model = tiny_model(vocabulary=60, width=32, layers=2)
    trainer = make_trainer(config(), model)
    batch = collate(trajectories())
    logprobs = trainer.passes.all_logprobs(batch)
    assert (logprobs[~batch.mask] == 0).all() and (logprobs[batch.mask] < 0).all()
    other = replace(batch, completion_ids=batch.completion_ids.masked_fill(batch.is_observation, 50))
    changed = trainer.passes.all_logprobs(other)
    assert torch.equal(logprobs[:, 0], changed[:, 0])
    assert not torch.allclose(logprobs, changed)


def test_mask_and_lengths_of_a_batch_with_observations():
    groups = trajectories()
    batch = collate(groups)
    assert batch.lengths[:4].tolist() == [9, 1, 8, 2]
    assert batch.mask.sum(dim=1)[:4].tolist() == [6, 1, 5, 2]
    assert [c.num_tokens for c in groups[0].completions] == [6, 1, 5, 2]
    assert groups[0].num_tokens == 14
    assert collate([group([5], [[7], [8]], [0, 1])]).is_observation is None


def test_equations_that_a_tool_printed_are_no_steps():
    tokenizer = tiny_tokenizer()
    texts = ["<think>1 + 1 = 2 so ", "3 * 4 = 12 and 9 = 8 ", "5 + 5 = 10</think><answer>10</answer>"]
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    bounds = [sum(map(len, ids[:1])), sum(map(len, ids[:2]))]
    part = Observation(*bounds, len(texts[0]), len(texts[0] + texts[1]), is_error=False)
    flat = tuple(token for own in ids for token in own)
    one = Completion("".join(texts), flat, (0.0,) * len(flat), "stop", 0, (part,))
    both = replace(group([5], [[1], [2]], [1.0, 0.0]), completions=(one, one))
    rows, _ = step_rewards([both], tokenizer.backend_tokenizer)
    tokens = [tokenizer.decode(flat[: token + 1])[-6:] for token, _ in rows]
    assert [reward for _, reward in rows] == [1.0, 1.0, 1.0]
    assert tokens[0].endswith("= 2") and tokens[1].endswith("= 10") and rows[2][0] == len(flat) - 1
