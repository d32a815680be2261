"""What the values of settings may be: ranges, choices, and values that contradict each other.

Names that a table of another package has are checked against it in trainer.preflight: engines, control rewards, the
parts of an algorithm, prompt templates, trackers.
"""

from __future__ import annotations

from operator import attrgetter
from typing import Any
from urllib.parse import urlsplit

from data.spec import split_mixture
from reasoner.config.schema import Config, EngineConfig
from verifiers.rewards import check_weights

DTYPES = ("float32", "bfloat16")

_LEAST: dict[str, float] = {
    "steps": 1, "max_train_tokens": 0, "threads": 0, "processes": 1, "max_off_policy_steps": 0, "run.save_interval": 1,
    "run.keep_last": 1, "run.parity_interval": 0,
    "data.prompts_per_step": 1, "data.max_prompt_tokens": 0, "data.wrong_golds": 0, "sampling.max_tokens": 1,
    "algo.group_size": 2,
    "algo.beta": 0, "algo.dynamic_sampling_max_rounds": 0, "algo.fisher_rows": 1, "algo.penalty": 0,
    "algo.penalty_target": 0, "algo.stop_kl": 0, "algo.kl_target": 0, "algo.ref_sync_steps": 0,
    "algo.kl_horizon": 1,
    "critic.epochs": 1, "critic.minibatches": 1, "critic.warmup_steps": 0, "critic.clip": 0, "critic.gamma": 0,
    "critic.lam": 0, "critic.lam_actor": 0, "critic.vf_coef": 0, "ptx.weight": 0, "ptx.rows": 1,
    "algo.importance_clip_max": 1, "algo.entropy_coef": 0, "algo.moving_decay": 0,
    "optim.warmup_steps": 0, "optim.decay_share": 0, "optim.weight_decay": 0,
    "optim.micro_batch_tokens": 1, "engine.cpu_cache_gib": 1, "engine.max_batch_tokens": 1, "lora.rank": 0,
    "engine.requests_per_server": 1, "rm.epochs": 1, "rm.prompts": 1, "rm.center": 0, "rm.max_tokens": 0,
    "rm.heldout_share": 0,
    "verify.workers": 1, "verify.seconds": 0.1, "verify.memory_mib": 256, "validation.interval": 0,
    "validation.problems": 1,
    "eval.heldout_problems": 0, "eval.samples": 1, "validation.samples": 1,
    "sft.epochs": 1, "sft.rows": 1, "sft.max_tokens": 0, "sft.validation_share": 0,
}  # fmt: skip
_MOST: dict[str, float] = {
    "optim.decay_share": 1, "algo.moving_decay": 1, "critic.gamma": 1, "critic.lam": 1, "critic.lam_actor": 1,
    "engine.gpu_memory": 1, "data.wrong_golds": 1, "sft.validation_share": 0.5,
    "rm.heldout_share": 0.5,
    "optim.lr": 1, "critic.lr": 1,  # 1e6 is 1e-6 without its sign
}  # fmt: skip
_ABOVE_ZERO = (
    "algo.delta", "algo.damping", "reward.clip",
    "critic.lr", "sampling.temperature", "optim.lr", "optim.max_grad_norm", "lora.alpha",
    "engine.gpu_memory", "engine.timeout_seconds",
)  # fmt: skip
_CHOICES = {
    "data.selection": ("uniform", "learnability"),
    "optim.dtype": DTYPES,
    "optim.state_dtype": ("float32", "8bit"),
    "optim.sharding": ("replicated", "gathered", "sharded", "auto"),  # models.sharding
    "algo.reference_dtype": DTYPES,
    "engine.dtype": DTYPES,
    "lora.target": ("all-linear", "attention"),  # models.lora.TARGETS
    "lora.sync": ("adapter", "merged"),
    "lora.base_dtype": ("float32", "bfloat16"),
    "engine.transfer": ("file", "nccl"),  # inference.weight_senders.SENDERS
    "algo.importance_sampling": ("none", "token", "sequence"),
    "reward.model_on": ("all", "correct"),
    "algo.kl_controller": ("double", "proportional"),  # rl.kl.CONTROLLERS
    "run.on_alarm": ("warn", "stop", "rollback"),
    "sft.loss_on": ("completion", "all"),
}


def number_range(key: str) -> str:
    """The range of the number of a setting, for help texts; empty for texts and unbounded numbers."""
    least = "above 0" if key in _ABOVE_ZERO else ""
    if key in _LEAST:
        least = f"at least {_LEAST[key]:g}"
    most = f"at most {_MOST[key]:g}" if key in _MOST else ""
    return ", ".join(filter(None, (least, most)))


def value_of(config: Config, key: str) -> Any:
    """The value of a setting by its dotted key."""
    return attrgetter(key)(config)


def check(config: Config) -> None:
    """ValueError with the first value that cannot be run, and what is allowed."""
    for key, least in _LEAST.items():
        if (value := value_of(config, key)) is not None and value < least:
            raise ValueError(f"{key} is {value}; it must be at least {least:g}")
    for key, most in _MOST.items():
        if (value := value_of(config, key)) is not None and value > most:
            raise ValueError(f"{key} is {value}; it must be at most {most:g}")
    for key in _ABOVE_ZERO:
        if not (value := value_of(config, key)) > 0:
            raise ValueError(f"{key} is {value}; it must be above 0")
    for key, choices in _CHOICES.items():
        if (value := value_of(config, key)) not in choices:
            known = ", ".join(str(choice) for choice in choices if choice)
            raise ValueError(f"{key} is {value!r}; known are {known}")
    check_weights(config.reward)
    _check_urls(config.engine)
    if config.run.importance_ratio and not config.run.token_stats:
        raise ValueError("run.importance_ratio is true and run.token_stats false; the ratio is one of the statistics")
    check_off_policy(config)
    _check_selection(config)
    for key in ("epochs", "minibatches"):
        value = getattr(config.algo, key)
        if value is not None and value < 1:
            raise ValueError(f"algo.{key} is {value}; it must be at least 1")


def check_off_policy(config: Config) -> None:
    """ValueError for rollouts of older weights that nothing corrects, and for steps ahead that no step would have."""
    ahead, interval = config.max_off_policy_steps, config.run.save_interval
    if ahead and config.algo.importance_sampling == "none":
        raise ValueError(
            f"max_off_policy_steps is {ahead}: rollouts are up to {ahead} update{'s' * (ahead > 1)} older than the "
            "policy, and algo.importance_sampling must correct for that: token or sequence"
        )
    if ahead > 1 and ahead >= interval:
        raise ValueError(
            f"max_off_policy_steps is {ahead} and run.save_interval {interval}; no rollouts are sampled across a step "
            f"that saves a checkpoint, so it must be below run.save_interval"
        )


def _check_selection(config: Config) -> None:
    """ValueError for a choice of problems by pass rates whose rollouts are not there yet, or beside other weights."""
    selection = config.data.selection
    if selection == "uniform":
        return
    if config.max_off_policy_steps:
        raise ValueError(
            f"max_off_policy_steps is {config.max_off_policy_steps}; with data.selection {selection} it must be "
            "0: the problems of a step depend on all rollouts before it"
        )
    if split_mixture(config.data.train)[0][1] is not None:
        raise ValueError(
            f"data.train is {config.data.train}: weights in a mixture and data.selection {selection} both say how "
            "often a problem is asked; leave one out"
        )


def _check_urls(engine: EngineConfig) -> None:
    """ValueError for addresses that are none or stand twice, and where they and the engine's name contradict."""
    urls = [url.strip().rstrip("/") for url in engine.urls.split(",")] if engine.urls else []
    for url in urls:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.path or parts.query:
            raise ValueError(f"engine.urls has {url!r}; an address is http://HOST:PORT, several with commas between")
        if urls.count(url) > 1:
            raise ValueError(f"engine.urls has {url!r} twice")
    if engine.name == "remote" and not urls:
        raise ValueError("engine.name is 'remote', and engine.urls names no server: --engine.urls http://HOST:PORT,...")
    if urls and engine.name not in ("auto", "remote"):
        raise ValueError(f"engine.urls is set, and engine.name is {engine.name!r}; servers need 'remote' or 'auto'")
