"""Pretraining of the embedded base: next-token prediction on the corpus, Muon on the matrices, AdamW on the rest.

An unfinished build has its state in one file, from which the same build goes on to the same bytes: a safetensors file
with weights and optimiser states as tensors, losses and the place in the corpus as its metadata.
"""

from __future__ import annotations

import hashlib
import json
import math
import time
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import torch
from safetensors import safe_open
from torch.nn import functional
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedModel, PreTrainedTokenizerBase

from reasoner.models.saving import save_tensors
from reasoner.pretrain.corpus import document
from reasoner.pretrain.mixture import Mixture
from reasoner.pretrain.muon import Muon
from reasoner.runs.io import atomic_path

IGNORED = -100  # target of a padded position
_DOCUMENTS = 256  # generated at once
_WAITING = 64  # documents to choose from, at least


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


@dataclass(slots=True)
class RowStream:
    """Rows of token ids without end: whole documents, each with the end token, at most `row_tokens` a row.

    A document that does not fit into the current row waits for a later one, so that there is little padding. `index`
    (documents generated) and `waiting` (their token ids) are the position: with them a stream goes on.
    """

    tokenizer: PreTrainedTokenizerBase
    seed: int
    mixture: Mixture
    row_tokens: int
    index: int = 0
    waiting: list[list[int]] = field(default_factory=list)

    def batch(self, rows: int) -> tuple[torch.Tensor, torch.Tensor]:
        """The next (inputs, targets), both [rows, row_tokens - 1] int64; targets in the padding are IGNORED."""
        ids = torch.full((rows, self.row_tokens), self.tokenizer.pad_token_id)
        targets = torch.full((rows, self.row_tokens), IGNORED)
        for r in range(rows):
            row = torch.tensor(self._row())
            ids[r, : len(row)] = targets[r, : len(row)] = row
        return ids[:, :-1], targets[:, 1:]

    def _row(self) -> list[int]:
        row: list[int] = []
        while True:
            self._fill()
            room = self.row_tokens - len(row)
            fits = next((i for i, ids in enumerate(self.waiting) if len(ids) <= room), None)
            if fits is not None:
                row += self.waiting.pop(fits)
            elif row:
                return row
            else:
                self.waiting.pop(0)  # longer than a whole row

    def _fill(self) -> None:
        """Generate documents where too few wait."""
        if len(self.waiting) >= _WAITING:
            return
        texts = [document(self.seed, self.index + i, self.mixture) for i in range(_DOCUMENTS)]
        self.index += len(texts)
        self.waiting += [[*ids, self.tokenizer.eos_token_id] for ids in self.tokenizer(texts)["input_ids"]]


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


def state_file(out: Path, recipe: Recipe, seed: int, earlier: dict[str, Any] | None = None) -> Path:
    """The file beside the folder of a build, named after all that decides the weights, so that no other build reads
    it: recipe, seed, threads, version of torch and the record (build.json) of the base it started from.
    """
    decisive = json.dumps([asdict(recipe), seed, torch.get_num_threads(), torch.__version__, earlier], sort_keys=True)
    return out.with_name(f"{out.name}.{hashlib.sha256(decisive.encode()).hexdigest()[:16]}.state")


def save(pretraining: Pretraining, file: Path) -> None:
    """Write the state; a former one stays until the new one is whole. OSError if the disk does not take it."""
    tensors = {f"model/{name}": p.detach() for name, p in pretraining.model.named_parameters()}
    for number, optimizer in enumerate(pretraining.optimizers):
        for index, values in optimizer.state_dict()["state"].items():
            tensors |= {f"{number}/{index}/{name}": value for name, value in values.items()}
    stream = pretraining.stream
    place = {"losses": pretraining.losses, "seconds": pretraining.seconds}
    place |= {"index": stream.index, "waiting": stream.waiting}
    with atomic_path(file) as partial:
        save_tensors(tensors, partial, {name: json.dumps(value) for name, value in place.items()})


def load(pretraining: Pretraining, file: Path) -> None:
    """Bring a new pretraining to the state of the file."""
    with safe_open(file, "pt") as stored:
        tensors = {name: stored.get_tensor(name) for name in stored.keys()}  # noqa: SIM118 (it is no mapping)
        place = {name: json.loads(text) for name, text in stored.metadata().items()}
    with torch.no_grad():
        for name, parameter in pretraining.model.named_parameters():
            parameter.copy_(tensors[f"model/{name}"])
    for number, optimizer in enumerate(pretraining.optimizers):
        state: dict[int, dict[str, torch.Tensor]] = {}
        for key in (key for key in tensors if key.startswith(f"{number}/")):
            _, index, name = key.split("/")
            state.setdefault(int(index), {})[name] = tensors[key]
        optimizer.load_state_dict({**optimizer.state_dict(), "state": state})
    pretraining.losses, pretraining.seconds = place["losses"], place["seconds"]
    pretraining.stream.index, pretraining.stream.waiting = place["index"], place["waiting"]
