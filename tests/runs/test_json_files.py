"""Lines that are added to a file are read as they were written, or refused by file and number."""

import pytest

from reasoner.runs.json_files import (
    COUNT,
    append_line,
    iter_lines,
    read_lines,
    read_object,
    scan_steps,
    without_crc,
    write_json,
)

LINES = [{"step": 0, "loss": 0.5}, {"step": 1, "loss": 1.5, "text": 'a "crc32": b'}]


@pytest.fixture
def log(tmp_path):
    for line in LINES:
        append_line(tmp_path / "log.jsonl", line)
    return tmp_path / "log.jsonl"


def test_lines_come_back_without_their_crc(log):
    assert read_lines(log, {"step": COUNT}) == LINES
    assert [line for _, line in scan_steps(log)] == LINES
    assert without_crc(b'{"step": 2}', "line") == b'{"step": 2}'  # of another program


@pytest.mark.parametrize(("old", "new"), [(b"1.5", b"1.7"), (b"}\n", b"}\x0b"), (b'"}', b'"|'), (b', "crc', b", #crc")])
def test_damaged_last_line_is_refused_and_not_taken_for_a_torn_one(log, old, new):
    before, _, after = log.read_bytes().rpartition(old)
    log.write_bytes(before + new + after)
    with pytest.raises(ValueError, match=r"log.jsonl, line 2 is damaged"):
        read_lines(log, {"step": COUNT})


def test_torn_last_line_is_left_out_wherever_it_ends(log):
    content = log.read_bytes()
    first = content.index(b"\n") + 1
    for end in range(first + 1, len(content) - 3):
        log.write_bytes(content[:end])
        assert read_lines(log, {"step": COUNT}) == LINES[:1]


def test_nan_and_infinity_are_written_as_null(tmp_path):
    value = {"a": [1.0, float("nan"), (float("inf"), "x")], 3: {"b": -float("inf")}, "c": True, "d": None, "e": 2**60}
    write_json(tmp_path / "x.json", value)
    written = {"a": [1.0, None, [None, "x"]], "3": {"b": None}, "c": True, "d": None, "e": 2**60}
    assert read_object(tmp_path / "x.json") == written


def test_lines_are_read_one_by_one(log):
    log.write_bytes(log.read_bytes() + b"[]\n")
    lines = iter_lines(log, {"step": COUNT})
    assert [next(lines), next(lines)] == LINES
    with pytest.raises(ValueError, match=r"log.jsonl, line 3 is damaged"):
        next(lines)
