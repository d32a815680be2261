"""The notebooks of the documentation run from their first cell to their last, and are stored without outputs."""

import ast
import json
import os
from pathlib import Path

import pytest
import torch

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
    "2-grpo-by-hand": ("('no_answer', False, 0.0)", "[-0.07326, 0.10256, -0.0293]"),
    "3-reading-a-run": ("groups have zero variance", "('doubt', 'correct', '58', '68')", "control  pass@1"),
}
LONG = ("1-policy-gradient", "3-reading-a-run")  # nightly; their calls: tests/test_api.py
CASES = [pytest.param(path, id=path.stem, marks=[pytest.mark.slow] if path.stem in LONG else []) for path in NOTEBOOKS]


def code_cells(notebook):
    return [cell for cell in json.loads(notebook.read_text("utf-8"))["cells"] if cell["cell_type"] == "code"]


def run_notebook(notebook):
    """Run the cells in one namespace, as a kernel does, and print the value of each cell's last expression."""
    namespace, sources = {}, {cell["id"]: "".join(cell["source"]) for cell in code_cells(notebook)}
    for name, source in sources.items():
        *rest, last = ast.parse(source).body
        exec(compile(ast.Module(rest, []), name, "exec"), namespace)
        if isinstance(last, ast.Expr):
            print(f"{name}:", eval(compile(ast.Expression(last.value), name, "eval"), namespace))
        else:
            exec(compile(ast.Module([last], []), name, "exec"), namespace)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda notebook: notebook.stem)
def test_notebook_is_stored_without_outputs_and_its_cells_parse(notebook):
    cells = code_cells(notebook)
    assert [(cell["outputs"], cell["execution_count"]) for cell in cells] == [([], None)] * len(cells)
    for cell in cells:
        ast.parse("".join(cell["source"]))


@pytest.mark.parametrize("notebook", CASES)
def test_notebook_runs(notebook, tmp_path, monkeypatch, capsys):
    threads = torch.get_num_threads()
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MPLBACKEND", "agg")
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")])))
    try:
        run_notebook(notebook)
    finally:
        torch.set_num_threads(threads)
        torch.set_default_dtype(torch.float32)  # the first lesson computes in float64
    printed = capsys.readouterr().out
    for text in EXPECTED[notebook.stem]:
        assert text in printed
    if notebook.stem == "quickstart":
        assert len((tmp_path / "runs" / "quickstart" / "metrics.jsonl").read_text().splitlines()) == 3
        assert len(list((tmp_path / "evals").glob("*/evaluation.json"))) == 1
