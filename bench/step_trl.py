"""TRL's side of bench/step.py, a process of its own: GRPOTrainer on a given workload, told when to step.

It samples by the model's `generate` with a static key-value cache (by default each token copies the cache).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import torch
from datasets import Dataset
from torch import Tensor
from transformers import LogitsProcessor, TrainerCallback
from trl import GRPOConfig, GRPOTrainer
from trl.rewards import accuracy_reward
from workloads import END, Meter, Workload, forget_peak, peak, resident, size_of

from data import load
from reasoner.models.loading import load_tokenizer
from reasoner.rollouts.prompts import load_template, render


def work(workload: Workload, folder: Path, rows: int, out: Path, wait: Callable, tell: Callable) -> None:
    """Step whenever `wait` returns a number, and tell of it; None ends it. `rows` go through the model at once."""
    tokenizer = load_tokenizer(folder)
    asked = load_template("r1-zero")
    prompts = [render(problem, asked, tokenizer) for problem in load("generated", limit=workload.prompts)]
    data = Dataset.from_list([{"prompt": p.text, "solution": f"${p.problem.answer}$"} for p in prompts])
    now = Now(wait, tell, workload)
    now.before = resident()
    trainer = GRPOTrainer(
        model=str(folder),
        processing_class=tokenizer,
        reward_funcs=[_accuracy, now.planned],
        train_dataset=data,
        callbacks=[now],
        args=GRPOConfig(
            output_dir=str(out),
            use_cpu=True,
            bf16=False,
            model_init_kwargs={"dtype": "float32"},
            gradient_checkpointing=False,
            per_device_train_batch_size=rows,
            gradient_accumulation_steps=workload.prompts * workload.group // rows,
            num_generations=workload.group,
            max_completion_length=workload.longest,
            temperature=1.0,
            cache_implementation="static",
            beta=workload.beta,
            loss_type="grpo",
            reward_weights=[0.0, 1.0],
            learning_rate=1e-6,
            lr_scheduler_type="constant",
            max_grad_norm=1.0,
            max_steps=10_000,
            shuffle_dataset=False,
            logging_strategy="no",
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
            dataloader_pin_memory=False,
        ),
    )
    now.follow(trainer)
    trainer.train()


def _accuracy(completions: list[str], solution: list[str], **_: object) -> list[float | None]:
    return accuracy_reward([[{"role": "assistant", "content": text}] for text in completions], solution)


class Now(TrainerCallback):
    """The step that is being made: its lengths and rewards, and how long its parts take."""

    def __init__(self, wait: Callable, tell: Callable, workload: Workload) -> None:
        self.wait, self.tell, self.workload = wait, tell, workload
        self.number = 0
        self.before = 0  # bytes of this process without models

    def follow(self, trainer: GRPOTrainer) -> None:
        self.trainer, self.weights = trainer, size_of(trainer.model, trainer.ref_model)
        self.plain = {
            "sampling": ("_generate", trainer._generate),
            "grading": ("_calculate_rewards", trainer._calculate_rewards),
        }
        self.logps = trainer._get_per_token_logps_and_entropies
        model = trainer.model
        generate = model.generate
        model.generate = lambda **kwargs: generate(**kwargs, logits_processor=[Forced(self.workload, self.number)])

    def planned(self, completions: list[str], **_: object) -> list[float]:
        return self.workload.rewards(self.number)

    def on_step_begin(self, args: object, state: object, control: object, **_: object) -> None:
        number = self.wait()
        if number is None:
            raise SystemExit(0)
        self.number = number
        self.meter = meter = Meter()
        for part, (name, method) in self.plain.items():
            setattr(self.trainer, name, meter.timed(part, method))

        def logps(*args: object, **kwargs: object) -> object:
            if torch.is_grad_enabled():
                return self.logps(*args, **kwargs)
            with meter.part("logprobs"):
                return self.logps(*args, **kwargs)

        self.trainer._get_per_token_logps_and_entropies = logps
        forget_peak()
        self.began = time.perf_counter()

    def on_step_end(self, args: object, state: object, control: object, **_: object) -> None:
        seconds = self.meter.seconds
        seconds["learning"] = time.perf_counter() - self.began - sum(seconds.values())
        tokens = sum(self.workload.lengths(self.number))
        self.tell(
            {
                "seconds": seconds,
                "tokens": tokens,
                "trained": tokens,
                "scored": tokens if self.workload.beta else 0,
                "parameters": sum(p.numel() for p in self.trainer.model.parameters()),
                "weights": self.weights,
                "above": peak() - self.before - self.weights,
                "peak": peak(),
                "lengths": self.trainer._metrics["train"]["completions/mean_length"][-1],
            }
        )


class Forced(LogitsProcessor):
    """The end token where a row has its length, and nowhere else."""

    def __init__(self, workload: Workload, step: int) -> None:
        self.lengths = torch.tensor(workload.lengths(step))
        self.done = 0

    def __call__(self, input_ids: Tensor, scores: Tensor) -> Tensor:
        self.done += 1
        scores[:, END] = -torch.inf
        last = self.lengths <= self.done
        scores[last] = -torch.inf
        scores[last, END] = 0.0
        return scores
