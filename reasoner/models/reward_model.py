"""Reward models: sequence classifiers of transformers with one label, on the backbone of a language model.

The folder is one of `*ForSequenceClassification`: a decoder and a linear head `score` without bias. The score of a
completion is read at its last sampled token, by token ids. Nothing is tokenised again, and no token is added or left
out: the end of a completion is an end token, a stop text or neither, as it was sampled.

A trained model is normalised: the weights of its head are divided by the standard deviation of its scores over its
training completions. config.json holds, besides transformers' own fields,

    reward_mean   mean of the scores over these completions, subtracted by those who use scores as rewards
    reward_std    the standard deviation before; reward_std x (difference of two scores) is the log odds of a preference
"""

from __future__ import annotations

from copy import deepcopy
from pathlib import Path
from typing import cast

import torch
from torch import nn
from transformers import AutoModelForSequenceClassification, PreTrainedModel, PreTrainedTokenizerBase

from reasoner.models.loading import (
    completion_states,
    encode_prompts,
    load_classifier,
    load_policy,
    move_without_dropout,
)
from reasoner.models.precision import hold_in_bfloat16

PAD = "<|padding|>"  # added to a tokenizer that has no pad token of its own


def load_reward_model(folder: Path, *, device: torch.device, dtype: torch.dtype = torch.float32) -> PreTrainedModel:
    """Load the folder's reward model, frozen and without dropout. ValueError if there is none, or an untrained one.

    `dtype` float32, or bfloat16 (reasoner.models.precision); the head is always float32.
    """
    model, missing = load_classifier(folder)
    if missing:
        raise ValueError(f"{folder} is no trained reward model: it lacks {', '.join(missing)}")
    head = getattr(model, "score", None)
    if type(head) is not nn.Linear or head.out_features != 1 or head.bias is not None:
        raise ValueError(f"{type(model).__name__} in {folder} is not supported: a linear head `score` of one label is")
    _check_supported(model)
    if dtype == torch.bfloat16:
        hold_in_bfloat16(model)
        head.float()
    move_without_dropout(model, device)
    return model.requires_grad_(False)


def reward_mean(model: PreTrainedModel) -> float:
    """The number to subtract from the model's scores; 0 where its config.json has none."""
    return float(getattr(model.config, "reward_mean", 0.0))


@torch.no_grad()
def _check_supported(model: PreTrainedModel) -> None:
    """Raise ValueError unless the head, applied to the last state of completion_states, gives the model's own score."""
    pad = model.config.get_text_config().pad_token_id
    ids = torch.tensor([[i for i in range(6) if i != pad][:4]])
    lengths, prompt_of = torch.tensor([2]), torch.tensor([0])
    cast(nn.Module, model).eval()
    try:
        prompts = encode_prompts(model, ids[:, :2], lengths)
        states = completion_states(model, prompts, prompt_of, ids[:, 2:], after_last=True)
    except (AttributeError, TypeError, IndexError) as error:
        raise ValueError(f"{type(model).__name__} is not supported: {error}") from error
    if not torch.allclose(cast(nn.Module, model.score)(states[:, -1]), model(input_ids=ids).logits, atol=1e-3):
        raise ValueError(f"{type(model).__name__} is not supported: its score is not its head's output, unchanged")


# ------------------------------------------------------------------------------------------------ a new one


def new_reward_model(folder: Path, tokenizer: PreTrainedTokenizerBase, *, device: torch.device) -> PreTrainedModel:
    """A reward model on the backbone of the folder's language model. Its head is 0: so are all scores."""
    policy = load_policy(folder, device=device)
    _set_pad(tokenizer, policy)
    config = deepcopy(policy.config)
    config.num_labels = 1
    with torch.device("meta"):  # neither memory nor random numbers for weights that are replaced
        model: PreTrainedModel = AutoModelForSequenceClassification.from_config(  # type: ignore[no-untyped-call]
            config, trust_remote_code=False
        )
    if not isinstance(getattr(model, "score", None), nn.Linear):
        raise ValueError(f"{type(model).__name__} is not supported: its head is not a linear layer named score")
    setattr(model, model.base_model_prefix, policy.base_model)
    model.score = nn.Linear(config.get_text_config().hidden_size, 1, bias=False, device=device)
    nn.init.zeros_(model.score.weight)
    cast(nn.Module, model).eval()
    return model


def check_pad(model: PreTrainedModel) -> None:
    """Raise ValueError unless the model has a pad token that is not its end token: transformers reads a score at the
    last token that is not padding, which would be another token than the last sampled one.
    """
    config = model.config.get_text_config()
    if config.pad_token_id is None or config.pad_token_id == config.eos_token_id:
        raise ValueError(f"a reward model needs a pad token of its own; its pad_token_id is {config.pad_token_id}")


def reward_std(model: PreTrainedModel) -> float:
    """The factor from differences of scores to the log odds of a preference; 1 where config.json has none."""
    return float(getattr(model.config, "reward_std", 1.0))


@torch.no_grad()
def fold_normalization(model: PreTrainedModel, *, mean: float, std: float) -> None:
    """Divide the head by the scores' deviation `std`, and record both moments. ValueError if it is 0."""
    if not std > 0:
        raise ValueError(f"the scores have the standard deviation {std}: the reward model tells no completions apart")
    cast(nn.Linear, model.score).weight.div_(std)
    model.config.reward_mean, model.config.reward_std = mean / std, std


def _set_pad(tokenizer: PreTrainedTokenizerBase, policy: PreTrainedModel) -> None:
    """Give tokenizer and model a pad token that ends no completion."""
    config = policy.config.get_text_config()
    if tokenizer.pad_token_id is None or tokenizer.pad_token_id == tokenizer.eos_token_id:
        tokenizer.add_special_tokens({"pad_token": PAD})
        rows = cast(nn.Embedding, policy.get_input_embeddings()).num_embeddings
        if len(tokenizer) > rows:
            policy.resize_token_embeddings(len(tokenizer), mean_resizing=False)
            with torch.no_grad():  # not random: padding is never read
                cast(nn.Embedding, policy.get_input_embeddings()).weight[rows:] = 0.0
    config.pad_token_id, config.eos_token_id = tokenizer.pad_token_id, tokenizer.eos_token_id
