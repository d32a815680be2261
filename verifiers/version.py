"""The version of the grader. Verdicts are comparable only if they come from the same version."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path

_LIBRARIES = ("sympy", "math-verify", "latex2sympy2_extended")
_ROOT = Path(__file__).resolve().parents[1]


@lru_cache(maxsize=1)
def grader_version() -> str:
    """A 12-digit hexadecimal hash of the grader's code and of the versions of the algebra libraries."""
    return code_hash(_ROOT, grader_files(), [f"{library} {version(library)}" for library in _LIBRARIES])


def grader_files() -> list[Path]:
    """The files that decide a verdict: this package, `answers`, and `data`'s modules for answers and environments."""
    package = _ROOT / "verifiers"
    return [
        *sorted(package.glob("*.py")),
        *sorted((package / "answers").glob("*.py")),
        _ROOT / "data" / "boxes.py",
        *sorted((_ROOT / "data" / "environments").glob("*.py")),
    ]


def code_hash(root: Path, files: Iterable[Path], versions: Iterable[str]) -> str:
    """Hash names (relative to `root`) and contents of the files, and version texts, to 12 hexadecimal digits."""
    digest = hashlib.sha256()
    for path in files:
        digest.update(path.relative_to(root).as_posix().encode() + path.read_bytes())
    for text in versions:
        digest.update(text.encode())
    return digest.hexdigest()[:12]
