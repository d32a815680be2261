"""Dotted names such as `reasoner.runs.metric_names.METRICS` in the documents exist."""

import importlib
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCUMENTS = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
# `data.` and `app.` are left out: data.train is a setting, and app.py a file.
_REFERENCE = re.compile(r"(?<![\w./@-])(?:reasoner|verifiers)(?:\.[A-Za-z_]\w*)+(?![\w/-])")
# Of Prime Intellect's library of that name (docs/DATA.md).
NOT_OURS = {"verifiers.types", "verifiers.clients", "verifiers.load_environment", "verifiers.utils.message_utils"}
_FILE_ENDINGS = ("py", "js", "md", "toml")


def resolves(reference: str) -> bool:
    """Whether a dotted name is a package, a module, or something that one of them or a class of theirs has."""
    module, _, name = reference.rpartition(".")
    try:
        importlib.import_module(reference)
    except ModuleNotFoundError:
        return bool(module) and (resolves(module) and has(module, name))
    return True


def has(owner: str, name: str) -> bool:
    """Whether a module, or a class of a module, has the name."""
    module, _, member = owner.rpartition(".")
    try:
        value = importlib.import_module(owner)
    except ModuleNotFoundError:
        value = getattr(importlib.import_module(module), member)
    return hasattr(value, name) or name in getattr(value, "__annotations__", {})


def references(text: str) -> set[str]:
    return {name for name in _REFERENCE.findall(text) if name.rpartition(".")[2] not in _FILE_ENDINGS} - NOT_OURS


def test_dotted_names_in_the_documents_exist() -> None:
    names = {path.name: references(path.read_text("utf-8")) for path in DOCUMENTS}
    missing = {page: [name for name in own if not resolves(name)] for page, own in names.items()}
    assert {page: own for page, own in missing.items() if own} == {}
    assert sum(map(len, names.values())) > 10  # the search finds the references
