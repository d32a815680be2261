"""Every algorithm on the embedded base, with the same budget of sampled tokens: `python bench/algorithms.py --out DIR`.

Trains what is not there yet (a run an entry and seed, named ENTRY-SEED), `--jobs` at once with a share of the cores
each, and writes algorithms.md (a table over the seeds) and algorithms.png (pass@1 on the validation problems against
tokens). Stop it and call it again: finished runs are kept, others go on. Batch, group, KL coefficient and rewards are
the base's preset for all, the learning rate is that of its other algorithms, and all but PPO update once a step.
"""

from __future__ import annotations

from entries import arguments, compare
from runs import ONE_UPDATE, Settings

from reasoner.rl.algorithms import ALGORITHMS

# Every row, and what shows a part of one.
ENTRIES: dict[str, Settings] = {
    "grpo": {"algo": "grpo"} | ONE_UPDATE,  # first: the others are compared with it
    **{name: {"algo": name} for name in ALGORITHMS if name != "grpo"},
    "reinforce_no_baseline": {"algo": "reinforce", "algo.baseline": "none"},
    "ppo_shared_trunk": {"algo": "ppo", "algo.critic_backbone": "shared"},
    # PPO updates policy and critic four times a step, two passes over two minibatches, and GRPO its policy once. Which
    # part of PPO is its critic?
    "ppo_critic_one_update": {"algo": "ppo", "critic.epochs": 1, "critic.minibatches": 1},
    "ppo_one_update": {"algo": "ppo", "algo.epochs": 1, "algo.minibatches": 1},
    "grpo_four_updates": {"algo": "grpo"} | ONE_UPDATE | {"algo.epochs": 2, "algo.minibatches": 2},
    "grpo_four_minibatches": {"algo": "grpo"} | ONE_UPDATE | {"algo.minibatches": 4},
}


if __name__ == "__main__":
    compare(arguments(__doc__, tokens=200_000).parse_args(), "algorithms", ENTRIES)
