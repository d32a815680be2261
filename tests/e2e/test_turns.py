"""Trainings on an environment of several turns, which answers at random and counts what it is asked; nothing that was
answered is asked again after a kill. Skips without Prime Intellect's `verifiers`.
"""

import json
import shutil
from collections import Counter

import pytest

from data import load
from reasoner.cli.main import main
from reasoner.rollouts.prompts import TEMPLATES, render
from reasoner.runs.metrics import read_metrics
from reasoner.runs.rollout_row import own_text, ranges
from reasoner.runs.rollouts import read
from reasoner.tools.forms import FORMS
from tests.fixtures.calling import save_calling
from tests.fixtures.environments import write_interpreter
from tests.fixtures.forkserver import TRAINING, forkserver
from tests.fixtures.tiny import END, tiny_tokenizer
from tests.fixtures.trainings import contents, differing, flags

GUESS = """
import os
from random import randrange
from uuid import uuid4

import verifiers as vf
from datasets import Dataset


def unknown():
    return uuid4().hex[:6]


def by_seed():
    return randrange(10_000)


class Guess(vf.MultiTurnEnv):
    async def setup_state(self, state):
        state["draw"] = by_seed if self.is_seeded else unknown
        return state

    async def env_response(self, messages, state, **kwargs):
        state["tries"] = state.get("tries", 0) + 1
        reply = f"Try {state['draw']()} again."
        with open(os.environ["CALLS"], "a") as file:
            file.write(f"{state['answer']} {len(messages)} {reply}\\n")
        return [{"role": "user", "content": reply}]


def load_environment(is_seeded=False):
    rows = [{"question": f"What is {n} + 4?", "answer": str(n + 4)} for n in range(6)]
    parser = vf.XMLParser(["answer"], answer_field="answer")

    def right(completion, answer, parser):
        return float(parser.parse_answer(completion) == answer)

    def tries(state):
        return state.get("tries", 0)

    rubric = vf.Rubric(funcs=[right, tries], weights=[1.0, 0.1], parser=parser)
    environment = Guess(max_turns=3, dataset=Dataset.from_list(rows), parser=parser, rubric=rubric)
    environment.is_seeded = is_seeded
    return environment
"""
RUN = {
    "model": "base", "engine.name": "transformers", "threads": 1, "steps": 3, "data.prompts_per_step": 3,
    "algo.group_size": 4, "sampling.max_tokens": 200, "validation.interval": 0, "eval.heldout_problems": 0,
    "run.save_interval": 3, "run.name": "a", "reward.format": 0, "reward.overlong": 1,
}  # fmt: skip


@pytest.fixture(scope="module")
def spec(tmp_path_factory):
    python = write_interpreter(tmp_path_factory.mktemp("environment"))
    (python.parent / "guess.py").write_text(GUESS)
    return f"env:guess?env_python={python}"


def start(runs, spec, monkeypatch, *, resume=False):
    monkeypatch.setenv("CALLS", str(runs.with_name(runs.name + ".calls")))
    words = ["--resume", str(runs / "a")] if resume else flags(RUN | {"run.dir": runs, "data.train": spec})
    return forkserver(TRAINING).start("train", *words)


def finish(command):
    assert command.wait(timeout=300) == 0, command.errors()[-3000:]


def calls_of(runs):
    return runs.with_name(runs.name + ".calls").read_text().splitlines()


def test_rollouts_go_on_after_replies_and_are_scored_by_their_state(spec, tmp_path, monkeypatch):
    finish(start(tmp_path / "runs", spec, monkeypatch))
    rows = [row for step in range(3) for row in read(tmp_path / "runs" / "a", step)]
    assert len(rows) == 36 and any(len(ranges(row.get("observation_text"))) == 2 for row in rows)
    replies = Counter()
    for row in rows:
        parts = ranges(row.get("observation_text"))
        for (begin, end), (first, last) in zip(parts, ranges(row.get("observation_tokens")), strict=True):
            assert "User: Try " in row["completion"][begin:end] and row["completion"][:end].endswith("\nAssistant:")
            assert not own_text(row)[begin:end].strip() and set(row["logprobs"][first:last]) == {0.0}
            replies[row["completion"][begin:end].partition(" Try ")[2].split()[0]] += 1
        rewards = dict(row["rewards"])
        if row["finish"] == "stop":  # max_turns ends it, with two replies
            assert rewards["rubric/tries"] == len(parts) == 2 and rewards["rubric/num_turns"] == 3
        assert rewards["correct"] == pytest.approx(rewards["rubric/right"] + 0.1 * rewards["rubric/tries"])
    numbers = {line.split()[3] for line in calls_of(tmp_path / "runs")}
    assert set(replies) <= numbers and max(replies.values()) == 1 and len(numbers) == len(calls_of(tmp_path / "runs"))


def test_run_that_is_killed_asks_nothing_again_and_ends_as_its_log_says(spec, tmp_path, monkeypatch):
    """The kill comes in the middle of a turn of step 1, after a step that no checkpoint has."""
    runs = tmp_path / "runs"
    command = start(runs, spec, monkeypatch)
    log = runs / "a" / "answers" / "step-000000.0.jsonl"
    # 12 completions have 3 turns a step
    command.kill_when(lambda: log.exists() and len(log.read_bytes().splitlines()) > 36 + 3)
    logged = [json.loads(line) for line in log.read_text().splitlines()]
    assert not (runs / "a" / "checkpoints" / "step-000003").exists()
    before = calls_of(runs)
    finish(start(runs, spec, monkeypatch, resume=True))
    assert not log.parent.exists()
    again = calls_of(runs)
    assert again[: len(before)] == before and len(again) > len(before)
    texts = "".join(row["completion"] for step in range(3) for row in read(runs / "a", step))
    used = [line["text"] for line in logged if line["text"]]
    assert len(used) >= 24 and [text for text in used if text not in texts] == []
    assert sum(line.partition(" Try ")[2] not in texts for line in again) <= 12  # of one turn, at the kill and the end


@pytest.mark.slow
def test_kill_leaves_the_same_bytes_where_replies_depend_on_the_seed_alone(spec, tmp_path, monkeypatch):
    spec = spec.replace("?", "?is_seeded=true&")
    finish(start(tmp_path / "whole", spec, monkeypatch))
    runs = tmp_path / "runs"
    start(runs, spec, monkeypatch).kill_when((runs / "a" / "rollouts" / "step-000002.parquet.partial").exists)
    shutil.rmtree(runs / "a" / "answers", ignore_errors=True)  # all is asked again
    finish(start(runs, spec, monkeypatch, resume=True))
    whole, killed = (contents(place / "a", place) for place in (tmp_path / "whole", runs))
    assert differing(whole, killed) == []


def test_training_calls_the_tools_of_an_environment_and_learns_from_its_rubric(spec, tmp_path):
    """A model that calls `add` in each turn, until max_turns or the room for a completion ends the rollout."""
    spec = spec.replace("guess?", "calls?is_stateful=true&")
    prompts = [render(problem, TEMPLATES["none"], tiny_tokenizer()).text for problem in load(spec)]
    call = '{"name": "add", "arguments": {"a": 5, "b": 4}}'
    model = save_calling(tmp_path / "model", call, 60, FORMS["qwen3"], prompts, end=END, context=2048)
    more = {"model": model, "data.train": spec, "run.dir": tmp_path, "prompt.style": "none", "sampling.max_tokens": 500}
    finish(forkserver(TRAINING).start("train", *flags(RUN | more)))
    rows = [row for step in range(3) for row in read(tmp_path / "a", step)]
    answered = [row for row in rows if row.get("observation_text")]
    assert len(rows) == 36 and len(answered) > 12
    for row in answered:
        replies = [row["completion"][begin:end] for begin, end in ranges(row["observation_text"])]
        assert all("<tool_response>\n" in reply for reply in replies)
        rewards, nines = dict(row["rewards"]), sum(reply.count("\n9\n") for reply in replies)
        assert rewards["rubric/answers"] == nines and rewards["rubric/add_calls"] >= nines
        assert rewards["correct"] == pytest.approx(rewards["rubric/right"] + 0.1 * nines)
    assert any("\n<tool_response>\n9\n</tool_response>\n" in row["completion"] for row in answered)
    assert [line["grad_norm"] > 0 for line in read_metrics(tmp_path / "a")] == [True] * 3


def test_evaluation_goes_on_after_replies_and_is_graded_again_without_them(spec, tmp_path, monkeypatch):
    monkeypatch.setenv("CALLS", str(tmp_path / "calls"))
    words = ["--model", "base", "--data", spec.replace("guess?", "guess:train?"), "--engine", "transformers"]
    words += ["--threads", "1", "--max-tokens", "160"]
    evaluation = ["eval", *words, "--out", str(tmp_path), "--problems", "3", "--pass@1", "--num-samples", "2"]
    assert main([*evaluation, "--name", "one"]) in (0, None)
    calls = (tmp_path / "calls").read_text()
    assert len(calls.splitlines()) > 6
    assert main([*evaluation, "--name", "two", "--regrade"]) in (0, None)
    assert (tmp_path / "calls").read_text() == calls
    one, two = (next((tmp_path / name).glob("samples_*.jsonl")).read_text() for name in ("one", "two"))
    assert one == two
