"""Supervised finetuning and reward models from Python: the runs that the commands make."""

import json

import pytest

from reasoner import Run, finetune, score_completions, train_reward_model
from tests.fixtures.tiny import save_tiny

SURROUNDINGS = {"threads": 1, "run.save_interval": 2}
SFT = SURROUNDINGS | {"sft.rows": 4, "sft.epochs": 1, "validation.interval": 0, "eval.heldout_problems": 0}
PAIRS = SURROUNDINGS | {"rm.prompts": 2, "rm.epochs": 2, "rm.heldout_share": 0.4}


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with a tiny language model, examples and preferences."""
    folder = tmp_path_factory.mktemp("stages")
    save_tiny(folder / "model", width=32)
    examples = [{"prompt": f"{i} + 1?", "completion": f" {i + 1}"} for i in range(10)]
    pairs = [{"prompt": f"{i} + 1?", "chosen": f" {i + 1}", "rejected": " no", "problem_id": str(i)} for i in range(10)]
    for name, rows in (("examples", examples), ("pairs", pairs)):
        (folder / f"{name}.jsonl").write_text("\n".join(map(json.dumps, rows)))
    return folder


def test_finetuned_run_is_resumed_and_its_model_is_used(place):
    call = {"data": place / "examples.jsonl", "name": "sft", "runs": place / "runs", "preset": "base", "settings": SFT}
    run = finetune(str(place / "model"), **call)
    assert isinstance(run, Run) and len(run.metrics) == run.settings["steps"] >= 2
    assert json.loads((run.folder / "config.json").read_text())["stage"] == "sft"
    again = finetune(str(place / "model"), **call, resume=True)
    assert finetune(name="sft", runs=place / "runs", resume=True).metrics == run.metrics  # with its own model
    assert again.metrics == run.metrics and (place / run.model / "model.safetensors").is_file()


def test_trained_reward_model_scores_completions(place):
    where = {"name": "judge", "runs": place / "runs", "preset": "base"}
    run = train_reward_model(str(place / "model"), place / "pairs.jsonl", settings=PAIRS, **where)
    assert 0 <= run.report["accuracy"]["value"] <= 1
    rows = [{"prompt": "3 + 1?", "completion": text, "name": text} for text in (" 4", " no")]
    scores = score_completions(run.model, rows, threads=1)
    assert [row["name"] for row in scores] == [" 4", " no"]
    assert scores[0]["score"] != scores[1]["score"]
    (alone,) = score_completions("judge", rows[:1], runs=place / "runs", threads=1)
    assert alone["score"] == pytest.approx(scores[0]["score"], abs=1e-5)
    for limits in ({"threads": -1}, {"micro_batch_tokens": 0}):
        with pytest.raises(ValueError, match=min(limits)):
            score_completions(run.model, rows, **limits)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"settings": {"sft.data": "x"}}, "settings has 'sft.data'; give it as the argument data"),
        ({"settings": {"algo.beta": 0.1}}, "algo.beta is 0.1, which has no effect here: it needs reasoner train"),
        ({"settings": {"processes": 2}}, r"reasoner.finetune\(\) is one process, not 2: use reasoner sft"),
        ({"resume": True}, "name is needed"),
    ],
)
def test_arguments_that_cannot_be_used_are_refused(place, changes, message):
    with pytest.raises(ValueError, match=message):
        finetune(str(place / "model"), place / "examples.jsonl", runs=place / "none", preset="base", **changes)
    assert not (place / "none").exists()
