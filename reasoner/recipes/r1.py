"""DeepSeek-R1's recipe (Guo et al. 2025, section 2.3), with sizes for the embedded base on two cores."""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from functools import partial
from pathlib import Path
from typing import Any

from data.related_sets import own_sets
from reasoner.api.stages import finetune, sample, train_reward_model
from reasoner.api.training import train
from reasoner.console import log
from reasoner.preferences.rollout_pairs import write_preferences
from reasoner.recipes.pipeline import Pipeline
from reasoner.runs import rollouts as store
from reasoner.runs.metrics import read_metrics
from reasoner.runs.selection import DEFAULT, parse_selection, read_rollouts, select
from reasoner.sft.sources import write_examples


def _setting(default: Any, about: str) -> Any:
    return field(default=default, metadata={"help": about})


@dataclass(frozen=True, slots=True)
class R1Settings:
    """Settings of the recipe. What an ordinary command decides by itself (epochs, lengths, rates) is left to it."""

    model: str = _setting("base", "model to train: base, a run, a model folder, or a hub name")
    student: str = _setting("", "model to distil into, of any tokenizer; none: no distillation")
    data: str = _setting("generated", "training problems: a name of `reasoner data list`, or a file")
    seed: int = _setting(0, "seed; the second RL has the next one, for other problems in its steps")
    cold_problems: int = _setting(300, "cold start: problems to sample")
    cold_samples: int = _setting(8, "cold start: completions of each")
    rl_steps: int = _setting(24, "steps of RL with rules")
    language: float = _setting(0.1, "weight of the language consistency reward in both RL stages")
    rejection_problems: int = _setting(500, "rejection sampling: problems, after those of the cold start")
    rejection_samples: int = _setting(6, "rejection sampling: completions of each")
    where: str = _setting(",".join(DEFAULT), "completions to learn from, as --where of `reasoner rollouts export`")
    per_problem: int = _setting(4, "most such completions of a problem")
    mix: str = _setting("", "file of other examples for the second finetuning, such as pretraining text; none: no mix")
    preference_problems: int = _setting(400, "reward model: problems, after those of rejection sampling")
    preference_samples: int = _setting(8, "reward model: completions of each, all pairs of which are compared")
    reward_weight: float = _setting(0.25, "weight of the reward model in the second RL")
    final_steps: int = _setting(16, "steps of RL with rules and reward model; the learning rate decays over all")
    student_problems: int = _setting(500, "distillation: problems to sample")
    student_samples: int = _setting(4, "distillation: completions of each")
    controls: bool = _setting(False, "also train controls: RL alone, of the model and of the student")

    def __post_init__(self) -> None:
        for name in (one.name for one in fields(self) if one.name.endswith(("_problems", "_samples", "_steps"))):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")
        parse_selection({"where": self.where, "per_problem": str(self.per_problem)})

    def selection(self, samples: str) -> str:
        """Selected samples of a run, as data of a finetuning."""
        return f"runs:{Path(samples).name}?where={self.where}&per_problem={self.per_problem}"


def r1(pipeline: Pipeline, s: R1Settings) -> None:
    """Add the stages from top to bottom. Each is a call of the Python API, and its value the folder of its run."""
    run, rewards = pipeline.run, {"reward.language": s.language}

    # Cold start: the model learns from its own selected answers.
    own = own_sets(s.data)  # of a benchmark's problems those that no run validates on
    samples = partial(run, function=sample, data=own.train if own else s.data, seed=s.seed)
    cold = samples("cold-samples", model=s.model, skip=0, problems=s.cold_problems, num_samples=s.cold_samples)
    # Validation and the final table ask what those of RL ask; examples do not say of which benchmark they are.
    sets: dict[str, Any] = {"settings": {"validation.data": own.validation, "eval.heldout": own.heldout}} if own else {}
    cold_sft = run("cold-sft", finetune, model=s.model, data=s.selection(cold), seed=s.seed, **sets)

    # RL with verifiable rewards.
    rl = run("rl", train, model=cold_sft, data=s.data, steps=s.rl_steps, seed=s.seed, settings=rewards)

    # Rejection sampling: answers of the model after RL, to other problems, finetune the first model again.
    skip = s.cold_problems
    rejection = samples(
        "rejection-samples", model=rl, skip=skip, problems=s.rejection_problems, num_samples=s.rejection_samples
    )
    examples = s.selection(rejection) + (f";{s.mix}" if s.mix else "")
    sft = run("sft", finetune, model=s.model, data=examples, seed=s.seed, **sets)

    # A reward model of preferences between answers of the finetuned model, to yet other problems.
    skip += s.rejection_problems
    preferences = samples(
        "preference-samples", model=sft, skip=skip, problems=s.preference_problems, num_samples=s.preference_samples
    )
    pairs = pipeline.file("preference-pairs", write_pairs, out="pairs.parquet", run=preferences)
    reward_model = run("reward-model", train_reward_model, model=sft, data=pairs, seed=s.seed)

    # RL with verifiable rewards and the reward model. The next seed: other problems in its steps.
    both = {"reward.model": f"{reward_model}={s.reward_weight}", **rewards, "optim.decay_share": 1.0}
    final = run("final-rl", train, model=sft, data=s.data, steps=s.final_steps, seed=s.seed + 1, settings=both)

    # RL alone with as many sampled tokens, of this model and of the student.
    control = partial(run, function=train, is_control=True, data=s.data, steps=100_000, seed=s.seed, settings=rewards)
    if s.controls:
        control("rl-control", model=s.model)

    # Distillation: answers of the last model, as text, finetune the student.
    if s.student:
        answers = samples(
            "student-samples", model=final, skip=0, problems=s.student_problems, num_samples=s.student_samples
        )
        texts = pipeline.file(
            "student-examples", write_texts, out="student.jsonl", run=answers, where=s.where, per_problem=s.per_problem
        )
        run("student", finetune, model=s.student, data=texts, seed=s.seed, **sets)
        if s.controls:
            control("student-control", model=s.student)


def write_pairs(out: str, run: str) -> None:
    """Write all pairs of the completions of a run, a right answer before a wrong one, of two the shorter."""
    steps = range(len(read_metrics(Path(run))))
    rows = (row for step in steps for row in store.read(Path(run), step))
    log(write_preferences(Path(out), Path(run), rows).summary())


def write_texts(out: str, run: str, *, where: str, per_problem: int) -> None:
    """Write selected completions of a run as examples without token ids: the student may have another tokenizer."""
    selected = select(read_rollouts([Path(run)]), parse_selection({"where": where, "per_problem": str(per_problem)}))
    write_examples(Path(out), Path(run), selected.rows, with_ids=False)
