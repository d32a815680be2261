"""Zero the code for other GPUs in CUDA libraries: `python bench/gpu_prune.py --keep 90 LIBRARY.so ...`.

The files are changed in place and keep their sizes, but compress far better, for a machine to which little can be
carried (docs/PERFORMANCE.md). Kept are the machine code and PTX of the compute capabilities named, 90 for an H100 or
H200.

A library holds its code in "fat binaries": a header of 16 bytes (magic number, version, size of the header, bytes that
follow) and entries, each with a header (kind: 1 for PTX, 2 for machine code; size of the header; bytes of code; the
compute capability at byte 28) and its code. NVIDIA does not document the format; what does not look like it is left.
"""

from __future__ import annotations

import argparse
import struct
from collections import Counter
from collections.abc import Collection
from pathlib import Path

_MAGIC = struct.pack("<I", 0xBA55ED50)
_KINDS = (1, 2)  # PTX, machine code
_LEAST_HEADER = 32  # bytes of an entry's header, which holds its compute capability at 28


def prune(data: bytearray, keep: Collection[int]) -> Counter[int]:
    """Zero the code of all compute capabilities but `keep` -> bytes of code by compute capability, before."""
    code_bytes: Counter[int] = Counter()
    position = 0
    while (position := data.find(_MAGIC, position)) >= 0:
        version, header, size = struct.unpack("<HHQ", data[position + 4 : position + 16].ljust(12, b"\0"))
        end = position + header + size
        if version == 1 and header == 16 and end <= len(data):
            _prune_entries(data, position + header, end, keep, code_bytes)
            position = end
        else:
            position += len(_MAGIC)
    return code_bytes


def _prune_entries(data: bytearray, start: int, end: int, keep: Collection[int], code_bytes: Counter[int]) -> None:
    while start + _LEAST_HEADER <= end:
        kind, _, header, size = struct.unpack_from("<HHIQ", data, start)
        code = start + header
        if kind not in _KINDS or header < _LEAST_HEADER or code + size > end:
            return
        (capability,) = struct.unpack_from("<I", data, start + 28)
        code_bytes[capability] += size
        if capability not in keep:
            data[code : code + size] = bytes(size)
        start = code + size


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("libraries", type=Path, nargs="+", metavar="LIBRARY")
    parser.add_argument("--keep", type=int, action="append", required=True, help="a compute capability, such as 90")
    args = parser.parse_args()
    for path in args.libraries:
        data = bytearray(path.read_bytes())
        code_bytes = prune(data, args.keep)
        if not code_bytes.keys() & set(args.keep):
            print(f"{path}: unchanged: no code for {args.keep}, only for {sorted(code_bytes)}")
            continue
        path.write_bytes(data)
        remaining_bytes = sum(code_bytes[capability] for capability in set(args.keep))
        whole = f"{code_bytes.total():,} bytes of code kept; it was for {sorted(code_bytes)}"
        print(f"{path}: {remaining_bytes:,} of {whole}")


if __name__ == "__main__":
    main()
