"""What a run says about itself before its first step."""

import pytest

from reasoner.trainer.resolve_run import resolve_new_run
from reasoner.trainer.summary import expected_time


@pytest.mark.parametrize(
    ("values", "steps_done", "is_measured"),
    [
        ({}, 0, True), ({"seed": 3, "threads": 1, "run.save_interval": 5}, 0, True), ({}, 40, False),
        ({"steps": 2}, 0, False), ({"data.train": "problems.jsonl"}, 0, False), ({"model": "my-base"}, 0, False),
    ],
)  # fmt: skip
def test_only_the_whole_default_run_has_a_measured_time(tmp_path, values, steps_done, is_measured):
    values = {"model": "base", "run.dir": str(tmp_path)} | values
    resolved, _ = resolve_new_run(values, origin="command line", preset="base")
    assert ("minutes" in expected_time(resolved, steps_done)) == is_measured
