"""Published test cases of other graders: those that we decide alike, and the reason for each that we do not."""

from collections import Counter
from pathlib import Path

from verifiers.maths import equivalent

HERE = Path(__file__).parent
GUIDE = (HERE.parents[1] / "docs" / "GRADING.md").read_text("utf-8")


def cases() -> list[tuple[str, str, bool, str]]:
    """(gold, answer, whether they call it correct, the reason why we do not: "" if we agree)."""
    rows, reason = [], ""
    for line in (HERE / "published.txt").read_text("utf-8").splitlines():
        if line.startswith(("# ", "? ")):
            reason = line[2:] if line[0] == "?" else ""
        elif line and not line.startswith("//"):
            is_correct = " !~ " not in line
            gold, _, answer = line.replace("↵", "\n").partition(" ~ " if is_correct else " !~ ")
            rows.append((gold, answer, is_correct, reason))
    return rows


def test_published_cases_agree_or_have_a_reason() -> None:
    differing = []
    for gold, answer, is_correct, reason in cases():
        if bool(equivalent(gold, answer)) is not (is_correct != bool(reason)):
            differing.append((gold, answer, is_correct, reason))
    assert differing == []


def test_the_guide_counts_the_disagreements_by_reason() -> None:
    counts = Counter(reason for *_, reason in cases() if reason)
    rows = [f"| {reason} | {count} |" for reason, count in counts.items()]
    assert [row for row in rows if row not in GUIDE] == []
    assert f"| {len(cases()) - counts.total()} of {len(cases())} |" in GUIDE
