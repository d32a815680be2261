"""docs/PITFALLS.md, the features of docs/DASHBOARD.md and the tests agree: every test that they name exists, every
citation in a test has its row.
"""

import re
from difflib import get_close_matches
from pathlib import Path

import pytest

TESTS = Path(__file__).parents[1]
ROW = re.compile(r"^\| ([EA]?\d+) \|(.*)\|$", re.MULTILINE)
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
# "# trap 4", "# traps 13, 14", "# EVAL trap 6"; the number ends the comment or is followed by a colon.
CITATION = re.compile(r"#.*?(EVAL )?\btraps? ([EA]?\d+(?:, [EA]?\d+)*)")
ROWS = dict(ROW.findall((TESTS.parent / "docs" / "PITFALLS.md").read_text("utf-8")))


def citations() -> list[tuple[str, str]]:
    """(position of the comment, number of the row) of every citation in a test; "EVAL trap 6" cites row E6."""
    return [
        (f"{path.relative_to(TESTS)}:{line}", f"E{number}" if match[1] else number)
        for path in sorted(TESTS.rglob("*.py"))
        if path != Path(__file__)
        for line, text in enumerate(path.read_text("utf-8").splitlines(), start=1)
        if (match := CITATION.search(text))
        for number in match[2].split(", ")
    ]


def names_of_tests(file: str) -> list[str]:
    path = TESTS / file
    return re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text("utf-8"), re.MULTILINE) if path.is_file() else []


@pytest.mark.parametrize("number", list(ROWS))
def test_every_test_named_in_the_pitfalls_exists(number: str) -> None:
    named = NAMED.findall(ROWS[number])
    assert named or "no test" in ROWS[number], f"row {number} names neither a test nor that there is none"
    for file, name in named:
        assert name in names_of_tests(file), (
            f"row {number}: no {file}::{name}; near are {get_close_matches(name, names_of_tests(file))}"
        )


def test_every_test_named_in_the_features_of_the_dashboard_exists() -> None:
    named = NAMED.findall((TESTS.parent / "docs" / "DASHBOARD.md").read_text("utf-8"))
    assert len(named) > 30
    assert [f"{file}::{name}" for file, name in named if name not in names_of_tests(f"app/{file}")] == []


def test_rows_have_different_numbers_and_cover_the_first_46() -> None:
    numbers = [number for number, _ in ROW.findall((TESTS.parent / "docs" / "PITFALLS.md").read_text("utf-8"))]
    assert len(numbers) == len(set(numbers)) and {str(number) for number in range(1, 47)} <= set(numbers)


def test_every_citation_in_a_test_has_a_row_that_names_its_file() -> None:
    assert len(citations()) > 60
    without = [
        f"{position} cites {number}"
        for position, number in citations()
        if position.partition(":")[0] not in {file for file, _ in NAMED.findall(ROWS.get(number, ""))}
    ]
    assert without == []
