"""The report of a run: hostile text stays text."""

import pytest

from reasoner.analysis import run_report
from reasoner.analysis.report_format import as_markdown, paragraph, quote, table
from reasoner.analysis.run_report import write_report

HOSTILE = "<script>alert(1)</script> `</pre>` ```\n# no heading | \x1b[2J <img src=x onerror=alert(1)>"
SECTIONS = [
    ("A section", [paragraph("some <b>words</b>"), table([["what", "value"], ["a|b", HOSTILE]])]),
    ("Traces", [quote("caption <i>", HOSTILE)]),
]


def test_model_text_is_escaped_in_markdown():
    text = as_markdown("Run *x*", SECTIONS)
    assert text.startswith("# Run \\*x\\*\n")
    fences = [line for line in text.splitlines() if set(line) == {"`"}]
    assert len(fences) == 2 and len(fences[0]) == 4  # longer than any in the text
    row = next(line for line in text.splitlines() if line.startswith("| a"))
    assert row.replace("\\|", "").count("|") == 3 and "\\<script\\>" in row
    assert "\x1b" not in text


def test_a_single_held_out_problem_has_values_and_no_difference():
    line = {"metrics": ["greedy"], "greedy": 1.0}
    rows = run_report._differences({"greedy": [line | {"greedy": 0.0}]}, {"greedy": [line]})[0].splitlines()
    assert rows[2] == "| greedy | 0.0 | 100.0 | - | - | - |"


def test_report_refuses_a_run_without_a_step(tmp_path):
    with pytest.raises(ValueError, match="has no metrics yet"):
        write_report(tmp_path)
