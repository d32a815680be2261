"""Names say what a value is or what a function does, not what was done to it (STYLE: no participles as names)."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FILES = sorted(path for room in ("reasoner", "verifiers", "data", "app") for path in (ROOT / room).rglob("*.py"))

# For anything: locals, parameters, attributes and functions, with or without leading underscores.
FORBIDDEN = {"found", "told", "asked", "made", "drawn", "given", "kept", "begun", "gathered"}

# For public functions, methods and classes: every word in -ed that is not listed here, and these irregular participles.
# Forms that are also a base form or a noun (cut, put, read, run, set, split, left, thought) are no participles here.
NOT_PARTICIPLES = {"embed", "feed", "need", "seed", "speed"}
IRREGULAR = {
    "begun", "bought", "bound", "brought", "broken", "built", "caught", "chosen", "done", "drawn", "driven", "fallen",
    "felt", "forgotten", "found", "frozen", "given", "gone", "grown", "heard", "held", "hidden", "kept", "known",
    "laid", "learnt", "lent", "lost", "made", "meant", "met", "paid", "said", "seen", "sent", "shown", "sold",
    "spent", "spoken", "stolen", "taken", "taught", "thrown", "told", "understood", "worn", "written",
}  # fmt: skip
ALLOWED = {
    "clipped": "the name of PPO's surrogate objective, a row of the table SURROGATES",
    "unclipped": "its counterpart",
}


def forbidden_names(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """(line, name) of every FORBIDDEN word that the code binds."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.Attribute(attr=name, ctx=ast.Store()) | ast.arg(arg=name):
                pass
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                pass
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                pass
            case ast.alias(asname=str(name)):
                pass
            case _:
                continue
        if name.strip("_").lower() in FORBIDDEN:
            yield getattr(node, "lineno", 0), name


def public_participles(tree: ast.Module | ast.ClassDef) -> Iterator[tuple[int, str]]:
    """(line, name) of public functions, methods and classes whose whole name is a participle."""
    for node in tree.body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            continue
        word = node.name.lower()
        is_participle = word in IRREGULAR or (re.fullmatch(r"[a-z]+ed", word) and word not in NOT_PARTICIPLES)
        if is_participle and node.name not in ALLOWED:
            yield node.lineno, node.name
        if isinstance(node, ast.ClassDef):
            yield from public_participles(node)


def places(names: dict[Path, list[tuple[int, str]]]) -> list[str]:
    """The lines of a failure: FILE:LINE NAME."""
    return [f"{path.relative_to(ROOT)}:{line} {name}" for path, own in names.items() for line, name in sorted(own)]


def test_no_value_is_called_by_a_forbidden_participle() -> None:
    names = {path: list(forbidden_names(ast.parse(path.read_text("utf-8")))) for path in FILES}
    assert places(names) == []


def test_no_public_function_or_class_is_called_by_a_participle() -> None:
    names = {path: list(public_participles(ast.parse(path.read_text("utf-8")))) for path in FILES}
    assert places(names) == []


def test_every_allowed_participle_exists() -> None:
    names = {
        node.name
        for path in FILES
        for node in ast.walk(ast.parse(path.read_text("utf-8")))
        if isinstance(node, ast.FunctionDef | ast.ClassDef)
    }
    assert set(ALLOWED) <= names


@pytest.mark.parametrize(
    ("source", "forbidden", "public"),
    [
        ("found = 1", ["found"], []),
        ("def f(told, *made, **kept): pass", ["told", "made", "kept"], []),
        ("self._asked = [drawn for drawn in x]", ["_asked", "drawn"], []),
        ("class A:\n    given: int = 0\n    def gathered(self): pass", ["given", "gathered"], ["gathered"]),
        ("try:\n    pass\nexcept E as found:\n    import a as begun", ["found", "begun"], []),
        ("match x:\n    case [found, *made]: pass", ["found", "made"], []),
        ("def f():\n    def whitened(): pass", [], []),
        ("def whitened(): pass\nclass Resolved:\n    async def sent(self): pass", [], ["whitened", "Resolved", "sent"]),
        ("def speed(): pass\ndef _cached(): pass\ndef is_cached(): pass\ndef read(): pass", [], []),
        ("print(found, a.given)\nf(made=1)", [], []),  # other packages' names
    ],
)
def test_planted_names_are_reported(source: str, forbidden: list[str], public: list[str]) -> None:
    tree = ast.parse(source)
    assert sorted(name for _, name in forbidden_names(tree)) == sorted(forbidden)
    assert [name for _, name in public_participles(tree)] == public
