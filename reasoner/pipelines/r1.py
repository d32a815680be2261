"""DeepSeek-R1's recipe as stages (Guo et al. 2025, section 2.3), with sizes for the embedded base on two cores.

Cold start, RL with rules, rejection sampling and finetuning of the first model again, a reward model, RL with rules and
the reward model, distillation into another model.
"""

from __future__ import annotations

from dataclasses import dataclass, field, fields
from typing import Any

from reasoner.pipelines.stages import StageTemplate as Template


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
    per_problem: int = _setting(4, "most correct, well-formed completions of a problem to learn")
    mix: str = _setting("", "file of other examples for the second finetuning, such as pretraining text; none: no mix")
    preference_problems: int = _setting(400, "reward model: problems, after those of rejection sampling")
    preference_samples: int = _setting(8, "reward model: completions of each, all pairs of which are compared")
    judge: str = _setting("rule", "reward model: who prefers, rule or utility:FILE.py:NAME")
    noise: str = _setting("", "reward model: noise of a utility's preferences; none: that of rollouts export")
    reward_weight: float = _setting(0.25, "weight of the reward model in the second RL")
    final_steps: int = _setting(16, "steps of RL with rules and reward model; the learning rate decays over all")
    student_problems: int = _setting(500, "distillation: problems to sample")
    student_samples: int = _setting(4, "distillation: completions of each")
    controls: bool = _setting(False, "also train controls: RL alone, of the model and of the student")

    def __post_init__(self) -> None:
        for name in (one.name for one in fields(self) if one.name.endswith(("_problems", "_samples", "_steps"))):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is {getattr(self, name)}; it must be at least 1")

    def values(self) -> dict[str, object]:
        """The values of the templates."""
        own = {one.name: getattr(self, one.name) for one in fields(self)}
        rejection_skip = self.cold_problems
        return own | {
            "next_seed": self.seed + 1,
            "rejection_skip": rejection_skip,
            "preference_skip": rejection_skip + self.rejection_problems,
            "mix_source": f";{self.mix}" if self.mix else "",  # of sft.data
        }


COLD, RL, REJECTION = "cold start", "RL: rules", "rejection sampling, SFT"
REWARD, FINAL, STUDENT = "reward model", "RL: rules, reward model", "distillation"

R1 = (
    Template(
        "cold-samples",
        COLD,
        "sample --model {model} --data {data} --problems {cold_problems} --num-samples {cold_samples} --seed {seed}",
    ),
    Template(
        "cold-examples",
        COLD,
        "rollouts export {cold-samples} {folder}/cold.jsonl --as sft --per-problem {per_problem}",
    ),
    Template("cold-sft", COLD, "sft --model {model} --data {folder}/cold.jsonl --seed {seed}"),
    Template(
        "rl",
        RL,
        "train --model {cold-sft} --data {data} --steps {rl_steps} --reward.language {language} --seed {seed}",
    ),
    Template(
        "rejection-samples",
        REJECTION,
        "sample --model {rl} --data {data} --skip {rejection_skip} --problems {rejection_problems} "
        "--num-samples {rejection_samples} --seed {seed}",
    ),
    Template(
        "rejection-examples",
        REJECTION,
        "rollouts export {rejection-samples} {folder}/rejection.jsonl --as sft --per-problem {per_problem}",
    ),
    Template(  # from the first model again, not from the one after RL
        "sft",
        REJECTION,
        "sft --model {model} --data {folder}/rejection.jsonl{mix_source} --seed {seed}",
    ),
    Template(
        "preference-samples",
        REWARD,
        "sample --model {sft} --data {data} --skip {preference_skip} --problems {preference_problems} "
        "--num-samples {preference_samples} --seed {seed}",
    ),
    Template(
        "preference-pairs",
        REWARD,
        "rollouts export {preference-samples} {folder}/pairs.parquet --as preferences "
        "--judge {judge} --noise {noise} --seed {seed}",
    ),
    Template("reward-model", REWARD, "reward-model train --model {sft} --data {folder}/pairs.parquet --seed {seed}"),
    Template(
        "final-rl",
        FINAL,
        "train --model {sft} --data {data} --steps {final_steps} --reward.model {reward-model}={reward_weight} "
        "--reward.language {language} --optim.decay_share 1 --seed {next_seed}",
    ),
    Template(
        "rl-control",
        "control: RL alone",
        "train --model {model} --data {data} --steps 100000 --max_train_tokens SAMPLED_TOKENS "
        "--reward.language {language} --seed {seed}",
        needs=("controls",),
        is_control=True,
    ),
    Template(
        "student-samples",
        STUDENT,
        "sample --model {final-rl} --data {data} --problems {student_problems} --num-samples {student_samples} "
        "--seed {seed}",
        needs=("student",),
    ),
    Template(
        "student-examples",
        STUDENT,
        "rollouts export {student-samples} {folder}/student.jsonl --as sft --per-problem {per_problem} --without-ids",
        needs=("student",),
    ),
    Template(
        "student",
        STUDENT,
        "sft --model {student} --data {folder}/student.jsonl --seed {seed}",
        needs=("student",),
    ),
    Template(
        "student-control",
        "control: RL of the student",
        "train --model {student} --data {data} --steps 100000 --max_train_tokens SAMPLED_TOKENS "
        "--reward.language {language} --seed {seed}",
        needs=("student", "controls"),
        is_control=True,
    ),
)
