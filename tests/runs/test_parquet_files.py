"""Parquet files are read as they were written, or refused by name."""

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reasoner.runs.parquet_files import read_table, write_table

TABLE = pa.table(
    {"reward": pa.array([0.5, 1.0], pa.float32()), "tokens": pa.array([[1, 2], [3]], pa.list_(pa.int32()))}
)


@pytest.mark.parametrize("part", [b"\x00\x00\x00\x3f\x00\x00\x80\x3f", b"reward"], ids=["page", "name of a column"])
def test_flipped_bit_is_refused_with_the_file(tmp_path, part):
    path = tmp_path / "step-000000.parquet"
    pq.write_table(TABLE, path, compression="none", use_dictionary=False, write_page_checksum=True)
    content = path.read_bytes()
    at = content.index(part)
    path.write_bytes(content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :])
    with pytest.raises(ValueError, match=r"step-000000.parquet is damaged"):
        read_table(path)


def test_table_comes_back_and_columns_that_are_missing_are_left_out(tmp_path):
    write_table(tmp_path / "a.parquet", TABLE)
    assert read_table(tmp_path / "a.parquet") == TABLE
    assert read_table(tmp_path / "a.parquet", ["tokens", "kl"]).column_names == ["tokens"]
    assert not list(tmp_path.glob("*.partial"))
    pq.write_table(TABLE, tmp_path / "a.parquet", store_schema=False)  # as other writers do
    assert read_table(tmp_path / "a.parquet") == TABLE
