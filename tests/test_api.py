"""The Python API, with real runs on the embedded base: `train`, `evaluate`, `grade`, and what they refuse."""

import ast
import inspect
import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from datasets import Dataset
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback

import reasoner
from reasoner import EvalResults, Problem, Run, evaluate, finetune, grade, score_completions, train, train_reward_model
from reasoner.cli.main import main
from reasoner.config.resolve import to_dict
from reasoner.trainer.resolve_run import resolve_new_run
from tests.fixtures.switched_off import without

ROOT = Path(__file__).parents[1]
ROWS = [{"problem": f"What is {a} + {b}?", "answer": str(a + b), "hint": f"{a}"} for a in range(3, 7) for b in (2, 5)]
PROBLEMS = [Problem(f"sum-{n}", f"What is {n} + 4?", str(n + 4), level=1) for n in range(4)]
SMALL = {
    "data.prompts_per_step": 2, "algo.group_size": 4, "sampling.max_tokens": 24, "validation.interval": 2,
    "validation.problems": 2, "validation.samples": 2, "eval.heldout_problems": 0, "run.save_interval": 1,
    "engine.name": "transformers", "threads": 1,
}  # fmt: skip


def brevity(completions, **columns):
    return [-len(completion) / 100 for completion in completions]


def hinted(completions, hint):
    """1 for a completion with the hint in it; does not apply to hints above 4."""
    return [None if int(own) > 4 else float(own in text) for text, own in zip(completions, hint, strict=True)]


FUNCTIONS = [(brevity, 0.5), hinted]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder for runs."""
    return tmp_path_factory.mktemp("api")


@pytest.fixture(scope="module")
def run(folder):
    return train(
        "base", Dataset.from_list(ROWS), reward_functions=FUNCTIONS, algo="dr_grpo", steps=2, seed=3, name="a",
        runs=folder / "runs", validation_data=PROBLEMS, settings=SMALL,
    )  # fmt: skip


def test_run_has_settings_metrics_and_models(run, folder):
    assert run.name == "a" and run.folder == folder / "runs" / "a"
    assert Path(run.model) == run.folder / "checkpoints" / "step-000002"
    assert Path(run.best_model) == run.folder / "checkpoints" / "best"
    assert [line["step"] for line in run.metrics] == [0, 1]
    table = run.to_pandas()
    assert list(table["reward/mean"]) == [line["reward/mean"] for line in run.metrics]
    assert run.report is None
    stored = json.loads((run.folder / "config.json").read_text())
    assert run.settings == stored["config"]
    expected = {"algo.name": "dr_grpo", "seed": 3, "optim.lr": 5e-4, "data.train": str(run.folder / "problems.jsonl")}
    assert {key: run.settings[key] for key in expected} == expected
    assert (stored["origin"]["seed"], stored["origin"]["optim.lr"]) == ("reasoner.train", "preset base")
    assert stored["reward_functions"] == {"brevity": 0.5, "hinted": 1.0}


def test_problems_in_memory_are_the_run_s_problems(run):
    lines = [json.loads(line) for line in (run.folder / "problems.jsonl").read_text().splitlines()]
    assert [(line["question"], line["answer"], line["hint"]) for line in lines] == [tuple(row.values()) for row in ROWS]
    validation = [json.loads(line) for line in (run.folder / "validation_problems.jsonl").read_text().splitlines()]
    assert [line["id"] for line in validation] == [problem.id for problem in PROBLEMS]
    assert set(run.rollouts(0)["question"]) <= {row["problem"] for row in ROWS}


def test_reward_functions_are_part_of_the_reward_of_every_rollout(run):
    for step in (0, 1):
        for row in run.rollouts(step).to_dict("records"):
            parts = row["rewards"]
            a = int(re.search(r"\d+", row["question"])[0])
            assert ("hinted" in parts) == (a <= 4)
            assert parts["brevity"] == pytest.approx(-len(row["completion"]) / 100)
            total = parts["correct"] + 0.2 * parts["format"] + 0.5 * parts["brevity"] + parts.get("hinted", 0.0)
            assert row["reward"] == pytest.approx(total, abs=1e-6)
    assert run.metrics[1]["reward/mean"] == pytest.approx(run.rollouts(-1)["reward"].mean(), abs=1e-6)
    assert list(run.rollouts()["step"].unique()) == [0, 1] and len(run.rollouts()) == 2 * 8


class Recorder:
    """A callback with some of the methods of TRL's: it keeps what it is called with, and ends a run after a step."""

    def __init__(self, last_step=0):
        self.calls, self.last_step = [], last_step

    def on_train_begin(self, args, state, control, **values):
        self.calls.append(("begin", state.global_step, state.max_steps))

    def on_log(self, args, state, control, logs, **values):
        self.calls.append(("log", logs["step"], "reward/mean" in logs))

    def on_save(self, args, state, control, **values):
        self.calls.append(("save", state.global_step))

    def on_step_end(self, args, state, control, model, processing_class, **values):
        if state.global_step == self.last_step:
            control.should_training_stop = True

    def on_train_end(self, args, state, control, **values):
        self.calls.append(("end", state.global_step, len(state.log_history)))


def test_callback_sees_each_step_and_ends_a_run_that_can_be_resumed(folder, tiny_folder, capfd):
    place = {"name": "stopped", "runs": folder / "runs"}
    settings = without("validation", SMALL) | {"run.save_interval": 10}
    recorder, other = Recorder(last_step=1), TrainerCallback()
    call = {"preset": "base", "steps": 3, "settings": settings, "callbacks": [recorder, other]}
    stopped = train(str(tiny_folder), PROBLEMS, **call, **place)
    assert recorder.calls == [("begin", 0, 3), ("log", 0, True), ("save", 1), ("end", 1, 1)]
    assert [line["step"] for line in stopped.metrics] == [0] and Path(stopped.model).name == "step-000001"
    assert len(train(resume=True, **place).metrics) == 3
    assert not re.search(r"(?<![\w-])--[a-z]|reasoner (train|eval|app)", "".join(capfd.readouterr()))


def test_model_in_memory_is_trained_as_its_folder_would_be(folder, tiny_folder):
    model = AutoModelForCausalLM.from_pretrained(tiny_folder)
    before = model.state_dict()["model.embed_tokens.weight"].clone()
    settings = without("validation", SMALL) | {"reward.overlong": 1}
    call = {"data": PROBLEMS, "steps": 1, "settings": settings, "preset": "base", "runs": folder / "runs"}
    own = train(model, tokenizer=AutoTokenizer.from_pretrained(tiny_folder), name="own", **call)
    named = train(str(tiny_folder), name="named", **call)
    assert own.settings["model"] == str(own.folder / "initial_model")
    assert own.metrics[0]["grad_norm"] == named.metrics[0]["grad_norm"] > 0
    assert torch.equal(model.state_dict()["model.embed_tokens.weight"], before)
    with pytest.raises(ValueError, match="tokenizer"):
        train(model, name="other", **call)
    assert not (folder / "runs" / "other").exists()


@pytest.mark.parametrize(
    ("function", "argument", "name"),
    [
        (train, {"max_steps": 3}, "it is steps"),
        (train, {"learning_rate": 1e-6}, 'settings={"optim.lr": ...}'),
        (train, {"train_dataset": []}, "it is data"),
        (train, {"rewards_functions": []}, "'reward_functions'"),
        (evaluate, {"problems": 3}, "it is limit"),
        (finetune, {"sft.epochs": 3}, 'settings={"sft.epochs": ...}'),
    ],
)
def test_unknown_argument_is_answered_with_the_right_one(function, argument, name):
    with pytest.raises(TypeError, match=re.escape(name)):
        function(**argument)


def test_messages_name_arguments_and_no_flags(tmp_path):
    with pytest.raises(ValueError, match="temperature") as error:
        evaluate("base", temperature=-1.0, out=tmp_path)
    assert "--" not in str(error.value)


def test_resume_needs_the_same_reward_functions_and_data(run, capsys):
    assert main(["train", "--resume", str(run.folder), "--steps", "3"]) == 2
    errors = capsys.readouterr().err
    assert "reward_functions brevity (weight 0.5), hinted (weight 1.0), and now there are none" in errors
    assert "reasoner.train(name='a', reward_functions=[brevity, hinted], resume=True)" in errors
    again = {"name": "a", "runs": run.folder.parent, "resume": True, "steps": 3}
    with pytest.raises(ValueError, match="now they are brevity"):
        train(**again, reward_functions=[brevity])
    with pytest.raises(ValueError, match="data differs from the problems"):
        train(data=ROWS[1:], **again, reward_functions=FUNCTIONS)
    with pytest.raises(ValueError, match="preset is 'smollm-135m'"):
        train(preset="smollm-135m", **again, reward_functions=FUNCTIONS)
    with pytest.raises(ValueError, match=r"algo\.name cannot change"):
        train(algo="rloo", **again, reward_functions=FUNCTIONS)
    file = run.folder / "problems.jsonl"
    text = file.read_text()
    file.write_text(text.replace('"hint"', '"hint": "7", "other"'))
    with pytest.raises(ValueError, match=r"data\.train"):
        train(**again, reward_functions=FUNCTIONS)
    file.write_text(text)
    assert len(run.metrics) == 2


def test_benchmark_that_was_divided_is_resumed_by_its_name(tmp_path):
    values = {"run.dir": str(tmp_path), "run.name": "a", "data.train": "gsm8k"}
    resolved, run_dir = resolve_new_run(values, origin="reasoner.train")
    run_dir.mkdir()
    stored = {"format": 2, "config": to_dict(resolved.config), "origin": resolved.origin}
    (run_dir / "config.json").write_text(json.dumps(stored))
    again = {"name": "a", "runs": tmp_path, "resume": True, "reward_functions": [brevity]}
    with pytest.raises(ValueError, match="reward_functions"):  # and nothing is said of the data
        train(data="gsm8k", **again)
    with pytest.raises(ValueError, match=r"data\.train cannot change"):
        train(data="math", **again)


def test_interrupted_run_is_resumed_by_the_same_call(folder, tiny_folder):
    def interrupted(completions, **columns):
        calls.append(len(completions))
        if len(calls) == 2:
            os.kill(os.getpid(), signal.SIGINT)
        return [0.0] * len(completions)

    calls: list[int] = []
    call = {"data": ROWS, "reward_functions": [interrupted], "steps": 2, "name": "b", "runs": folder / "runs"}
    call |= {"model": str(tiny_folder), "preset": "base"}
    settings = without("validation", SMALL) | {"run.save_interval": 20, "reward.overlong": 1}
    with pytest.raises(KeyboardInterrupt, match=r"SIGINT; .*train\(name='b', resume=True"):
        train(**call, settings=settings)
    opened = Run(folder / "runs" / "b")
    assert Path(opened.model).name == "step-000001" and opened.best_model == opened.model
    resumed = train(**call, settings=settings, resume=True)
    assert calls == [8, 8, 8] and [line["step"] for line in resumed.metrics] == [0, 1]
    straight = train(**call | {"name": "straight"}, settings=settings)
    metrics = [one.folder / "metrics.jsonl" for one in (resumed, straight)]
    assert metrics[0].read_bytes() == metrics[1].read_bytes()


def test_faulty_reward_function_ends_the_run_with_its_name(folder, tiny_folder):
    def too_few(completions, **columns):
        return [1.0]

    with pytest.raises((ValueError, RuntimeError), match=r"too_few .* 1 .* 8 "):
        where = {"preset": "base", "name": "c", "runs": folder / "runs"}
        train(str(tiny_folder), ROWS, reward_functions=[too_few], steps=1, settings=SMALL, **where)


def test_evaluation_has_intervals_a_table_and_graded_responses(run, folder):
    where = {"engine": "transformers", "runs": folder / "runs", "out": folder / "evals", "max_tokens": 24}
    results = evaluate(run.model, PROBLEMS, pass_at=[1], cons_at=[2], greedy=True, name="mine", **where)
    table = results.to_pandas()
    rows = table[["sampling", "metric", "problems", "samples"]].values.tolist()
    assert rows == [["sampled", "pass@1", 4, 2], ["sampled", "cons@2", 4, 2], ["greedy", "pass@1", 4, 1]]
    assert (table["low"] <= table["value"]).all() and (table["value"] <= table["high"]).all()
    rows = results.responses()
    assert [row["id"] for row in rows] == [problem.id for problem in PROBLEMS for _ in range(2)]
    assert sum(row["correct"] for row in rows) / len(rows) == pytest.approx(results.metric("pass@1").value)
    assert len(results.responses(greedy=True)) == 4
    assert all(bool(grade(row["extracted"] or "", row["answer"])) == row["correct"] for row in rows)
    assert results.folder == folder / "evals" / "mine" and (results.folder / "evaluation.json").is_file()
    assert "pass@1" in str(results) and isinstance(results, EvalResults)
    with pytest.raises(ValueError, match=r"'pass@8' .* pass@1, cons@2"):
        results.metric("pass@8")
    with pytest.raises(ValueError, match="data is 'gsm8k'; evaluated were"):
        results.metric(data="gsm8k")


def test_evaluation_of_two_named_sets_at_greedy_decoding(folder):
    file = folder / "two.jsonl"
    file.write_text('{"question": "What is 1 + 1?", "answer": "2"}\n')
    results = evaluate(
        data=["generated", str(file)], pass_at=(), greedy=True, limit=2, max_tokens=8, engine="transformers",
        runs=folder / "runs", out=folder / "evals",
    )  # fmt: skip
    assert list(results.sets) == ["generated:heldout", str(file)]
    assert results.metric(data=str(file)).problems == 1 and len(results.responses(data="generated:heldout")) == 2
    with pytest.raises(ValueError, match=r"data is None.*'generated:heldout'"):
        results.metric()


def unknown_column(completions, answers):
    return [0.0 for _ in completions]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"steps": 0}, "steps is 0; it must be at least 1"),
        ({"settings": {"optim.learning_rate": 1}}, "here it is optim.lr"),
        ({"settings": {"seed": 1}, "seed": 2}, "settings has 'seed'; give it as the argument seed"),
        ({"settings": {"data.train": "gsm8k"}}, "settings has 'data.train'; give it as the argument data"),
        ({"data": []}, "data is empty"),
        ({"data": 3}, "data is 3; it must be a name, a file, or rows"),
        ({"data": [{"question": "1+1?"}]}, "data, row 0: no column 'answer' or"),
        ({"data": [ROWS[0], "1+1?"]}, "data, row 1 is '1+1?'; it must be a Problem or a mapping"),
        ({"data": [PROBLEMS[0], PROBLEMS[0]]}, "data, row 1: id 'sum-0' was used before"),
        ({"data": [ROWS[0] | {"picture": b"x"}]}, "column 'picture' cannot be written as JSON"),
        ({"validation_data": []}, "validation_data is empty"),
        ({"reward_functions": [unknown_column]}, "reward function unknown_column needs answers"),
        ({"data": "generated", "reward_functions": [unknown_column]}, "reward function unknown_column needs answers"),
        ({"reward_functions": [brevity], "settings": {"control": "format-only"}}, "control is 'format-only'"),
        ({"reward_functions": [brevity], "settings": {"reward.functions": f"{__file__}:brevity"}}, "brevity"),
        ({"resume": True}, "resume is True and name is None"),
        ({"resume": True, "name": "nothing"}, "no run 'nothing'"),
    ],
)
def test_arguments_that_cannot_be_used_are_named_and_leave_nothing(tmp_path, arguments, message):
    with pytest.raises(ValueError) as caught:
        train(**{"data": ROWS, "runs": tmp_path, "name": None} | arguments)
    assert message in str(caught.value)
    assert list(tmp_path.rglob("*")) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"model": "nowhere"}, "no model 'nowhere'"),
        ({"data": []}, "data is empty"),
        ({"data": ["generated", "gsm9k"]}, "unknown problems 'gsm9k'"),
        ({"prompt": "nothing"}, "nothing"),
        ({"pass_at": 1}, "not iterable"),
    ],
)
def test_arguments_that_cannot_be_evaluated_are_named_and_leave_nothing(tmp_path, arguments, message):
    with pytest.raises((ValueError, TypeError)) as caught:
        evaluate(**{"data": PROBLEMS, "runs": tmp_path, "out": tmp_path / "a" / "evals"} | arguments)
    assert message in str(caught.value)
    assert list(tmp_path.rglob("*")) == []


def test_import_is_light_and_names_are_listed():
    script = (
        "import sys, reasoner\n"
        "print(sorted({'torch', 'numpy', 'pyarrow', 'data', 'reasoner.api'} & set(sys.modules)))\n"
        "print(set(reasoner.__all__) <= set(dir(reasoner)), reasoner.Problem('a', '1+1?', '2').source == '')\n"
        "from reasoner import train, evaluate, grade; print('torch' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout == "[]\nTrue True\nFalse\n"
    with pytest.raises(AttributeError, match="module 'reasoner' has no attribute 'trane'"):
        reasoner.trane  # noqa: B018


@pytest.mark.parametrize("function", [train, evaluate, finetune, train_reward_model, score_completions])
def test_docstring_documents_every_argument_and_no_other(function):
    section = inspect.getdoc(function).split("Args:\n")[1].split("\n\nReturns:")[0]
    assert re.findall(r"^    (\w+):", section, re.MULTILINE) == list(inspect.signature(function).parameters)


def calls_in(document: str) -> list[ast.Call]:
    """The calls of API functions in the Python blocks of a document."""
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / document).read_text("utf-8"), re.DOTALL)
    calls = [node for block in blocks for node in ast.walk(ast.parse(block)) if isinstance(node, ast.Call)]
    return [call for call in calls if isinstance(call.func, ast.Name) and call.func.id in reasoner.__all__]


@pytest.mark.parametrize("document", ["README.md", "docs/PYTHON_API.md"])
def test_calls_in_the_documents_fit_the_signatures(document):
    calls = calls_in(document)
    assert {"train", "evaluate", "grade"} <= {call.func.id for call in calls}
    for call in calls:
        keywords = {keyword.arg: None for keyword in call.keywords}
        inspect.signature(getattr(reasoner, call.func.id)).bind(*call.args, **keywords)
