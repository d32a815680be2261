"""One file prints: reasoner/console.py. Results go to standard output and messages to standard error through it."""

import ast
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
CONSOLE = "reasoner/console.py"


def prints(tree: ast.AST) -> Iterator[int]:
    """The line numbers of print() and of sys.stdout.write() or sys.stderr.write(), outside of a main guard."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "__name__" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Call) and ast.unparse(node.func) in ("print", "sys.stdout.write", "sys.stderr.write"):
            yield node.lineno
        yield from prints(node)


def test_only_console_prints() -> None:
    paths = {path.relative_to(ROOT).as_posix(): path for path in (ROOT / "reasoner").rglob("*.py")}
    printing = {name: list(prints(ast.parse(path.read_text("utf-8")))) for name, path in paths.items()}
    assert printing.pop(CONSOLE), "the search finds the calls of console.py"
    assert {name: lines for name, lines in printing.items() if lines} == {}
