"""Small runs and evaluations for the dashboard's tests: generated from a seed, or worked out by hand."""

from __future__ import annotations

import json
import random
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tokenizers import Tokenizer
from tokenizers.decoders import ByteLevel
from tokenizers.models import BPE
from tokenizers.pre_tokenizers import ByteLevel as Bytes

from app.api import run_query
from app.run_library import RunLibrary
from data import Problem
from reasoner.analysis.reflection import study
from reasoner.evals import eval_log as files
from reasoner.evals.result import MetricKs
from reasoner.recipes.stages import PipelineState, Stage, write_state
from reasoner.rollouts.prompts import load_template
from reasoner.runs import rollouts as store
from reasoner.runs import run_start
from reasoner.runs.importers import import_run
from reasoner.runs.rollout_table import RolloutTable
from reasoner.types import Completion, Prompt, RolloutGroup
from tests.fixtures.scripted import answering, evaluated, prompt
from verifiers import RewardWeights, Score, Verdict, VerifierPool
from verifiers.reflection.outcomes import Member, assign_labels, spans
from verifiers.rewards import add_reward
from verifiers.score import RewardInput

if TYPE_CHECKING:
    from fastapi.testclient import TestClient

Rows = list[dict[str, Any]]
STEPS = 8
RETURNS = [0, 4, 1, 3, 3, 2, 4, 0]  # right answers to the problem that every step asks
LEARNT = [{"from": 0, "to": 1}, {"from": 2, "to": 3}, {"from": 5, "to": 6}]
FORGOTTEN = [{"from": 1, "to": 2}, {"from": 4, "to": 5}, {"from": 6, "to": 7}]
FAMILIES = [("sums", 1), ("sums", 2), ("words", 1), ("words", None), (None, None), ("sums", 1), (None, 3)]
PROBLEMS = [
    Problem(f"made/{n}", f"What is {n} + {n}?", str(2 * n), "made", "train", level, family)
    for n, (family, level) in enumerate(FAMILIES)
]
NEVER_SOLVED = PROBLEMS[6].id
FAILURES = [Verdict.WRONG, Verdict.WRONG, Verdict.MALFORMED, Verdict.NO_ANSWER, Verdict.UNPARSABLE, Verdict.TIMED_OUT]
PHRASES = [
    "The sum is found. ", "Wait, let me check that again. ", "I see: so it is. ", "Hmm, that is not right. ",
    "Recheck it; checking helps. ", "Café waiters wait. ", "<script>alert(1)</script> ",
]  # fmt: skip

# --------------------------------------------------------------------------------------------------- runs


def asking(folder: Path) -> Iterator[Callable[..., dict[str, Any]]]:
    """Yield a function that calls the dashboard's queries over the folder."""
    library = RunLibrary(folder / "runs", folder / "evals")
    yield lambda query, **arguments: run_query(library, query, arguments)
    library.close()


def client_of(folder: Path, **settings: Any) -> TestClient:
    """A client of the dashboard over the folder, in this process. Only the worker that needs Gradio imports it."""
    from fastapi.testclient import TestClient

    from app.web import build

    return TestClient(build(RunLibrary(folder / "runs", folder / "evals"), **settings))


def open_run(run: Path, *, steps: int) -> None:
    run_start.open_run(run, {"model": "base", "algo.name": "grpo", "steps": steps, "seed": 0}, {}, resuming=False)


def write_run(run: Path, *, steps: int, written: int = STEPS, seed: int = 0, analysed: bool = True) -> Path:
    """A run of `steps` steps of which some are written: three groups of four each, metrics, validations."""
    open_run(run, steps=steps)
    for step in range(written):
        write_step(run, step, seed=seed)
    if analysed:
        study(RolloutTable(run))
    return run


def write_step(run: Path, step: int, *, seed: int = 0) -> None:
    draw = random.Random(1000 * seed + step)
    problems = [PROBLEMS[0], PROBLEMS[1 + step % 6], PROBLEMS[1 + (step + 2 * (step % 3 > 0)) % 6]]  # may repeat
    rights = (RETURNS[step % len(RETURNS)], None, None)
    groups = [_group(draw, problem, right=right) for problem, right in zip(problems, rights, strict=True)]
    rewards = [[score.reward for score in group.scores] for group in groups]
    rows = store.write_step(run, step, groups, [r - sum(own) / len(own) for own in rewards for r in own])
    line = {
        "step": step, "correct": sum(row["verdict"] == "correct" for row in rows) / len(rows),
        "reward/mean": sum(map(sum, rewards)) / len(rows), "entropy": 0.5 / (1 + step), "time/step": 2.0 + step,
        "completions/clipped_ratio": 0.4,
    }  # fmt: skip
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(line) + "\n")
    if step % 4 == 0:
        sampled = {"problems": 3, "metrics": {"pass@1": {"value": 0.1 * step, "low": 0.0, "high": 1.0}}}
        greedy = {"problems": 3, "metrics": {"pass@1": {"value": 0.2}}}
        with (run / "evals.jsonl").open("a") as file:
            file.write(json.dumps({"step": step, "sampled": sampled, "greedy": greedy}) + "\n")


def _group(draw: random.Random, problem: Problem, *, right: int | None) -> RolloutGroup:
    """Four completions, `right` of them correct (random if None); about every third group has equal rewards."""
    has_zero_variance = right is None and draw.random() < 0.35
    if right is None:
        right = 0 if problem.id == NEVER_SOLVED else draw.choice([0, 4]) if has_zero_variance else draw.randint(0, 4)
    order = draw.sample(range(4), 4)
    completions = [_completion(draw, problem, is_correct=place < right) for place in order]
    scores = [
        score if has_zero_variance else replace(score, reward=score.reward + draw.choice([0, 0, 0.1]))
        for _, score in completions
    ]
    if has_zero_variance:
        scores = [replace(score, reward=scores[0].reward) for score in scores]
    prompt_of = Prompt(problem, f"Q: {problem.question}", "", (1,))
    return RolloutGroup(prompt_of, tuple(c for c, _ in completions), tuple(scores))


def _completion(draw: random.Random, problem: Problem, *, is_correct: bool) -> tuple[Completion, Score]:
    verdict = Verdict.CORRECT if is_correct else draw.choice(FAILURES)
    answer = problem.answer if is_correct else draw.choice(["1", "17", "23"])
    stated = draw.choice(["", f"So the answer is {draw.choice(['99', problem.answer])}. "])
    thought = stated + "".join(draw.sample(PHRASES, draw.randint(0, 4)))
    text = f"<think>{thought}</think> <answer>{answer}</answer>"
    score = Score(
        0.0, {}, verdict, None if verdict is Verdict.NO_ANSWER else answer, "rational",
        well_formed=verdict not in (Verdict.NO_ANSWER, Verdict.MALFORMED),
    )  # fmt: skip
    size = len(text.split()) + 1
    completion = Completion(text, tuple(range(size)), (-0.5,) * size, draw.choice(["stop", "stop", "length"]), 0)
    return completion, add_reward(RewardInput(text, problem, score), RewardWeights())


def write_library(folder: Path) -> Path:
    """Runs: whole, other (both finished), stopped (half way), damaged, empty (no rollouts), theirs (imported)."""
    runs = folder / "runs"
    write_run(runs / "whole", steps=STEPS)
    write_run(runs / "other", steps=STEPS, seed=1)
    write_run(runs / "stopped", steps=2 * STEPS, written=3, seed=2)
    (runs / "damaged").mkdir()
    (runs / "damaged" / "config.json").write_text('{"config": {"mod')
    open_run(runs / "empty", steps=10)
    (runs / "empty" / "rollouts").rmdir()
    dump = folder / "dump"
    dump.mkdir()
    for step in (3, 4):
        lines = [
            {"step": step, "prompt": f"q{n // 2}", "completion": f"said {n}", "gold": "1"}
            | {"reward": float(n % 2), "rewards": {"accuracy": float(n % 2)}}
            for n in range(4)
        ]
        (dump / f"{step}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    import_run("rows", dump, runs / "theirs")
    return folder


def save_byte_tokenizer(run: Path) -> Tokenizer:
    """Give a run a tokenizer whose tokens are the bytes."""
    tokenizer = Tokenizer(BPE({sign: number for number, sign in enumerate(sorted(Bytes.alphabet()))}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = Bytes(add_prefix_space=False), ByteLevel()
    tokenizer.save(str(run / "tokenizer.json"))
    return tokenizer


def until(holds: Callable[[], bool], seconds: float = 60.0) -> bool:
    """Wait until `holds()` is true because of another thread; returns whether it is."""
    end = time.monotonic() + seconds
    while not (is_done := holds()) and time.monotonic() < end:
        time.sleep(0.05)
    return is_done


def rows_of(run: Path) -> Rows:
    """The rows of all shards in order, each with its name."""
    steps = sorted(int(path.stem.removeprefix("step-")) for path in (run / "rollouts").glob("step-*.parquet"))
    rows = [row for step in steps for row in store.read(run, step)]
    return [row | {"name": f"{row['step']}.{row['group']}.{row['sample']}"} for row in rows]


def grouped(rows: Rows, *names: str) -> dict[Any, Rows]:
    """Group consecutive rows by the values of these columns."""
    runs = groupby(rows, key=itemgetter(*names))
    return {key: list(own) for key, own in runs}


def num_correct(rows: Rows) -> int:
    return sum(row["verdict"] == "correct" for row in rows)


def labels_of(rows: Rows) -> dict[str, list[str]]:
    """The labels of each rollout's reflection spans by its name, detected directly."""
    labels = {}
    for own in grouped(rows, "step", "group").values():
        texts = [[row[name] for name in ("completion", "question", "gold", "verifier")] for row in own]
        found = zip(own, texts, strict=True)
        members = [Member(row["verdict"] == "correct", tuple(spans(*text))) for row, text in found]
        for row, member in zip(own, assign_labels(members), strict=True):
            labels[row["name"]] = [span.label for span in member.spans]
    return labels


# What is looked for.
TEXTS = ("wait", "LET me check", "café", "<script>", ".*", "unicorn")


# ---------------------------------------------------------------------------------------------- pipelines

ESTIMATE = {"value": 0.625, "low": 0.5, "high": 0.75}


def write_pipeline(folder: Path, data: str = "generated") -> None:
    """A pipeline of five stages: three are done, the run of one has begun, one waits. `data`: of the second one."""
    stages = (
        Stage("cold-sft", "finetune", {}, "real", results={"minutes": 2.0, "pass@1": ESTIMATE}),
        Stage("samples", "sample", {"data": data}, "r1-samples", results={"sampled_tokens": 12_345}),
        Stage("rm", "train_reward_model", {}, "r1-rm", results={"accuracy": ESTIMATE}),
        Stage("rl", "train", {}, "growing"),
        Stage("student", "finetune", {}, "r1-student"),
    )
    folder.mkdir()
    write_state(folder, PipelineState({}, stages))


# --------------------------------------------------------------------------------------------- evaluations

SPEC, OTHER_SPEC = "generated:heldout", "other:set"
N = 6
PROMPTS = [
    prompt("unanimous", "4", subject="sums", level=1), prompt("spelt", "1/2", subject="sums", level=2),
    prompt("confident", "7", subject="words", level=1), prompt("tied", "8", subject="words", level=2),
    prompt("silent", "9"), prompt("two-wrong", "5"),
]  # fmt: skip
NOTHING = "I do not know"
SCRIPT = {
    "unanimous": [answering(4)] * N,
    "spelt": [answering(text) for text in ("0.5", "1/2", "\\frac{1}{2}", "3", "3", "2")],
    "confident": [answering(text) for text in ("3/4", "0.75", "3/4", "0.75", "7")] + [NOTHING],
    "tied": [answering(text) for text in ("8", "1", "8", "1")] + [NOTHING] * 2,
    "silent": [NOTHING] * N,
    "two-wrong": [answering(text) for text in ("1", "1", "2", "2", "5")] + [NOTHING],
}
WORSE = SCRIPT | {"unanimous": [answering(3)] * 4 + [answering(4)] * 2, "silent": [answering(9)] * 4 + [NOTHING] * 2}


def write_evaluation(folder: Path, pool: VerifierPool, script=SCRIPT, *, specs=(SPEC,), has_votes: bool = True) -> Path:
    """Six sampled answers and a greedy one to each of six problems, as `reasoner eval` keeps them."""
    ks = MetricKs(pass_at=(2, 4), cons_at=(2, 3) if has_votes else ())
    sets = {}
    for spec in specs:
        sampled = evaluated(script, pool, PROMPTS, N, ks=ks, label=spec)
        sets[spec] = {"sampled": sampled, "greedy": evaluated(script, pool, PROMPTS, label=spec)}
    about = {
        "model": "org/name", "engine": "scripted", "sampling": {"sampled": {"temperature": 1.0}}, "samples": N,
        "data": {spec: files.data_entry([p.problem for p in PROMPTS]) for spec in specs}, "grader": "abc", "seed": 0,
        "prompt": {"style": "r1-zero", **asdict(load_template("r1-zero"))},
    }  # fmt: skip
    files.write(folder, about, sets, "the table")
    return folder
