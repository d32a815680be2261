"""A critic that starts as a reward model (critic.init)."""

from dataclasses import replace

import pytest
import torch

from reasoner.models.reward_model import load_reward_model
from reasoner.rl.batch import collate
from reasoner.rl.passes import RewardModelPasses
from reasoner.trainer.components import build_trainer
from reasoner.trainer.train import train_step
from tests.fixtures.critics import ppo, token_states
from tests.fixtures.reward_models import save_reward_model
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import group, make_trainer


def fitted_head(model, groups):
    """The head [H] whose values of every prefix are nearest to the rewards of the whole completions."""
    batch = collate(groups)
    with torch.no_grad():
        states = token_states(model, batch)[batch.mask]
        targets = batch.rewards[:, None].expand(batch.mask.shape)[batch.mask]
    return torch.linalg.lstsq(states, targets[:, None]).solution[:, 0]


def first_token_groups(length=4):
    """Rewards are decided by the first token, 7 or 9, of `length`."""
    rows = [[first, *rest][:length] for first in (7, 9) for rest in ([20, 21, 22], [30, 31, 32])]
    return [group(prompt, rows, [1.0, 1.0, 0.0, 0.0]) for prompt in ([5, 6], [11, 12, 13], [14, 8])]


def test_critic_from_a_reward_model_explains_more_at_step_0_than_zeros(tmp_path):
    model, groups = tiny_model(vocabulary=60, width=32, layers=2), first_token_groups()
    folder = save_reward_model(tmp_path, model, tiny_tokenizer(), head=fitted_head(model, groups), mean=-0.25)
    scorer = load_reward_model(folder, device=torch.device("cpu"))
    explained = {}
    for name in ("zeros", "reward model"):
        trainer = make_trainer(ppo(init=str(folder)))
        if name == "reward model":
            trainer.critic.start_from(scorer, weight=1.0)
        batch = trainer.compute_advantages(trainer.compute_logprobs(collate(groups)))
        explained[name] = train_step(trainer, batch)["critic/explained_variance"]
        if name == "reward model":
            own = RewardModelPasses(scorer).all_scores(collate(first_token_groups(length=3))) + 0.25
            assert torch.allclose(batch.values[:, 3], own, atol=1e-5)  # before the fourth token
    assert explained["zeros"] == 0 and explained["reward model"] > 0.5


def test_reward_model_of_another_architecture_is_refused_by_the_names_of_both(tmp_path):
    folder = save_reward_model(tmp_path, tiny_model(vocabulary=60, width=64), tiny_tokenizer())
    trainer = make_trainer(ppo(init="runs/other"))
    with pytest.raises(ValueError, match=r"critic.init is 'runs/other'.*'base'"):
        trainer.critic.start_from(load_reward_model(folder, device=torch.device("cpu")), weight=1.0)


@pytest.mark.parametrize(("init", "weight"), [("rm", 0.25), ("other", 1.0)])
def test_critic_from_a_reward_model_of_the_run_has_its_weight_by_whatever_name(tmp_path, init, weight):
    model, tokenizer = tiny_model(vocabulary=len(tiny_tokenizer()), width=32, layers=2), tiny_tokenizer()
    model.save_pretrained(tmp_path / "policy")
    for name in ("rm", "other"):
        save_reward_model(tmp_path / name, model, tokenizer, head=torch.ones(32))
    cfg = ppo(init=init)
    cfg = replace(cfg, run=replace(cfg.run, dir=str(tmp_path)), reward=replace(cfg.reward, model=f"{tmp_path}/rm=0.25"))
    folders = {"start_from": tmp_path / "policy", "base": tmp_path / "policy"}
    trainer = build_trainer(cfg, tokenizer, **folders, device=torch.device("cpu"))
    assert torch.equal(trainer.critic.head.weight, torch.full((1, 32), weight))


def test_reward_model_with_more_embeddings_keeps_those_of_the_critic(tmp_path):
    model = tiny_model(vocabulary=60, width=32, layers=2, seed=3)
    model.resize_token_embeddings(64)
    folder = save_reward_model(tmp_path, model, tiny_tokenizer(), head=torch.ones(32))
    trainer = make_trainer(ppo())
    trainer.critic.start_from(load_reward_model(folder, device=torch.device("cpu")), weight=0.5)
    own = trainer.critic.base_model.get_input_embeddings().weight
    assert torch.equal(own, model.get_input_embeddings().weight[:60])
    assert (trainer.critic.head.weight == 0.5).all()
