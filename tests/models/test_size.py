"""Number of parameters from file headers, and the settings that `reasoner train` chooses by it."""

import json

import pytest
import torch
from safetensors.torch import save_file

from reasoner.cli.main import main
from reasoner.models.size import num_parameters
from tests.fixtures.tiny import tiny_model

HEADER = {"a": {"dtype": "F32", "shape": [1000, 134_515], "data_offsets": [0, 0]}, "__metadata__": {"format": "pt"}}


def with_header(folder, header=HEADER):
    """A folder whose safetensors file has a header and no weights."""
    folder.mkdir()
    content = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(len(content).to_bytes(8, "little") + content)
    (folder / "config.json").write_text("{}")
    (folder / "tokenizer.json").write_text("{}")
    return folder


def test_num_parameters_sums_files_and_counts_tied_weights_once(tmp_path):
    model = tiny_model(vocabulary=300)
    model.save_pretrained(tmp_path / "whole")
    model.save_pretrained(tmp_path / "parts", max_shard_size="100KB")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 1
    expected = sum(parameter.numel() for parameter in model.parameters())
    assert num_parameters(tmp_path / "whole") == num_parameters(tmp_path / "parts") == expected
    save_file({"one": torch.tensor(1.0)}, tmp_path / "whole" / "scalar.safetensors")
    assert num_parameters(tmp_path / "whole") == expected + 1


@pytest.mark.parametrize(
    "content", [b"", b"abc", b"\xff" * 64, (9).to_bytes(8, "little") + b'{"a": 1}{', b"\2" + bytes(7) + b"[]"]
)
def test_num_parameters_is_none_for_damaged_file(tmp_path, content):
    (tmp_path / "model.safetensors").write_bytes(content)
    assert num_parameters(tmp_path) is None
    assert num_parameters(tmp_path / "nowhere") is None


@pytest.mark.parametrize(
    ("gpu", "rows", "preset", "lr"),
    [(False, 134_515, "cpu", "1e-05"), (False, 1_000_000, "cpu-large", "3e-06"), (False, 5_000, "base", "0.0005"),
     (True, 134_515, "0.5b", "1e-06"), (True, 1_500_000, "1.5b", "1e-06")],
)  # fmt: skip
def test_local_folder_gets_preset_by_size_and_a_log_line(tmp_path, capsys, monkeypatch, gpu, rows, preset, lr):
    monkeypatch.setattr("reasoner.cli.train.has_gpu", lambda: gpu)
    folder = with_header(tmp_path / "mine", {"a": {"dtype": "F32", "shape": [rows, 1000], "data_offsets": [0, 0]}})
    assert main(["train", "--model", str(folder), "--dry-run", "--seed", "3"]) == 0
    output = capsys.readouterr()
    (line,) = output.err.splitlines()
    assert line.startswith(f"preset {preset}: {folder} has {rows / 1000:,.1f}M parameters, and there is ")
    assert f"lr {lr}" in line and "--preset (base, cpu, cpu-large, 0.5b, 1.5b)" in line and "--dry-run" in line
    values = {one.split()[0]: one.split()[1] for one in output.out.splitlines() if len(one.split()) > 1}
    assert values["optim.lr"] in (lr, str(float(lr)))
    assert int(values["validation.interval"]) > 0 and int(values["eval.heldout_problems"]) > 0


def test_run_gets_preset_by_size_of_last_checkpoint(tmp_path, capsys):
    (tmp_path / "mine" / "checkpoints").mkdir(parents=True)
    with_header(tmp_path / "mine" / "checkpoints" / "step-000007")
    assert main(["train", "--model", "mine", "--run.dir", str(tmp_path), "--dry-run"]) == 0
    assert capsys.readouterr().err.startswith("preset ")


def test_named_preset_logs_nothing(tmp_path, capsys):
    folder = with_header(tmp_path / "mine")
    assert main(["train", "--model", str(folder), "--preset", "base", "--dry-run"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["train", "--model", "base", "--dry-run"]) == 0
    assert capsys.readouterr().err == ""
