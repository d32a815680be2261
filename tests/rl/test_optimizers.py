"""The optimiser's state in a checkpoint."""

from reasoner.rl.batch import collate
from reasoner.trainer import checkpoint
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, make_trainer, random_groups, take_step


def test_checkpoint_of_before_the_first_step_leaves_no_moments(tmp_path):
    trainer = make_trainer(config(name="ppo"), tiny_model(vocabulary=64, width=128, layers=2))
    path = checkpoint.save(tmp_path, 0, trainer, tiny_tokenizer(), keep=1)
    take_step(trainer, collate(random_groups(seed=0)))
    optimizers = (trainer.optimizer, trainer.critic.optimizer)
    assert all(optimizer.state_dict()["state"] for optimizer in optimizers)
    assert checkpoint.load(path, trainer) == 0
    assert [optimizer.state_dict()["state"] for optimizer in optimizers] == [{}, {}]
