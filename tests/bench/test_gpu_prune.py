"""bench/gpu_prune.py on constructed libraries."""

import struct
import sys

import pytest

from bench import gpu_prune


def _entry(capability, code, kind=2):
    header = struct.pack("<HHIQ", kind, 1, 64, len(code)).ljust(28, b"\1") + struct.pack("<I", capability)
    return header.ljust(64, b"\2") + code


def _fat_binary(*entries):
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, sum(map(len, entries))) + b"".join(entries)


def test_code_of_other_gpus_is_zeroed_and_all_else_is_kept():
    before = [b"ELF", _fat_binary(_entry(80, b"eighty!!"), _entry(90, b"ninety"), _entry(80, b"ptx", kind=1)), b"text"]
    after = [b"ELF", _fat_binary(_entry(80, bytes(8)), _entry(90, b"ninety"), _entry(80, bytes(3), kind=1)), b"text"]
    data = bytearray(b"".join(before))
    assert gpu_prune.prune(data, {90}) == {80: 11, 90: 6}
    assert data == b"".join(after)


@pytest.mark.parametrize(
    "data",
    [
        b"no code at all",
        struct.pack("<I", 0xBA55ED50),  # the magic number at the end of the file
        struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 10**9) + b"more than there is",
        struct.pack("<IHHQ", 0xBA55ED50, 1, 16, 40) + b"\7" * 40,  # entries of an unknown kind
        _fat_binary(_entry(80, b"code")[:-1]),  # an entry that goes beyond its fat binary
    ],
)
def test_what_does_not_look_like_a_fat_binary_is_left(data):
    changed = bytearray(data)
    assert not gpu_prune.prune(changed, {90})
    assert changed == data


def test_the_command_leaves_a_library_without_code_for_the_gpu(tmp_path, monkeypatch, capsys):
    libraries = {
        "both": _fat_binary(_entry(80, b"a" * 9), _entry(90, b"b")),
        "other": _fat_binary(_entry(80, b"a" * 9)),
    }
    for name, data in libraries.items():
        (tmp_path / name).write_bytes(data)
    monkeypatch.setattr(sys, "argv", ["gpu_prune.py", "--keep", "90", *(str(tmp_path / name) for name in libraries)])
    gpu_prune.main()
    assert (tmp_path / "both").read_bytes() == _fat_binary(_entry(80, bytes(9)), _entry(90, b"b"))
    assert (tmp_path / "other").read_bytes() == libraries["other"]
    assert "1 of 10 bytes of code kept" in capsys.readouterr().out
