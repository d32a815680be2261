"""The table of families in docs/MODELS.md is what its script measures."""

import math
from importlib.util import find_spec

import pytest
import torch

from bench import model_columns, models
from reasoner.models.families import check_family
from tests.fixtures.families import FAMILIES


@pytest.mark.slow
@pytest.mark.vllm
@pytest.mark.skipif(not all(map(find_spec, ("vllm", "peft"))), reason="vLLM or peft is not installed")
@pytest.mark.timeout(model_columns.SECONDS + 60)
@pytest.mark.parametrize("family", models.FAMILIES)
def test_every_cell_of_a_family_is_as_the_document_has_it(family):
    cells = zip(models.COLUMNS, models.measure(family), models.documented()[family], strict=True)
    assert [cell for cell in cells if not models.agrees(*cell[1:])] == []


def test_document_has_a_cell_for_each_family_and_column():
    assert models.FAMILIES.keys() - FAMILIES.keys() == {"lfm2"} and models.FAMILIES.keys() > FAMILIES.keys()
    assert tuple(model_columns.COLUMNS) == models.COLUMNS
    rows = models.documented()
    assert rows.keys() == models.FAMILIES.keys()
    for cells in rows.values():
        assert len(cells) == len(models.COLUMNS)
        assert all(models.is_gap(cell) or cell.startswith(("refused", "equal", "with a mask")) for cell in cells)


@pytest.mark.parametrize(
    ("cell", "written", "expected"),
    [
        ("9e-6", "1e-6", True), ("1e-5", "1e-6", False), ("9e-7", "0", True), ("1e-6", "0", False),
        ("equal", "equal", True), ("1e-9", "equal", False), ("0", "1e-6", True),
        ("refused: no", "refused: no", True), ("refused: no", "refused: other", False), ("refused: no", "1e-6", False),
        ("1e-6", "refused: no", False), ("FAILED: KeyError: 0", "1e-6", False),
    ],
)  # fmt: skip
def test_a_cell_agrees_with_a_gap_below_ten_times_as_much_or_the_same_refusal(cell, written, expected):
    assert models.agrees(cell, written) == expected


@pytest.mark.parametrize(
    ("column", "expected"),
    [
        (lambda *_: 4.1e-6, "4e-6"),
        (lambda *_: 0.0, "0"),
        (lambda *_: 0.4, "FAILED"),
        (lambda *_: math.nan, "FAILED"),
        (lambda *_: check_family({"model_type": "mamba"}), "refused: its layers carry a state"),
        (lambda *_: torch.zeros(2) @ torch.zeros(3), "FAILED: RuntimeError"),
        (lambda *_: int("text"), "FAILED: ValueError"),
    ],
)
def test_only_a_small_gap_or_an_error_that_we_raise_is_a_result(column, expected, tmp_path, monkeypatch):
    monkeypatch.setitem(model_columns.COLUMNS, "trainer", column)
    assert model_columns.cell("trainer", tmp_path).startswith(expected)
