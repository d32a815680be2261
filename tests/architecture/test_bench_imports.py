"""The scripts in bench/ are not run by the tests; what they import from the project must exist."""

import ast
import importlib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
OURS = ("reasoner", "data", "verifiers", "app")


@pytest.mark.parametrize("script", sorted((ROOT / "bench").glob("*.py")), ids=lambda path: path.name)
def test_names_that_a_script_imports_from_the_project_exist(script: Path) -> None:
    for node in ast.walk(ast.parse(script.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in OURS:
            for alias in node.names:
                if not hasattr(importlib.import_module(node.module), alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
