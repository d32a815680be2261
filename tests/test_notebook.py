"""docs/quickstart.ipynb runs from its first cell to its last, and is stored without outputs."""

import ast
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from reasoner.models.resolve import BASE

ROOT = Path(__file__).parents[1]
NOTEBOOK = ROOT / "docs" / "quickstart.ipynb"

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


def code_cells():
    return [cell for cell in json.loads(NOTEBOOK.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def test_notebook_is_stored_without_outputs_and_its_cells_parse():
    assert [(cell["outputs"], cell["execution_count"]) for cell in code_cells()] == [([], None)] * len(code_cells())
    for cell in code_cells():
        ast.parse("".join(cell["source"]))


@pytest.mark.skipif(not (BASE / "model.safetensors").is_file(), reason="the embedded base is not built")
def test_notebook_runs_and_leaves_a_run_and_an_evaluation(tmp_path):
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))
    environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [sys.executable, "-c", KERNEL, NOTEBOOK], cwd=tmp_path, env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-3000:]
    assert "[<Verdict.CORRECT: 'correct'>, <Verdict.CORRECT: 'correct'>, <Verdict.WRONG: 'wrong'>]" in done.stdout
    assert "pass@1 is 0." in done.stdout and "brevity" in done.stdout
    assert len((tmp_path / "runs" / "quickstart" / "metrics.jsonl").read_text().splitlines()) == 3
    assert len(list((tmp_path / "evals").glob("*/evaluation.json"))) == 1
