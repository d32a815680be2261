"""Settings of what a run learns from and how: sections of the tree in reasoner.config.schema.

The comment above a field is its help text.
"""

from __future__ import annotations

from dataclasses import dataclass

from verifiers.rewards import RewardWeights


@dataclass(frozen=True, slots=True)
class RewardConfig(RewardWeights):
    # Your reward functions with TRL's signature (lists of completions and columns to a list of numbers; also async),
    # as FILE.py:function=weight or module:function=weight, separated by commas (weight 1 if none is stated). They are
    # called in a process of their own, with the limits verify.seconds for each completion and verify.memory_mib:
    # docs/DATA.md. Empty: none.
    functions: str = ""
    # Reward models whose scores are added to the reward, as MODEL=WEIGHT, separated by commas (weight 1 if none is
    # stated): a run of `reasoner reward-model train`, a folder, or a hub name of a sequence classifier with one label
    # and the policy's vocabulary. Empty: none.
    model: str = ""
    # With reward.model: the completions whose scores count: all | correct (wrong ones have 0 in place of a score, and
    # gain nothing by what the model likes).
    model_on: str = "all"
    # With reward.model: scores are clipped to between -clip and clip.
    clip: float = 5.0
    # With reward.model: score of a completion that ended without an end token or stop text.
    missing_end: float = -1.0


@dataclass(frozen=True, slots=True)
class AlgoConfig:
    # Algorithm, a row of the table in docs/ALGORITHMS.md. It sets the parts below whose default is empty; a part that
    # is set here replaces the algorithm's own.
    name: str = "grpo"
    # Group size G: completions sampled for each problem of a step.
    group_size: int = 8
    # Coefficient of the KL penalty towards the frozen reference policy. 0: no penalty, and no reference is loaded.
    beta: float = 0.001
    # With algo.beta above 0: precision of the reference's weights: float32 | bfloat16 (half the memory; the KL is then
    # measured to a reference with rounded weights, and is not exactly 0 before the first update).
    reference_dtype: str = "float32"
    # Adaptive KL penalty: after each step algo.beta is changed towards this KL, in nats: per token with
    # algo.kl_controller double, of a whole response (the sum over its tokens) with proportional. 0: algo.beta stays
    # constant.
    kl_target: float = 0.0
    # With algo.kl_target, how algo.beta follows the KL: double (doubled above 1.5 targets, halved below 2/3: PPO's
    # rule) | proportional (changed in proportion to the relative error, by at most a fifth in algo.kl_horizon
    # responses: Ziegler et al. 2019).
    kl_controller: str = "double"
    # With algo.kl_controller proportional: responses over which an error of 20 % or more changes algo.beta by a fifth.
    # A step has data.prompts_per_step * algo.group_size responses.
    kl_horizon: int = 10_000
    # Steps between updates of the reference policy to the current policy, as in R1-Zero's training. 0: the reference
    # stays the initial model.
    ref_sync_steps: int = 0
    # KL estimator: k1 (the log ratio) | k2 (half its square) | k3 (GRPO's: unbiased, never negative) | k3_reverse (the
    # value of k3 with the gradient of KL(policy || reference)).
    kl: str | None = None
    # Where the KL penalty enters: loss (a term of the loss) | reward (subtracted from each token's reward).
    kl_in: str | None = None
    # Return of a token: total (the reward of the whole completion) | to_go (the rewards from this token on) | process
    # (the rewards of reasoning steps) | gae (generalised advantage estimation with a critic).
    returns: str | None = None
    # With algo.returns process, how reasoning steps are credited: gated (only where the answer is correct, and all
    # steps together weigh as much as the answer) | sum (DeepSeekMath's formula, which rewards many easy steps).
    step_credit: str | None = None
    # Baseline subtracted from the return: none | batch (mean of the batch) | moving (moving average over steps) | group
    # (mean of the group) | leave_one_out (mean of the rest of the group) | value (a critic).
    baseline: str | None = None
    # What advantages are divided by: none | group (standard deviation of the group's rewards) | batch (standard
    # deviation over the batch's tokens; advantages are also centred).
    scale: str | None = None
    # Importance ratio of policy and old policy: token (one for each token) | sequence (one for each completion).
    ratio: str | None = None
    # Surrogate objective: plain (log-probability times advantage) | ratio (unclipped importance ratio) | clip (PPO's
    # clipped ratio) | clip_weight (CISPO: the ratio is a clipped constant weight).
    surrogate: str | None = None
    # With algo.surrogate clip: the importance ratio is clipped below at 1 - clip_low. With one update a step
    # (algo.epochs and algo.minibatches 1) the ratio is 1, and nothing is clipped.
    clip_low: float | None = None
    # With algo.surrogate clip or clip_weight: the importance ratio is clipped above at 1 + clip_high.
    clip_high: float | None = None
    # Dual-clip PPO: for negative advantages the loss of a token is at most this many times the advantage. Above 1; 0
    # turns it off.
    dual_clip: float | None = None
    # How token losses are averaged: token (over all tokens of the step) | sequence (over each completion, then over
    # completions) | constant (sum over a completion, divided by sampling.max_tokens).
    loss_aggregation: str | None = None
    # Leave zero-variance groups (all rewards equal) out of the batch. A step without any other group keeps them all.
    filter_zero_advantages: bool | None = None
    # With algo.filter_zero_advantages: the groups that are left out: reward (those with equal rewards) | correct (those
    # with all or none correct, whose rewards differ by the form or a learned score alone: DAPO, eq. 11).
    filter_metric: str | None = None
    # Replace groups that are left out by sampling other problems (DAPO's dynamic sampling). Needs
    # algo.filter_zero_advantages.
    dynamic_sampling: bool | None = None
    # With algo.dynamic_sampling: most rounds of sampling replacements in a step.
    dynamic_sampling_max_rounds: int = 3
    # Importance-sampling correction where the engine's log-probabilities differ from the trainer's: none | token (a
    # weight for each token) | sequence (a weight for each completion).
    importance_sampling: str = "none"
    # With algo.importance_sampling: importance weights are capped at this value.
    importance_clip_max: float = 2.0
    # Coefficient of the entropy bonus. 0: no bonus.
    entropy_coef: float = 0.0
    # With algo.baseline moving: decay of the moving average, the weight of earlier steps.
    moving_decay: float = 0.9
    # Model under the critic's value head: separate (a copy of the policy) | shared (the policy itself, trained in the
    # same optimiser steps).
    critic_backbone: str | None = None
    # Passes over each step's completions (mu in the papers). At least 1.
    epochs: int | None = None
    # Optimiser steps in each pass: the step's groups are split into this many minibatches (fewer groups: one each). At
    # least 1.
    minibatches: int | None = None
    # What keeps the policy near the one that sampled, besides clipping: none | penalty (a KL penalty) | constrained
    # (TRPO's step within a KL bound).
    trust: str | None = None
    # With algo.trust constrained: largest KL(old || new) of a step, in nats per token.
    delta: float = 0.01
    # With algo.trust constrained: most completions that the Fisher matrix is estimated from.
    fisher_rows: int = 16
    # With algo.trust constrained: value added to the diagonal of the Fisher matrix.
    damping: float = 0.1
    # With algo.trust penalty: initial coefficient of KL(old || new).
    penalty: float = 1.0
    # With algo.trust penalty: the coefficient is doubled or halved after each step towards this KL, in nats per token.
    # 0: it stays constant.
    penalty_target: float = 0.0
    # With several updates a step: skip its remaining ones once KL(old || new) exceeds this, in nats per token. 0:
    # never.
    stop_kl: float = 0.0
    # Penalty subtracted from the reward of a completion that ended without an end token or stop text: truncated at
    # sampling.max_tokens, or aborted by the engine.
    missing_eos_penalty: float = 0.0
    # Exclude completions that ended without an end token or stop text from the loss. They still count in their group's
    # baseline.
    mask_truncated_completions: bool = False


@dataclass(frozen=True, slots=True)
class CriticConfig:
    # Discount of later rewards, per token.
    gamma: float = 1.0
    # Lambda of generalised advantage estimation: 0 relies on the critic, 1 on the returns. Below 1 the reward at the
    # end of a long completion hardly reaches its beginning (0.95 to the power of 100 is 0.006).
    lam: float = 1.0
    # Lambda of the policy's advantages, where it differs from that of the critic's targets (decoupled GAE: VC-PPO, Yuan
    # et al. 2025). Empty: critic.lam for both.
    lam_actor: float | None = None
    # Reward model whose backbone and head the critic starts from (as in reward.model): of the policy's architecture,
    # with algo.critic_backbone separate. Empty: a copy of the policy's backbone and a head of zeros.
    init: str = ""
    # Learning rate of the critic. With algo.critic_backbone shared: of the value head alone.
    lr: float = 1e-4
    # With algo.critic_backbone shared: coefficient of the critic's loss beside the policy's.
    vf_coef: float = 0.5
    # Divide rewards by their standard deviation over the step's tokens. Rewards are not centred: 0 stays 0.
    whiten_rewards: bool = False
    # Continue the return of a completion that ended without an end token or stop text with the critic's value. The
    # completion was graded as it stands, so this rewards running into the limit.
    bootstrap_truncated: bool = False
    # With algo.critic_backbone separate: the critic's passes over each step's completions. Empty: algo.epochs.
    epochs: int | None = None
    # With algo.critic_backbone separate: the critic's optimiser steps in each pass. Empty: algo.minibatches.
    minibatches: int | None = None
    # Value clipping: a value that has moved by more than this in one step gets no further gradient. 0: no clipping.
    clip: float = 0.0
    # Steps at the start in which only the critic learns and the policy stays as it is. With algo.critic_backbone
    # shared only the value head learns.
    warmup_steps: int = 0


@dataclass(frozen=True, slots=True)
class PtxConfig:
    # Pretraining mix (PPO-ptx: Ouyang et al. 2022): texts whose likelihood every optimiser step of the policy raises as
    # well: corpus:base (the pretraining corpus of the embedded base), or a .jsonl or .parquet file of supervised
    # examples (a column text, for example). Empty: none.
    data: str = ""
    # With ptx.data: coefficient of the texts' mean negative log-likelihood per token in the loss. 0: no mix.
    weight: float = 0.1
    # With ptx.data: texts in each optimiser step.
    rows: int = 32


@dataclass(frozen=True, slots=True)
class OptimConfig:
    # Peak learning rate, reached after the warm-up.
    lr: float = 1e-6
    # Steps of linear learning-rate warm-up.
    warmup_steps: int = 5
    # Fraction of the run, at its end, over which the learning rate decays linearly towards 0: of `steps`, and of
    # `max_train_tokens` where that is set. 0: no decay.
    decay_share: float = 0.0
    # AdamW's beta1, the decay of the gradient's moving average.
    beta1: float = 0.9
    # AdamW's beta2, the decay of the squared gradient's moving average.
    beta2: float = 0.95
    # AdamW's weight decay.
    weight_decay: float = 0.0
    # Gradient clipping: largest L2 norm.
    max_grad_norm: float = 1.0
    # Most tokens (rows x length, padding included) in a micro-batch. Bounds memory; cannot change the gradient.
    micro_batch_tokens: int = 16384
    # Activation recomputation (gradient checkpointing): compute the activations of each layer again in the backward
    # pass instead of storing them. Less memory, about a third more computation in an update, the same gradient.
    recompute: bool = False
    # Compute precision of the trainer: float32 | bfloat16. The weights that are trained are always float32.
    dtype: str = "float32"
    # Sharding strategy of several processes: what each holds of the weights, gradients and AdamW's moments: replicated
    # (all of them) | gathered (a shard; whole weights and gradients during the passes of a step) | sharded (a shard,
    # and whole weights of the layer at work) | auto (the first of these that fits the GPU; on a CPU replicated).
    # docs/SCALE.md names the counterparts of FSDP and ZeRO.
    sharding: str = "replicated"
    # Precision of AdamW's two moments: float32 (8 bytes a parameter) | 8bit (2 bytes; needs the extra torchao).
    state_dtype: str = "float32"
    # On a GPU: compute the backward pass with deterministic kernels only, so that a resumed run is exact. false allows
    # faster ones, above all for attention. On a CPU all kernels are deterministic.
    deterministic: bool = True


@dataclass(frozen=True, slots=True)
class LoraConfig:
    # Rank of LoRA's adapters: only they are trained, and the reference is the model without them. 0: no LoRA, all
    # weights are trained. There is no dropout: the ratio of policy and old policy must be 1 before the first update.
    # Needs the extra `lora`.
    rank: int = 0
    # LoRA's alpha: the product of the two adapter matrices is multiplied by alpha / rank.
    alpha: float = 32.0
    # Layers with an adapter: all-linear (every linear layer but the output layer) | attention (queries, keys, values
    # and the attention's output).
    target: str = "all-linear"
    # Precision of the frozen weights under the adapter: float32 | bfloat16 (half the memory, and the same numbers as
    # float32 for a model that is stored in bfloat16; needs optim.dtype bfloat16). The adapter is always float32.
    base_dtype: str = "float32"
    # What vLLM gets after an update: adapter (the adapter alone) | merged (all weights with the adapter added; for
    # models whose adapters vLLM cannot run, and exact only with engine.dtype float32). The transformers engine and
    # servers (engine.urls) always get merged weights.
    sync: str = "adapter"


@dataclass(frozen=True, slots=True)
class RewardModelConfig:
    # Preferences to train a reward model on: a .jsonl or .parquet file (columns: docs/REWARD_MODELS.md).
    data: str = ""
    # Passes over the preferences. The last step has what is left of the last pass.
    epochs: int = 1
    # Prompts per optimiser step. All pairs of a prompt are one element of the batch.
    prompts: int = 8
    # Coefficient of the squared sum of a pair's scores in the loss, which holds their mean near 0 (0.01 is usual). 0:
    # the loss alone, which does not decide the mean.
    center: float = 0.0
    # Divide the head by the standard deviation of the scores over the training completions at the end, and record their
    # mean: then the scores of every reward model have the same unit.
    normalize: bool = True
    # Leave out pairs with a completion of more tokens than this, its prompt included; the number left out is reported.
    # 0: leave out only those that do not fit into the model's context.
    max_tokens: int = 0
    # Share of the problems whose pairs are held out, for the report at the end. 0: none, and no report.
    heldout_share: float = 0.1


@dataclass(frozen=True, slots=True)
class SftConfig:
    # Supervised examples: a .jsonl or .parquet file (columns: docs/SFT.md), rollouts of own runs
    # (runs:RUN,RUN?where=correct,well-formed&per_problem=4&steps=A:B), or a data set of the hub (ORG/NAME or
    # ORG/NAME:SPLIT); several with semicolons between them.
    data: str = ""
    # Passes over the examples.
    epochs: int = 2
    # Examples per optimiser step.
    rows: int = 64
    # Tokens with a loss: completion (those of the completion) | all (those of the prompt as well, but for the first).
    loss_on: str = "completion"
    # Leave out examples of more tokens than this, prompt and completion together; the number left out is reported. 0:
    # leave out only those that do not fit into the model's context.
    max_tokens: int = 0
    # Share of the problems whose examples are not trained on: validation measures the loss on them. All examples of a
    # problem, or of a conversation, are on one side. At most some 500 examples. 0: none, as with validation.interval 0.
    validation_share: float = 0.05
