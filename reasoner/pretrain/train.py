"""Pretraining of the embedded base: next-token prediction on the corpus, Muon on the matrices, AdamW on the rest."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import torch
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from reasoner.pretrain.corpus import document
from reasoner.pretrain.muon import Muon

IGNORED = -100  # target of a padded position


@dataclass(frozen=True, slots=True)
class Recipe:
    """Everything that decides the weights, apart from the corpus."""

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
    warmup_steps: int = 100
    decay_share: float = 0.6  # fraction of the run, at its end, over which the learning rates decay linearly to 0


def new_model(recipe: Recipe, tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
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


def rows(tokenizer: PreTrainedTokenizerFast, seed: int, recipe: Recipe) -> Iterator[list[int]]:
    """Yield rows of token ids without end: whole documents, each with the end token, at most recipe.row_tokens a row.

    A document that does not fit into the current row waits for a later one, so that there is little padding.
    """
    waiting: list[list[int]] = []
    index = 0
    while True:
        row: list[int] = []
        while True:
            if len(waiting) < 64:
                texts = [document(seed, index + i) for i in range(256)]
                index += len(texts)
                waiting += [[*ids, tokenizer.eos_token_id] for ids in tokenizer(texts)["input_ids"]]
            room = recipe.row_tokens - len(row)
            fits = next((i for i, ids in enumerate(waiting) if len(ids) <= room), None)
            if fits is None:
                break
            row += waiting.pop(fits)
        if not row:
            waiting.pop(0)  # longer than a whole row
            continue
        yield row


def batches(
    tokenizer: PreTrainedTokenizerFast, seed: int, recipe: Recipe
) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
    """Yield (inputs, targets) without end, both [rows, row_tokens - 1] int64; targets in the padding are IGNORED."""
    stream = rows(tokenizer, seed, recipe)
    while True:
        ids = torch.full((recipe.rows, recipe.row_tokens), tokenizer.pad_token_id)
        targets = torch.full((recipe.rows, recipe.row_tokens), IGNORED)
        for r in range(recipe.rows):
            row = torch.tensor(next(stream))
            ids[r, : len(row)] = targets[r, : len(row)] = row
        yield ids[:, :-1], targets[:, 1:]


def learning_rate_factor(step: int, recipe: Recipe) -> float:
    """The factor of the learning rates at a step: linear warm-up, constant, linear decay to 0."""
    warmup = min(1.0, (step + 1) / recipe.warmup_steps)
    decay = (recipe.steps - step) / max(1.0, recipe.decay_share * recipe.steps)
    return warmup * min(1.0, decay)


def pretrain(
    tokenizer: PreTrainedTokenizerFast, recipe: Recipe, seed: int, report: Callable[[int, float], None]
) -> LlamaForCausalLM:
    """Train a model and return it. `report(step, loss)` is called after every step, the loss in nats per token.

    RuntimeError if the loss is not finite.
    """
    model = new_model(recipe, tokenizer, seed)
    matrices = [p for n, p in model.named_parameters() if p.ndim == 2 and "embed" not in n]
    others = [p for n, p in model.named_parameters() if p.ndim != 2 or "embed" in n]
    optimizers = [
        Muon(matrices, lr=recipe.muon_lr),
        torch.optim.AdamW(others, lr=recipe.adamw_lr, betas=(0.9, 0.95), weight_decay=0.0),
    ]
    peaks = [group["lr"] for optimizer in optimizers for group in optimizer.param_groups]
    stream = batches(tokenizer, seed, recipe)
    for step in range(recipe.steps):
        factor = learning_rate_factor(step, recipe)
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        for group, peak in zip(groups, peaks, strict=True):
            group["lr"] = peak * factor
        inputs, targets = next(stream)
        logits = model(input_ids=inputs, use_cache=False).logits
        loss = functional.cross_entropy(logits.flatten(0, 1), targets.flatten(), ignore_index=IGNORED)
        loss.backward()  # type: ignore[no-untyped-call]
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        for optimizer in optimizers:
            optimizer.step()
            optimizer.zero_grad()
        value = loss.item()
        if not math.isfinite(value):
            raise RuntimeError(f"pretraining diverged at step {step}: loss {value}")
        report(step, value)
    model.eval()  # type: ignore[no-untyped-call]
    return model
