"""The rollouts of a filter as a file: /export."""

import json
import tempfile

import pyarrow.parquet as pq
import pytest

from reasoner.runs import rollouts as store

WHERE = {"correct": "no", "step": "1:"}


@pytest.fixture(scope="module")
def chosen(rows):
    exported = [row for row in rows if row["verdict"] != "correct" and row["step"] >= 1]
    assert 3 < len(exported) < len(rows)
    return [{name: value for name, value in row.items() if name != "name"} for row in exported]


def export(client, kind, **where):
    return client.get("/export", params={"run": "whole", "format": kind, **where})


def test_an_export_as_json_lines_is_the_rows_of_the_filter_and_leaves_no_file(client, chosen, tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    reply = export(client, "jsonl", **WHERE)
    assert reply.headers["content-disposition"] == 'attachment; filename="whole-rollouts.jsonl"'
    exported = [json.loads(line) for line in reply.text.split("\n") if line]
    assert exported == [row | {"rewards": dict(row["rewards"])} for row in chosen] and not list(tmp_path.iterdir())


def test_an_export_as_parquet_is_the_rows_of_the_filter(client, chosen, tmp_path):
    path = tmp_path / "got.parquet"
    path.write_bytes(export(client, "parquet", **WHERE).content)
    assert store.rows_of(pq.read_table(path)) == chosen


@pytest.mark.parametrize("kind", ["jsonl", "parquet"])
def test_export_without_matches_is_empty_and_without_filter_complete(client, kind, tmp_path):
    path = tmp_path / f"got.{kind}"
    counts = []
    for where in ({"problem": "nothing"}, {}):
        path.write_bytes(export(client, kind, **where).content)
        counts.append(pq.read_table(path).num_rows if kind == "parquet" else len(path.read_text().splitlines()))
    assert counts == [0, 96]


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
