"""Every test that docs/PITFALLS.md names exists."""

import re
from difflib import get_close_matches
from pathlib import Path

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"`([\w/]+\.py)::(test_\w+)`")


def names_of_tests(file: str) -> list[str]:
    path = TESTS / file
    return re.findall(r"^(?:async )?def (test_\w+)\(", path.read_text("utf-8"), re.MULTILINE) if path.is_file() else []


def test_every_test_that_the_docs_name_exists() -> None:
    named = NAMED.findall((TESTS.parent / "docs" / "PITFALLS.md").read_text("utf-8"))
    assert len(named) > 60
    missing = [(file, name) for file, name in named if name not in names_of_tests(file)]
    assert [f"{file}::{name}, near {get_close_matches(name, names_of_tests(file))}" for file, name in missing] == []
