"""Names of TRL's GRPOConfig and of verl's configuration, and the settings here: for error messages and for
docs/FROM_TRL_AND_VERL.md.

`python -m reasoner.config.other_names > docs/FROM_TRL_AND_VERL.md` writes the page (`make docs`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches


@dataclass(frozen=True, slots=True)
class OtherName:
    """A setting of another project."""

    project: str
    name: str  # as that project writes it
    ours: str  # the setting here; empty where nothing corresponds
    difference: str = ""  # how the meaning differs; empty where it is the same


_TRL: dict[str, str | tuple[str, str]] = {
    "model_name_or_path": "model",
    "dataset_name": "data.train",
    "train_dataset": "data.train",
    "eval_dataset": "validation.data",
    "output_dir": ("run.dir", "the folder of all runs; run.name is the folder in it"),
    "run_name": "run.name",
    "report_to": "run.track",
    "num_generations": "algo.group_size",
    "max_completion_length": "sampling.max_tokens",
    "max_prompt_length": ("data.max_prompt_tokens", "longer prompts are left out, not truncated"),
    "temperature": "sampling.temperature",
    "top_p": ("", "training samples from the whole distribution"),
    "top_k": ("", "training samples from the whole distribution"),
    "min_p": ("", "training samples from the whole distribution"),
    "use_vllm": ("engine.name", "vllm or transformers"),
    "vllm_mode": ("engine.urls", "server mode is a list of addresses, colocate none"),
    "vllm_server_base_url": "engine.urls",
    "vllm_server_timeout": ("engine.timeout_seconds", "also the wait for one completion"),
    "vllm_gpu_memory_utilization": "engine.gpu_memory",
    "vllm_tensor_parallel_size": ("processes", "an engine is on one GPU; each process has one of its own"),
    "learning_rate": "optim.lr",
    "lr_scheduler_type": ("optim.decay_share", "share of the run, at its end, with linear decay: 1 linear, 0 constant"),
    "warmup_steps": "optim.warmup_steps",
    "warmup_ratio": ("optim.warmup_steps", "in steps, not as a share of the run"),
    "weight_decay": "optim.weight_decay",
    "adam_beta1": "optim.beta1",
    "adam_beta2": "optim.beta2",
    "max_grad_norm": "optim.max_grad_norm",
    "gradient_checkpointing": "optim.recompute",
    "bf16": ("optim.dtype", "bfloat16 or float32"),
    "fp16": ("optim.dtype", "bfloat16 or float32"),
    "deepspeed": ("optim.sharding", "replicated, gathered, sharded or auto"),
    "max_steps": ("steps", "a step samples new completions and has algo.epochs x algo.minibatches optimiser steps"),
    "num_train_epochs": ("steps", "in steps of data.prompts_per_step problems; of supervised finetuning sft.epochs"),
    "per_device_train_batch_size": (
        "optim.micro_batch_tokens",
        "in tokens, without effect on the gradient; the batch is data.prompts_per_step x algo.group_size completions",
    ),
    "gradient_accumulation_steps": (
        "data.prompts_per_step",
        "the number of micro-batches follows from it and from optim.micro_batch_tokens",
    ),
    "generation_batch_size": ("data.prompts_per_step", "in prompts, not in completions"),
    "steps_per_generation": (
        "algo.minibatches",
        "the optimiser steps in a pass: steps_per_generation / gradient_accumulation_steps",
    ),
    "num_iterations": "algo.epochs",
    "beta": "algo.beta",
    "epsilon": ("algo.clip_low", "the lower bound alone; algo.clip_high is the upper one"),
    "epsilon_high": ("algo.clip_high", "the same with PPO's clip; for CISPO it is the cap minus 1"),
    "delta": ("algo.dual_clip", "two-sided clipping: the same bound"),
    "loss_type": (
        "algo.loss_aggregation",
        "grpo is sequence, bnpo and dapo token, dr_grpo constant; cispo is --algo cispo",
    ),
    "importance_sampling_level": "algo.ratio",
    "scale_rewards": ("algo.scale", "True is group, False none; batch also centres over the batch"),
    "mask_truncated_completions": "algo.mask_truncated_completions",
    "vllm_importance_sampling_correction": (
        "algo.importance_sampling",
        "token_truncate is token, sequence_truncate sequence; there is no mask",
    ),
    "vllm_importance_sampling_cap": "algo.importance_clip_max",
    "sync_ref_model": ("algo.ref_sync_steps", "above 0"),
    "ref_model_sync_steps": ("algo.ref_sync_steps", "the reference becomes the policy: ref_model_mixup_alpha 1"),
    "reward_funcs": ("reward.functions", "beside the rewards of reward.*, of which correct and format are on"),
    "reward_weights": ("reward.functions", "the weights stand there, as FILE.py:function=weight"),
    "use_peft": ("lora.rank", "above 0"),
    "lora_r": "lora.rank",
    "lora_alpha": "lora.alpha",
    "lora_dropout": ("", "nothing is dropped in training"),
    "lora_target_modules": ("lora.target", "all-linear or attention"),
    "logging_steps": ("", "every step is recorded"),
    "log_completions": ("", "every completion is stored: reasoner rollouts"),
    "push_to_hub": ("", "reasoner push uploads a run's model"),
    "resume_from_checkpoint": ("", "reasoner train --resume RUN continues a run"),
    "save_strategy": ("run.save_interval", "in steps"),
    "eval_strategy": ("validation.interval", "in steps"),
    "save_steps": "run.save_interval",
    "save_total_limit": "run.keep_last",
    "eval_steps": "validation.interval",
}
_VERL: dict[str, str | tuple[str, str]] = {
    "data.train_files": "data.train",
    "data.val_files": "validation.data",
    "data.train_batch_size": "data.prompts_per_step",
    "data.max_prompt_length": ("data.max_prompt_tokens", "longer prompts are always left out"),
    "data.max_response_length": "sampling.max_tokens",
    "data.prompt_key": "data.question",
    "data.filter_overlong_prompts": ("data.max_prompt_tokens", "longer prompts are always left out"),
    "data.truncation": ("data.max_prompt_tokens", "longer prompts are always left out"),
    "actor_rollout_ref.model.path": "model",
    "actor_rollout_ref.model.lora_rank": "lora.rank",
    "actor_rollout_ref.model.lora_alpha": "lora.alpha",
    "actor_rollout_ref.model.enable_gradient_checkpointing": "optim.recompute",
    "actor_rollout_ref.rollout.n": "algo.group_size",
    "actor_rollout_ref.rollout.name": ("engine.name", "vllm, transformers or remote"),
    "actor_rollout_ref.rollout.temperature": "sampling.temperature",
    "actor_rollout_ref.rollout.top_p": ("", "training samples from the whole distribution"),
    "actor_rollout_ref.rollout.top_k": ("", "training samples from the whole distribution"),
    "actor_rollout_ref.rollout.gpu_memory_utilization": "engine.gpu_memory",
    "actor_rollout_ref.rollout.tensor_model_parallel_size": (
        "processes",
        "an engine is on one GPU; each process has one of its own",
    ),
    "actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": (
        "optim.micro_batch_tokens",
        "in tokens, and without effect on the result",
    ),
    "actor_rollout_ref.actor.optim.lr": "optim.lr",
    "actor_rollout_ref.actor.optim.lr_warmup_steps": "optim.warmup_steps",
    "actor_rollout_ref.actor.optim.weight_decay": "optim.weight_decay",
    "actor_rollout_ref.actor.grad_clip": "optim.max_grad_norm",
    "actor_rollout_ref.actor.ppo_mini_batch_size": (
        "algo.minibatches",
        "their number, not their size: data.train_batch_size / ppo_mini_batch_size",
    ),
    "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": (
        "optim.micro_batch_tokens",
        "in tokens, and without effect on the gradient",
    ),
    "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": (
        "optim.micro_batch_tokens",
        "rows x length, padding included",
    ),
    "actor_rollout_ref.actor.ppo_epochs": "algo.epochs",
    "actor_rollout_ref.actor.clip_ratio": ("algo.clip_low", "the lower bound alone; algo.clip_high is the upper one"),
    "actor_rollout_ref.actor.clip_ratio_low": "algo.clip_low",
    "actor_rollout_ref.actor.clip_ratio_high": "algo.clip_high",
    "actor_rollout_ref.actor.clip_ratio_c": ("algo.dual_clip", "off unless it is set"),
    "actor_rollout_ref.actor.loss_agg_mode": (
        "algo.loss_aggregation",
        "token-mean is token, seq-mean-token-mean sequence, seq-mean-token-sum-norm constant, which is also divided by "
        "the number of completions",
    ),
    "actor_rollout_ref.actor.entropy_coeff": "algo.entropy_coef",
    "actor_rollout_ref.actor.use_kl_loss": ("algo.kl_in", "loss, with algo.beta above 0"),
    "actor_rollout_ref.actor.kl_loss_coef": ("algo.beta", "with algo.kl_in loss"),
    "actor_rollout_ref.actor.kl_loss_type": ("algo.kl", "kl is k1, mse k2, low_var_kl k3"),
    "algorithm.adv_estimator": ("algo.name", "gae is ppo, reinforce_plus_plus reinforce_pp"),
    "algorithm.norm_adv_by_std_in_grpo": ("algo.scale", "True is group, False none"),
    "algorithm.gamma": "critic.gamma",
    "algorithm.lam": "critic.lam",
    "algorithm.use_kl_in_reward": ("algo.kl_in", "reward, with algo.beta above 0"),
    "algorithm.kl_penalty": ("algo.kl", "kl is k1, mse k2, low_var_kl k3"),
    "algorithm.kl_ctrl.kl_coef": ("algo.beta", "with algo.kl_in reward"),
    "algorithm.kl_ctrl.target_kl": (
        "algo.kl_target",
        "with algo.kl_controller proportional the KL of a whole response, not of a token",
    ),
    "algorithm.kl_ctrl.horizon": "algo.kl_horizon",
    "algorithm.filter_groups.enable": ("algo.dynamic_sampling", "with algo.filter_zero_advantages"),
    "algorithm.filter_groups.metric": ("algo.filter_metric", "acc is correct, score and seq_reward are reward"),
    "critic.optim.lr": "critic.lr",
    "critic.ppo_epochs": "critic.epochs",
    "critic.cliprange_value": "critic.clip",
    "custom_reward_function.path": ("reward.functions", "with TRL's signature: lists of completions and columns"),
    "trainer.total_training_steps": ("steps", "a step samples new completions, as in verl"),
    "trainer.total_epochs": ("steps", "the length is in steps of data.prompts_per_step problems"),
    "trainer.n_gpus_per_node": ("processes", "on one machine, one for each GPU"),
    "trainer.nnodes": ("processes", "several machines are started by torchrun"),
    "trainer.experiment_name": "run.name",
    "trainer.default_local_dir": ("run.dir", "the folder of all runs; run.name is the folder in it"),
    "trainer.resume_mode": ("", "reasoner train --resume RUN continues a run"),
    "trainer.logger": "run.track",
    "trainer.save_freq": "run.save_interval",
    "trainer.test_freq": "validation.interval",
    "trainer.max_actor_ckpt_to_keep": "run.keep_last",
}


def _names(project: str, rows: dict[str, str | tuple[str, str]]) -> dict[str, OtherName]:
    pairs = {name: (row, "") if isinstance(row, str) else row for name, row in rows.items()}
    return {name: OtherName(project, name, *pair) for name, pair in pairs.items()}


OTHER_NAMES: dict[str, OtherName] = _names("TRL", _TRL) | _names("verl", _VERL)


def find_other_name(key: str) -> OtherName | None:
    """The row of a name, which may lack first parts of a dotted one (rollout.n, kl_coef) or stand in a section of ours
    (optim.learning_rate). A single last part without an underscore (lr, n) says too little.
    """
    key = key.replace("-", "_")
    if key in OTHER_NAMES:
        return OTHER_NAMES[key]
    if "." not in key and "_" not in key:
        return None
    row = next((row for name, row in OTHER_NAMES.items() if name.endswith(f".{key}")), None)
    return row or (find_other_name(key.partition(".")[2]) if "." in key else None)


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """The end of a message on an unknown name: the known ones that end in it, as optim.lr in lr, else the most similar
    one. Empty without one.
    """
    names, last = sorted(known), word.lstrip("-").replace("-", "_")
    similar = [name for name in names if name.endswith(f".{last}")] or get_close_matches(word, names, 1, cutoff=0.5)
    return f"; did you mean {' or '.join(map(repr, similar))}?" if similar else ""


def other_name_message(key: str, *, prefix: str = "") -> str:
    """The sentence that names the setting here; empty for a name of no other project. `prefix`: "--" for flags."""
    if (row := find_other_name(key)) is None:
        return ""
    if not row.name.endswith(key.replace("-", "_")):
        key = row.name  # the key has a section of ours
    if not row.ours:
        return f"{prefix}{key} is {row.project}'s name; nothing here corresponds to it: {row.difference}"
    return f"{prefix}{key} is {row.project}'s name; here it is {prefix}{row.ours}" + (
        f" ({row.difference})" if row.difference else ""
    )


_INTRODUCTION = """\
# From TRL and verl

Generated by `make docs`. The settings of TRL's `GRPOConfig` and of verl's trainer, and those here. A row without a
difference means the same. A command that gets one of their names answers with the one here:

```
unknown setting: num_generations is TRL's name; here it is algo.group_size
```

Defaults differ: [config.md](config.md) has those here. Reward functions have TRL's signature
([DATA.md](DATA.md#reward-functions)), verl's parquet files are read as they are ([DATA.md](DATA.md#layouts)), and
rollouts of TRL are imported for the dashboard
([DASHBOARD.md](DASHBOARD.md#rollouts-of-other-trainers)).
"""

_CONVENTIONS = """\
## Conventions

`tests/rl/test_peers.py` compares the losses with TRL's own method on the same tensors. What differs between the two:

- `epsilon_high` of CISPO: TRL's is the cap of the weight itself, `algo.clip_high` what it is above 1.
- `delta` (two-sided clipping) of TRL is `algo.dual_clip`.
- `bnpo` and `dapo` of TRL are `algo.loss_aggregation token` on one batch; `use_bias_correction_kl` is
  `algo.kl k3_reverse` where the policy has not moved since it sampled.
- TRL divides a group's advantages by the sample deviation + 1e-4, here it is the population's + 1e-6.
"""


def _table(project: str) -> Iterator[str]:
    yield from (f"| {project} | here | difference |", "|---|---|---|")
    for name, row in OTHER_NAMES.items():
        if row.project == project:
            yield f"| `{name}` | {f'`{row.ours}`' if row.ours else 'none'} | {row.difference} |"


def markdown() -> str:
    """The text of docs/FROM_TRL_AND_VERL.md."""
    lines = [_INTRODUCTION, "## TRL", "", *_table("TRL"), "", "## verl", ""]
    lines += ["First parts of a name may be left out: `rollout.n`.", "", *_table("verl"), "", _CONVENTIONS]
    return "\n".join(lines)


if __name__ == "__main__":
    print(markdown(), end="")
