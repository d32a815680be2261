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


@pytest.mark.parametrize(
    ("name", "more", "groups"), [("a.jsonl", [], 6), ("a.parquet", [], 6), ("a.jsonl", ["--step", "1"], 3)]
)
def test_pairs_of_a_run_or_filter_read_back(run_dir: Path, capsys, name: str, more: list[str], groups: int) -> None:
    file = run_dir / name
    assert main(["rollouts", "export", str(run_dir), str(file), "--as", "preferences", *more]) == 0
    said = f"{2 * groups} pairs of {groups} groups; left out 0 of identical texts and {groups} that"
    assert said in capsys.readouterr().out
    rows = [row for _, row in read_files(file)]
    assert {(row["chosen"], row["rejected"]) for row in rows} == {("a", "b"), ("a", "c")}
    assert rows[0]["correct_chosen"] is True and (not more or all(row["group"].startswith("1.") for row in rows))
