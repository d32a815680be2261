"""Settings of what a run learns from and how: sections of the tree in reasoner.config.schema."""

from __future__ import annotations

from dataclasses import dataclass

from reasoner.config.setting import setting
from verifiers.rewards import RewardWeights

DTYPES = {"float32": "", "bfloat16": ""}
_OWN_CRITIC = "algo.critic_backbone == 'separate'"
_STEPS_BY_LR = "algo.trust != 'constrained'"  # TRPO's step is as long as algo.delta allows

# A paragraph a setting: default and help, then what limits it, then its choices and its names elsewhere.
# fmt: off


@dataclass(frozen=True, slots=True)
class RewardConfig(RewardWeights):
    functions: str = setting("", "Your reward functions with TRL's signature (lists of completions and columns to a "
        "list of numbers; also async), as FILE.py:function=weight or module:function=weight, separated by commas "
        "(weight 1 if none is stated). They are called in a process of their own, with the limits verify.seconds for "
        "each completion and verify.memory_mib: docs/DATA.md. Empty: none.",
        trl={"reward_funcs": "beside the rewards of reward.*, of which correct and format are on",
            "reward_weights": "the weights stand there, as FILE.py:function=weight"},
        verl={"custom_reward_function.path": "with TRL's signature: lists of completions and columns"})
    model: str = setting("", "Reward models whose scores are added to the reward, as MODEL=WEIGHT, separated by commas "
        "(weight 1 if none is stated): a run of `reasoner reward-model train`, a folder, or a hub name of a sequence "
        "classifier with one label and the policy's vocabulary. Empty: none.")
    model_on: str = setting("all", "The completions whose scores count.", needs="reward.model",
        choices={"all": "",
            "correct": "wrong ones have 0 in place of a score, and gain nothing by what the model likes"})
    clip: float = setting(5.0, "Scores are clipped to between -clip and clip.", gt=0, needs="reward.model")
    missing_end: float = setting(-1.0, "Score of a completion that ended without an end token or stop text.",
        needs="reward.model")


@dataclass(frozen=True, slots=True)
class TeacherConfig:
    model: str = setting("", "Teacher of on-policy distillation: a run, a checkpoint, a model folder or a hub name, "
        "with the policy's tokenizer. It lowers KL(policy || teacher) at each token of the policy's samples (Agarwal "
        "et al. 2024). Or addresses of vLLM servers that hold it (reasoner serve), as in engine.urls. Empty: none.")
    kl: str = setting("sampled", "How KL(policy || teacher) at a token is computed.", needs="teacher.model",
        choices={"sampled": "estimated at the sampled token, whose advantage gets the log-probability that the teacher "
            "gives it less the policy's own",
            "full": "exactly, over the whole vocabulary, as a term of the loss; the teacher reads the completions in "
            "each of a step's updates"})
    prompt: str = setting("", "What the teacher reads in place of the question, for self-distillation (OPSD: Zhao et "
        "al. 2026): a text with {question} and {answer}, the gold answer, or {solution} or another column of "
        "data.train. It takes the question's place in the policy's prompt template. Empty: the policy's prompt.",
        needs="teacher.model")
    weight: float = setting(1.0, "Coefficient of the KL to the teacher, in the advantages or in the loss.", gt=0,
        needs="teacher.model")
    alone: bool = setting(False, "Learn from the teacher alone: the reward is recorded and has no part in the "
        "advantages.", needs="teacher.model")

    @property
    def urls(self) -> str:
        """The addresses in `model`; empty for a model that is loaded here."""
        return self.model if "://" in self.model else ""

    @property
    def loaded(self) -> str:
        """The model that is loaded here; empty for one on servers."""
        return "" if self.urls else self.model


@dataclass(frozen=True, slots=True)
class CriticConfig:
    gamma: float = setting(1.0, "Discount of later rewards, per token.", ge=0, le=1, verl="algorithm.gamma")
    lam: float = setting(1.0, "Lambda of generalised advantage estimation: 0 relies on the critic, 1 on the returns. "
        "Below 1 the reward at the end of a long completion hardly reaches its beginning (0.95 to the power of 100 is "
        "0.006).", ge=0, le=1, needs="algo.returns == 'gae'", verl="algorithm.lam")
    init: str = setting("", "Reward model whose backbone and head the critic starts from (as in reward.model), of the "
        "policy's architecture. Empty: a copy of the policy's backbone and a head of zeros.",
        needs=f"{_OWN_CRITIC} and lora.rank == 0")
    lr: float = setting(1e-5, "Learning rate of the critic. With algo.critic_backbone shared: of the value head alone.",
        gt=0, le=1, verl="critic.optim.lr")
    vf_coef: float = setting(0.5, "Coefficient of the critic's loss beside the policy's.", ge=0,
        needs="algo.critic_backbone == 'shared'")
    epochs: int | None = setting(None, "The critic's passes over each step's completions. Empty: algo.epochs.", ge=1,
        needs=_OWN_CRITIC, verl="critic.ppo_epochs")
    minibatches: int | None = setting(None, "The critic's optimiser steps in each pass. Empty: algo.minibatches.", ge=1,
        needs=_OWN_CRITIC)
    clip: float = setting(0.0, "Value clipping: a value that has moved by more than this in one step gets no further "
        "gradient. 0: no clipping.", ge=0, verl="critic.cliprange_value")
    warmup_steps: int = setting(0, "Steps at the start in which only the critic learns and the policy stays as it is. "
        "With algo.critic_backbone shared only the value head learns.", ge=0)


@dataclass(frozen=True, slots=True)
class OptimConfig:
    lr: float = setting(1e-6, "Peak learning rate, reached after the warm-up.", gt=0, le=1, needs=_STEPS_BY_LR,
        trl="learning_rate", verl="actor_rollout_ref.actor.optim.lr")
    warmup_steps: int = setting(5, "Steps of linear learning-rate warm-up. Where it is not set, supervised "
        "finetuning takes 3 % of its steps.", ge=0,
        needs=f"{_STEPS_BY_LR} or algo.baseline == 'value'", verl="actor_rollout_ref.actor.optim.lr_warmup_steps",
        trl={"warmup_steps": "", "warmup_ratio": "in steps, not as a share of the run"})
    decay_share: float = setting(0.0, "Fraction of the run, at its end, over which the learning rate decays linearly "
        "towards 0: of `steps`, and of `max_train_tokens` where that is set. 0: no decay.", ge=0, le=1,
        needs=f"{_STEPS_BY_LR} or algo.baseline == 'value'",
        trl={"lr_scheduler_type": "share of the run, at its end, with linear decay: 1 linear, 0 constant"})
    beta1: float = setting(0.9, "AdamW's beta1, the decay of the gradient's moving average.", needs=_STEPS_BY_LR,
        trl="adam_beta1")
    beta2: float = setting(0.95, "AdamW's beta2, the decay of the squared gradient's moving average.",
        needs=_STEPS_BY_LR, trl="adam_beta2")
    weight_decay: float = setting(0.0, "AdamW's weight decay.", ge=0, needs=_STEPS_BY_LR, trl="weight_decay",
        verl="actor_rollout_ref.actor.optim.weight_decay")
    max_grad_norm: float = setting(1.0, "Gradient clipping: largest L2 norm.", gt=0,
        needs=f"{_STEPS_BY_LR} or algo.baseline == 'value'", trl="max_grad_norm",
        verl="actor_rollout_ref.actor.grad_clip")
    micro_batch_tokens: int = setting(16384, "Most tokens (rows x length, padding included) in a micro-batch. Bounds "
        "memory; cannot change the gradient.", ge=1,
        trl={"per_device_train_batch_size": "in tokens, without effect on the gradient; the batch is "
        "data.prompts_per_step x algo.group_size completions"},
        verl={"actor_rollout_ref.rollout.log_prob_micro_batch_size_per_gpu": "in tokens, without effect on the result",
            "actor_rollout_ref.actor.ppo_micro_batch_size_per_gpu": "in tokens, without effect on the gradient",
            "actor_rollout_ref.actor.ppo_max_token_len_per_gpu": "rows x length, padding included"})
    recompute: bool = setting(False, "Activation recomputation (gradient checkpointing): compute the activations of "
        "each layer again in the backward pass instead of storing them. Less memory, about a third more computation in "
        "an update, the same gradient.", trl="gradient_checkpointing",
        verl="actor_rollout_ref.model.enable_gradient_checkpointing")
    compile: bool = setting(False, "Compile the norms and feed-forward of each layer with torch.compile: fewer "
        "kernels and less memory traffic, the same numbers to rounding. The first steps compile; needs a C++ compiler.",
        trl="torch_compile", verl="actor_rollout_ref.actor.use_torch_compile")
    dtype: str = setting("float32", "Compute precision of the trainer. The weights that are trained are always "
        "float32.", choices=DTYPES, trl="bf16 fp16")
    sharding: str = setting("replicated", "Sharding strategy of several processes: what each holds of the weights, "
        "gradients and AdamW's moments. `reasoner doctor --gpu KIND` says which fits; docs/SCALE.md names the "
        "counterparts of FSDP and ZeRO.", needs="processes > 1",
        trl="deepspeed",
        choices={"replicated": "all of them",
            "gathered": "a shard; whole weights and gradients during the passes of a step",
            "sharded": "a shard, and whole weights of the layer at work"})
    deterministic: bool = setting(True, "On a GPU: compute the backward pass with deterministic kernels only, so that "
        "a resumed run is exact. false allows faster ones, above all for attention. On a CPU all kernels are "
        "deterministic.")


@dataclass(frozen=True, slots=True)
class LoraConfig:
    rank: int = setting(0, "Rank of LoRA's adapters: only they are trained, and the reference is the model without "
        "them. 0: no LoRA, all weights are trained. There is no dropout: the ratio of policy and old policy must be 1 "
        "before the first update. Takes the extra `lora`.", ge=0, verl="actor_rollout_ref.model.lora_rank",
        trl={"lora_r": "", "use_peft": "above 0"})
    alpha: float = setting(32.0, "LoRA's alpha: the product of the two adapter matrices is multiplied by alpha / rank.",
        gt=0, needs="lora.rank > 0", trl="lora_alpha", verl="actor_rollout_ref.model.lora_alpha")
    target: str = setting("all-linear", "Layers with an adapter.", needs="lora.rank > 0", trl="lora_target_modules",
        choices={"all-linear": "every linear layer but the output layer",
            "attention": "queries, keys, values and the attention's output"})
    base_dtype: str = setting("float32", "Precision of the frozen weights under the adapter. The adapter is always "
        "float32.",
        choices={"float32": "",
            "bfloat16": "half the memory, and the same numbers as float32 for a model that is stored in bfloat16"})


@dataclass(frozen=True, slots=True)
class RewardModelConfig:
    data: str = setting("", "Preferences to train a reward model on: a .jsonl or .parquet file (columns: "
        "docs/REWARD_MODELS.md).")
    epochs: int = setting(1, "Passes over the preferences. The last step has what is left of the last pass.", ge=1)
    prompts: int = setting(8, "Prompts per optimiser step. All pairs of a prompt are one element of the batch.", ge=1)
    center: float = setting(0.0, "Coefficient of the squared sum of a pair's scores in the loss, which holds their "
        "mean near 0 (0.01 is usual). 0: the loss alone, which does not decide the mean.", ge=0)
    normalize: bool = setting(True, "Divide the head by the standard deviation of the scores over the training "
        "completions at the end, and record their mean: then the scores of every reward model have the same unit.")
    max_tokens: int = setting(0, "Leave out pairs with a completion of more tokens than this, its prompt included; the "
        "number left out is reported. 0: leave out only those that do not fit into the model's context.", ge=0)
    heldout_share: float = setting(0.1, "Share of the problems whose pairs are held out, for the report at the end. 0: "
        "none, and no report.", ge=0, le=0.5)


@dataclass(frozen=True, slots=True)
class SftConfig:
    data: str = setting("", "Supervised examples: a .jsonl or .parquet file (columns: docs/SFT.md), rollouts of own "
        "runs (runs:RUN,RUN?where=correct,ended&per_problem=4), or a data set of the hub "
        "(ORG/NAME:SPLIT?config=NAME); several with semicolons between them.")
    epochs: int = setting(2, "Passes over the examples.", ge=1)
    rows: int = setting(64, "Examples per optimiser step.", ge=1)
    loss_on: str = setting("completion", "Tokens with a loss.",
        choices={"completion": "those of the completion", "all": "those of the prompt as well, but for the first"})
    max_tokens: int = setting(0, "Leave out examples of more tokens than this, prompt and completion together; the "
        "number left out is reported. 0: leave out only those that do not fit into the model's context.", ge=0)
    validation_share: float = setting(0.05, "Share of the problems whose examples are not trained on: validation "
        "measures the loss on them. All examples of a problem, or of a conversation, are on one side. At most some 500 "
        "examples. 0: none.", ge=0, le=0.5, needs="validation.interval > 0")
