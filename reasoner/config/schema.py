"""The settings of a run: one tree of frozen dataclasses. The comment above a field is its help text."""

from __future__ import annotations

from dataclasses import dataclass, field

from verifiers.rewards import RewardWeights


@dataclass(frozen=True, slots=True)
class RunConfig:
    # name of the run folder; empty makes one from the model, the algorithm and the time
    name: str = ""
    # folder that holds the run folders
    dir: str = "runs"
    # steps between checkpoints (the last step always saves)
    save_every: int = 20
    # checkpoints kept, the newest ones
    keep: int = 2
    # steps between two probes whether the engine has the learner's weights, each after a weight sync; 0 = the first
    # alone
    probe_every: int = 1
    # when a health check rings: warn | stop (save and leave) | rollback (to the checkpoint before its cause, with other
    # samples and half the learning rate; three times, then stop)
    on_alarm: str = "warn"
    # keep entropy, KL and share in the loss of every token with the rollouts (12 bytes a token before compression)
    token_figures: bool = True
    # trackers to tell as well, with commas: trackio, wandb, tensorboard (each an optional extra; metrics.jsonl is
    # written whatever happens to them)
    track: str = ""


@dataclass(frozen=True, slots=True)
class DataConfig:
    # problems to train on: a name from `reasoner data list`, or a local .jsonl or .parquet file
    train: str = "generated"
    # questions asked at each step
    prompts_per_step: int = 32
    # prompts longer than this are left out, with a count; 0 = only those that leave no room in the model's context
    max_prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class PromptConfig:
    # template: r1-zero | qwen-math | boxed | chat | none, or a .txt or .toml file
    style: str = "r1-zero"


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    # of the distribution that completions are drawn from; the learner's log-probabilities are taken at it as well
    temperature: float = 1.0
    # kept at 1 in training: truncated sampling biases the importance ratio
    top_p: float = 1.0
    # most tokens of a completion
    max_tokens: int = 256


@dataclass(frozen=True, slots=True)
class AlgoConfig:
    # a row of reasoner.rl.algorithms.ALGORITHMS
    name: str = "grpo"
    # completions of each question (G)
    group: int = 8
    # coefficient of the KL term to the frozen reference; 0 loads no reference
    beta: float = 0.001
    # KL per token that beta is doubled or halved towards after each step (PPO's rule); 0 = beta stays
    kl_target: float = 0.0
    # the reference becomes the policy every so many steps, as in R1-Zero's training; 0 = it stays the first model
    refresh_reference: int = 0
    # KL estimator: k1 | k2 | k3 | k3_reverse; this and every part below: empty takes the algorithm's own
    kl: str | None = None
    # where the KL term goes: loss | reward (per token, before returns are made)
    kl_in: str | None = None
    # what a token is credited with: total | to_go | process | gae
    returns: str | None = None
    # with returns process, how the steps of a thought are credited: gated (true equations count only under a right
    # answer, and all steps together weigh as much as the answer) | sum (DeepSeekMath's formula, which pays for many
    # easy steps)
    step_credit: str | None = None
    # what is subtracted from it: none | batch | moving | group | leave_one_out | value
    baseline: str | None = None
    # what divides it: none | group | batch
    scale: str | None = None
    # importance ratio of policy and old policy: token | sequence
    ratio: str | None = None
    # loss of a token: plain | ratio | clip | clip_weight
    surrogate: str | None = None
    # lower end of the importance ratio is 1 - clip_low
    clip_low: float | None = None
    # upper end of the importance ratio is 1 + clip_high
    clip_high: float | None = None
    # most that a token with a negative advantage can cost, in advantages; 0 = no limit
    dual_clip: float | None = None
    # how per-token losses are weighed: token | sequence | constant
    weights: str | None = None
    # groups whose rewards are all equal leave the batch
    drops_flat: bool | None = None
    # and other questions are asked in their place
    refills: bool | None = None
    # rounds of other questions in the place of groups without a signal, at most, where the algorithm refills
    refills_most: int = 3
    # correction for the sampler's log-probabilities, which differ from the learner's: none | token | sequence
    importance: str = "none"
    # largest such weight
    importance_cap: float = 2.0
    # coefficient of an entropy bonus
    entropy: float = 0.0
    # weight of the past in the moving-average baseline
    moving_decay: float = 0.9
    # what a critic's head stands on: own | shared (the policy's trunk, learnt in the same optimiser steps)
    trunk: str | None = None
    # passes over each step's completions (mu)
    epochs: int | None = None
    # optimiser steps that each pass is split into
    minibatches: int | None = None
    # what holds the policy near the one that sampled besides the clip: none | penalty | constrained
    trust: str | None = None
    # with trust constrained: most KL(old || new) per token that a step may make
    delta: float = 0.01
    # with trust constrained: completions that the Fisher matrix is made of, at most
    fisher_rows: int = 16
    # with trust constrained: added to the diagonal of the Fisher matrix, for what those completions do not show
    damping: float = 0.1
    # with trust penalty: coefficient of KL(old || new) to begin with
    penalty: float = 1.0
    # with trust penalty: KL that the coefficient is doubled or halved towards after each step; 0 = it stays
    penalty_target: float = 0.0
    # no further update on a step's completions once KL(old || new) is above this; 0 = all are made
    stop_kl: float = 0.0
    # penalty on the reward of a completion that was cut off at sampling.max_tokens
    missing_end: float = 0.0
    # completions that were cut off count for their group's baseline and are not learnt from
    mask_truncated: bool = False


@dataclass(frozen=True, slots=True)
class CriticConfig:
    # discount of later rewards
    gamma: float = 1.0
    # GAE's lambda: 0 trusts the critic, 1 the returns (below 1 the reward at the end of a long response hardly reaches
    # its beginning: 0.95 to the power of 100 is 0.006)
    lam: float = 1.0
    # learning rate of the critic; on a shared trunk of its head alone
    lr: float = 1e-4
    # coefficient of the critic's loss beside the policy's, on a shared trunk
    coefficient: float = 0.5
    # divide rewards by their standard deviation over the step's tokens (a token without reward keeps 0)
    whiten_rewards: bool = False
    # after a completion that was cut off at sampling.max_tokens, continue its return with the critic's value (it was
    # graded as it stands, so this pays the policy for running into the limit)
    bootstrap_truncated: bool = False
    # passes of a critic with a trunk of its own over each step's completions
    epochs: int = 1
    # most that a value may move in one step before its loss stops pulling; 0 = no limit
    clip: float = 0.0
    # steps at the start in which the critic learns alone and the policy stays as it is (on a shared trunk the critic's
    # head alone learns)
    warmup_steps: int = 0


@dataclass(frozen=True, slots=True)
class OptimConfig:
    # learning rate after the warm-up
    lr: float = 1e-6
    # steps of linear warm-up
    warmup_steps: int = 5
    # share of the run, at its end, over which the learning rate falls linearly towards 0: of `steps`, and of `tokens`
    # where that is set; 0 = it stays
    decay_share: float = 0.0
    # AdamW's averaging factors
    beta1: float = 0.9
    # AdamW's second factor
    beta2: float = 0.95
    # AdamW's weight decay
    weight_decay: float = 0.0
    # largest L2 norm of the gradient
    max_grad_norm: float = 1.0
    # most tokens (rows x length) in a micro-batch; cannot change the gradient
    micro_batch_tokens: int = 16384
    # compute precision of the learner: float32 | bfloat16 (weights and optimiser stay float32)
    dtype: str = "float32"


@dataclass(frozen=True, slots=True)
class EngineConfig:
    # vllm | transformers; auto takes vllm where it imports
    name: str = "auto"
    # precision of the sampler's weights: float32 | bfloat16
    dtype: str = "float32"
    # share of the GPU's memory given to vLLM
    gpu_memory: float = 0.4
    # most GiB of key-value cache on a CPU; memory is taken as it is used, and given back while the learner works
    cpu_cache_gib: int = 1


@dataclass(frozen=True, slots=True)
class VerifyConfig:
    # grading processes
    workers: int = 1
    # a response that takes longer is "timed_out" and its worker replaced
    seconds: float = 2.0
    # address space of a worker
    memory_mib: int = 512


@dataclass(frozen=True, slots=True)
class EvalConfig:
    # problems looked at during training, to follow it and to choose by; never the reported ones
    selection: str = "generated:selection"
    # problems of the table before against after
    heldout: str = "generated:heldout"
    # steps between evaluations on the selection problems; 0 = never
    every: int = 10
    # number of selection problems (the first ones)
    selection_problems: int = 60
    # completions of each selection problem: pass@1 and cons@k, k being this number
    selection_samples: int = 16
    # number of held-out problems (the first ones); 0 skips the table before against after
    heldout_problems: int = 150
    # completions of each held-out problem
    samples: int = 16


@dataclass(frozen=True, slots=True)
class Config:
    # base (the embedded model), a run folder, a local model folder, or a hub name
    model: str = "base"
    # steps of the run: one batch of questions, completions, grades and updates each
    steps: int = 60
    # the run ends with the step that has sampled so many tokens in all; 0 = after `steps` alone
    tokens: int = 0
    # decides which problems are asked when, and every sample
    seed: int = 0
    # 1 samples the next step while this one is learnt, by the weights from before its update; needs algo.importance.
    # Not across a step that saves; a run that a signal stopped goes on without what had been begun
    ahead: int = 0
    # a reward that cannot teach mathematics, to compare with: random-reward | format-only | wrong-gold; empty = none
    control: str = ""
    # torch threads; 0 = all cores
    threads: int = 0
    run: RunConfig = field(default_factory=RunConfig)
    data: DataConfig = field(default_factory=DataConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    reward: RewardWeights = field(default_factory=RewardWeights)
    algo: AlgoConfig = field(default_factory=AlgoConfig)
    critic: CriticConfig = field(default_factory=CriticConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    verify: VerifyConfig = field(default_factory=VerifyConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
