"""A model folder that is not as it was written is refused by whatever loads it."""

import shutil
from functools import partial
from pathlib import Path

import pytest
import torch

from reasoner.cli.main import main
from reasoner.config.schema import EngineConfig
from reasoner.inference.factory import make_engine
from reasoner.models.checksums import CHECKSUMS, check_model_files, damage, write_checksums
from reasoner.models.folder import model_fingerprint
from reasoner.models.loading import load_policy, load_tokenizer
from reasoner.models.resolve import BASE
from reasoner.models.reward_model import load_reward_model
from tests.fixtures.tiny import save_tiny

CPU = torch.device("cpu")
LOADERS = {
    "policy": partial(load_policy, device=CPU),
    "reward model": partial(load_reward_model, device=CPU),
    "engine": lambda folder: make_engine(EngineConfig(name="transformers"), folder, max_model_len=64, seed=0),
}


@pytest.fixture
def folder(tmp_path) -> Path:
    save_tiny(tmp_path / "model")
    write_checksums(tmp_path / "model")
    return tmp_path / "model"


def flip(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


@pytest.mark.parametrize("load", LOADERS.values(), ids=LOADERS)
def test_weights_with_a_flipped_bit_are_refused(folder, load):
    flip(folder / "model.safetensors")
    with pytest.raises(ValueError, match=r"model is damaged: model.safetensors not as written"):
        load(folder)
    load_tokenizer(folder)  # reads no weights


def test_server_and_evaluation_do_not_start_with_damaged_weights(folder, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: name)  # vLLM is not started
    flip(folder / "model.safetensors")
    for command in (["serve"], ["eval", "--data", "generated", "--engine", "transformers", "--out", str(tmp_path)]):
        assert main([*command, "--model", str(folder)]) == 2
        assert "model.safetensors not as written" in capsys.readouterr().err


def test_checksums_cover_what_loading_reads(folder):
    assert not damage(folder)
    fingerprint = model_fingerprint(folder)
    (folder / "README.md").write_text("mine")
    (folder / "trainer").mkdir()
    (folder / "trainer" / "state.json").write_text("{}")
    write_checksums(folder)
    assert model_fingerprint(folder) == fingerprint  # the checksums are no part of the model
    shutil.rmtree(folder / "trainer")
    (folder / "README.md").write_text("other")
    check_model_files(folder)
    assert damage(folder) == "trainer/state.json not as written"
    (folder / "tokenizer.json").unlink()
    with pytest.raises(ValueError, match=r"tokenizer.json not as written"):
        load_tokenizer(folder)


@pytest.mark.parametrize("text", ["", "[]"])
def test_damaged_checksums_are_reported(folder, text):
    (folder / CHECKSUMS).write_text(text)
    with pytest.raises(ValueError, match="its checksums cannot be read"):
        load_tokenizer(folder)


def test_embedded_base_has_checksums():
    assert (BASE / CHECKSUMS).is_file() and not damage(BASE)
