"""Whether a base that seldom calls a tool learns to: products that it cannot multiply, with the tool and without.

    python bench/tool_calls.py --out runs/tools --seeds 0 1 2

The embedded base is finetuned twice: on calls of the tool python, and then on guesses of products of which 3 % are
calls. Half of the products are small (one digit by one), half large (three digits by three). From there each seed
trains by GRPO with the tool, without it, and with a tool that answers noise, and by rounds of expert iteration with the
tool at about the tokens of GRPO. Each model is evaluated with its tool and without. Writes tool_calls.md. Stop it and
call it again: what is complete is kept.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random

from runs import arguments, is_over, options, run_reasoner, train_all
from tables import mean_and_range, over_seeds, table

from reasoner.cli.main import main as reasoner
from reasoner.models.loading import load_tokenizer
from reasoner.models.resolve import resolve_model
from reasoner.pretrain.solutions import slip
from reasoner.rollouts.prompts import R1_ZERO
from reasoner.runs.metrics import read_metrics
from reasoner.tools.forms import FORMS
from reasoner.tools.pool import ToolPool
from reasoner.types import Answer, OnAnswer

SHARE, FORM = 0.03, FORMS["tags"]
KINDS = {"small": ((2, 9), (2, 9)), "large": ((100, 999), (100, 999))}
SIZES = {"calls": 20_000, "guesses": 3_000, "problems": 2_000, "small": 100, "large": 100}
SAMPLES = 8  # of each held-out problem
SHORT = {"validation.interval": 0, "eval.heldout_problems": 1, "eval.samples": 1}  # with a report: is_over()
ARMS = {"GRPO, tool": "python", "GRPO, no tool": "", "GRPO, noise": "python", "expert iteration, tool": "python"}


def row(rng: Random, tokenizer, name: str) -> dict[str, object]:
    """A product, with a guess or a call as an example; a guess at a small one is right half of the time."""
    kind = name if name in KINDS else rng.choice(list(KINDS))
    a, b = (rng.randint(*ends) for ends in KINDS[kind])
    calls = name == "calls" or rng.random() < SHARE
    value = a * b if calls or (kind == "small" and rng.random() < 0.5) else slip(a * b, rng)
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


def make_base(out: Path, threads: int) -> Path:
    """The files of SIZES, and the model that all arms start from."""
    out.mkdir(parents=True, exist_ok=True)
    tokenizer = load_tokenizer(resolve_model("base", runs=out))
    for name, size in SIZES.items():
        rng = Random(name)
        lines = (json.dumps(row(rng, tokenizer, name)) + "\n" for _ in range(size))
        (out / f"{name}.jsonl").write_text("".join(lines))
    stages = (("skill", "base", "calls", {}), ("start", str(out / "skill"), "guesses", {"optim.lr": 1e-4}))
    for name, model, data, own in stages:
        values = {"model": model, "sft.data": out / f"{data}.jsonl", "sft.epochs": 1, "run.name": name} | SHORT | own
        words = options(values | {"run.dir": out, "threads": threads})
        if (out / name / "config.json").is_file():
            words = ["--resume", str(out / name)]
        if not is_over(out / name):
            run_reasoner("sft", *words, log=out / f"{name}.log")
    return out / "start"


def grpo(out: Path, base: Path, arm: str, seed: int, steps: int) -> dict[str, object]:
    """The settings of a run of GRPO."""
    own = {"model": base, "preset": "base", "data": out / "problems.jsonl", "tools": ARMS[arm], "seed": seed}
    noise = {"program": f"{sys.executable} {__file__} noise"} if arm.endswith("noise") else {}
    return own | {"steps": steps, "sampling.max_tokens": 96} | SHORT | noise


def expert_iteration(out: Path, base: Path, seed: int, tokens: float, threads: int) -> Path:
    """Three rounds, of as many problems as sample some `tokens` tokens (40 a completion); the last model."""
    name, rounds, samples = f"expert-iteration-{seed}", 3, 8
    last = out / f"{name}-sft-{rounds}"
    values = {"model": base, "preset": "base", "data": out / "problems.jsonl", "tools": "python", "seed": seed}
    values |= {"rounds": rounds, "num-samples": samples, "problems": round(tokens / 40 / rounds / samples)}
    values |= {"run.dir": out, "run.name": name, "sampling.max_tokens": 96, "threads": threads} | SHORT
    if not (last / "rounds.json").is_file():
        run_reasoner("expert-iteration", *options(values), log=out / f"{name}.log", threads=threads)
    return last


def answer_noise(self: ToolPool, calls: Sequence[str], on_answer: OnAnswer) -> None:
    """In place of ToolPool.answers: a number of six digits that depends on the call alone."""
    for place, call in enumerate(calls):
        on_answer(place, Answer(str(Random(call).randint(10**5, 10**6)), is_error=False))


def figures(out: Path, model: Path, kind: str, tools: str) -> dict[str, float]:
    """pass@1 in per cent, and calls per response, on the held-out products of a kind."""
    name = f"{model.name}-{kind}-{'with' if tools else 'without'}"
    folder = out / "evals" / name
    if not (folder / "evaluation.json").is_file():
        words = ["--model", model, "--data", out / f"{kind}.jsonl", "--tools", tools, "--num-samples", SAMPLES]
        words += ["--runs", out, "--out", out / "evals", "--name", name, "--pass@1"]
        run_reasoner("eval", *words, log=out / "evals.log", threads=1)
    (samples,) = folder.glob("samples_*.jsonl")
    lines = [json.loads(line) for line in samples.read_text().splitlines()]
    texts = [text for line in lines for text in line["resps"][0]]
    right = [one for line in lines for one in line["correct"]]
    called = sum(FORM.stop in text for text in texts)
    return {"right": 100 * sum(right) / len(right), "calls": 100 * called / len(texts)}


def main() -> None:
    if sys.argv[1:2] == ["noise"]:
        ToolPool.answers = answer_noise  # type: ignore[method-assign]
        reasoner(sys.argv[2:])
        return
    parser = arguments(__doc__, out="runs/tools")
    parser.add_argument("--steps", type=int, default=30, help="steps of GRPO [30]")
    args = parser.parse_args()
    threads = args.threads or 1
    base = make_base(args.out, threads)
    models: dict[str, list[Path]] = {"base": [base]}
    for arm in [one for one in ARMS if one.startswith("GRPO")]:
        names = {f"{arm.replace(', ', '-').replace(' ', '-').lower()}-{seed}": seed for seed in args.seeds}
        runs = {name: grpo(args.out, base, arm, seed, args.steps) for name, seed in names.items()}
        train_all(args.out, runs, jobs=args.jobs, threads=threads)
        models[arm] = [args.out / name for name in names]
    tokens = [read_metrics(run)[-1]["num_tokens"] for run in models["GRPO, tool"]]
    models["expert iteration, tool"] = [
        expert_iteration(args.out, base, seed, own, threads) for seed, own in zip(args.seeds, tokens, strict=True)
    ]
    cells = {
        (arm, kind, tools): [figures(args.out, run, kind, tools) for run in runs]
        for arm, runs in models.items()
        for kind in KINDS
        for tools in ("python", "")
    }
    rows = [
        [arm, "with" if tools else "without"]
        + [
            mean_and_range([one[name] for one in cells[arm, kind, tools]])
            for kind in KINDS
            for name in ("right", "calls")
        ]
        for arm in models
        for tools in ("python", "")
    ]
    heads = ["arm", "evaluated", *(f"{kind}: {name}, %" for kind in KINDS for name in ("right", "calls"))]
    text = table(heads, rows, texts=2) + "\n"
    gains = [
        [f"GRPO with the tool minus {arm}", *(over_seeds(_differences(cells, arm, kind)) for kind in KINDS)]
        for arm in ("GRPO, no tool", "expert iteration, tool")
    ]
    text += table(["points, each evaluated as it was trained", *KINDS], gains)
    (args.out / "tool_calls.md").write_text(text)
    print(text, end="")


def _differences(cells: Mapping[tuple[str, str, str], list[dict[str, float]]], arm: str, kind: str) -> list[float]:
    sides = zip(cells["GRPO, tool", kind, "python"], cells[arm, kind, ARMS[arm]], strict=True)
    return [one["right"] - other["right"] for one, other in sides]


if __name__ == "__main__":
    main()
