"""The notebooks of the documentation run from their first cell to their last, and are stored without outputs."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reasoner.models.resolve import BASE

ROOT = Path(__file__).parents[1]
NOTEBOOKS = sorted((ROOT / "docs").glob("**/*.ipynb"))
# What a run of the notebook prints.
EXPECTED = {
    "quickstart": (
        "[<Verdict.CORRECT: 'correct'>, <Verdict.CORRECT: 'correct'>, <Verdict.WRONG: 'wrong'>]",
        "pass@1 is 0.",
        "brevity",
    ),
    "1-policy-gradient": ("[True, True, True, True]", "reward to go - V(s)", "TRPO"),
    "2-grpo-by-hand": ("('malformed', False, 0.0)", "[-0.07326, 0.10256, -0.0293]"),
    "3-reading-a-run": ("groups have zero variance", "('doubt', 'correct', '58', '68')", "control  pass@1"),
}
needs_base = pytest.mark.skipif(not (BASE / "model.safetensors").is_file(), reason="the embedded base is not built")

# Runs the cells in one namespace, as a kernel does, and prints the value of each cell's last expression.
KERNEL = """
import ast, json, sys
namespace = {}
for cell in json.load(open(sys.argv[1], encoding="utf-8"))["cells"]:
    if cell["cell_type"] == "code":
        *rest, last = ast.parse("".join(cell["source"])).body
        exec(compile(ast.Module(rest, []), cell["id"], "exec"), namespace)
        if isinstance(last, ast.Expr):
            print(f"{cell['id']}:", eval(compile(ast.Expression(last.value), cell["id"], "eval"), namespace))
        else:
            exec(compile(ast.Module([last], []), cell["id"], "exec"), namespace)
"""


def code_cells(notebook):
    return [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def run_notebook(notebook, folder):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "MPLBACKEND": "agg"}
    done = subprocess.run(
        [sys.executable, "-c", KERNEL, notebook], cwd=folder, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    return done.stdout


def test_every_notebook_has_a_case():
    assert {notebook.stem for notebook in NOTEBOOKS} == set(EXPECTED)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebook_is_stored_without_outputs_and_its_cells_parse(notebook):
    cells = code_cells(notebook)
    assert [(cell["outputs"], cell["execution_count"]) for cell in cells] == [([], None)] * len(cells)
    for cell in cells:
        ast.parse("".join(cell["source"]))


@needs_base
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebook_runs(notebook, tmp_path):
    printed = run_notebook(notebook, tmp_path)
    for text in EXPECTED[notebook.stem]:
        assert text in printed
    if notebook.stem == "quickstart":
        assert len((tmp_path / "runs" / "quickstart" / "metrics.jsonl").read_text().splitlines()) == 3
        assert len(list((tmp_path / "evals").glob("*/evaluation.json"))) == 1
