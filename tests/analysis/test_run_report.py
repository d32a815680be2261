"""The report of a run: every kind of block in both formats, and hostile text that stays text."""

from html.parser import HTMLParser

import pytest

from reasoner.analysis import run_report
from reasoner.analysis.report_format import Paragraph, Picture, Quote, Table, as_html, as_markdown
from reasoner.analysis.run_report import write_report

HOSTILE = "<script>alert(1)</script> `</pre>` ```\n# no heading | \x1b[2J <img src=x onerror=alert(1)>"
SECTIONS = [
    ("A section", [Paragraph("some <b>words</b>"), Table([["what", "value"], ["a|b", HOSTILE]])]),
    ("Traces", [Quote("caption <i>", HOSTILE)]),
]


class Tags(HTMLParser):
    """Every tag of a page, and everything that would fetch something."""

    def __init__(self, page):
        super().__init__()
        self.tags, self.fetched, self.text = [], [], ""
        self.feed(page)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.fetched += [value for name, value in attributes if name in ("src", "href") and "data:" not in value]

    def handle_data(self, data):
        self.text += data


def test_model_text_is_escaped_in_html():
    tags = Tags(as_html("Run <x>", SECTIONS))
    assert "script" not in tags.tags and "img" not in tags.tags and "b" not in tags.tags
    assert tags.fetched == []
    assert "<script>alert(1)</script>" in tags.text and "\x1b" not in tags.text


def test_model_text_is_escaped_in_markdown():
    text = as_markdown("Run *x*", SECTIONS)
    assert text.startswith("# Run \\*x\\*\n")
    fences = [line for line in text.splitlines() if set(line) == {"`"}]
    assert len(fences) == 2 and len(fences[0]) == 4  # longer than any in the text
    row = next(line for line in text.splitlines() if line.startswith("| a"))
    assert row.replace("\\|", "").count("|") == 3 and "\\<script\\>" in row
    assert "\x1b" not in text


def test_picture_is_inline_in_html_and_a_link_in_markdown(tmp_path):
    (tmp_path / "report.png").write_bytes(b"\x89PNG")
    sections = [("Curves", [Picture(tmp_path / "report.png")])]
    tags = Tags(as_html("x", sections))
    assert "img" in tags.tags and tags.fetched == []
    assert "![curves of the run](report.png)" in as_markdown("x", sections)


def test_a_single_held_out_problem_has_values_and_no_difference():
    line = {"metrics": ["greedy"], "greedy": 1.0}
    rows = run_report._differences({"greedy": [line | {"greedy": 0.0}]}, {"greedy": [line]})
    assert rows[1] == ["greedy", "0.0", "100.0", "-", "-", "-"]


def test_report_refuses_a_run_without_a_step(tmp_path):
    with pytest.raises(ValueError, match="has no metrics yet"):
        write_report(tmp_path)
