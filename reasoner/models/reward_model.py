"""Load a reward model: a sequence classifier with one label, whose score is read at the last sampled token.

The folder is one of transformers' `*ForSequenceClassification`: a decoder and a linear head `score` without bias. The
head cannot hold the mean of the scores, so config.json may: `reward_mean` is subtracted from every score.
"""

from __future__ import annotations

from pathlib import Path
from typing import cast

import torch
from torch import nn
from transformers import PreTrainedModel

from reasoner.models.loading import completion_states, encode_prompts, load_classifier, move_without_dropout
from reasoner.models.precision import hold_in_bfloat16


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
