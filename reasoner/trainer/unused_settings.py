"""Settings of a new run that would have no effect in it, and that the user has named.

Presets set some of them for whoever changes another setting, such as algo.beta; those are left as they are. Parts of an
algorithm that do not go together are refused by reasoner.rl.algorithms, whoever has set them.
"""

from __future__ import annotations

from collections.abc import Collection

from reasoner.config.resolve import RunSettings, settings, to_dict
from reasoner.config.schema import Config
from reasoner.rl.algorithms import Algorithm, resolve_algorithm
from reasoner.rl.surrogates import SURROGATES

_SERVERS = ("engine.transfer", "engine.transfer_dir", "engine.requests_per_server")
_OF_LORA = ("lora.alpha", "lora.target", "lora.sync")
_OF_KL = ("algo.kl", "algo.kl_in", "algo.reference_dtype")
_OF_POLICY_STEP = ("optim.lr", "optim.weight_decay", "optim.beta1", "optim.beta2")
_OF_GRADIENT_STEP = ("optim.warmup_steps", "optim.decay_share", "optim.max_grad_norm")  # the critic's as well


def check_named_settings(resolved: RunSettings, origins: Collection[str]) -> None:
    """Raise ValueError for a setting from one of the origins that differs from its default and has no effect, or not
    the whole one: more minibatches than groups.
    """
    cfg = resolved.config
    values, known = to_dict(cfg), settings()
    named = {key for key, origin in resolved.origin.items() if origin in origins and values[key] != known[key].default}
    needs = _needs(cfg)
    if cfg.stage == "rl" and named & {*_OF_KL, *_OF_POLICY_STEP, *_OF_GRADIENT_STEP, "algo.ratio"}:
        needs |= _needs_of_algorithm(cfg, resolve_algorithm(cfg.algo))
    for key, (has_effect, need) in needs.items():
        if key in named and not has_effect:
            raise ValueError(f"{key} is {values[key]!r}, which has no effect here; it needs {need}")
    parts, groups = cfg.algo.minibatches, cfg.data.prompts_per_step
    if "algo.minibatches" in named and parts is not None and parts > groups:
        raise ValueError(f"algo.minibatches is {parts}; a step has only {groups} prompts to split")


def _needs(cfg: Config) -> dict[str, tuple[bool, str]]:
    """setting -> (whether it has an effect in the run, what it needs)."""
    return {
        **dict.fromkeys(_SERVERS, (bool(cfg.engine.urls), "engine.urls")),
        **dict.fromkeys(_OF_LORA, (cfg.lora.rank > 0, "lora.rank above 0")),
    }


def _needs_of_algorithm(cfg: Config, algorithm: Algorithm) -> dict[str, tuple[bool, str]]:
    """_needs() of what an algorithm uses."""
    has_reference = (cfg.algo.beta > 0 and not cfg.lora.rank, "algo.beta above 0 and lora.rank 0")
    has_lr = algorithm.trust != "constrained"
    other_trust = "another algo.trust than constrained, whose step is as long as algo.delta allows"
    return {
        **dict.fromkeys(_OF_KL, (cfg.algo.beta > 0, "algo.beta above 0")),
        "algo.reference_dtype": has_reference,
        "algo.ratio": (SURROGATES[algorithm.surrogate].has_ratio, "an algo.surrogate with a ratio"),
        **dict.fromkeys(_OF_POLICY_STEP, (has_lr, other_trust)),
        **dict.fromkeys(_OF_GRADIENT_STEP, (has_lr or algorithm.critic, f"{other_trust}, or a critic")),
    }
