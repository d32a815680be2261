"""Supervised finetuning: its steps on a tiny model, and a run through the command line on the embedded base."""

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from reasoner.config.learning import SftConfig
from reasoner.config.resolve import RunSettings, settings
from reasoner.models.lora import trained_parameters
from reasoner.runs.metric_names import METRICS, TIMES
from reasoner.runs.metrics import read_evals, read_metrics
from reasoner.runs.sync_certificate import SyncCertificate
from reasoner.sft.batches import batch_likelihood
from reasoner.sft.examples import Example
from reasoner.trainer import supervised
from reasoner.trainer.checkpoint import list_checkpoints
from reasoner.trainer.resolve_run import resolve_new_run
from reasoner.trainer.setup import open_training_run
from reasoner.trainer.supervised import SFT, batch_of_step, passes_of, train_on_examples, with_length
from reasoner.types import Completion
from tests.fixtures.forkserver import ROOT, finish
from tests.fixtures.switched_off import without
from tests.fixtures.tiny import save_tiny
from tests.fixtures.toys import config, make_trainer
from tests.fixtures.trainings import flags

EXAMPLES = [Example((5, 6, 7), (8, 9, number)) for number in range(10, 20)]


def sft_config(**changes):
    sft = SftConfig(data="a.jsonl", rows=4, **{key: changes.pop(key) for key in ("epochs",) if key in changes})
    return replace(config(**changes), steps=12, sft=sft)


def test_training_lowers_the_loss_of_its_examples():
    cfg = sft_config(epochs=5, lr=1e-2)
    trainer = make_trainer(cfg)
    losses = [train_on_examples(trainer, batch_of_step(EXAMPLES, step, cfg))["loss"] for step in range(12)]
    assert losses[-1] < 0.6 * losses[0]
    assert trainer.steps_done == 12


def test_loss_is_that_before_the_update_at_temperature_one():
    cfg = sft_config(temperature=0.5)
    trainer, batch = make_trainer(cfg), batch_of_step(EXAMPLES, 0, cfg)
    assert passes_of(trainer).temperature == 1
    before = batch_likelihood(passes_of(trainer), batch)
    metrics = train_on_examples(trainer, batch)
    assert metrics["loss"] == pytest.approx(before.loss, rel=1e-6)
    assert metrics["token_accuracy"] == before.token_accuracy
    assert metrics.keys() <= METRICS.keys()


def test_a_gradient_that_is_not_finite_changes_nothing():
    cfg = sft_config()
    trainer = make_trainer(cfg)
    with torch.no_grad():
        next(trainer.model.parameters())[:] = float("nan")
    others = [parameter.clone() for _, parameter in trained_parameters(trainer.model)][1:]
    metrics = train_on_examples(trainer, batch_of_step(EXAMPLES, 0, cfg))
    assert metrics["skipped_updates"] == 1.0 and not math.isfinite(metrics["grad_norm"])
    now = [parameter for _, parameter in trained_parameters(trainer.model)][1:]
    assert all(torch.equal(a, b) for a, b in zip(others, now, strict=True))


def test_number_of_steps_and_warm_up_follow_from_the_examples():
    resolved = RunSettings(sft_config(epochs=2), dict.fromkeys(settings(), "default"))
    cfg = (planned := with_length(resolved, 1000)).config
    assert (cfg.steps, cfg.optim.warmup_steps) == (500, 15)  # 2 x 1,000 / 4, and 3 % of that
    assert with_length(planned, 1000) == planned  # as when the run is resumed
    resolved.origin["optim.warmup_steps"] = "command line"
    assert with_length(resolved, 1000).config.optim.warmup_steps == 0


def test_without_validation_no_examples_are_left_out_for_it():
    cfg = sft_config()
    for interval, share in ((0, 0.0), (10, cfg.sft.validation_share)):
        own = replace(cfg, validation=replace(cfg.validation, interval=interval))
        resolved = RunSettings(own, dict.fromkeys(settings(), "default"))
        assert supervised.without_unused_validation(resolved).config.sft.validation_share == share
    assert cfg.sft.validation_share > 0


# ------------------------------------------------------------------------------------------------ a run

SMALL = {
    "validation.interval": 4, "validation.problems": 2, "validation.samples": 2, "eval.heldout_problems": 2,
    "eval.samples": 2, "sampling.max_tokens": 24, "run.save_interval": 2, "threads": 1, "sft.rows": 8, "sft.epochs": 2,
    "sft.validation_share": 0.2, "engine": "transformers",
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    runs = tmp_path_factory.mktemp("runs")
    too_long = {"question": "What is 2 + 7?", "completion": " 9" * 600}
    (runs / "a.jsonl").write_text((ROOT / "tests/fixtures/solutions.jsonl").read_text() + json.dumps(too_long) + "\n")
    where = {"model": "base", "data": runs / "a.jsonl", "run.dir": runs, "run.name": "a"}
    (runs / "messages.txt").write_text(finish("sft", *flags(where | SMALL)).errors())
    return runs / "a"


def test_a_run_leaves_settings_metrics_data_and_checkpoints(folder):
    stored = json.loads((folder / "config.json").read_text())
    assert stored["stage"] == "sft" and stored["config"]["steps"] == 4
    assert {"model", "prompt.style", "sft.data", "validation.data"} == stored["fingerprints"].keys()
    lines = read_metrics(folder)
    assert [line["step"] for line in lines] == [0, 1, 2, 3]
    assert all(line.keys() <= (METRICS | TIMES).keys() for line in lines)
    assert lines[-1]["validation/loss"] < read_evals(folder)[0]["measures"]["validation/loss"]
    about = json.loads((folder / "data.json").read_text())
    assert (about["training_examples"], about["validation_examples"]) == (16, 4)
    assert about["left_out"] == {"longer than 512 tokens": 1}
    assert [path.name for path in list_checkpoints(folder)] == ["step-000002", "step-000004"]
    assert (folder / "checkpoints" / "best" / "best.json").is_file()
    assert not list((folder / "rollouts").iterdir())


def test_evaluation_problems_that_stand_in_the_examples_are_told(folder):
    assert "contamination: " in (folder.parent / "messages.txt").read_text()


class SpiedEngine:
    """An engine whose calls are recorded by name; it answers every prompt with its end."""

    name, accepts_adapter = "spied", False

    def __init__(self):
        self.calls = []

    def generate(self, prompts, sampling, seeds, on_group_done=None, on_decode_step=None):
        self.calls.append("generate")
        completions = [tuple(Completion("", (1,), (-1.0,), "stop", 0) for _ in own) for own in seeds]
        for place, own in enumerate(completions):
            if on_group_done is not None:
                on_group_done(place, own)
        return completions

    def update_weights(self, named, version):
        self.calls.append("update_weights")

    def __getattr__(self, name):
        return lambda **_: self.calls.append(name)


def calls_of_run(monkeypatch, folder, values):
    """The calls of the engine in a run of four or five steps; None if none is started."""
    engines = []

    def make_engine(*_, **__):
        engines.append(SpiedEngine())
        return engines[-1]

    monkeypatch.setattr("reasoner.trainer.components.make_engine", make_engine)
    certificate = SyncCertificate("", "", "", False, 0, 0, 0, (), 0)
    monkeypatch.setattr("reasoner.trainer.setup.certify_sync", lambda *_: certificate)
    values |= {"model": str(save_tiny(folder / "tiny")), "run.dir": str(folder), "run.name": "a"}
    values["sft.data"] = str(ROOT / "tests/fixtures/solutions.jsonl")
    resolved, run_dir = resolve_new_run(values, origin="test", stage="sft")
    with open_training_run(SFT, resolved, run_dir) as (run, examples):
        SFT.train(run, examples)
        assert run.is_finished
    return engines[0].calls if engines else None


def test_engine_sleeps_from_one_validation_to_the_next(monkeypatch, tmp_path):
    values = {key: value for key, value in SMALL.items() if key != "engine"}
    values = without("eval", values) | {"validation.interval": 3, "engine.name": "transformers"}
    calls = calls_of_run(monkeypatch, tmp_path, values)
    validation = ["update_weights", "generate", "generate"]  # sampled and greedy
    assert calls == [*validation, "sleep", "wake_up", *validation, "sleep", "wake_up", *validation, "close"]


def test_no_engine_is_started_where_nothing_samples(monkeypatch, tmp_path):
    kept = ("validation.interval", "run.save_interval", "threads", "sft.rows", "sft.epochs")
    values = without("validation", {key: SMALL[key] for key in kept}) | {"eval.heldout_problems": 0}
    assert calls_of_run(monkeypatch, tmp_path, values) is None
    assert [path.name for path in list_checkpoints(tmp_path / "a")] == ["step-000004", "step-000005"]


def test_export_takes_a_supervised_run(folder, tmp_path):
    finish("export", folder, "--out", tmp_path / "model")
    card = (tmp_path / "model" / "README.md").read_text()
    assert "steps of supervised finetuning" in card and "| `sft.data` | `a.jsonl` |" in card
