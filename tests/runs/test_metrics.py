"""Reading metrics.jsonl and times.jsonl, whole and damaged."""

import pytest

from reasoner.runs.metrics import metrics_prefix, read_metrics


def test_a_torn_last_line_is_left_out_and_other_damage_refused(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n{"step": 1')
    assert read_metrics(tmp_path) == [{"step": 0}]
    path.write_text('{"step"\n{"step": 1}\n')
    with pytest.raises(ValueError, match=r"metrics\.jsonl, line 1 is damaged"):
        read_metrics(tmp_path)
    assert read_metrics(tmp_path / "nowhere") == []


def test_prefix_ends_before_the_first_step_that_is_missing_or_damaged(tmp_path):
    path = tmp_path / "metrics.jsonl"
    path.write_text('{"step": 0}\n{"step": 1}\n{"step": 3}\n')
    assert [line["step"] for _, line in metrics_prefix(tmp_path)] == [0, 1]
    path.write_text('{"step": 0}\n{"st\n{"step": 1}\n')
    assert metrics_prefix(tmp_path) == [('{"step": 0}', {"step": 0})]
