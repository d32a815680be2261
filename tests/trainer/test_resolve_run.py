"""The settings and the folder of a run, as the command line and the Python API resolve them."""

import json

import pytest

from reasoner.cli.main import main
from reasoner.config.resolve import to_dict
from reasoner.config.schema import settings
from reasoner.runs.run_start import open_run
from reasoner.trainer.resolve_run import resolve_new_run, resolve_resumed_run
from tests.fixtures.tiny import save_tiny


def stored_run(tmp_path, **more):
    """The folder of a run with settings and no checkpoint."""
    resolved, run_dir = resolve_new_run({"run.dir": str(tmp_path), "run.name": "a", "seed": 5}, origin="a test")
    run_dir.mkdir()
    about = {"format": 2, "config": to_dict(resolved.config), "origin": resolved.origin} | more
    (run_dir / "config.json").write_text(json.dumps(about))
    return run_dir


def test_later_sources_win_and_each_value_has_its_origin(tmp_path):
    values = {"seed": 2, "run.dir": str(tmp_path), "run.name": "mine"}
    files = [("one.toml", {"seed": 1, "steps": 7}), ("two.toml", {"steps": 8})]
    resolved, run_dir = resolve_new_run(values, origin="a test", files=files)
    assert run_dir == tmp_path / "mine" and not run_dir.exists()
    assert (resolved.config.seed, resolved.config.steps, resolved.config.optim.lr) == (2, 8, 2e-4)
    origins = ("seed", "steps", "optim.lr", "verify.workers")
    assert [resolved.origin[key] for key in origins] == ["a test", "two.toml", "preset base", "default"]
    assert resolved.note == ""


def test_an_adapter_learns_ten_times_as_fast_as_the_preset_has_it_for_all_weights(tmp_path):
    def rate(preset, **values):
        place = {"run.dir": str(tmp_path), "model": "Qwen/Qwen2.5-1.5B", "lora.rank": 8}
        return resolve_new_run(place | values, origin="a test", preset=preset)[0].config.optim.lr

    assert [rate(f"qwen2.5-{size}") for size in ("1.5b@80gb", "7b@80gb")] == [1e-5, 1e-5]  # the second has an adapter
    assert rate("qwen2.5-1.5b@80gb", **{"optim.lr": 3e-6}) == 3e-6 and rate("base", model="base") == 2e-4


def test_all_weights_in_place_of_a_preset_s_adapter_learn_at_the_rates_of_all_weights(tmp_path):
    def rates(**values):
        place = {"run.dir": str(tmp_path), "model": "Qwen/Qwen2.5-7B", "algo.name": "ppo"}
        cfg = resolve_new_run(place | values, origin="a test", preset="qwen2.5-7b@80gb")[0].config
        return cfg.optim.lr, cfg.critic.lr, cfg.lora.base_dtype

    assert rates() == (1e-5, 1e-4, "bfloat16")
    assert rates(**{"lora.rank": 0}) == (1e-6, 1e-5, "float32")


def test_the_engine_has_the_precision_of_a_trainer_in_bfloat16_unless_told_otherwise(tmp_path):
    def precision(**values):
        place = {"run.dir": str(tmp_path), "optim.dtype": "bfloat16"}
        return resolve_new_run(place | values, origin="a test")[0].config.engine.dtype

    assert (precision(), precision(**{"engine.dtype": "float32"})) == ("bfloat16", "float32")


@pytest.mark.parametrize("stage", ["rl", "sft", "reward-model"])
def test_a_stage_after_a_run_in_bfloat16_computes_in_it_unless_told_otherwise(tmp_path, stage):
    """The weights in float32 are not the model that was learnt."""
    place = {"run.dir": str(tmp_path), "model": str(tmp_path / "a")}
    place |= {"rl": {}, "sft": {"sft.data": "a.jsonl"}, "reward-model": {"rm.data": "a.jsonl"}}[stage]
    run_dir = stored_run(tmp_path)
    save_tiny(run_dir / "checkpoints" / "step-000001")

    def precisions(**values):
        cfg = resolve_new_run(place | values, origin="a test", stage=stage)[0].config
        return cfg.optim.dtype, cfg.engine.dtype

    assert precisions() == ("float32", "float32")
    about = json.loads((run_dir / "config.json").read_text())
    about["config"]["optim.dtype"] = "bfloat16"
    (run_dir / "config.json").write_text(json.dumps(about))
    assert precisions() == ("bfloat16", "bfloat16")
    assert precisions(**{"optim.dtype": "float32"}) == ("float32", "float32")
    if stage == "rl":  # its teacher and what scores it are computed as it is
        for others in ({"teacher.model": "a"}, {"reward.model": "a=0.5"}):
            assert precisions(model="base", **others) == ("bfloat16", "bfloat16")


@pytest.mark.parametrize(("style", "warns"), [("boxed", True), ("r1-zero", False)])
def test_a_run_that_asks_its_model_in_another_way_than_the_models_run_says_so(tmp_path, style, warns):
    open_run(tmp_path / "a", {"prompt.style": style}, {}, resuming=False)
    save_tiny(tmp_path / "a" / "checkpoints" / "step-000001")
    note = resolve_new_run({"run.dir": str(tmp_path), "model": "a"}, origin="a test", preset="base")[0].note
    assert (f"trained with prompts of {style}" in note) == warns


def test_the_memory_predicted_for_reinforcement_learning_is_not_told_of_another_stage(tmp_path):
    place = {"run.dir": str(tmp_path), "model": "Qwen/Qwen2.5-7B"}
    stages = {"rl": {}, "sft": {"sft.data": "a.jsonl"}, "reward-model": {"rm.data": "a.jsonl"}}
    notes = {
        stage: resolve_new_run(place | own, origin="a test", preset="qwen2.5-7b@80gb", stage=stage)[0].note
        for stage, own in stages.items()
    }
    assert [stage for stage, note in notes.items() if "by prediction" in note] == ["rl"]
    assert [stage for stage, note in notes.items() if "lora.rank" in note] == ["reward-model"]  # it trains all weights
    assert all("machine (80gb)" in note for note in notes.values())


def test_resumed_run_is_not_given_fewer_steps_than_it_has_done(tmp_path):
    run_dir = stored_run(tmp_path)
    (run_dir / "metrics.jsonl").write_text('{"step": 0}\n{"step": 1}\n')
    arguments = {"origin": "a test", "runs": tmp_path}
    assert resolve_resumed_run("a", {"steps": 2}, **arguments)[0].config.steps == 2
    with pytest.raises(ValueError, match=r"steps is 1, and .* has done 2"):
        resolve_resumed_run("a", {"steps": 1}, **arguments)


def test_a_run_is_looked_for_in_the_folder_that_is_named_and_its_place_cannot_change(tmp_path, capsys):
    stored_run(tmp_path)
    assert main(["train", "--resume", "a", "--run.dir", str(tmp_path), "--dry-run"]) == 0
    assert str(tmp_path / "a") in capsys.readouterr().out
    with pytest.raises(ValueError, match=r"run\.name cannot change"):
        resolve_resumed_run("a", {"run.name": "b"}, origin="a test", runs=tmp_path)


def sets_of(resolved):
    cfg = resolved.config
    return cfg.data.train, cfg.validation.data, cfg.eval.heldout


def test_named_benchmark_replaces_the_presets_sets_that_are_not_named(tmp_path):
    def resolved(**values):
        place = {"run.dir": str(tmp_path), "model": "Qwen/Qwen2.5-1.5B"}
        return resolve_new_run(place | values, origin="a test", preset="qwen2.5-1.5b@24gb")[0]

    assert sets_of(resolved()) == ("math?without_sample=200", "math?sample=200", "math500")
    assert "different sets" not in resolved().note  # math500 is of the benchmark's test problems
    changed = resolved(**{"data.train": "gsm8k"})
    assert sets_of(changed) == ("gsm8k?without_sample=200", "gsm8k?sample=200", "gsm8k:test")
    assert changed.origin["eval.heldout"] == "benchmark gsm8k" and "different sets" not in changed.note
    changed = resolved(**{"data.train": "gsm8k", "validation.data": "math?sample=9"})
    assert sets_of(changed) == ("gsm8k", "math?sample=9", "gsm8k:test") and "different sets" in changed.note
    changed = resolved(**{"data.train": "gsm8k", "eval.heldout": "aime24", "validation.interval": 0})
    assert sets_of(changed) == ("gsm8k", "math?sample=200", "aime24")
    assert "aime24 (a test)" in changed.note and "validation" not in changed.note.split("validation.data and")[0]


def test_sets_of_different_places_are_named_with_their_origins(tmp_path):
    def note(**values):
        return resolve_new_run({"run.dir": str(tmp_path)} | values, origin="a test")[0].note

    assert note() == ""
    line = note(**{"data.train": "mine.jsonl"})
    assert "mine.jsonl (a test)" in line and "generated:heldout (default)" in line
    unused = {"validation.interval": 0, "eval.heldout_problems": 0}
    assert note(**{"data.train": "mine.jsonl"}, **unused) == ""


def test_named_settings_without_effect_are_refused_in_a_file_too_and_a_default_or_one_of_a_preset_is_not(tmp_path):
    values = {"run.dir": str(tmp_path), "algo.beta": 0.0}
    with pytest.raises(ValueError, match=r"algo\.kl is 'k2', which has no effect here: it needs algo\.beta > 0"):
        resolve_new_run(values, origin="a test", files=[("one.toml", {"algo.kl": "k2"})])
    resolve_new_run(values | {"lora.alpha": settings()["lora.alpha"].default}, origin="a test")  # what holds anyway
    values = {"run.dir": str(tmp_path), "algo.name": "trpo", "algo.beta": 0.0}
    assert resolve_new_run(values, origin="a test")[0].config.optim.lr == 5e-4  # of the preset
    values = {"run.dir": str(tmp_path), "data.prompts_per_step": 2}
    assert resolve_new_run(values, origin="a test")[0].config.algo.minibatches == 4  # of the preset: an update a group
    with pytest.raises(ValueError, match=r"algo\.minibatches is 3, .*needs .*data\.prompts_per_step"):
        resolve_new_run(values | {"algo.minibatches": 3}, origin="a test")


def test_run_that_was_started_with_a_setting_without_effect_is_resumed(tmp_path):
    run_dir = stored_run(tmp_path)
    about = json.loads((run_dir / "config.json").read_text())
    about["config"]["lora.alpha"], about["origin"]["lora.alpha"] = 16.0, "a test"
    (run_dir / "config.json").write_text(json.dumps(about))
    assert resolve_resumed_run("a", {"steps": 70}, origin="a test", runs=tmp_path)[0].config.lora.alpha == 16.0
    with pytest.raises(ValueError, match=r"eval\.samples is 3, .*needs eval\.heldout_problems > 0"):
        resolve_resumed_run("a", {"eval.heldout_problems": 0, "eval.samples": 3}, origin="a test", runs=tmp_path)


@pytest.mark.parametrize(
    ("preset", "gpu", "origins", "note"),
    [
        ("qwen2.5-0.5b", 0, ("preset qwen2.5-0.5b@cpu", "machine cpu", "default"), "values of the machine (cpu): "),
        (
            "qwen2.5-0.5b",
            85 * 10**9,
            ("preset qwen2.5-0.5b@80gb", *["machine 80gb"] * 2),
            "values of the machine (80gb)",
        ),
        ("qwen2.5-0.5b@24gb", 0, ("preset qwen2.5-0.5b@24gb", *["machine 24gb"] * 2), "values of the machine (24gb)"),
        ("base", 0, ("preset base", "preset base", "default"), ""),
    ],
)
def test_preset_gives_its_recipe_and_the_values_of_the_machine(tmp_path, monkeypatch, preset, gpu, origins, note):
    monkeypatch.setattr("reasoner.trainer.resolve_run.gpu_memory", lambda: gpu)
    resolved, _ = resolve_new_run({"run.dir": str(tmp_path)}, origin="a test", preset=preset)
    keys = ("steps", "optim.micro_batch_tokens", "optim.dtype")
    assert tuple(resolved.origin[key] for key in keys) == origins
    assert resolved.note.startswith(note) and bool(resolved.note) == bool(note)
