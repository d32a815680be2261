"""Damaged evaluations: each is listed with the reason, and the others work."""

import json

import pyarrow as pa
import pytest

from reasoner.cli.main import main
from reasoner.models.checksums import CHECKSUMS
from tests.app.damage import (
    NO_OBJECT,
    NOT_A_FILE,
    QUESTIONS,
    SPEC,
    binary,
    cases,
    changed,
    empty,
    holding,
    link_out,
    missing,
    refused_at_most,
    truncated,
)  # fmt: skip

pytestmark = pytest.mark.timeout(120)  # nothing here may wait for a named pipe

PRESET_DESCRIPTIONS = {
    "model": "m",
    "data": {SPEC: {"rows": 2, "sha256": "s"}},
    "samples": 2,
    "grader": "g",
    "prompt": {},
}


def about(**changes):
    damage = holding(
        json.dumps({name: value for name, value in (PRESET_DESCRIPTIONS | changes).items() if value != "LEFT OUT"})
    )
    damage.__name__ = ", ".join(f"{name} is {value!r}"[:40] for name, value in changes.items())
    return damage


EVALS = {
    "evaluation.json": NOT_A_FILE
    | NO_OBJECT
    | {
        empty: "is damaged",
        truncated: "is damaged",
        holding("{}"): "it has no 'model'",
        about(model=None): "model is None",
        about(model="LEFT OUT"): "it has no 'model'",
        about(data=None): "data is None",
        about(data=[]): "data is []",
        about(data={}): "it lists no data set",
        about(data={SPEC: None}): "it is not a JSON object",
        about(data={SPEC: {"rows": float("nan"), "sha256": ""}}): "NaN is not JSON",
        about(data={SPEC: {"rows": 1e300, "sha256": ""}}): "rows is 1e+300",
        about(samples="two"): "samples is 'two'",
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
}
SAMPLES = {
    f"samples_{SPEC}.jsonl": NOT_A_FILE
    | {
        missing: "has no samples_set.jsonl",
        truncated: "is damaged",
        binary: "is damaged",
        holding("{}"): "it has no 'doc'",
        holding("null"): "it is not a JSON object",
        holding('{"doc": {"id": 1}, "filter": "none", "metrics": []}'): "id is 1",
    },
    "samples.parquet": NOT_A_FILE
    | {
        missing: "has no samples.parquet",
        empty: "is damaged",
        truncated: "is damaged",
        binary: "is damaged",
        changed("correct", None): "it has no column 'correct'",
        changed("correct", [None], pa.bool_()): "column 'correct' has empty cells",
        changed("correct", ["perhaps"]): "is damaged",
    },
}


def in_both_places(table):
    """The cases for an evaluation of its own and for the held-out one of a run."""
    return cases(table, "bad") + cases(table, "bad/after", is_whole=False)


@pytest.mark.parametrize(("file", "damage", "reason", "name"), in_both_places(EVALS))
def test_a_damaged_evaluation_is_listed_with_the_reason_and_the_others_work(library, ask, file, damage, reason, name):
    damage(place_of(library, name) / file)
    answer = ask("evals")
    faults = {entry["name"]: entry["fault"] for entry in answer["faults"]}
    assert name in faults and reason in faults[name] and file in faults[name]
    assert {"good", "good/after", "fine/after"} <= {row["name"] for row in answer["rows"]}
    for query, arguments in QUESTIONS:
        ask(query, **arguments)
    refused_at_most(ask, "evaluation", {"name": name})
    refused_at_most(ask, "compare", {"runs": ["good", "bad"]})


@pytest.mark.parametrize(("file", "damage", "reason", "name"), in_both_places(SAMPLES))
def test_damaged_samples_are_the_reason_of_their_evaluation_alone(library, ask, file, damage, reason, name):
    damage(place_of(library, name) / file)
    with pytest.raises(ValueError) as caught:
        ask("evaluation", name=name)
    assert reason in str(caught.value) and file in str(caught.value)
    for query, arguments in QUESTIONS:
        ask(query, **arguments)
    refused_at_most(ask, "compare", {"runs": ["good", "bad"]})


def place_of(library, name):
    """The folder of an evaluation, without its checksums, as one of another program."""
    folder = library / "evals" / name if "/" not in name else library / "runs" / "bad" / "heldout" / "after"
    (folder / CHECKSUMS).unlink()
    return folder


def test_an_evaluation_that_is_compared_on_the_command_line_has_no_links_out(library, capsys):
    link_out(library / "evals" / "bad" / f"samples_{SPEC}.jsonl")
    assert main(["compare", "good", "bad", "--out", str(library / "evals")]) == 2
    assert "is a link that leads outside it" in capsys.readouterr().err
