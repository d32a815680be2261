"""TRL's side of bench/learning.py, a process of its own: GRPOTrainer on the embedded base, with the same problems,
prompts, rewards and number of completions a step as `reasoner train --model base`.

    python bench/learning_trl.py OUT --lr 2e-4 --seed 0 --steps 24 --save 4 --parts 8 --minibatches 4 --threads 2

Saves a model folder every `--save` steps and writes clock.json: seconds and sampled tokens at each of them. All 256
completions of a step are sampled at once, and trained on in `--parts` micro-batches and `--minibatches` optimiser
steps, which divide the parts among them. They are sampled with a static key-value cache: by default each token copies
the cache, and sampling took 2.6 times as long on one thread. The schedule of the learning rate is ours: that of
transformers begins a step later, with a first step of rate 0.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import torch
from datasets import Dataset
from torch.optim.lr_scheduler import LambdaLR
from transformers import TrainerCallback
from trl import GRPOConfig, GRPOTrainer

from data import load
from reasoner.models.loading import load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.rollouts.prompts import load_template, render
from verifiers import score_response

PROMPTS, GROUP, MAX_TOKENS = 32, 8, 288
WARMUP, DECAY = 5, 0.4  # steps, and share of all steps: those of our preset


def rewards(completions: list[str], answer: list[str], verifier: list[str], **_: object) -> list[float]:
    """The same reward as ours: 1 for a correct answer in the strict form, 0.2 for the form."""
    return [
        score_response(text.partition("</answer>")[0] + "</answer>" * ("</answer>" in text), gold, rule).reward
        for text, gold, rule in zip(completions, answer, verifier, strict=True)
    ]


class Clock(TrainerCallback):
    """The seconds since the first step began and the tokens sampled so far, at each saved model."""

    def __init__(self, out: Path, minibatches: int) -> None:
        self.out, self.minibatches, self.rows, self.trainer = out, minibatches, [], None

    def on_train_begin(self, args: object, state: object, control: object, **_: object) -> None:
        self.start = time.monotonic()

    def on_step_end(self, args: GRPOConfig, state: object, control: object, **_: object) -> None:
        step, part = divmod(state.global_step, self.minibatches)
        if part == 0 and step % args.save_steps == 0:
            lengths = self.trainer._metrics["train"]["completions/mean_length"]
            tokens = PROMPTS * GROUP * sum(lengths[-step:])
            self.rows.append({"step": step, "seconds": time.monotonic() - self.start, "tokens": tokens})
            began = time.monotonic()
            self.trainer.model.save_pretrained(self.out / f"step-{step:03d}")
            self.trainer.processing_class.save_pretrained(self.out / f"step-{step:03d}")
            self.start += time.monotonic() - began  # the saves of this script are not TRL's
            (self.out / "clock.json").write_text(json.dumps(self.rows, indent=1) + "\n")


def factor(done: int, steps: int) -> float:
    """Factor of the learning rate of the step after `done` ones: warm-up, constant, linear decay to 0."""
    return min(1.0, (done + 1) / WARMUP, (steps - done) / (DECAY * steps))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("out", type=Path)
    parser.add_argument("--lr", type=float, default=5e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--steps", type=int, default=24)
    parser.add_argument("--save", type=int, default=4)
    parser.add_argument("--parts", type=int, default=8, help="micro-batches of a step [8]")
    parser.add_argument("--minibatches", type=int, default=4, help="optimiser steps of a step [4, as our preset]")
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    if args.parts % args.minibatches:
        parser.error(f"--parts is {args.parts}; it must be a multiple of --minibatches, {args.minibatches}")
    torch.set_num_threads(args.threads)
    folder = resolve_model("base", runs=Path("runs"))
    tokenizer, template = load_tokenizer(folder), load_template("r1-zero")
    rows = [render(problem, template, tokenizer) for problem in load("generated")]
    data = Dataset.from_list(
        [{"prompt": row.text, "answer": row.problem.answer, "verifier": row.problem.verifier} for row in rows]
    )
    clock = Clock(args.out, args.minibatches)
    trainer = GRPOTrainer(
        model=str(folder),
        processing_class=tokenizer,
        reward_funcs=rewards,
        train_dataset=data,
        callbacks=[clock],
        args=GRPOConfig(
            output_dir=str(args.out),
            seed=args.seed,
            use_cpu=True,
            bf16=False,
            model_init_kwargs={"dtype": "float32"},
            gradient_checkpointing=False,
            per_device_train_batch_size=PROMPTS * GROUP // args.parts,
            gradient_accumulation_steps=args.parts // args.minibatches,
            steps_per_generation=args.parts,
            num_generations=GROUP,
            max_completion_length=MAX_TOKENS,
            temperature=1.0,
            cache_implementation="static",
            beta=0.0,
            loss_type="dapo",  # the mean over all tokens
            learning_rate=args.lr,
            adam_beta2=0.95,
            max_grad_norm=1.0,
            max_steps=args.steps * args.minibatches,
            save_strategy="no",
            save_steps=args.save,
            logging_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
    )
    clock.trainer = trainer
    trainer.create_optimizer()
    trainer.lr_scheduler = LambdaLR(trainer.optimizer, lambda done: factor(done // args.minibatches, args.steps))
    trainer.train()


if __name__ == "__main__":
    main()
