"""Rollout files as TRL writes them, and in the columns that docs/DASHBOARD.md lists."""

import json

import pandas as pd

from reasoner.runs import rollouts as store

WELL_FORMED = "<think>2 + 2 is 4</think> <answer>4</answer>"
BOXED = "<think>so</think> \\boxed{4}"
HOSTILE = "\x1b[2J \u202e <img src=x onerror=y> \u2028 \x00 ${a} $5 and $10 \U0001f600"


def trl_step(folder, step, rows, columns=("accuracy_reward", "format_reward")):
    """What GRPOTrainer.log writes: `rows` of (prompt, completion, rewards, advantage)."""
    prompts, completions, rewards, advantages = zip(*rows, strict=True)
    table = {
        "step": [step] * len(rows), "prompt": prompts, "completion": completions,
        **dict(zip(columns, zip(*rewards, strict=True), strict=True)), "advantage": advantages,
    }  # fmt: skip
    (folder / "completions").mkdir(parents=True, exist_ok=True)
    pd.DataFrame(table).to_parquet(folder / "completions" / f"completions_{step:05d}.parquet")


def lines(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def record(prompt, completion, reward, step, **extra):
    """A rollout in the columns that docs/DASHBOARD.md lists."""
    return {"prompt": prompt, "completion": completion, "reward": reward, "step": step, **extra}


def columns(run, step, *names):
    return [tuple(row[name] for name in names) for row in store.read(run, step)]
