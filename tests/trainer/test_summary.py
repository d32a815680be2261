"""What a run says about itself before its first step."""

import pytest

from reasoner.trainer.resolve_run import resolve_new_run
from reasoner.trainer.summary import expected_time


@pytest.mark.parametrize(
    ("values", "is_new", "is_measured"),
    [
        ({}, True, True), ({"seed": 3, "threads": 1, "run.save_interval": 5}, True, True), ({}, False, False),
        ({"steps": 2}, True, False), ({"data.train": "problems.jsonl"}, True, False),
        ({"model": "my-base"}, True, False),
    ],
)  # fmt: skip
def test_only_the_whole_default_run_has_a_measured_time(tmp_path, values, is_new, is_measured):
    values = {"model": "base", "run.dir": str(tmp_path)} | values
    resolved, _ = resolve_new_run(values, origin="command line", preset="base")
    assert ("minutes" in expected_time(resolved, is_new=is_new)) == is_measured
