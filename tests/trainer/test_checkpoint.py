"""Checkpoints are model folders, whole or not there."""

import json
from types import SimpleNamespace

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from reasoner.config.learning import LoraConfig
from reasoner.models.folder import BaseModel
from reasoner.models.lora import add_adapter, policy_state
from reasoner.trainer import checkpoint
from reasoner.trainer.checkpoint import list_checkpoints, save, valid_checkpoints
from tests.fixtures.tiny import tiny_model, tiny_tokenizer
from tests.fixtures.toys import config, make_trainer, random_groups, take_step


def trained():
    trainer = make_trainer(config())
    take_step(trainer, random_groups())
    return trainer


def test_transformers_loads_a_checkpoint_as_it_is_and_nothing_in_it_is_pickled(tmp_path):
    trainer = trained()
    path = save(tmp_path, 20, trainer, tiny_tokenizer(), keep=2)
    assert path.name == "step-000020" and next(valid_checkpoints(tmp_path, print), None) == path
    model = AutoModelForCausalLM.from_pretrained(path)
    assert model.dtype == torch.float32
    assert model.lm_head.weight.data_ptr() == model.model.embed_tokens.weight.data_ptr()
    ids = torch.tensor([[5, 6, 7]])
    assert torch.equal(model(input_ids=ids).logits, trainer.model(input_ids=ids).logits)
    assert AutoTokenizer.from_pretrained(path)("12 + 30")["input_ids"] == tiny_tokenizer()("12 + 30")["input_ids"]

    files = [file for file in path.rglob("*") if file.is_file()]
    assert {file.suffix for file in files} <= {".json", ".safetensors", ".jinja", ".txt"}
    assert json.loads((path / "trainer" / "state.json").read_text())["steps_done"] == 1


def test_a_damaged_checkpoint_is_told_of_and_the_one_before_taken(tmp_path):
    trainer, told = trained(), []
    one, two = (save(tmp_path, step, trainer, tiny_tokenizer(), keep=2) for step in (1, 2))
    weights = two / "model.safetensors"
    whole = weights.read_bytes()
    weights.write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    assert next(valid_checkpoints(tmp_path, told.append), None) == one
    assert told == ["checkpoint step-000002 is damaged: model.safetensors not as written"]
    (one / "trainer" / "optimizer.safetensors").unlink()
    with pytest.raises(ValueError, match="has no undamaged checkpoint"):
        next(valid_checkpoints(tmp_path, told.append), None)
    assert "step-000001 is damaged: trainer/optimizer.safetensors not as written" in told[-1]


def test_checkpoint_of_a_stop_is_replaced_by_scheduled_ones(tmp_path):
    def kept(*steps):
        for step in steps:
            save(tmp_path, step, trainer, tiny_tokenizer(), keep=2, every=20)
        return [path.name for path in list_checkpoints(tmp_path)]

    trainer = trained()
    assert kept(20, 27) == ["step-000020", "step-000027"]
    assert kept(40) == ["step-000020", "step-000040"]
    assert kept(45, 46) == ["step-000040", "step-000046"]
    assert kept(60) == ["step-000040", "step-000060"]


@pytest.mark.parametrize(("keep", "steps"), [(1, [5]), (2, [4, 5]), (4, [2, 3, 4, 5]), (8, [1, 2, 3, 4, 5])])
def test_the_newest_checkpoints_are_kept(tmp_path, keep, steps):
    trainer = trained()
    for step in range(1, 6):
        save(tmp_path, step, trainer, tiny_tokenizer(), keep=keep)
    assert [checkpoint.step_of(path) for path in list_checkpoints(tmp_path)] == steps


def test_leftovers_of_a_crash_are_removed_and_moved_folders_restored(tmp_path):
    trainer = trained()
    path = save(tmp_path, 1, trainer, tiny_tokenizer(), keep=2)
    path.rename(path.with_name("step-000001.before"))  # killed between the two renames of the second writing
    (tmp_path / "checkpoints" / "step-000001.partial").mkdir()
    checkpoint.clean_partial(tmp_path)
    assert list((tmp_path / "checkpoints").iterdir()) == [path] and not checkpoint.damage(path)


def test_the_engine_gets_a_tied_weight_under_each_of_its_names():  # trap 32
    trainer = trained()
    weights = dict(policy_state(trainer.model))
    assert {name for name, _ in trainer.model.named_parameters()} | {"lm_head.weight"} == set(weights)
    assert torch.equal(weights["lm_head.weight"], weights["model.embed_tokens.weight"])


def test_a_disk_without_room_is_told_of_before_the_run(tmp_path, monkeypatch):
    trainer = trained()
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=1000))
    with pytest.raises(OSError, match=r"no space: .*run .* \d+ MiB"):
        checkpoint.check_room(tmp_path / "not" / "yet" / "run", trainer, keep=2)
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=10**9))
    checkpoint.check_room(tmp_path / "run", trainer, keep=2)


def test_a_generation_config_that_transformers_would_not_save_is_written_as_it_was(tmp_path):
    values = {"do_sample": False, "temperature": 0.6, "top_p": 0.95, "eos_token_id": [0, 2]}
    trainer = make_trainer(config())
    trainer.model.generation_config = GenerationConfig(**values)
    for number in range(2):
        if number:  # with LoRA
            add_adapter(trainer.model, LoraConfig(rank=2, alpha=4.0), seed=0)
            trainer.base_model = BaseModel("base", "base", "0")
        checkpoint.check_saves(tmp_path, trainer, tiny_tokenizer())
        path = save(tmp_path, number, trainer, tiny_tokenizer(), keep=2)
        assert values.items() <= json.loads((path / "generation_config.json").read_text()).items()
        assert trainer.model.generation_config.temperature == 0.6


def test_what_cannot_be_saved_is_refused_before_anything_is_written(tmp_path):
    trainer = trained()
    trainer.model.config.temperature = 0.5  # transformers saves no config with it
    with pytest.raises(ValueError, match="Some generation parameters are set in the model config"):
        checkpoint.check_saves(tmp_path / "run", trainer, tiny_tokenizer())
    assert list(tmp_path.iterdir()) == []


def test_resumed_run_needs_room_only_for_what_it_has_not_written(tmp_path, monkeypatch):
    trainer = trained()
    for step in (1, 2):
        save(tmp_path, step, trainer, tiny_tokenizer(), keep=2)
    checkpoint.save_best(tmp_path, 2, trainer, tiny_tokenizer(), score=0.5)
    one, needed = checkpoint.room_needed(trainer, keep=2)
    free = one + one // 2  # for the third checkpoint and the second copy of the best weights
    assert free < needed
    monkeypatch.setattr("shutil.disk_usage", lambda folder: SimpleNamespace(free=free))
    checkpoint.check_room(tmp_path, trainer, keep=2)
    with pytest.raises(OSError, match="no space"):
        checkpoint.check_room(tmp_path / "other", trainer, keep=2)


@pytest.mark.parametrize("algo", [{}, {"beta": 0.1, "ref_sync_steps": 2}, {"name": "ppo"}])
def test_room_of_a_checkpoint_is_what_it_takes(tmp_path, algo):
    reference = tiny_model(vocabulary=60, width=32, layers=2, seed=5) if "beta" in algo else None
    trainer = make_trainer(config(**algo), reference=reference)
    take_step(trainer, random_groups())
    path = save(tmp_path, 1, trainer, tiny_tokenizer(), keep=1)
    written = sum(file.stat().st_size for file in path.rglob("*.safetensors"))
    assert written == pytest.approx(checkpoint.room_needed(trainer, keep=1)[0], rel=0.15)
