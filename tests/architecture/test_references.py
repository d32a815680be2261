"""Dotted names such as `reasoner.runs.metric_names.METRICS` in docstrings, comments, strings and docs exist."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = ("reasoner", "verifiers", "data", "app", "tests", "bench", "scripts")
SOURCES = sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py"))
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# `data.` and `app.` are left out: data.train is a setting, and app.py a file.
_REFERENCE = re.compile(r"(?<![\w./@-])(?:reasoner|verifiers)(?:\.[A-Za-z_]\w*)+(?![\w/-])")
NOT_OURS = {
    "verifiers.types": "Prime Intellect's library of that name (docs/DATA.md), as the next three",
    "verifiers.clients": "",
    "verifiers.load_environment": "",
    "verifiers.utils.message_utils": "",
    "verifiers.owner": "a foreign package in tests/e2e/test_wheel.py",
    "reasoner.trane": "a misspelt name in tests/test_api.py",
}
_FILE_ENDINGS = ("py", "js", "md", "toml")


@cache
def names_in(path: Path) -> frozenset[str]:
    """What a module binds outside of functions: "NAME", and "CLASS.NAME" for the members of its classes."""
    return frozenset(bound_names(ast.parse(path.read_text("utf-8")).body))


def bound_names(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from bound_names(node.body, f"{prefix}{name}.")
            case ast.Import(names=aliases) | ast.ImportFrom(names=aliases):
                yield from (prefix + (alias.asname or alias.name) for alias in aliases)
            case ast.If() | ast.Try() | ast.With() | ast.For():
                blocks = [getattr(node, name, []) for name in ("body", "orelse", "finalbody")]
                yield from bound_names([statement for block in blocks for statement in block], prefix)
            case _:
                stores = (own for own in ast.walk(node) if isinstance(own, ast.Name) and isinstance(own.ctx, ast.Store))
                yield from (prefix + own.id for own in stores)


def resolves(reference: str) -> bool:
    """Whether a dotted name is a package, a module, or something that one of them binds."""
    parts = reference.split(".")
    for length in range(len(parts), 0, -1):
        place = ROOT.joinpath(*parts[:length])
        files = [file for file in (place / "__init__.py", place.with_suffix(".py")) if file.is_file()]
        if files:
            rest = ".".join(parts[length:])
            return not rest or rest in names_in(files[0]) or rest.startswith("__")
    return False


def references(text: str) -> list[str]:
    return [name for name in _REFERENCE.findall(text) if name.rpartition(".")[2] not in _FILE_ENDINGS]


def test_dotted_names_in_sources_and_docs_exist() -> None:
    names = {path: references(path.read_text("utf-8")) for path in (*SOURCES, *DOCUMENTS) if path != Path(__file__)}
    missing = {(path, name) for path, own in names.items() for name in {*own} - {*NOT_OURS} if not resolves(name)}
    assert sorted(f"{path.relative_to(ROOT)}: {name}" for path, name in missing) == []
    assert sum(map(len, names.values())) > 50  # the search finds the references


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("reasoner.runs.metric_names.METRICS", True),
        ("reasoner.runs.metrics.METRICS", False),
        ("reasoner.evals.result.EvalResult.to_dict", True),
        ("reasoner.evals.result.EvalResult.figures", False),
        ("reasoner.train", True),  # imported for type checkers only
        ("reasoner.rl", True),
        ("reasoner.nothing", False),
        ("verifiers.extract.EXTRACTORS", True),
    ],
)
def test_resolves(name: str, expected: bool) -> None:
    assert resolves(name) is expected


def test_references_are_read_out_of_prose() -> None:
    text = "see `reasoner.rl.kl`, reasoner.train(...) and reasoner/rl/kl.py, ./reasoner.py or x-reasoner.y"
    assert references(text) == ["reasoner.rl.kl", "reasoner.train"]
