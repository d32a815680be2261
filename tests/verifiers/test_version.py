"""The version of the grader covers all code that decides a verdict."""

import ast
from pathlib import Path

from verifiers.version import code_hash, grader_files

ROOT = Path(__file__).parents[2]
NO_VERDICT = {"data/problem.py", "data/child_process.py"}  # a dataclass; pipes of worker_process.py


def test_grader_files_include_every_data_module_that_verifiers_import():
    imports = {
        f"{node.module.replace('.', '/')}.py"
        for path in (ROOT / "verifiers").glob("*.py")
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("data.")
    }
    names = {path.relative_to(ROOT).as_posix() for path in grader_files()}
    assert imports - NO_VERDICT <= names and "data/boxes.py" in imports
    assert {f"verifiers/{path.name}" for path in (ROOT / "verifiers").glob("*.py")} <= names


def test_code_hash_changes_with_content_name_and_library_version(tmp_path):
    def hash_of(name, text, version="sympy 1"):
        path = tmp_path / name
        path.write_text(text)
        return code_hash(tmp_path, [path], [version])

    first = hash_of("a.py", "x = 1\n")
    others = {hash_of("a.py", "x = 2\n"), hash_of("b.py", "x = 1\n"), hash_of("a.py", "x = 1\n", "sympy 2")}
    assert first == hash_of("a.py", "x = 1\n") and first not in others and len(others) == 3
