"""The scripts in bench/ are not run by the tests; what they import from the project must exist."""

import ast
import importlib
from pathlib import Path

ROOT = Path(__file__).parents[2]
OURS = ("reasoner", "data", "verifiers", "app")


def test_names_that_scripts_import_from_the_project_exist() -> None:
    scripts = sorted((ROOT / "bench").glob("*.py"))
    nodes = [node for script in scripts for node in ast.walk(ast.parse(script.read_text("utf-8")))]
    for node in nodes:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.partition(".")[0] in OURS:
            for alias in node.names:
                if not hasattr(importlib.import_module(node.module), alias.name):
                    importlib.import_module(f"{node.module}.{alias.name}")
