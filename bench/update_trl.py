"""TRL's side of bench/update_memory.py: GRPOTrainer on a given batch, in a process of its own.

Its `rollout_func` returns the batch's tokens in place of sampling, and its reward function the batch's rewards; all
else of a step is TRL's own. Its output layer is computed in tiles (its fused LM head, on by default).
"""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from updates import Gauge, Update, Variant, import_model_code
from workloads import resident


def work(folder: Path, variant: Variant, updates: list[Update], beta: float) -> dict[str, float]:
    """Make the updates one after another -> what the last one took."""
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    from datasets import Dataset
    from transformers import AutoTokenizer, PrinterCallback, TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    rows = updates[-1].rows
    lora = None
    if variant.rank:
        from peft import LoraConfig

        lora = LoraConfig(r=variant.rank, lora_alpha=32, lora_dropout=0.0, target_modules="all-linear")
    tokenizer = AutoTokenizer.from_pretrained(folder)
    import_model_code(folder, has_adapter=variant.rank > 0)
    before = resident()
    step = Step(updates)

    class Meter(TrainerCallback):
        """Measures every step; the figures of the last one stay."""

        def on_step_begin(self, args: object, state: object, control: object, **_: object) -> None:
            self.gauge.begin()

        def on_step_end(self, args: object, state: object, control: object, **_: object) -> None:
            self.taken = self.gauge.end()

        def on_log(self, args: object, state: object, control: object, logs: dict, **_: object) -> None:
            self.grad_norm = logs.get("grad_norm", getattr(self, "grad_norm", 0.0))

    with tempfile.TemporaryDirectory() as out:
        trainer = GRPOTrainer(
            model=str(folder),
            processing_class=tokenizer,
            reward_funcs=[step.rewards],
            train_dataset=Dataset.from_list([{"prompt": "a"}] * len(updates)),
            rollout_func=step.rollout,
            callbacks=[meter := Meter()],
            peft_config=lora,
            args=GRPOConfig(
                output_dir=out,
                use_cpu=True,
                bf16=False,
                model_init_kwargs={"dtype": "float32"},
                gradient_checkpointing=variant.is_recomputed,
                per_device_train_batch_size=variant.at_once,
                gradient_accumulation_steps=rows // variant.at_once,
                num_generations=rows,
                max_completion_length=updates[-1].tokens,
                temperature=1.0,
                beta=beta,
                loss_type="grpo",
                scale_rewards="none",
                learning_rate=1e-6,
                lr_scheduler_type="constant",
                max_grad_norm=1.0,
                max_steps=len(updates),
                shuffle_dataset=False,
                logging_steps=1,
                save_strategy="no",
                report_to=[],
                disable_tqdm=True,
                dataloader_pin_memory=False,
            ),
        )
        trainer.remove_callback(PrinterCallback)
        meter.gauge = Gauge(before)
        trainer.train()
    return meter.taken | {"grad_norm": meter.grad_norm}


class Step:
    """Whose turn it is: the tokens and rewards of the updates, one after another."""

    def __init__(self, updates: list[Update]) -> None:
        self._updates = iter(updates)

    def rollout(self, prompts: list[str], trainer: object) -> dict[str, list]:
        self.update = update = next(self._updates)
        prompt_ids, logprobs = ([each] * update.rows for each in (update.prompt, [-5.0] * update.tokens))
        return {"prompt_ids": prompt_ids, "completion_ids": update.completions, "logprobs": logprobs}

    def rewards(self, completions: list[str], **_: object) -> list[float]:
        return self.update.rewards
