"""docs/PITFALLS.md, the features of docs/DASHBOARD.md and the tests agree: every test that they name exists, every
citation in a test has its row.
"""

import re
from difflib import get_close_matches
from pathlib import Path

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


def test_every_test_that_the_docs_name_exists() -> None:
    docs = {page: (TESTS.parent / "docs" / page).read_text("utf-8") for page in ("PITFALLS.md", "DASHBOARD.md")}
    folders = {"PITFALLS.md": "", "DASHBOARD.md": "app/"}
    named = [(folders[page] + file, name) for page, text in docs.items() for file, name in NAMED.findall(text)]
    assert len(named) > 100
    missing = [(file, name) for file, name in named if name not in names_of_tests(file)]
    assert [f"{file}::{name}, near {get_close_matches(name, names_of_tests(file))}" for file, name in missing] == []


def test_rows_name_a_test_or_say_that_there_is_none_and_cover_the_first_46() -> None:
    assert [number for number, row in ROWS.items() if not NAMED.search(row) and "no test" not in row] == []
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
