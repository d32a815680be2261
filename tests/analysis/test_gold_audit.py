"""`reasoner data audit`: each kind of finding on golds that have it, and none on golds that do not."""

import json
from pathlib import Path

import pytest

from data import Problem
from reasoner.analysis.gold_audit import KINDS, Finding, audit, counts, gold_findings, text
from reasoner.cli.main import main


@pytest.mark.parametrize(
    ("gold", "kinds"),
    [
        ("12", []), (r"\frac{1}{2}", []), (r"1 \pm \sqrt{2}", []), (r"\text{Friday}", []), ("ellipse", []),
        ("NaN", ["missing"]), ("N/A", ["missing"]), ("f(4 - x)", ["unread"]), ("MR = SRMC", ["unread"]),
        ("7" * 600, ["unread"]),
    ],
)  # fmt: skip
def test_gold_has_the_findings_of_its_form(gold: str, kinds: list[str]) -> None:
    assert [kind for kind, _ in gold_findings(Problem("1", "?", gold))] == kinds


SETS = {
    "a.jsonl": [
        Problem("1", "What is $1+1$?", "2", columns={"solution": "so #### 3"}),
        Problem("2", "What is $1-1$?", "0", columns={"solution": r"so it is \boxed{0.0}"}),
        Problem("3", "What is 2+2?", "4", columns={"solution": "a proof without an answer"}),
        Problem("4", "Use 1 2 3 to make 9", "(1+2)*3", verifier="countdown"),
    ],
    "b.jsonl?question=q&answer=a": [
        Problem("1", "what is 1+1", "3"),
        Problem("2", "What is $2+2$?", "4.0"),
        Problem("3", "?", "9" * 600),
    ],
}


@pytest.fixture(scope="module")
def findings() -> list[Finding]:
    return audit(SETS, {"b.jsonl?question=q&answer=a": ["b.jsonl, line 4: the answer is blank"]})


def test_contradictions_are_found_across_sources(findings: list[Finding]) -> None:
    found = {(each.kind, each.source[:1], each.problem): each.detail for each in findings}
    assert set(found) == {
        ("unusable", "b", ""), ("solution", "a", "1"), ("conflict", "b", "1"),
        ("unread", "b", "3"), ("undecided", "b", "3"),
    }  # fmt: skip
    assert found["solution", "a", "1"] == "its solution ends with 3"
    assert found["conflict", "b", "1"] == "2 in a.jsonl, 1"


def test_counts_are_of_problems_by_source_and_the_printout_holds_the_first_findings(findings: list[Finding]) -> None:
    header, first, second = counts(SETS, findings)
    assert header == ["source", "problems", *KINDS]
    assert first[:2] == ["a.jsonl", "4"] and second[:2] == ["b.jsonl", "3"]
    assert dict(zip(header, second, strict=True))["undecided"] == "1"  # two of its texts, one problem
    shown = text(SETS, findings, examples=1)
    assert shown.count("not accepted: ") == 1 and "  and 1 more" in shown


def test_audit_of_a_file_leaves_out_rows_without_a_problem(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file, out = tmp_path / "mine.jsonl", tmp_path / "findings.json"
    rows = [{"question": "1+1?", "answer": "2"}, {"question": "1+2?"}, {"question": "1+3?", "answer": "3"}]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert main(["data", "audit", str(file), "--json", str(out)]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[1].split()[:3] == ["mine.jsonl", "2", "1"]
    assert "line 2: no column 'answer'" in printed
    assert [each["kind"] for each in json.loads(out.read_text())] == ["unusable"]
    assert main(["data", "contamination", str(file), str(file)]) == 2  # elsewhere such a row is an error
