"""The import table of docs/ARCHITECTURE.md: data <- verifiers <- reasoner (light) <- app, and the heavy half.

Imports inside functions count as well; those under TYPE_CHECKING, which never run, do not.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LIGHT = {
    "__init__", "aha", "atomic", "browse", "config", "controls", "dumps", "evals", "figures", "filters", "grading",
    "health", "imports", "index", "journal", "json_files", "metrics", "page", "presets", "progress", "prompts", "runs",
    "seeds", "settings", "size", "store", "terminal", "types",
}  # fmt: skip
ENTRANCE = {"__main__", "arguments", "cli", "launch"}  # reach everything, inside functions

MAY_IMPORT = {
    "data": {"data"},
    "verifiers": {"data", "verifiers"},
    "light": {"data", "verifiers", "light"},
    "heavy": {"data", "verifiers", "light", "heavy"},
    "app": {"data", "verifiers", "light", "app"},
    "entrance": {"data", "verifiers", "light", "heavy", "app", "entrance"},
}
STACK = {"torch", "vllm", "transformers"}
NEVER = {"data": STACK | {"gradio"}, "verifiers": STACK | {"gradio"}, "light": STACK | {"gradio"}, "app": STACK}


def room(module: str) -> str | None:
    """The room of a dotted name, or None for a package that is not ours."""
    top, _, rest = module.partition(".")
    if top != "reasoner":
        return top if top in ("data", "verifiers", "app") else None
    name = rest.partition(".")[0] or "__init__"
    return "entrance" if name in ENTRANCE else "light" if name in LIGHT else "heavy"


def imported(tree: ast.AST) -> Iterator[str]:
    """Every dotted name that a file imports; `from reasoner import rollout` is reasoner.rollouts.generate."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            is_package = (ROOT / str(node.module).replace(".", "/")).is_dir()
            yield from (f"{node.module}.{alias.name}" if is_package else str(node.module) for alias in node.names)
        else:
            yield from imported(node)


def violations(module: str, source: str) -> list[str]:
    here = room(module)
    assert here is not None
    found = []
    for name in imported(ast.parse(source)):
        there = room(name)
        if there is not None and there not in MAY_IMPORT[here]:
            found.append(f"{module} ({here}) imports {name} ({there})")
        if name.partition(".")[0] in NEVER.get(here, ()):
            found.append(f"{module} ({here}) imports {name}")
    return found


FILES = [path for folder in ("data", "verifiers", "reasoner", "app") for path in sorted((ROOT / folder).rglob("*.py"))]


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_imports_point_one_way(path: Path) -> None:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    assert violations(module, path.read_text("utf-8")) == []


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("data.files", "from verifiers.rules import grade"),
        ("data.files", "def f():\n    import torch"),
        ("verifiers.maths", "import reasoner.types"),
        ("verifiers.maths", "from transformers import AutoTokenizer"),
        ("reasoner.evals.estimators", "from reasoner.rollouts.generate import rollout"),
        ("reasoner.evals.estimators", "from reasoner import rollout"),
        ("reasoner.trainer.train", "from app.dashboard import launch"),
        ("app.views", "from reasoner.trainer.train import train"),
    ],
)
def test_a_planted_violation_is_found(module: str, source: str) -> None:
    assert len(violations(module, source)) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("reasoner.cli.main", "def f():\n    from reasoner.trainer.train import train"),
        ("reasoner.rollouts.prompts", "if TYPE_CHECKING:\n    from transformers import PreTrainedTokenizerFast"),
        ("app.views", "from reasoner.runs.rollouts import read"),
        ("reasoner.trainer.train", "from reasoner import types\nimport torch"),
    ],
)
def test_what_the_table_allows_is_no_violation(module: str, source: str) -> None:
    assert violations(module, source) == []


def test_grading_starts_without_the_libraries_that_only_hard_answers_need() -> None:
    script = (
        "import sys, verifiers; verifiers.grade('0.5', '1/2')\n"
        "print(sorted({'sympy', 'math_verify', 'torch', 'datasets', 'pyarrow', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"
