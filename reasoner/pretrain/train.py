"""Pretraining of the embedded base: next-token prediction on the corpus, Muon on the matrices, AdamW on the rest."""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Literal

import torch
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from reasoner.pretrain.mixture import Mixture
from reasoner.pretrain.muon import Muon
from reasoner.pretrain.stream import IGNORED, RowStream


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides the weights, apart from the seed."""

    width: int = 160
    layers: int = 4
    heads: int = 5
    feed_forward: int = 480
    context: int = 512
    steps: int = 4800
    rows: int = 16  # a batch is rows x row_tokens tokens
    row_tokens: int = 320
    muon_lr: float = 0.02
    adamw_lr: float = 3e-3
    lr_scale: float = 1.0  # factor of both learning rates
    warmup_steps: int = 100
    decay_share: float = 0.6  # fraction of the run, at its end, over which the learning rates decay linearly to 0
    dtype: Literal["float32", "bfloat16"] = "float32"  # bfloat16: of the layers' products; weights stay in float32
    mixture: Mixture = field(default_factory=Mixture)


def new_model(recipe: Recipe, tokenizer: PreTrainedTokenizerBase, seed: int) -> LlamaForCausalLM:
    """Create a model with random weights, a function of the seed.

    Llama with biases, not Qwen2: AutoTokenizer gives every Qwen2 model folder Qwen's pre-tokenizer, whatever its
    tokenizer.json says, and the model would get tokens that it was not trained on.
    """
    torch.manual_seed(seed)
    return LlamaForCausalLM(  # type: ignore[no-untyped-call]
        LlamaConfig(
            vocab_size=len(tokenizer),
            hidden_size=recipe.width,
            num_hidden_layers=recipe.layers,
            num_attention_heads=recipe.heads,
            num_key_value_heads=recipe.heads,
            intermediate_size=recipe.feed_forward,
            max_position_embeddings=recipe.context,
            tie_word_embeddings=True,
            attention_bias=True,
            bos_token_id=None,
            eos_token_id=tokenizer.eos_token_id,
            pad_token_id=tokenizer.pad_token_id,
        )
    )


def learning_rate_factor(step: int, recipe: Recipe) -> float:
    """The factor of the learning rates at a step: linear warm-up, constant, linear decay to 0; times the scale."""
    warmup = min(1.0, (step + 1) / recipe.warmup_steps)
    decay = (recipe.steps - step) / max(1.0, recipe.decay_share * recipe.steps)
    return recipe.lr_scale * warmup * min(1.0, decay)


class Pretraining:
    """A model under training with its optimisers and its place in the corpus: all that a build goes on from."""

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, recipe: Recipe, seed: int, model: PreTrainedModel | None = None
    ) -> None:
        """model: whose training goes on, with new optimisers; None: one with random weights."""
        self.recipe = recipe
        self.model = model or new_model(recipe, tokenizer, seed)
        self.stream = RowStream(tokenizer, seed, recipe.mixture, recipe.row_tokens)
        matrices = [p for n, p in self.model.named_parameters() if p.ndim == 2 and "embed" not in n]
        others = [p for n, p in self.model.named_parameters() if p.ndim != 2 or "embed" in n]
        self.optimizers: list[torch.optim.Optimizer] = [
            Muon(matrices, lr=recipe.muon_lr),
            torch.optim.AdamW(others, lr=recipe.adamw_lr, betas=(0.9, 0.95), weight_decay=0.0),
        ]
        self.losses: list[float] = []  # of the steps done, in nats per token
        self.seconds = 0.0  # that they took

    def step(self) -> float:
        """Make the next optimiser step and return its loss. RuntimeError if the loss is not finite."""
        start, step, recipe = time.monotonic(), len(self.losses), self.recipe
        factor = learning_rate_factor(step, recipe)
        for optimizer, peak in zip(self.optimizers, (recipe.muon_lr, recipe.adamw_lr), strict=True):
            for group in optimizer.param_groups:
                group["lr"] = peak * factor
        inputs, targets = self.stream.batch(recipe.rows)
        with torch.autocast("cpu", torch.bfloat16, enabled=recipe.dtype == "bfloat16"):
            logits = self.model(input_ids=inputs, use_cache=False).logits
        loss = functional.cross_entropy(logits.float().flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), 1.0)
        for optimizer in self.optimizers:
            optimizer.step()
            optimizer.zero_grad()
        value = loss.item()
        if not math.isfinite(value):
            raise RuntimeError(f"pretraining diverged at step {step}: loss {value}")
        self.losses.append(value)
        self.seconds += time.monotonic() - start
        return value
