"""Settings of the algorithm: its parts, which a row of reasoner.rl.algorithms sets where they are empty here."""

from __future__ import annotations

from dataclasses import dataclass

from reasoner.config.setting import setting

# The ratio is exactly 1 at the first update of a step; TRPO's line search moves it.
_CLIPS = "(algo.epochs * algo.minibatches > 1 or algo.trust == 'constrained')"

# A paragraph a setting: default and help, then what limits it, then its choices and its names elsewhere.
# fmt: off


@dataclass(frozen=True, slots=True)
class AlgoConfig:
    name: str = setting("grpo", "Algorithm, a row of the table in docs/ALGORITHMS.md. It sets the parts below whose "
        "default is empty; a part that is set here replaces the algorithm's own.",
        verl={"algorithm.adv_estimator": "gae is ppo, reinforce_plus_plus reinforce_pp"})
    group_size: int = setting(8, "Group size G: completions sampled for each problem of a step.", ge=2,
        trl="num_generations", verl="actor_rollout_ref.rollout.n")
    beta: float = setting(0.001, "Coefficient of the KL penalty towards the frozen reference policy. 0: no penalty, "
        "and no reference is loaded.", ge=0, trl="beta",
        verl={"actor_rollout_ref.actor.kl_loss_coef": "with algo.kl_in loss",
            "algorithm.kl_ctrl.kl_coef": "with algo.kl_in reward"})
    kl_target: float = setting(0.0, "Adaptive KL penalty (Ziegler et al. 2019): after each step algo.beta is changed "
        "towards this KL of a whole response, the sum over its tokens, in proportion to the relative error. 0: "
        "algo.beta stays constant.", ge=0, unit="nats", needs="algo.beta > 0", verl="algorithm.kl_ctrl.target_kl")
    kl_horizon: int = setting(10_000, "Responses over which an error of 20 % or more changes algo.beta by a fifth. A "
        "step has data.prompts_per_step * algo.group_size responses.", ge=1,
        needs="algo.beta > 0 and algo.kl_target > 0", verl="algorithm.kl_ctrl.horizon")
    ref_sync_steps: int = setting(0, "Steps between updates of the reference policy to the current policy, as in "
        "R1-Zero's training. 0: the reference stays the initial model.", ge=0, needs="algo.beta > 0",
        trl={"sync_ref_model": "above 0",
            "ref_model_sync_steps": "the reference becomes the policy: ref_model_mixup_alpha 1"})
    kl: str | None = setting(None, "KL estimator.", needs="algo.beta > 0",
        choices={"k1": "the log ratio",
            "k2": "half its square",
            "k3": "GRPO's: unbiased, never negative",
            "k3_reverse": "the value of k3 with the gradient of KL(policy || reference)"},
        verl={"actor_rollout_ref.actor.kl_loss_type algorithm.kl_penalty": "kl is k1, mse k2, low_var_kl k3"})
    kl_in: str | None = setting(None, "Where the KL penalty enters.", needs="algo.beta > 0",
        choices={"loss": "a term of the loss", "reward": "subtracted from each token's reward"},
        verl={"actor_rollout_ref.actor.use_kl_loss": "loss, with algo.beta above 0",
            "algorithm.use_kl_in_reward": "reward, with algo.beta above 0"})
    returns: str | None = setting(None, "Return of a token.",
        choices={"total": "the reward of the whole completion",
            "to_go": "the rewards from this token on",
            "process": "the rewards of reasoning steps",
            "gae": "generalised advantage estimation with a critic"})
    step_credit: str | None = setting(None, "How reasoning steps are credited.", needs="algo.returns == 'process'",
        choices={"gated": "only where the answer is correct, and all steps together weigh as much as the answer",
            "sum": "DeepSeekMath's formula, which rewards many easy steps"})
    baseline: str | None = setting(None, "Baseline subtracted from the return.",
        choices={"none": "",
            "batch": "mean of the batch",
            "group": "mean of the group",
            "leave_one_out": "mean of the rest of the group",
            "value": "a critic"})
    scale: str | None = setting(None, "What advantages are divided by.",
        choices={"none": "",
            "group": "standard deviation of the group's rewards",
            "batch": "standard deviation over the batch's tokens; advantages are also centred"},
        trl={"scale_rewards": "True is group, False none; batch also centres over the batch"},
        verl={"algorithm.norm_adv_by_std_in_grpo": "True is group, False none"})
    ratio: str | None = setting(None, "Importance ratio of policy and old policy.", needs="algo.surrogate != 'plain'",
        trl="importance_sampling_level",
        choices={"token": "one for each token", "sequence": "one for each completion"})
    surrogate: str | None = setting(None, "Surrogate objective.",
        choices={"plain": "log-probability times advantage",
            "ratio": "unclipped importance ratio",
            "clip": "PPO's clipped ratio",
            "clip_weight": "CISPO: the ratio is a clipped constant weight"})
    clip_low: float | None = setting(None, "The importance ratio is clipped below at 1 - clip_low. With one update a "
        "step the ratio is 1.", ge=0, needs=f"algo.surrogate == 'clip' and {_CLIPS}",
        trl={"epsilon": "the lower bound alone; algo.clip_high is the upper one"},
        verl={"actor_rollout_ref.actor.clip_ratio": "the lower bound alone; algo.clip_high is the upper one",
            "actor_rollout_ref.actor.clip_ratio_low": ""})
    clip_high: float | None = setting(None, "The importance ratio is clipped above at 1 + clip_high. With one update a "
        "step the ratio is 1.", ge=0, needs=f"algo.surrogate in ('clip', 'clip_weight') and {_CLIPS}",
        verl="actor_rollout_ref.actor.clip_ratio_high",
        trl={"epsilon_high": "the same with PPO's clip; for CISPO it is the cap minus 1"})
    dual_clip: float | None = setting(None, "Dual-clip PPO: for negative advantages the loss of a token is at most "
        "this many times the advantage. Above 1; 0 turns it off.", ge=0, needs=f"algo.surrogate == 'clip' and {_CLIPS}",
        trl={"delta": "two-sided clipping: the same bound"},
        verl={"actor_rollout_ref.actor.clip_ratio_c": "off unless it is set"})
    loss_aggregation: str | None = setting(None, "How token losses are averaged.",
        choices={"token": "over all tokens of the step",
            "sequence": "over each completion, then over completions",
            "constant": "sum over a completion, divided by sampling.max_tokens"},
        trl={"loss_type": "grpo is sequence, bnpo and dapo token, dr_grpo constant; cispo is --algo cispo"},
        verl={"actor_rollout_ref.actor.loss_agg_mode": "token-mean is token, seq-mean-token-mean sequence, "
        "seq-mean-token-sum-norm constant, which is also divided by the number of completions"})
    filter_zero_advantages: bool | None = setting(None, "Leave zero-variance groups (all rewards equal) out of the "
        "batch. A step without any other group keeps them all.")
    filter_metric: str | None = setting(None, "The groups that are left out.", needs="algo.filter_zero_advantages",
        choices={"reward": "those with equal rewards",
            "correct": "those with all or none correct, whose rewards differ by the form or a learned score alone: "
            "DAPO, eq. 11"},
        verl={"algorithm.filter_groups.metric": "acc is correct, score and seq_reward are reward"})
    dynamic_sampling: bool | None = setting(None, "Replace groups that are left out by sampling other problems (DAPO's "
        "dynamic sampling).",
        verl={"algorithm.filter_groups.enable": "with algo.filter_zero_advantages"})
    dynamic_sampling_max_rounds: int = setting(3, "Most rounds of sampling replacements in a step.", ge=0,
        needs="algo.dynamic_sampling")
    importance_sampling: str = setting("auto", "Correction of the loss where the engine's log-probabilities differ "
        "from the trainer's, by the importance ratio trainer / engine.",
        choices={"auto": "none where engine.dtype and optim.dtype are float32 and max_off_policy_steps is 0, else "
            "token",
            "none": "",
            "token": "the ratio of each token, capped at algo.importance_clip_max",
            "sequence": "the product of a completion's ratios, capped",
            "token_mask": "the ratio of each token; tokens outside the bounds teach nothing (IcePop)",
            "sequence_mask": "the product of a completion's ratios; completions outside the bounds teach nothing",
            "geometric_mask": "1; completions whose geometric mean of the ratios is outside the bounds teach nothing: "
            "bounds near 1, such as 0.99 and 1.01"},
        trl={"vllm_importance_sampling_correction vllm_importance_sampling_mode": "token_truncate is token, "
        "sequence_truncate sequence"},
        verl={"algorithm.rollout_correction.rollout_is": "token and sequence; rollout_rs rejects by masks"})
    importance_clip_min: float = setting(0.5, "Lower bound of the importance ratio.", ge=0, le=1,
        needs="algo.importance_sampling in ('token_mask', 'sequence_mask', 'geometric_mask')",
        trl="vllm_importance_sampling_clip_min")
    importance_clip_max: float = setting(2.0, "Upper bound of the importance ratio.", ge=1,
        needs="algo.importance_sampling != 'none'", trl="vllm_importance_sampling_clip_max")
    entropy_coef: float = setting(0.0, "Coefficient of the entropy bonus. 0: no bonus.", ge=0,
        verl="actor_rollout_ref.actor.entropy_coeff")
    critic_backbone: str | None = setting(None, "Model under the critic's value head.",
        needs="algo.baseline == 'value'",
        choices={"separate": "a copy of the policy",
            "shared": "the policy itself, trained in the same optimiser steps"})
    epochs: int | None = setting(None, "Passes over each step's completions (mu in the papers).", ge=1,
        trl="num_iterations", verl="actor_rollout_ref.actor.ppo_epochs")
    minibatches: int | None = setting(None, "Optimiser steps in each pass: the step's groups are split into this many "
        "minibatches (fewer groups: one each).", ge=1, needs="algo.minibatches <= data.prompts_per_step",
        trl={"steps_per_generation": "the optimiser steps in a pass: steps_per_generation / "
        "gradient_accumulation_steps"},
        verl={"actor_rollout_ref.actor.ppo_mini_batch_size": "their number, not their size: data.train_batch_size / "
        "ppo_mini_batch_size"})
    trust: str | None = setting(None, "What keeps the policy near the one that sampled, besides clipping.",
        choices={"none": "", "constrained": "TRPO's step within a KL bound"})
    delta: float = setting(0.01, "Largest KL(old || new) of a step.", gt=0, unit="nats per token",
        needs="algo.trust == 'constrained'")
    fisher_rows: int = setting(16, "Most completions that the Fisher matrix is estimated from.", ge=1,
        needs="algo.trust == 'constrained'")
    damping: float = setting(0.1, "Value added to the diagonal of the Fisher matrix.", gt=0,
        needs="algo.trust == 'constrained'")
    mask_truncated_completions: bool = setting(False, "Exclude completions that ended without an end token or stop "
        "text from the loss. They still count in their group's baseline.", trl="mask_truncated_completions")
