"""The settings of a run: one tree of frozen dataclasses. The comment above a field is its help text.

Allowed ranges and defaults are added to the help by reasoner.config.resolve; names to choose from stand in the comment.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from reasoner.config.learning import (
    AlgoConfig,
    CriticConfig,
    LoraConfig,
    OptimConfig,
    PtxConfig,
    RewardConfig,
    RewardModelConfig,
    SftConfig,
)


@dataclass(frozen=True, slots=True)
class RunConfig:
    # Name of the run folder. Empty: MODEL-ALGORITHM-MMDD-HHMMSS.
    name: str = ""
    # Folder that holds the run folders.
    dir: str = "runs"
    # Steps between checkpoints. The last step always saves one.
    save_interval: int = 20
    # Number of checkpoints to keep, the newest ones.
    keep_last: int = 2
    # Steps between parity probes, which compare the log-probabilities of engine and trainer after a weight sync.
    # 0: only after the first step. With max_off_policy_steps above 1 only where the engine has the step's weights:
    # after steps that validate or save.
    parity_interval: int = 1
    # What to do when a health check raises an alarm: warn | stop (save a checkpoint and exit) | rollback (return to the
    # checkpoint before the cause, with other samples and half the learning rate; at most three times, then stop).
    on_alarm: str = "warn"
    # Store entropy, KL and share of the loss of every token with the rollouts: 12 bytes a token before compression.
    token_stats: bool = True
    # Store with them the importance ratio of every token: its probability in the update, divided by that when it was
    # sampled. 1 but for older weights, earlier updates of the step, and the engine's rounding. 4 bytes a token more.
    importance_ratio: bool = False
    # Experiment trackers to log to, separated by commas: trackio, wandb, tensorboard (each an optional extra).
    # metrics.jsonl is written in any case. Empty: none.
    track: str = ""


@dataclass(frozen=True, slots=True)
class DataConfig:
    # Training problems: a name from `reasoner data list`, a file (.jsonl, .json, .csv, .tsv, .parquet, .jsonl.gz) or a
    # folder of files, a data set of the hub (ORG/NAME:SPLIT?config=NAME), or a mixture of them with weights
    # (SET=0.7,SET=0.3). SET?sample=N and SET?without_sample=N divide a set into N problems and the others. See
    # docs/DATA.md.
    train: str = "generated"
    # Column of the question, in files and data sets of the hub whose name has no ?question=COLUMN of its own; also of
    # validation.data and eval.heldout. Empty: question, problem, prompt or messages.
    question: str = ""
    # Column of the gold answer, likewise; a dot leads into a column of named values, as in reward_model.ground_truth.
    # Empty: answer, final_answer, ground_truth, reward_model.ground_truth or solution.
    answer: str = ""
    # How a step's problems are chosen: uniform (each once per epoch, in a random order) | learnability (at random, with
    # weights p(1-p), where p is the pass rate that the run's rollouts so far show, of the problem and of its source,
    # subject and level). learnability needs max_off_policy_steps 0 and no weights in data.train.
    selection: str = "uniform"
    # Share of the training problems that are graded by the gold answer of another problem: what a wrong grader costs.
    # Validation and evaluation keep the true ones.
    wrong_golds: float = 0.0
    # Problems per step; algo.group_size completions are sampled for each.
    prompts_per_step: int = 32
    # Leave out prompts longer than this, in tokens; the number left out is reported. 0: leave out only prompts that do
    # not fit into the model's context together with sampling.max_tokens.
    max_prompt_tokens: int = 0


@dataclass(frozen=True, slots=True)
class PromptConfig:
    # Prompt template: r1-zero | qwen-math | boxed | chat | few-shot | none, or a .txt or .toml file.
    style: str = "r1-zero"


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    # Sampling temperature. The trainer's log-probabilities are computed at the same temperature. Training samples from
    # the whole distribution: nucleus and top-k sampling would bias the importance ratio.
    temperature: float = 1.0
    # Most tokens of a completion.
    max_tokens: int = 256


@dataclass(frozen=True, slots=True)
class EngineConfig:
    # Sampling engine: vllm | transformers | remote (vLLM servers, with engine.urls) | auto (remote where engine.urls is
    # set, else vllm where it can be imported, else transformers).
    name: str = "auto"
    # Addresses of vLLM servers that sample for this run, separated by commas: http://127.0.0.1:8001,... Start them with
    # `reasoner serve`. Empty: the engine runs in this process.
    urls: str = ""
    # With engine.urls: how new weights reach the servers: file (trainer and servers see the same folder) | nccl (from
    # GPU to GPU). As `reasoner serve --transfer`.
    transfer: str = "file"
    # With engine.transfer file: folder for the weights, which the servers see under the same path. Empty: memory of
    # this machine (/dev/shm), for servers on it.
    transfer_dir: str = ""
    # With engine.urls: longest wait for a server, in seconds: for its start, for a weight update, and for one
    # completion.
    timeout_seconds: float = 900.0
    # With engine.urls: most completions that a server is asked for at once.
    requests_per_server: int = 256
    # Precision of the engine's weights: float32 | bfloat16.
    dtype: str = "float32"
    # Fraction of the GPU's memory that vLLM may use.
    gpu_memory: float = 0.4
    # Most memory of the engine's key-value cache on a CPU, in GiB. It is taken as needed and freed while the trainer
    # works.
    cpu_cache_gib: int = 1
    # Most tokens, of prompts and completions together, in the transformers engine's key-value cache; completions that
    # do not fit wait. A token takes 2 * layers * key-value heads * head size * bytes of engine.dtype: 12 KiB for
    # Qwen2.5-0.5B in bfloat16, so that the default is 1.5 GiB.
    max_batch_tokens: int = 131_072


@dataclass(frozen=True, slots=True)
class VerifyConfig:
    # Number of grading processes.
    workers: int = 1
    # Time limit for grading one response, in seconds. Beyond it the verdict is "timed_out" and the process is replaced.
    seconds: float = 2.0
    # Memory limit of a grading process (address space), in MiB.
    memory_mib: int = 512


@dataclass(frozen=True, slots=True)
class ValidationConfig:
    # Validation problems, by which the best checkpoint is chosen, named as data.train is.
    # They are not the held-out problems, whose results are reported, and should not be trained on: of a set without a
    # validation split train on SET?without_sample=N and name SET?sample=N here.
    data: str = "generated:validation"
    # Steps between validations. 0: no validation.
    interval: int = 10
    # Number of validation problems, taken from the start of the set.
    problems: int = 60
    # Completions sampled for each validation problem. Validation reports pass@1 and cons@k, k being this number.
    samples: int = 16


@dataclass(frozen=True, slots=True)
class EvalConfig:
    # Held-out problems of the final table, which compares the model before and after training, named as
    # data.train is.
    heldout: str = "generated:heldout"
    # Number of held-out problems, taken from the start of the set. 0: no final table.
    heldout_problems: int = 150
    # Completions sampled for each held-out problem.
    samples: int = 16


@dataclass(frozen=True, slots=True)
class Config:
    # Model to train: base (the embedded model), a run, a checkpoint, a local model folder, or a hub name.
    model: str = "base"
    # Number of training steps. A step samples completions, grades them and updates the policy.
    steps: int = 60
    # End the run with the step in which this many tokens have been sampled in all. 0: no limit besides `steps`.
    max_train_tokens: int = 0
    # Seed of the run. It decides which problems each step gets, and every sample.
    seed: int = 0
    # 0 trains on-policy. K samples the completions of the next K steps while this step trains: those of a step with the
    # weights of K updates before; needs algo.importance_sampling. Not across a step that saves a checkpoint: the steps
    # after it begin with its weights. When a signal stops the run, completions of later steps are discarded.
    max_off_policy_steps: int = 0
    # Control experiment: replace the reward by one that cannot teach mathematics: random-reward | format-only |
    # wrong-gold. Empty: the normal reward.
    control: str = ""
    # Number of torch threads. 0: all cores.
    threads: int = 0
    # Number of processes that train together (docs/SCALE.md): on one machine `reasoner train` starts them, one for each
    # GPU; under torchrun it is the number that torchrun has started. It does not decide results: rollouts of the first
    # step, gradients and metrics are those of one process, to rounding.
    processes: int = 1
    run: RunConfig = field(default_factory=RunConfig)
    data: DataConfig = field(default_factory=DataConfig)
    prompt: PromptConfig = field(default_factory=PromptConfig)
    sampling: SamplingConfig = field(default_factory=SamplingConfig)
    reward: RewardConfig = field(default_factory=RewardConfig)
    algo: AlgoConfig = field(default_factory=AlgoConfig)
    critic: CriticConfig = field(default_factory=CriticConfig)
    ptx: PtxConfig = field(default_factory=PtxConfig)
    optim: OptimConfig = field(default_factory=OptimConfig)
    lora: LoraConfig = field(default_factory=LoraConfig)
    rm: RewardModelConfig = field(default_factory=RewardModelConfig)
    engine: EngineConfig = field(default_factory=EngineConfig)
    verify: VerifyConfig = field(default_factory=VerifyConfig)
    validation: ValidationConfig = field(default_factory=ValidationConfig)
    eval: EvalConfig = field(default_factory=EvalConfig)
    sft: SftConfig = field(default_factory=SftConfig)

    @property
    def stage(self) -> str:
        """The stage of training (reasoner.config.stages): that of the data which is named, else rl."""
        return "sft" if self.sft.data else "reward-model" if self.rm.data else "rl"
