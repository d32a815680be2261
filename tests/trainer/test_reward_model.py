"""A reward model's training: it learns what can be learnt, resumes to the same bytes, and its folder is used."""

import json
import shutil
from pathlib import Path
from random import Random

import pytest
import torch
from transformers import AutoModelForSequenceClassification

from reasoner.cli.main import main
from reasoner.preferences.scoring import open_scorer
from reasoner.trainer.resolve_run import resolve_new_run, resolve_resumed_run
from reasoner.trainer.run_stage import run_stage
from tests.fixtures.tiny import save_tiny

PROBLEMS, GROUP = 40, 5
LIKED = 50  # a token; the more of it, the better


def row(random: Random, problem: int) -> list[dict]:
    prompt = [random.randrange(10, 40) for _ in range(random.randrange(2, 6))]
    texts = []
    for likes in random.sample(range(8), GROUP):
        ids = [LIKED] * likes + [random.randrange(60, 90) for _ in range(7 - likes)]
        random.shuffle(ids)
        texts.append((likes, ids))
    texts.sort(reverse=True)
    return [
        {
            "prompt_ids": prompt, "chosen_ids": prompt + texts[i][1], "rejected_ids": prompt + texts[j][1],
            "problem_id": str(problem),
        }
        for i in range(GROUP)
        for j in range(i + 1, GROUP)
    ]  # fmt: skip


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a language model, preferences, and a finished run `whole`."""
    path = tmp_path_factory.mktemp("reward-model")
    save_tiny(path / "model")
    random = Random(0)
    rows = [one for problem in range(PROBLEMS) for one in row(random, problem)]
    (path / "pairs.jsonl").write_text("".join(json.dumps(one) + "\n" for one in rows))
    resolved, run_dir = resolve_new_run(settings(path, "whole"), origin="a test", stage="reward-model")
    run_stage(resolved, run_dir)
    return path


def settings(path: Path, name: str) -> dict[str, object]:
    return {
        "model": str(path / "model"), "rm.data": str(path / "pairs.jsonl"), "rm.epochs": 3, "rm.prompts": 4,
        "rm.heldout_share": 0.2, "optim.lr": 5e-3, "optim.micro_batch_tokens": 100, "threads": 1,
        "run.dir": str(path / "runs"), "run.name": name, "run.save_interval": 5, "run.keep_last": 9,
    }  # fmt: skip


def test_a_toy_reward_model_learns(place: Path) -> None:
    run_dir = place / "runs" / "whole"
    metrics = [json.loads(line) for line in (run_dir / "metrics.jsonl").read_text().splitlines()]
    assert len(metrics) == 24 and metrics[0]["loss"] == pytest.approx(0.6931471805599453, abs=1e-12)
    assert metrics[-1]["loss"] < 0.3
    report = json.loads((run_dir / "report.json").read_text())
    assert report["accuracy"]["value"] > 0.85
    # by which changed preferences are refused on resume
    assert "rm.data" in json.loads((run_dir / "config.json").read_text())["fingerprints"]
    contents = json.loads((run_dir / "data.json").read_text())
    assert (contents["training_problems"], contents["heldout_problems"], contents["heldout_pairs"]) == (32, 8, 80)


def test_a_resumed_run_has_the_same_bytes(place: Path) -> None:
    whole, killed = place / "runs" / "whole", place / "runs" / "killed"
    shutil.copytree(whole, killed)
    for step in (15, 20, 24):
        shutil.rmtree(killed / "checkpoints" / f"step-{step:06d}")
    with (killed / "metrics.jsonl").open("a") as file:
        file.write('{"step": 2')  # a line that was cut off
    resolved, run_dir = resolve_resumed_run("killed", {}, origin="a test", runs=place / "runs", stage="reward-model")
    run_stage(resolved, run_dir, resuming=True)
    for name in ("metrics.jsonl", "data.json", "report.txt", "config.json"):
        assert (killed / name).read_bytes() == (whole / name).read_bytes(), name
    for path in (whole / "checkpoints" / "step-000024").rglob("*"):
        if path.is_file():
            assert (killed / path.relative_to(whole)).read_bytes() == path.read_bytes(), path.name


def test_the_last_checkpoint_is_normalised_and_loads_in_transformers(place: Path) -> None:
    folder = place / "runs" / "whole" / "checkpoints" / "step-000024"
    model, report = AutoModelForSequenceClassification.from_pretrained(folder, output_loading_info=True)
    assert not report["missing_keys"] and model.config.reward_std > 0
    assert model.config.pad_token_id != model.config.eos_token_id
    before = json.loads((folder.parent / "step-000020" / "config.json").read_text())
    assert "reward_std" not in before


def test_eval_uses_the_held_out_problems_of_the_run(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    arguments = ["reward-model", "eval", "whole", "--runs", str(place / "runs"), "--json", str(place / "eval.json")]
    assert main(arguments) == 0
    assert "80 pairs of 8 problems" in capsys.readouterr().out
    own = json.loads((place / "runs" / "whole" / "report.json").read_text())
    assert json.loads((place / "eval.json").read_text())["accuracy"] == own["accuracy"]


def test_a_model_of_a_run_in_bfloat16_scores_in_it(place: Path) -> None:
    shutil.copytree(place / "runs" / "whole", place / "runs" / "low")
    stored = json.loads((place / "runs" / "low" / "config.json").read_text())
    stored["config"]["optim.dtype"] = "bfloat16"
    (place / "runs" / "low" / "config.json").write_text(json.dumps(stored))
    for name, dtype in (("whole", torch.float32), ("low", torch.bfloat16)):
        passes, _ = open_scorer(place / "runs" / name / "checkpoints" / "step-000024", prompt="r1-zero")
        assert passes.model.get_input_embeddings().weight.dtype == dtype


def test_eval_of_a_file_leaves_out_what_the_model_cannot_read(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = (place / "pairs.jsonl").read_text().splitlines()[:20]
    long = {"prompt_ids": [9], "chosen_ids": [9] + [LIKED] * 600, "rejected_ids": [9, 60], "problem_id": "long"}
    (place / "long.jsonl").write_text("\n".join([*rows, json.dumps(long)]))
    command = ["reward-model", "eval", "whole", "--runs", str(place / "runs")]
    assert main([*command, "--data", str(place / "long.jsonl")]) == 0
    output = capsys.readouterr()
    assert "left out: 1 pairs of more than 512 tokens" in output.err and "20 pairs of 2 problems" in output.out
    assert main([*command, "--prompt", "chat"]) == 2
    assert "--prompt is for the texts of --data" in capsys.readouterr().err


def test_scores_of_a_file_are_normalised(place: Path) -> None:
    rows = [json.loads(line) for line in (place / "pairs.jsonl").read_text().splitlines()]
    sides = ("chosen_ids", "rejected_ids")
    whole = dict.fromkeys((len(one["prompt_ids"]), tuple(one[side])) for one in rows for side in sides)
    lines = [{"prompt_ids": ids[:size], "token_ids": ids[size:], "name": n} for n, (size, ids) in enumerate(whole)]
    (place / "completions.jsonl").write_text("\n".join(map(json.dumps, lines)))
    out = place / "scores.jsonl"
    arguments = ["reward-model", "score", "whole", str(place / "completions.jsonl"), str(out)]
    assert main([*arguments, "--runs", str(place / "runs")]) == 0
    scores = [json.loads(line) for line in out.read_text().splitlines()]
    assert [one["name"] for one in scores] == list(range(PROBLEMS * GROUP))
    values = [one["score"] for one in scores]
    assert abs(sum(values) / len(values)) < 0.1  # over training and held-out problems
    likes = [one["token_ids"].count(LIKED) for one in scores]
    most, least = (sum(v for v, n in zip(values, likes, strict=True) if n == number) for number in (7, 0))
    assert most > least


def test_no_text_is_sampled_from_a_reward_model(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for command in (["eval", "--pass@1"], ["train"]):
        assert main([*command, "--model", str(place / "runs" / "whole")]) == 2
        assert "is a reward model, which generates no text" in capsys.readouterr().err


def test_settings_without_a_meaning_are_refused(place: Path) -> None:
    with pytest.raises(ValueError, match=r"algo.beta is .*needs reasoner train"):
        resolve_new_run(settings(place, "x") | {"algo.beta": 0.1}, origin="a test", stage="reward-model")
    with pytest.raises(ValueError, match=r"rm.epochs is .*needs reasoner reward-model train"):
        resolve_new_run({"rm.epochs": 2}, origin="a test")
    with pytest.raises(ValueError, match=r"rm.data is empty"):
        resolve_new_run({}, origin="a test", stage="reward-model")
    with pytest.raises(ValueError, match="reasoner reward-model train --resume"):
        resolve_resumed_run("whole", {}, origin="a test", runs=place / "runs")
