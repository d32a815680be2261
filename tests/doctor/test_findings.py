"""The summary of the findings."""

from reasoner.doctor.findings import Finding, Severity, summary


def test_summary_lists_each_suggestion_once():
    lines = [
        Finding(Severity.OK, "a", "x"),
        Finding(Severity.WARNING, "b", "y", "--b 1"),
        Finding(Severity.WARNING, "b", "z", "--b 1"),
    ]
    printed = summary(lines).splitlines()
    assert [line.split() for line in printed[1:-1]] == [["--b", "1", "b"]]
    assert printed[-1] == "1 ok, 2 warnings, 0 errors"
