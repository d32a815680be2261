"""What a run is going to do, a line a subject, for its log before the first step."""

from __future__ import annotations

from collections.abc import Sequence

from transformers import PreTrainedModel, PreTrainedTokenizerBase

from data.mixture import mixture_of
from data.preview import shared_ending
from reasoner.config.resolve import RunSettings
from reasoner.config.schema import Config
from reasoner.console import colour, escape_controls
from reasoner.models.output_layer import OutputLayer
from reasoner.models.sharding import is_sharded, num_own_values
from reasoner.preferences.dataset import Split, num_pairs
from reasoner.rl.algorithms import Algorithm
from reasoner.rollouts.prompts import Template
from reasoner.sft.dataset import ExampleSplit, have_prompts_of
from reasoner.types import Prompt

_WITHOUT_EFFECT_ON_TIME = ("model", "seed", "threads")


def run_plan(resolved: RunSettings, algorithm: Algorithm, prompts: Sequence[Prompt], *, is_new: bool) -> dict[str, str]:
    """The plan of a run of reinforcement learning by subject."""
    cfg = resolved.config
    per_step = cfg.data.prompts_per_step * cfg.algo.group_size
    return {
        "problems": _problems_line(cfg, prompts),
        "algorithm": f"{cfg.algo.name}, G = {cfg.algo.group_size}, "
        f"beta {cfg.algo.beta:g} ({algorithm.kl} in the {algorithm.kl_in}), lr {cfg.optim.lr:g}, seed {cfg.seed}"
        + (f"; CONTROL RUN: rewards are {cfg.control}" if cfg.control else ""),
        "steps": f"{per_step} completions a step, of at most {cfg.sampling.max_tokens} tokens each",
        "expected time": expected_time(resolved, is_new=is_new),
    }


def expected_time(resolved: RunSettings, *, is_new: bool) -> str:
    """What is known of a run's time before its first step: the whole default run of the embedded base was measured."""
    changed = [key for key, origin in resolved.origin.items() if origin not in ("default", "preset base")]
    is_default = all(key in _WITHOUT_EFFECT_ON_TIME or key.startswith("run.") for key in changed)
    is_measured = resolved.config.model == "base" and is_default and is_new
    return "said after the first step" + ("; six to ten minutes on two cores" if is_measured else "")


def _problems_line(cfg: Config, prompts: Sequence[Prompt]) -> str:
    count = cfg.data.prompts_per_step
    mixture = mixture_of(cfg.data.train, [prompt.problem.source for prompt in prompts])
    about = f"{cfg.data.train}: {len(prompts):,} problems" if mixture is None else mixture.describe(cfg.steps * count)
    ending = shared_ending([prompt.problem.question for prompt in prompts])
    instruction = f"; each question ends with {ending!r}, beside what prompt {cfg.prompt.style} says" if ending else ""
    return f"{about}, {count} a step{instruction}"


def sft_plan(
    cfg: Config, tokenizer: PreTrainedTokenizerBase, template: Template, split: ExampleSplit
) -> dict[str, str]:
    """The plan of a supervised run by subject, with an example, and a warning where `template`, that of prompt.style,
    is not the form of the examples.
    """
    sft, example = cfg.sft, split.training[0]
    left_out = ", ".join(f"{number:,} {reason}" for reason, number in split.left_out.items())
    token_ids = (example.prompt_ids, example.completion_ids)
    prompt, completion = (escape_controls(str(tokenizer.decode(list(ids)))) for ids in token_ids)
    warning = (
        f"warning: no example begins as the prompts of {cfg.prompt.style} do, in whose form validation, the final "
        "table and the chat template of an export ask; --prompt names another one"
    )
    return {
        "examples": f"{sft.data}: {len(split.training):,} to train on, {len(split.validation):,} of other problems to "
        f"validate on; left out: {left_out or 'none'}",
        "loss": f"on {split.loss_share:.1%} of the tokens ({sft.loss_on}); lr {cfg.optim.lr:g}, seed {cfg.seed}",
        "steps": f"{sft.epochs} epochs, {sft.rows} examples a step",
        **({} if have_prompts_of(split.training, tokenizer, template) else {"prompt": warning}),
        "the first one": f"without a loss:\n{colour(prompt, 'dim')}\nwith a loss:\n{colour(completion, 'green')}",
    }


def reward_model_plan(cfg: Config, split: Split) -> dict[str, str]:
    """The plan of a reward model's training by subject."""
    training, heldout = (f"{num_pairs(own):,} pairs of {len(own):,} prompts" for own in (split.training, split.heldout))
    return {
        "preferences": f"{cfg.rm.data}: {training}; held out {heldout}; left out as too long {split.too_long:,}",
        "steps": f"{cfg.rm.prompts} prompts a step, lr {cfg.optim.lr:g}",
    }


def model_line(cfg: Config, policy: PreTrainedModel) -> str:
    """The model that is trained, its size and its device."""
    parameters = sum(p.numel() for p in policy.parameters())
    own = f", {num_own_values(policy) / 1e6:.1f}M of them in this process" if is_sharded(policy) else ""
    num_rows, num_ids = policy.config.get_text_config().vocab_size, OutputLayer.of(policy).num_ids
    unused = f"; {num_rows - num_ids:,} of {num_rows:,} token ids have no text and no probability"
    return f"{cfg.model}, {parameters / 1e6:.1f}M parameters on {policy.device}{own}{unused * (num_ids < num_rows)}"
