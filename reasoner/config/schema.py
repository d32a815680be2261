"""The settings of a run: one tree of frozen dataclasses."""

from __future__ import annotations

from dataclasses import MISSING, dataclass, fields
from functools import cache
from operator import attrgetter
from typing import Any

from reasoner.config.algorithm import AlgoConfig
from reasoner.config.learning import (
    DTYPES,
    CriticConfig,
    LoraConfig,
    OptimConfig,
    RewardConfig,
    RewardModelConfig,
    SftConfig,
    TeacherConfig,
)
from reasoner.config.setting import Setting, section, setting, settings_of

_RL, _POLICY = ("rl",), ("rl", "sft")  # stages that learn from rollouts, and those that train a policy
# Supervised finetuning samples for its validation and its final table alone.
_SAMPLES = "stage == 'rl' or validation.interval > 0 or eval.heldout_problems > 0"

# A paragraph a setting: default and help, then what limits it, then its choices and its names elsewhere.
# fmt: off


@dataclass(frozen=True, slots=True)
class RunConfig:
    name: str = setting("", "Name of the run folder. Empty: MODEL-ALGORITHM-MMDD-HHMMSS (or -sft-, -reward-model-).",
        trl="run_name", verl="trainer.experiment_name")
    dir: str = setting("runs", "Folder that holds the run folders.",
        trl={"output_dir": "the folder of all runs; run.name is the folder in it"},
        verl={"trainer.default_local_dir": "the folder of all runs; run.name is the folder in it"})
    save_interval: int = setting(20, "Steps between checkpoints. The last step always saves one.", ge=1,
        verl="trainer.save_freq",
        trl={"save_steps": "", "save_strategy": "in steps"})
    keep_last: int = setting(2, "Number of checkpoints to keep: the newest, and before it the newest at multiples of "
        "run.save_interval. One in between (of a signal, a callback, an earlier end) is removed with the next.", ge=1,
        trl="save_total_limit", verl="trainer.max_actor_ckpt_to_keep")
    parity_interval: int = setting(1, "Steps between parity probes, which compare the log-probabilities of engine and "
        "trainer after a weight sync. 0: only after the first step. With max_off_policy_steps above 1 only where the "
        "engine has the step's weights: after steps that validate or save.", ge=0, stages=_RL)
    on_alarm: str = setting("warn", "What to do when a health check raises an alarm.", stages=_POLICY,
        choices={"warn": "", "stop": "save a checkpoint and exit"})
    token_stats: bool = setting(True, "Store entropy, KL and share of the loss of every token with the rollouts: 12 "
        "bytes a token before compression.", stages=_RL)
    reference: str = setting("", "File of reference bands (`reasoner reference make`) that the run is compared with "
        "after twenty steps, and on the dashboard. Empty: those of this package, for a run with their model, prompt, "
        "problems and rewards.", stages=_RL)
    track: str = setting("", "Experiment trackers to log to, separated by commas: wandb, tensorboard (each an "
        "optional extra). metrics.jsonl is written in any case. Empty: none.", stages=_POLICY, trl="report_to",
        verl="trainer.logger")


@dataclass(frozen=True, slots=True)
class DataConfig:
    train: str = setting("generated", "Training problems: a name from `reasoner data list`, a file (.jsonl, .json, "
        ".csv, .parquet) or a folder of files, a data set of the hub (ORG/NAME:SPLIT?config=NAME), or "
        "a mixture of them with weights (SET=0.7,SET=0.3). SET?sample=N and SET?without_sample=N divide a set into N "
        "problems and the others. See docs/DATA.md.", trl="dataset_name train_dataset", verl="data.train_files")
    wrong_golds: float = setting(0.0, "Share of the training problems that are graded by the gold answer of another "
        "problem: what a wrong grader costs. Validation and evaluation keep the true ones.", ge=0, le=1)
    prompts_per_step: int = setting(32, "Problems per step; algo.group_size completions are sampled for each.", ge=1,
        verl="data.train_batch_size",
        trl={"gradient_accumulation_steps": "the number of micro-batches follows from optim.micro_batch_tokens",
            "generation_batch_size": "in prompts, not in completions"})
    max_prompt_tokens: int = setting(0, "Leave out prompts longer than this; the number left out is reported. 0: leave "
        "out only prompts that do not fit into the model's context together with sampling.max_tokens.", ge=0,
        unit="tokens",
        trl={"max_prompt_length": "longer prompts are left out, not truncated"},
        verl={"data.max_prompt_length data.filter_overlong_prompts data.truncation": "longer prompts are always left "
        "out"})


@dataclass(frozen=True, slots=True)
class PromptConfig:
    style: str = setting("r1-zero", "Prompt template: r1-zero | qwen-math | qwen-math-tool | boxed | chat | few-shot | "
        "none, or a .txt or .toml file.")


@dataclass(frozen=True, slots=True)
class SamplingConfig:
    temperature: float = setting(1.0, "Sampling temperature. The trainer's log-probabilities are computed at the same "
        "temperature. Training samples from the whole distribution: nucleus and top-k sampling would bias the "
        "importance ratio.", gt=0, trl="temperature", verl="actor_rollout_ref.rollout.temperature")
    max_tokens: int = setting(256, "Most tokens of a completion.", ge=1, trl="max_completion_length",
        verl="data.max_response_length")


@dataclass(frozen=True, slots=True)
class EngineConfig:
    name: str = setting("auto", "Sampling engine.",
        choices={"vllm": "",
            "transformers": "",
            "remote": "vLLM servers, with engine.urls",
            "auto": "remote where engine.urls is set, else vllm where it can be imported, else transformers"},
        trl={"use_vllm": "vllm or transformers"},
        verl={"actor_rollout_ref.rollout.name": "vllm, transformers or remote"})
    urls: str = setting("", "Addresses of vLLM servers that sample for this run, separated by commas: "
        "http://127.0.0.1:8001,... Start them with `reasoner serve`. Empty: the engine runs in this process.",
        trl={"vllm_server_base_url": "", "vllm_mode": "server mode is a list of addresses, colocate none"})
    transfer_dir: str = setting("", "Folder for the weights, which the servers see under the same path. Empty: memory "
        "of this machine (/dev/shm), for servers on it.", needs="engine.urls")
    timeout_seconds: float = setting(900.0, "Longest wait for a server: for its start, for a weight update, and for "
        "one completion.", gt=0, unit="seconds", needs="engine.urls",
        trl={"vllm_server_timeout": "also the wait for one completion"})
    requests_per_server: int = setting(256, "Most completions that a server is asked for at once.", ge=1,
        needs="engine.urls")
    dtype: str = setting("float32", "Precision of the engine's weights. Where optim.dtype bfloat16 is named it is "
        "bfloat16 by itself.",
        choices=DTYPES | {"fp8": "vLLM in this process quantises the matrices of the layers after every update (a "
            "scale for each row, activations by token; the rest is bfloat16). Validation and the final table sample "
            "from them too"},
        verl={"actor_rollout_ref.rollout.quantization": "fp8"})
    gpu_memory: float = setting(0.4, "Fraction of the GPU's memory that vLLM may use.", gt=0, le=1,
        needs="engine.name == 'vllm'", trl="vllm_gpu_memory_utilization",
        verl="actor_rollout_ref.rollout.gpu_memory_utilization")
    cpu_cache_gib: int = setting(1, "Most memory of the engine's key-value cache on a CPU. It is taken as needed and "
        "freed while the trainer works.", ge=1, unit="GiB", needs="engine.name == 'vllm'")
    max_batch_tokens: int = setting(131_072, "Most tokens, of prompts and completions together, in the transformers "
        "engine's key-value cache; completions that do not fit wait. A token takes 2 * layers * key-value heads * head "
        "size * bytes of engine.dtype: 12 KiB for Qwen2.5-0.5B in bfloat16, so that the default is 1.5 GiB.", ge=1,
        needs="engine.name == 'transformers'")


@dataclass(frozen=True, slots=True)
class VerifyConfig:
    workers: int = setting(1, "Number of grading processes.", ge=1)
    seconds: float = setting(2.0, 'Time limit for grading one response. Beyond it the verdict is "timed_out" and the '
        "process is replaced.", ge=0.1, unit="seconds")
    memory_mib: int = setting(512, "Memory limit of a grading process (address space).", ge=256, unit="MiB")


@dataclass(frozen=True, slots=True)
class ToolsConfig:
    names: str = setting("", "Tools that the model may call while it answers, separated by commas: python (code in a "
        "sandbox), and functions of yours as FILE.py:function or module:function, with annotations and a docstring "
        "(docs/TOOLS.md). Empty: none.", trl={"tools": "as FILE.py:function"})
    form: str = setting("auto", "How a call and its answer are written.", needs="tools.names",
        choices={"auto": "that of prompt.style",
            "tags": "<python>CODE</python>, <output>",
            "qwen-math": "```python CODE ``` ```output",
            "qwen3": "<tool_call>, <tool_response>"})
    max_turns: int = setting(4, "Most calls of a completion. With one more it is truncated, as at "
        "sampling.max_tokens, which counts the answers.", ge=1, needs="tools.names",
        trl={"max_tool_calling_iterations": "the call after the last one truncates"})
    max_answer_tokens: int = setting(128, "An answer is cut after so many tokens.", ge=1, unit="tokens",
        needs="tools.names")
    seconds: float = setting(2.0, "Time limit of a call. Beyond it the answer is an error.", ge=0.1, unit="seconds",
        needs="tools.names")


@dataclass(frozen=True, slots=True)
class ValidationConfig:
    data: str = setting("generated:validation", "Validation problems, by which the best checkpoint is chosen, named as "
        "data.train is. They are not the held-out problems, whose results are reported, and should not be trained on: "
        "of a set without a validation split train on SET?without_sample=N and name SET?sample=N here.",
        needs="validation.interval > 0", trl="eval_dataset", verl="data.val_files")
    interval: int = setting(10, "Steps between validations. 0: no validation.", ge=0, verl="trainer.test_freq",
        trl={"eval_steps": "", "eval_strategy": "in steps"})
    problems: int = setting(60, "Number of validation problems, taken from the start of the set.", ge=1,
        needs="validation.interval > 0")
    samples: int = setting(16, "Completions sampled for each validation problem. Validation reports pass@1 and cons@k, "
        "k being this number.", ge=1, needs="validation.interval > 0")


@dataclass(frozen=True, slots=True)
class EvalConfig:
    heldout: str = setting("generated:heldout", "Held-out problems of the final table, which compares the model before "
        "and after training, named as data.train is.", needs="eval.heldout_problems > 0")
    heldout_problems: int = setting(150, "Number of held-out problems, taken from the start of the set. 0: no final "
        "table.", ge=0)
    samples: int = setting(16, "Completions sampled for each held-out problem.", ge=1,
        needs="eval.heldout_problems > 0")


@dataclass(frozen=True, slots=True)
class Config:
    model: str = setting("base", "Model to train: base (the embedded model), a run, a checkpoint, a local model "
        "folder, or a hub name.", trl="model_name_or_path", verl="actor_rollout_ref.model.path")
    steps: int = setting(60, "Number of training steps. A step samples completions, grades them and updates the "
        "policy.", ge=1, stages=_RL,
        trl={"max_steps": "a step samples new completions and has algo.epochs x algo.minibatches optimiser steps",
            "num_train_epochs": "in steps of data.prompts_per_step problems; of supervised finetuning sft.epochs"},
        verl={"trainer.total_training_steps": "a step samples new completions, as in verl",
            "trainer.total_epochs": "the length is in steps of data.prompts_per_step problems"})
    max_train_tokens: int = setting(0, "End the run with the step in which this many tokens have been sampled in all. "
        "0: no limit besides `steps`.", ge=0, stages=_RL)
    seed: int = setting(0, "Seed of the run. It decides which problems each step gets, and every sample.")
    max_off_policy_steps: int = setting(0, "0: on-policy. K: sample the completions of the next K steps while this "
        "step trains, with weights that are at most K updates old (docs/SCALE.md).", ge=0, stages=_RL)
    control: str = setting("", "Control experiment: replace the reward by one that cannot teach mathematics.",
        stages=_RL,
        choices={"": "the normal reward",
            "random-reward": "0 or 1 by chance",
            "format-only": "1 for a well-formed completion",
            "wrong-gold": "1 for the gold answer of another problem"})
    threads: int = setting(0, "Number of torch threads. 0: all cores.", ge=0)
    processes: int = setting(1, "Number of processes that train together (docs/SCALE.md): on one machine `reasoner "
        "train` starts them, one for each GPU; under torchrun it is the number that torchrun has started. It does not "
        "decide results: rollouts of the first step, gradients and metrics are those of one process, to rounding.",
        ge=1, stages=_POLICY,
        trl={"vllm_tensor_parallel_size": "an engine is on one GPU: one for each process"},
        verl={"actor_rollout_ref.rollout.tensor_model_parallel_size": "an engine is on one GPU: one for each process",
            "trainer.n_gpus_per_node": "on one machine, one for each GPU",
            "trainer.nnodes": "several machines are started by torchrun"})
    run: RunConfig = section(RunConfig, "model, length of the run, its folder, checkpoints and trackers")
    data: DataConfig = section(DataConfig, "training problems", stages=_RL)
    prompt: PromptConfig = section(PromptConfig, "prompt template")
    sampling: SamplingConfig = section(SamplingConfig, "how completions are sampled", needs=_SAMPLES, stages=_POLICY)
    tools: ToolsConfig = section(ToolsConfig, "tools that the model calls while it answers", needs=_SAMPLES,
        stages=_POLICY)
    reward: RewardConfig = section(RewardConfig, "weights of the parts that the reward is the sum of, and reward "
        "models", needs="control == ''", stages=_RL)
    algo: AlgoConfig = section(AlgoConfig, "the algorithm and its parts, KL penalty, clipping, off-policy correction",
        stages=_RL)
    teacher: TeacherConfig = section(TeacherConfig, "a teacher whose judgement of each sampled token is learnt from",
        needs="control == ''", stages=_RL)
    critic: CriticConfig = section(CriticConfig, "value function, for algorithms with a critic",
        needs="algo.baseline == 'value'", stages=_RL)
    optim: OptimConfig = section(OptimConfig, "optimiser, learning rate and micro-batches")
    lora: LoraConfig = section(LoraConfig, "LoRA: train low-rank adapters instead of all weights", stages=_POLICY)
    rm: RewardModelConfig = section(RewardModelConfig, "preferences, and how a reward model is trained on them",
        stages=("reward-model",))
    engine: EngineConfig = section(EngineConfig, "sampling engine", needs=_SAMPLES, stages=_POLICY)
    verify: VerifyConfig = section(VerifyConfig, "grading processes", needs=_SAMPLES, stages=_POLICY)
    validation: ValidationConfig = section(ValidationConfig, "validation during training, by which the best checkpoint "
        "is chosen", stages=_POLICY)
    eval: EvalConfig = section(EvalConfig, "the table of held-out results at the end of the run", stages=_POLICY)
    sft: SftConfig = section(SftConfig, "supervised examples", stages=("sft",))

    @property
    def stage(self) -> str:
        """The stage of training (reasoner.config.stages): that of the data which is named, else rl."""
        return "sft" if self.sft.data else "reward-model" if self.rm.data else "rl"

    @property
    def completions_per_step(self) -> int:
        """Completions that a training step samples, without those that dynamic sampling adds."""
        return self.data.prompts_per_step * self.algo.group_size


# fmt: on
@cache
def settings() -> dict[str, Setting]:
    """Every setting by its dotted key, in the order of the schema."""
    return {setting.key: setting for setting in settings_of(Config)}


def sections() -> dict[str, str]:
    """What each section of settings is about and needs, by its name; _SAMPLES, which holds but for some runs of
    supervised finetuning, is left out.
    """
    declared = {one.name: one.metadata for one in fields(Config) if one.default is MISSING}
    needs = {name: one["needs"].replace(_SAMPLES, "") for name, one in declared.items()}
    return {name: one["help"] + (f". Needs {needs[name]}" if needs[name] else "") for name, one in declared.items()}


def value_of(config: Config, key: str) -> Any:
    """The value of a setting by its dotted key."""
    return attrgetter(key)(config)
