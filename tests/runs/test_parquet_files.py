"""Parquet files are read as they were written, or refused by name."""

import pyarrow as pa
import pyarrow.parquet as pq

from reasoner.runs.parquet_files import read_table, write_table

TABLE = pa.table(
    {"reward": pa.array([0.5, 1.0], pa.float32()), "tokens": pa.array([[1, 2], [3]], pa.list_(pa.int32()))}
)


def test_table_comes_back_and_columns_that_are_missing_are_left_out(tmp_path):
    write_table(tmp_path / "a.parquet", TABLE)
    assert read_table(tmp_path / "a.parquet") == TABLE
    assert read_table(tmp_path / "a.parquet", ["tokens", "kl"]).column_names == ["tokens"]
    assert not list(tmp_path.glob("*.partial"))
    pq.write_table(TABLE, tmp_path / "a.parquet", store_schema=False)  # as other writers do
    assert read_table(tmp_path / "a.parquet") == TABLE
