"""The layers of docs/ARCHITECTURE.md: a box imports boxes below it and no other, and light boxes never import torch.

Imports inside functions count; those under TYPE_CHECKING, which never run, count for the order of the boxes and not for
torch.
"""

import ast
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

from scripts.architecture import Graph, box, circles, files, graphs

ROOT = Path(__file__).parents[2]
# From the top down. A box may import what stands below it.
ORDER = (
    "reasoner.__main__", "reasoner.cli", "app", "reasoner.recipes", "reasoner.api", "reasoner.doctor",
    "reasoner.trainer", "reasoner.analysis", "reasoner.preferences", "reasoner.evals", "reasoner.pretrain",
    "reasoner.inference", "reasoner.sft", "reasoner.rl",
    "reasoner.models", "reasoner.tools",
    "reasoner.rollouts", "reasoner.runs", "reasoner.config", "reasoner.types", "verifiers", "data",
    "reasoner.distributed", "reasoner.runtime", "reasoner.progress", "reasoner.console",
)  # fmt: skip
STACK = {"torch", "vllm", "transformers"}
# Boxes, and files of the other boxes, that start without torch: the command line and the dashboard need them at once.
LIGHT = (
    "data", "verifiers", "app", "reasoner.__main__", "reasoner.analysis", "reasoner.api", "reasoner.cli",
    "reasoner.config", "reasoner.console", "reasoner.distributed.launch",
    "reasoner.distributed.world", "reasoner.evals",
    "reasoner.inference.factory", "reasoner.inference.model_spec", "reasoner.inference.server_answers",
    "reasoner.inference.server_client", "reasoner.inference.server_dispatch", "reasoner.inference.server_guard",
    "reasoner.inference.server_pool", "reasoner.inference.server_token",
    "reasoner.models.checksums", "reasoner.models.families",
    "reasoner.models.folder", "reasoner.models.hub_download", "reasoner.models.resolve",
    "reasoner.preferences.dataset", "reasoner.preferences.rollout_pairs",
    "reasoner.recipes.pipeline", "reasoner.recipes.r1", "reasoner.recipes.results", "reasoner.recipes.stages",
    "reasoner.progress", "reasoner.rl.algorithms", "reasoner.rl.surrogates", "reasoner.rollouts", "reasoner.runs",
    "reasoner.runtime", "reasoner.sft.dataset", "reasoner.sft.examples", "reasoner.sft.sources", "reasoner.tools",
    "reasoner.trainer.resolve_run", "reasoner.trainer.preflight", "reasoner.trainer.trackers",
    "reasoner.types",
)  # fmt: skip
NO_GRADIO = ("data", "verifiers", "reasoner")


def modules_imported(tree: ast.AST, *, typing_too: bool, functions_too: bool) -> Iterator[str]:
    """The modules that a file names in its imports."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test) and not typing_too:
            continue
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not functions_too:
            continue
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, "imports are absolute here"
            yield str(node.module)
        elif not isinstance(node, ast.expr):
            yield from modules_imported(node, typing_too=typing_too, functions_too=functions_too)


def is_light(module: str) -> bool:
    return module == "reasoner" or any(module == name or module.startswith(f"{name}.") for name in LIGHT)


def heavy_imports(tree: ast.Module) -> list[str]:
    """What a light file must not import: the learning stack, and files of ours that import it, unless in a function."""
    at_once = modules_imported(tree, typing_too=False, functions_too=False)
    ours = ("reasoner", "data", "verifiers", "app")
    return [
        name
        for name in at_once
        if name.partition(".")[0] in STACK
        or (name.partition(".")[0] in ours and name in MODULES and not is_light(name))
    ]


MODULES = files(ROOT)


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text("utf-8"))


@pytest.fixture(scope="module")
def our_graphs() -> tuple[Graph, Graph]:
    return graphs(ROOT)


def test_imports_of_all_packages_run_downwards_only_and_in_no_cycle(our_graphs: tuple[Graph, Graph]) -> None:
    by_file, by_box = our_graphs
    assert set(by_box) == set(ORDER)
    assert [(a, b) for a, others in by_box.items() for b in others if ORDER.index(b) <= ORDER.index(a)] == []
    assert circles(by_box) == [] and circles(by_file) == []


def test_light_files_import_no_torch() -> None:
    light = [name for name in MODULES if is_light(name)]
    heavy = {module: heavy_imports(tree_of(module)) for module in light}
    assert {module: names for module, names in heavy.items() if names} == {}


def packages_imported(module: str, *, typing_too: bool) -> set[str]:
    """The first parts of what a module imports, in functions too."""
    tree = tree_of(module)
    return {name.partition(".")[0] for name in modules_imported(tree, typing_too=typing_too, functions_too=True)}


def test_data_verifiers_and_app_never_import_torch_and_gradio_is_the_dashboards_alone() -> None:
    modules = [name for name in MODULES if box(name) in ("data", "verifiers", "app")]
    assert [module for module in modules if STACK & packages_imported(module, typing_too=False)] == []
    modules = [name for name in MODULES if name.partition(".")[0] in NO_GRADIO]
    assert [module for module in modules if "gradio" in packages_imported(module, typing_too=True)] == []


@pytest.mark.parametrize(
    ("source", "count"),
    [
        ("from transformers import AutoTokenizer", 1),
        ("from reasoner.trainer.train import train", 1),
        ("import torch", 1),
        ("def f():\n    from reasoner.trainer.train import train", 0),
        ("if TYPE_CHECKING:\n    from transformers import PreTrainedTokenizerBase", 0),
        ("from reasoner.runs.rollouts import read", 0),
    ],
)
def test_a_planted_import_is_found(source: str, count: int) -> None:
    assert len(heavy_imports(ast.parse(source))) == count


def test_starting_a_command_loads_no_torch_and_no_tracker() -> None:
    modules = "reasoner, reasoner.cli.main, reasoner.trainer.preflight, reasoner.trainer.trackers, app.server"
    heavy = {"torch", "vllm", "transformers", "wandb", "tensorboard"}
    script = f"import sys, {modules}; print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"


def test_grading_starts_without_the_libraries_that_only_hard_answers_need() -> None:
    script = (
        "import sys, verifiers; verifiers.grade('0.5', '1/2')\n"
        "print(sorted({'sympy', 'math_verify', 'torch', 'datasets', 'pyarrow', 'numpy'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True)
    assert done.stdout.strip() == "[]"
