"""A run beside its reference: what the console says, and what it keeps."""

import pytest

from reasoner.cli.main import main
from reasoner.runs.bands import SECONDS, Band
from reasoner.runs.reference import REFERENCE, Reference, read_reference, write_reference
from tests.fixtures.trainings import flags

SMALL = {
    "preset": "base", "engine.name": "transformers", "steps": 6, "data.prompts_per_step": 2, "algo.group_size": 2,
    "sampling.max_tokens": 8, "validation.interval": 0, "eval.heldout_problems": 0, "threads": 1, "run.name": "a",
}  # fmt: skip


@pytest.fixture
def train(tmp_path, tiny_folder, monkeypatch, capsys):
    """Train six steps of a tiny model with a reference whose band of right answers is [low, high]; the log."""
    monkeypatch.setattr("reasoner.trainer.run.CHECKED_STEPS", 6)

    def train(low: float, high: float) -> str:
        band = Band(*((value,) * 20 for value in ((low + high) / 2, low, high)))
        bands = {"correct": band, SECONDS: band}
        write_reference(tmp_path / "r.json", Reference("mine", (0, 1, 2, 3), {}, {"optim.lr": 9.0}, bands))
        settings = {"model": tiny_folder, "run.dir": tmp_path, "run.reference": tmp_path / "r.json"}
        assert main(["train", *flags(settings | SMALL)]) == 0
        return capsys.readouterr().err

    return train


def test_a_run_within_its_reference_says_so_and_keeps_a_copy(train, tmp_path):
    log = train(-1.0, 1.0)
    assert log.count("4 runs of preset mine") == 1 and "9.0" not in log
    assert read_reference(tmp_path / "a" / REFERENCE) == read_reference(tmp_path / "r.json")


def test_a_file_that_is_no_reference_is_refused_before_anything_is_written(tmp_path, capsys):
    (tmp_path / "r.json").write_text("{}")
    settings = {"run.dir": tmp_path / "runs", "run.reference": tmp_path / "r.json"}
    assert main(["train", "--model", "base", *flags(settings | SMALL)]) == 2
    assert "r.json" in capsys.readouterr().err and not (tmp_path / "runs").exists()
