"""Expert iteration: rounds of ordinary runs, and a command that goes on where it was stopped."""

import json
import shutil
from pathlib import Path

from reasoner.recipes.expert_iteration import examples
from reasoner.runs.selection import Selection
from tests.fixtures.forkserver import ROOT, ForkedCommand, finish
from tests.fixtures.trainings import OF_A_CLOCK, contents, flags

SUMS = ROOT / "tests" / "fixtures" / "sums.jsonl"
SMALL = {
    "preset": "base", "data": SUMS, "rounds": 2, "problems": 6, "num-samples": 4, "where": "ended", "run.name": "ei",
    "engine": "transformers", "validation.interval": 0, "eval.heldout_problems": 2, "eval.samples": 2,
    "sampling.max_tokens": 24, "threads": 1, "sft.epochs": 1,
}  # fmt: skip


def test_a_round_trains_on_the_selected_samples_of_all_rounds_so_far():
    selection = Selection(per_problem=4)
    assert examples("ei", 1, selection) == "runs:ei-samples-1?where=correct,well-formed,ended&per_problem=4"
    assert examples("ei", 2, selection).startswith("runs:ei-samples-1,ei-samples-2?")


def rounds(runs: Path, status: int = 0, **changes: object) -> ForkedCommand:
    return finish("expert-iteration", "--run.dir", runs, *flags(SMALL | changes), status=status)


def test_validation_problems_that_are_sampled_are_refused(tmp_path, tiny_folder):
    rounds(tmp_path, 2, **{"model": tiny_folder, "validation.interval": 1, "validation.data": SUMS})
    assert not list(tmp_path.iterdir())


def test_the_same_command_goes_on_where_it_was_stopped(tmp_path, tiny_folder):
    rounds(tmp_path, model=tiny_folder)
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["ei-samples-1", "ei-samples-2", "ei-sft-1", "ei-sft-2"]
    rows = json.loads((tmp_path / "ei-sft-2" / "rounds.json").read_text())
    assert [row["round"] for row in rows] == [0, 1, 2]
    assert rows[2]["tokens"] > rows[1]["tokens"] > 0 and rows[2]["examples"] > rows[1]["examples"] > 0
    config = json.loads((tmp_path / "ei-sft-2" / "config.json").read_text())["config"]
    assert config["model"] == str(tiny_folder)  # not the model of the first round
    config = json.loads((tmp_path / "ei-samples-2" / "config.json").read_text())["config"]
    assert config["model"].startswith("ei-sft-1/")

    without = (*OF_A_CLOCK, "rounds.json")
    whole = contents(tmp_path, without=without)
    shutil.rmtree(tmp_path / "ei-sft-2")
    (tmp_path / "ei-samples-2" / "rollouts" / "step-000000.parquet").unlink()
    rounds(tmp_path, model=tiny_folder)
    rows_now = json.loads((tmp_path / "ei-sft-2" / "rounds.json").read_text())
    assert [row | {"minutes": 0} for row in rows_now] == [row | {"minutes": 0} for row in rows]
    now = contents(tmp_path, without=without)
    assert [name for name in whole if now.get(name) != whole[name]] == []

    # the folder in another spelling is no difference
    other = rounds(tmp_path / ".." / tmp_path.name, 2, **{"model": tiny_folder, "sft.rows": 4})
    assert "is there with other settings (sft.rows)" in other.errors()
