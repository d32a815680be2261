"""Our side of bench/update_memory.py: one update of the policy trainer on a given batch, in a process of its own."""

from __future__ import annotations

from pathlib import Path

import torch
from updates import PROMPT, Gauge, Update, Variant, import_model_code
from workloads import resident

from reasoner.config.resolve import resolve
from reasoner.config.schema import Config
from reasoner.doctor.memory import MemoryEstimate
from reasoner.models.loading import load_meta_model, load_tokenizer
from reasoner.rl.algorithms import resolve_algorithm
from reasoner.rl.batch import Batch
from reasoner.runtime import setup_torch
from reasoner.trainer.components import build_trainer
from reasoner.trainer.train import train_step


def work(folder: Path, variant: Variant, updates: list[Update], beta: float) -> dict[str, float]:
    """Make the updates one after another -> what the last one took."""
    settings = {
        "algo.beta": beta,
        "algo.scale": "none",
        "algo.loss_aggregation": "sequence",
        "algo.group_size": updates[-1].rows,
        "data.prompts_per_step": 1,
        "sampling.max_tokens": updates[-1].tokens,
        "optim.micro_batch_tokens": variant.at_once * updates[-1].tokens,
        "optim.warmup_steps": 0,
        "optim.recompute": variant.is_recomputed,
        "optim.state_dtype": variant.moments,
        "algo.reference_dtype": variant.reference,
        "lora.rank": variant.rank,
        "threads": torch.get_num_threads(),
    }
    cfg = resolve([("bench", settings)]).config
    device = setup_torch(threads=cfg.threads, seed=cfg.seed)
    tokenizer = load_tokenizer(folder)
    import_model_code(folder, has_adapter=variant.rank > 0)
    gauge = Gauge(before=resident())
    trainer = build_trainer(cfg, tokenizer, start_from=folder, base=folder, device=device)
    for update in updates:
        batch = _batch(update)
        gauge.begin()
        metrics = train_step(trainer, trainer.compute_advantages(trainer.compute_logprobs(batch)))
        figures = gauge.end()
    return figures | {"grad_norm": metrics["grad_norm"]} | _predictions(folder, cfg)


def _predictions(folder: Path, cfg: Config) -> dict[str, float]:
    """The doctor's prediction of the peak, and of what stays in memory between updates. There is no engine here."""
    estimate = MemoryEstimate(load_meta_model(folder), resolve_algorithm(cfg.algo), cfg, PROMPT, "cpu", 0)
    part = estimate.parts()
    stays = sum(part[name] for name in ("weights", "gradients", "optimiser", "reference", "overhead"))
    return {"predicted": stays + estimate.passes_peak() + part["gaps"], "predicted_resident": stays}


def _batch(update: Update) -> Batch:
    completions = torch.tensor(update.completions)
    shape = completions.shape
    return Batch(
        prompt_ids=torch.tensor([update.prompt]),
        prompt_lengths=torch.tensor([len(update.prompt)]),
        prompt_of=torch.zeros(update.rows, dtype=torch.long),
        completion_ids=completions,
        lengths=torch.full((update.rows,), update.tokens),
        missing_eos=torch.zeros(update.rows, dtype=torch.bool),
        row_index=torch.arange(update.rows),
        rewards=torch.tensor(update.rewards),
        correct=torch.zeros(update.rows, dtype=torch.bool),
        sampler_logprobs=torch.full(shape, -5.0),
        advantages=torch.zeros(shape),
        weights=torch.ones(shape),
    )
