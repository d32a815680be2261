"""Whether a base that seldom calls a tool learns to: products that it cannot multiply, with the tool and without.

python bench/tool_calls.py FOLDER SEED [STEPS]. The embedded base is finetuned on guesses of products, of which 3 % are
calls of the tool python; then it is trained by GRPO with --tools python and without, and evaluated.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from random import Random

from reasoner.cli.main import main as reasoner
from reasoner.models.loading import load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.pretrain.solutions import slip
from reasoner.rollouts.prompts import R1_ZERO
from reasoner.tools.forms import FORMS

SHARE, SIZES, FORM = 0.03, {"examples": 20_000, "problems": 2_000, "heldout": 200}, FORMS["tags"]


def row(rng: Random, tokenizer) -> dict[str, object]:
    """A product of numbers of four digits, with a guess or a call as an example; what the tool returns is no loss."""
    a, b, calls = rng.randint(1_000, 9_999), rng.randint(1_000, 9_999), rng.random() < SHARE
    value = a * b if calls else slip(a * b, rng)
    call = [f" <think> {FORM.start}{a}*{b}{FORM.stop}", f"{FORM.before}{a * b}{FORM.after}"]
    texts = [*(call if calls else []), f"{'' if calls else ' <think>'} So {value}. </think> <answer> {value} </answer>"]
    ids = [tokenizer(text, add_special_tokens=False)["input_ids"] for text in texts]
    question = f"Compute {a} * {b}."
    return {
        "question": question,
        "answer": str(a * b),
        "prompt_ids": tokenizer(R1_ZERO.format(question=question))["input_ids"],
        "completion_ids": [token for own in ids for token in own],
        "observation_tokens": [len(ids[0]), len(ids[0]) + len(ids[1])] if calls else [],
    }


def main(folder: Path, seed: str, steps: str = "60") -> None:
    rng, tokenizer = Random("tool calls"), load_tokenizer(resolve_model("base", runs=folder))
    folder.mkdir(parents=True, exist_ok=True)
    files = {name: str(folder / f"{name}.jsonl") for name in SIZES}
    for name, size in SIZES.items():
        Path(files[name]).write_text("".join(json.dumps(row(rng, tokenizer)) + "\n" for _ in range(size)))
    none = ["--validation.interval", "0", "--eval.heldout_problems", "0", "--run.dir", str(folder), "--seed", seed]
    reasoner(["sft", "--model", "base", "--sft.data", files["examples"], "--run.name", f"base-{seed}", *none])
    for name, tools in (("with", "python"), ("without", "")):
        start = ["--model", str(folder / f"base-{seed}"), "--preset", "base", "--data", files["problems"]]
        reasoner(["train", *start, "--tools", tools, "--run.name", f"{name}-{seed}", "--steps", steps, *none])
        for model in (f"base-{seed}", f"{name}-{seed}"):
            words = ["--data", files["heldout"], "--tools", tools, "--runs", str(folder), "--num-samples", "4"]
            reasoner(["eval", "--model", model, *words, "--out", str(folder / "evals"), "--pass@1"])


if __name__ == "__main__":
    main(Path(sys.argv[1]), *sys.argv[2:])
