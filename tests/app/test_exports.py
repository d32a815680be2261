"""The rollouts of a filter as a file: /export."""

import io
import json
import tempfile

import pyarrow.parquet as pq
import pytest

from reasoner.runs import rollouts as store

KINDS = ("jsonl", "parquet")
WHERE = {"correct": "no", "step": "1:"}


@pytest.fixture(scope="module")
def chosen(rows):
    exported = [row for row in rows if row["verdict"] != "correct" and row["step"] >= 1]
    assert 3 < len(exported) < len(rows)
    return [{name: value for name, value in row.items() if name != "name"} for row in exported]


def test_an_export_is_the_rows_of_the_filter_and_leaves_no_file(client, chosen, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lines, table = (client.get("/export", params=WHERE | {"run": "whole", "format": kind}) for kind in KINDS)
    assert lines.headers["content-disposition"] == 'attachment; filename="whole-rollouts.jsonl"'
    exported = [json.loads(line) for line in lines.text.split("\n") if line]
    assert exported == [row | {"rewards": dict(row["rewards"])} for row in chosen]
    assert store.rows_of(pq.read_table(io.BytesIO(table.content))) == chosen and not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"format": "csv"}, "unknown format 'csv'; known are jsonl, parquet"),
        ({"run": "../x"}, "no run '../x'"),
        ({"colour": "red"}, "unknown filter 'colour'"),
    ],
)
def test_an_export_that_cannot_be_made_is_an_error_and_leaves_no_file(client, tmp_path, monkeypatch, body, message):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reply = client.get("/export", params={"run": "whole"} | body)
    assert reply.status_code == 400 and message in reply.json()["error"]
    assert list(tmp_path.iterdir()) == []
