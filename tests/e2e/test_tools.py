"""Trainings and evaluations whose model calls a tool: what is stored, counted and graded; that a kill loses nothing."""

import json
import time
from pathlib import Path

import pytest

from reasoner.cli.main import main
from reasoner.runs.metrics import read_metrics
from reasoner.runs.rollout_row import own_text, ranges
from reasoner.runs.rollouts import read
from reasoner.tools.forms import FORMS
from tests.fixtures.calling import SUMS, save_calling
from tests.fixtures.forkserver import TRAINING, finish, forkserver
from tests.fixtures.trainings import contents, differing, flags

pytest.importorskip("pydantic_monty")
RUN = {
    "preset": "base", "engine.name": "transformers", "prompt.style": "none", "data.train": SUMS, "threads": 1,
    "steps": 3, "data.prompts_per_step": 2, "algo.group_size": 4, "sampling.max_tokens": 48, "validation.interval": 0,
    "eval.heldout_problems": 0, "run.save_interval": 1, "run.name": "a", "tools": "python", "reward.tool": 1,
    "reward.overlong": 1, "tools.max_turns": 2,
}  # fmt: skip


@pytest.fixture(scope="module")
def calling(tmp_path_factory):
    return save_calling(tmp_path_factory.mktemp("calling"), "6 * 7")


@pytest.fixture(scope="module")
def trained(tmp_path_factory, calling):
    """The folder of a run whose model calls the tool."""
    runs = tmp_path_factory.mktemp("runs")
    train(runs, calling)
    return runs / "a"


def train(runs, model, **settings):
    finish("train", *flags(RUN | {"model": model, "run.dir": runs} | settings))


def test_rollouts_hold_what_the_tool_returned_and_its_tokens_are_not_counted(trained):
    rows = [row for step in range(3) for row in read(trained, step)]
    with_calls = [row for row in rows if row.get("observation_text")]
    assert len(with_calls) > len(rows) / 2
    assert any("\n<output>\n42\n</output>\n" in row["completion"] for row in with_calls)
    for row in with_calls:
        inside = sum(end - start for start, end in ranges(row["observation_tokens"]))
        assert row["tokens"] == len(row["token_ids"]) - inside
        places = (ranges(row[f"observation_{kind}"]) for kind in ("text", "tokens"))
        for (start, end), (first, last) in zip(*places, strict=True):
            assert row["completion"][start:end].strip().startswith("<output>")
            assert own_text(row)[start:end].strip() == "" and not any(row["logprobs"][first:last])
            for name in ("loss", "entropy", "kl"):
                assert row[name] is None or row[name][first:last] == [0.0] * (last - first)
        assert dict(row["rewards"])["tool"] == float(row["tool_errors"] < len(ranges(row["observation_text"])))
    metrics = read_metrics(trained)
    calls = [sum(len(ranges(row.get("observation_text"))) for row in read(trained, step)) for step in range(3)]
    assert [line["tools/calls"] for line in metrics] == [number / 8 for number in calls]
    assert [line["tools/calls"] > 0 for line in metrics] == ["tools/error_rate" in line for line in metrics]
    assert all(line.get("tools/error_rate", 0) <= 1 and line["parity/logprob_diff_max"] < 1e-3 for line in metrics)


@pytest.mark.slow  # the numbers of two ranks: tests/distributed
def test_two_processes_sample_the_trajectories_of_one(trained, calling, tmp_path):
    train(tmp_path, calling, steps=1, processes=2)
    one, two = read(trained, 0), read(tmp_path / "a", 0)
    for name in ("problem_id", "token_ids", "observation_tokens", "completion", "reward", "tool_errors"):
        assert [row.get(name) for row in one] == [row.get(name) for row in two]


def test_an_evaluation_of_a_checkpoint_calls_the_tools_of_its_run_and_grades_no_answer_of_theirs(
    trained, tmp_path, capsys
):
    request = {
        "model": trained.name, "runs": trained.parent, "data": SUMS, "pass@1": "", "out": tmp_path,
        "engine": "transformers",
    }  # fmt: skip
    words = [word for word in flags(request | {"threads": 1, "num-samples": 2}) if word]
    texts = {}
    for name, more in (("with", ()), ("again", ("--regrade",)), ("without", ("--tools", ""))):
        main(["eval", *words, "--name", name, *more])
        samples = next((tmp_path / name).glob("samples_*.jsonl")).read_text().splitlines()
        texts[name] = [text for line in samples for text in json.loads(line)["resps"][0]]
    assert texts["with"] == texts["again"]
    assert any("</python>\n\n" in text for text in texts["with"])
    assert not any("<output>\n42" in text for text in texts["with"])
    assert not any("</python>\n\n" in text for text in texts["without"])
    assert "tools python" in capsys.readouterr().out


def test_samples_of_a_checkpoint_call_the_tools_of_its_run_and_go_on_with_the_same_ones_alone(trained, capsys):
    request = {"model": trained.name, "runs": trained.parent, "data": SUMS, "engine": "transformers", "name": "s"}
    words = ["sample", *flags(request | {"threads": 1, "problems": 2, "num-samples": 2})]
    main(words)
    assert any("\n<output>\n42" in row["completion"] for row in read(trained.parent / "s", 0))
    assert read_metrics(trained.parent / "s")[0]["tools/calls"] > 0
    assert main([*words, "--tools", ""]) == 2
    assert "samples with other settings" in capsys.readouterr().err


def is_calling(pid):
    """Whether a process below has the sandbox's interpreter."""
    below = [int(one) for path in Path("/proc").glob(f"{pid}/task/*/children") for one in path.read_text().split()]
    return any("monty" in Path(f"/proc/{one}/cmdline").read_text() or is_calling(one) for one in below)


@pytest.mark.slow  # kills of a run: test_resume.py; of a call: tests/tools
@pytest.mark.timeout(600)
def test_kills_in_the_middle_of_a_call_leave_the_same_bytes(tmp_path):
    model = save_calling(tmp_path / "model", "sum(range(9**9))")
    settings = {"steps": 2, "tools.seconds": 1.0, "data.prompts_per_step": 1, "sampling.max_tokens": 128}
    train(tmp_path / "whole", model, **settings)
    rows = [row for step in range(2) for row in read(tmp_path / "whole" / "a", step)]
    assert any("TimeoutError" in row["completion"] for row in rows)
    first = flags(RUN | {"model": model, "run.dir": tmp_path / "broken"} | settings)
    for words, shard in ((first, ""), (["--resume", tmp_path / "broken" / "a"], "rollouts/step-000000.parquet")):
        command = forkserver(TRAINING).start("train", *words)
        while not ((tmp_path / "broken" / "a" / shard).exists() and is_calling(command.pid)):
            assert command.poll() is None, "the command ended before it was killed"
            time.sleep(0.02)
        time.sleep(0.3)
        command.kill()
        assert command.wait(timeout=60) != 0
    finish("train", "--resume", tmp_path / "broken" / "a")
    whole, broken = (contents(tmp_path / name, tmp_path / name) for name in ("whole", "broken"))
    assert differing(whole, broken) == []


DIE = '''
import os
from pathlib import Path
from uuid import uuid4


def roll() -> str:
    """Roll a die, and write down what it showed."""
    value = uuid4().hex[:6]
    with Path(os.environ["ROLLS"]).open("a") as file:
        file.write(f"{value}\\n")
    return value
'''


def num_answers(run, step):
    return sum(len(ranges(row.get("observation_text"))) for row in read(run, step))


def test_resumed_run_calls_no_function_again_whose_answer_is_logged(tmp_path, monkeypatch):
    monkeypatch.setenv("ROLLS", str(tmp_path / "rolls"))
    (tmp_path / "die.py").write_text(DIE)
    model = save_calling(tmp_path / "model", '{"name": "roll", "arguments": {}}', form=FORMS["qwen3"])
    more = {"tools": f"{tmp_path / 'die.py'}:roll", "tools.form": "qwen3", "sampling.max_tokens": 300}
    run, settings = tmp_path / "a", RUN | more | {"model": model, "run.dir": tmp_path, "run.save_interval": 3}
    command = forkserver(TRAINING).start("train", *flags(settings))
    log = run / "answers" / "step-000000.0.jsonl"
    shard = run / "rollouts" / "step-000000.parquet"
    command.kill_when(lambda: shard.exists() and len(log.read_bytes().splitlines()) > num_answers(run, 0))
    assert not (run / "checkpoints" / "step-000003").exists()
    lines = [json.loads(line) for line in log.read_text().splitlines()]
    assert len({line["key"] for line in lines}) == len(lines)
    before, first = (tmp_path / "rolls").read_text().split(), read(run, 0)
    finish("train", "--resume", run)
    assert [row["token_ids"] for row in read(run, 0)] == [row["token_ids"] for row in first]
    after = (tmp_path / "rolls").read_text().split()
    assert after[: len(before)] == before and len(after) > len(before)
    texts = "".join(row["completion"] for step in range(3) for row in read(run, step))
    answers = {line["text"] for line in lines if not line["is_error"]}
    assert len(answers) > 1 and all(text in texts for text in answers)
    assert len([value for value in after if value not in texts]) <= 1  # asked, and not answered before the kill
