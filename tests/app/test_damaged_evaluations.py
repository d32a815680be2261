"""Damaged evaluations: each is listed with the reason, and the others work."""

import json
from pathlib import Path

import pyarrow as pa
import pytest

from reasoner.cli.main import main
from reasoner.models.checksums import CHECKSUMS
from tests.app import damage as ways
from tests.app.damage import NO_OBJECT, NOT_A_FILE, SPEC, changed, empty, holding, truncated

pytestmark = pytest.mark.timeout(600)  # nothing here may wait for a named pipe

PRESET_DESCRIPTIONS = {
    "model": "m", "data": {SPEC: {"rows": 2, "sha256": "s"}}, "samples": 2, "grader": "g", "prompt": {},
}  # fmt: skip


def about(**changes):
    values = PRESET_DESCRIPTIONS | changes
    damage = holding(json.dumps({name: value for name, value in values.items() if value != "LEFT OUT"}))
    damage.__name__ = ", ".join(f"{name} is {value!r}"[:40] for name, value in changes.items())
    return damage


EVALS = {
    "evaluation.json": NOT_A_FILE
    | NO_OBJECT
    | {
        empty: "is damaged", truncated: "is damaged", holding("{}"): "it has no 'model'",
        about(model=None): "model is None", about(model="LEFT OUT"): "it has no 'model'",
        about(data=None): "data is None", about(data=[]): "data is []", about(data={}): "it lists no data set",
        about(data={SPEC: None}): "it is not a JSON object",
        about(data={SPEC: {"rows": float("nan"), "sha256": ""}}): "NaN is not JSON",
        about(data={SPEC: {"rows": 1e300, "sha256": ""}}): "rows is 1e+300", about(samples="two"): "samples is 'two'",
        about(prompt="none"): "prompt is 'none'",
    },
    "results.json": NOT_A_FILE
    | NO_OBJECT
    | {
        empty: "is damaged",
        truncated: "is damaged",
        holding('{"set": []}'): "it is not a JSON object",
        holding('{"set": {"sampled": {"metrics": []}}}'): "metrics is []",
        holding('{"set": {"sampled": {"metrics": {"pass@1": {"value": "x"}}}}}'): "value is 'x'",
        holding('{"set": {"sampled": {"metrics": {"pass@1": {"value": NaN}}}}}'): "NaN is not JSON",
    },
}  # fmt: skip
SAMPLES = {
    f"samples_{SPEC}.jsonl": NOT_A_FILE
    | {
        ways.missing: "has no samples_set.jsonl", truncated: "is damaged", ways.binary: "is damaged",
        holding("{}"): "it has no 'doc'", holding("null"): "it is not a JSON object",
        holding('{"doc": {"id": 1}, "filter": "none", "metrics": []}'): "id is 1",
    },
    "samples.parquet": NOT_A_FILE
    | {
        ways.missing: "has no samples.parquet",
        empty: "is damaged",
        truncated: "is damaged",
        ways.binary: "is damaged",
        changed("correct", None): "it has no column 'correct'",
        changed("correct", [None], pa.bool_()): "column 'correct' has empty cells",
        changed("correct", ["perhaps"]): "is damaged",
    },
}  # fmt: skip


def damaged_evaluations(library, table, *, of_run):
    """Cases of damage by the name of their evaluation: one of its own, or with `of_run` the held-out one of a run.

    The evaluations have no checksums, as those of another program.
    """
    inside = "heldout/after/" if of_run else ""
    (library / ("runs" if of_run else "evals") / "bad" / inside / CHECKSUMS).unlink()
    located = [(f"{inside}{file}", damage, reason) for file, damage, reason in table]
    by_name = ways.copies(library / ("runs" if of_run else "evals"), located)
    return {f"{name}/after" if of_run else name: case for name, case in by_name.items()}


def expect_others(ask, names):
    """Every page of the other evaluations works, and one of a damaged evaluation says at most why it does not."""
    for query, arguments in ways.QUESTIONS:
        ask(query, **arguments)
    for name in names:
        ways.refused_at_most(ask, "evaluation", {"name": name})
        ways.refused_at_most(ask, "compare", {"runs": ["good", name.partition("/")[0]]})


@pytest.mark.parametrize("of_run", [False, True])
@ways.cases(EVALS)
def test_damaged_evaluations_are_listed_with_their_reasons_and_the_others_work(library, ask, table, of_run):
    damaged = damaged_evaluations(library, table, of_run=of_run)
    answer = ask("evals")
    faults = {entry["name"]: entry["fault"] for entry in answer["faults"]}
    assert faults.keys() == damaged.keys()
    for name, (path, damage, reason) in damaged.items():
        assert reason in faults[name] and Path(path).name in faults[name], (path, damage.__name__, faults[name])
    assert {"good", "good/after", "fine/after"} <= {row["name"] for row in answer["rows"]}
    expect_others(ask, damaged)


@pytest.mark.parametrize("of_run", [False, pytest.param(True, marks=pytest.mark.slow)])
@ways.cases(SAMPLES)
def test_damaged_samples_are_the_reason_of_their_evaluation_alone(library, ask, table, of_run):
    damaged = damaged_evaluations(library, table, of_run=of_run)
    for name, (path, _, reason) in damaged.items():
        with pytest.raises(ValueError) as caught:
            ask("evaluation", name=name)
        assert reason in str(caught.value) and Path(path).name in str(caught.value)
    expect_others(ask, damaged)


def test_an_evaluation_that_is_compared_on_the_command_line_has_no_links_out(library, capsys):
    ways.link_out(library / "evals" / "bad" / f"samples_{SPEC}.jsonl")
    assert main(["compare", "good", "bad", "--out", str(library / "evals")]) == 2
    assert "is a link that leads outside it" in capsys.readouterr().err
