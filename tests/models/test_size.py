"""Number of parameters from file headers, and the settings that `reasoner train` chooses by it."""

import json

import pytest
import torch
from safetensors.torch import save_file

from reasoner.cli.main import main
from reasoner.models.folder import num_parameters
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
    [(0, 134_515, "smollm-135m@cpu", "1e-05"), (0, 1_000_000, "qwen2.5-0.5b@cpu", "3e-06"),
     (0, 5_000, "base", "0.0002"), (24 * 10**9, 134_515, "smollm-135m@24gb", "1e-05"),
     (85 * 10**9, 1_500_000, "qwen2.5-1.5b@80gb", "1e-06")],
)  # fmt: skip
def test_local_folder_gets_preset_by_size_and_a_log_line(tmp_path, capsys, monkeypatch, gpu, rows, preset, lr):
    monkeypatch.setattr("reasoner.trainer.resolve_run.gpu_memory", lambda: gpu)
    folder = with_header(tmp_path / "mine", {"a": {"dtype": "F32", "shape": [rows, 1000], "data_offsets": [0, 0]}})
    assert main(["train", "--model", str(folder), "--dry-run", "--seed", "3", "--data", "generated"]) == 0
    output = capsys.readouterr()
    line, *others = output.err.splitlines()
    assert line.startswith(f"preset {preset}: {folder} has {rows / 1000:,.1f}M parameters, and there is ")
    assert f"lr {lr}" in line and "--preset (base, smollm-135m, qwen2.5-0.5b, " in line and "--dry-run" in line
    rows_out = {one.split()[0]: one.split()[1:] for one in output.out.splitlines() if len(one.split()) > 1}
    machine = preset.partition("@")[2]
    of_machine = [f"{key} {value[0]}" for key, value in rows_out.items() if value[1:] == ["machine", machine]]
    assert bool(machine) == bool(others) == bool(of_machine)
    assert not others or f"values of the machine ({machine}): {', '.join(of_machine)}; the preset takes at" in others[0]
    assert rows_out["optim.lr"][0] in (lr, str(float(lr)))
    assert int(rows_out["validation.interval"][0]) > 0 and int(rows_out["eval.heldout_problems"][0]) > 0


def test_run_gets_preset_by_size_of_last_checkpoint(tmp_path, capsys):
    (tmp_path / "mine" / "checkpoints").mkdir(parents=True)
    with_header(tmp_path / "mine" / "checkpoints" / "step-000007")
    assert main(["train", "--model", "mine", "--run.dir", str(tmp_path), "--dry-run"]) == 0
    assert capsys.readouterr().err.startswith("preset ")


def test_named_preset_that_all_machines_share_logs_nothing(tmp_path, capsys):
    folder = with_header(tmp_path / "mine")
    assert main(["train", "--model", str(folder), "--preset", "base", "--dry-run"]) == 0
    assert capsys.readouterr().err == ""
    assert main(["train", "--model", "base", "--dry-run"]) == 0
    assert capsys.readouterr().err == ""
