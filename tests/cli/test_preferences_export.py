"""`reasoner rollouts export --as preferences`: files that read back, in TRL's columns."""

from pathlib import Path

import pytest

from data.files import read_files
from reasoner.cli.main import main
from reasoner.runs.json_files import write_json
from tests.fixtures.rollouts import group, write


@pytest.fixture
def run_dir(tmp_path: Path) -> Path:
    run_dir = tmp_path / "run"
    (run_dir / "rollouts").mkdir(parents=True)
    write_json(run_dir / "config.json", {"format": 2, "config": {"prompt.style": "r1-zero"}})
    for step in range(2):
        write(run_dir, step, [group(f"{step}+{n}", "1", [("a", True), ("b", False), ("c", False)]) for n in range(3)])
    return run_dir


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_pairs_of_a_run_read_back(run_dir: Path, suffix: str, capsys: pytest.CaptureFixture[str]) -> None:
    file = run_dir / f"pairs{suffix}"
    assert main(["rollouts", "export", str(run_dir), str(file), "--as", "preferences"]) == 0
    assert "12 pairs of 6 groups; left out 0 of identical texts and 6 that" in capsys.readouterr().out
    rows = list(read_files(file))
    assert {(row["chosen"], row["rejected"]) for _, row in rows} == {("a", "b"), ("a", "c")}
    assert rows[0][1]["correct_chosen"] is True


def test_filters_select_the_rollouts_that_are_compared(run_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = run_dir / "pairs.jsonl"
    assert main(["rollouts", "export", str(run_dir), str(file), "--as", "preferences", "--step", "1"]) == 0
    assert "6 pairs of 3 groups; left out 0 of identical texts and 3 that" in capsys.readouterr().out
    assert all(row["group"].startswith("1.") for _, row in read_files(file))
