"""Rollout files as TRL, verl and prime-rl write them."""

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
        "step": [step] * len(rows),
        "prompt": prompts,
        "completion": completions,
        **dict(zip(columns, zip(*rewards, strict=True), strict=True)),
        "advantage": advantages,
    }
    (folder / "completions").mkdir(parents=True, exist_ok=True)
    pd.DataFrame(table).to_parquet(folder / "completions" / f"completions_{step:05d}.parquet")


def lines(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def verl_line(prompt, output, score, step, **extra):
    return {"input": prompt, "output": output, "gts": "4", "score": score, "step": step, **extra}


def message(role, content, parent, *, token_ids=(), sampled=False, **more):
    """A node of a trace. Of a sampled message's tokens the first is the template's."""
    mask = [sampled and place > 0 for place in range(len(token_ids))]
    logprobs = [-0.5] * sum(mask)
    entry = {"message": {"role": role, "content": content, **more}, "sampled": sampled, "timestamp": 1.5}
    return entry | {"parent": parent, "token_ids": list(token_ids), "mask": mask, "logprobs": logprobs}


def trace(name, answer, score, **more):
    """A verifiers trace as its to_record has it."""
    return {
        "version": 1,
        "id": name,
        "task": {"type": "Task", "data": {"idx": 0, "prompt": "2 + 2?", "answer": "4"}, "key": "k", "hash": "h"},
        "agent": {"config": {"model": "m"}, "name": "agent", "trainable": True},
        "nodes": [
            message("system", "Think first.", None, token_ids=[1, 2]),
            message("user", "2 + 2?", 0, token_ids=[3]),
            message("assistant", answer, 1, token_ids=[4, 5, 6, 7], sampled=True),
        ],
        "calls": [{"node": 2, "finish_reason": "stop", "usage": {"prompt_tokens": 4, "completion_decode_steps": 3}}],
        "rewards": {"solved": {"score": score, "weight": 2.0}, "format": {"score": 1.0, "weight": 0.5}, "judge": None},
        "metrics": {"turns": 1.0},
        "info": {},
        "ok": True,
        "errors": [],
        **more,
    }


def episode(traces, step=0, kind="train"):
    work = {"type": kind, "step": step, "policy": {"start": 0, "end": 1}}
    about = {"env": {"id": "sums"}, "run": {"type": "train", "id": "r", "work": work}, "group": {"id": "g"}}
    return {
        "id": f"e-{traces[0]['id']}" if traces else "e",
        **about,
        "ok": bool(traces),
        "errors": [],
        "traces": traces,
    }


def columns(run, step, *names):
    return [tuple(row[name] for name in names) for row in store.read(run, step)]
