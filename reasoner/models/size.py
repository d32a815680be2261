"""How large a model folder is, without torch and without reading its weights."""

from __future__ import annotations

import json
import math
from pathlib import Path

_MOST_HEADER = 100 * 2**20  # bytes, as the format itself has it


def num_parameters(folder: Path) -> int | None:
    """The parameters in the folder's safetensors files, from their headers alone; None where there are none to read.

    Tied weights, which are stored once, count once.
    """
    sizes = [_in_file(path) for path in sorted(folder.glob("*.safetensors"))]
    return sum(sizes) or None


def _in_file(path: Path) -> int:
    """0 for a file that is damaged: whoever loads it says so."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if length <= _MOST_HEADER else {}
        return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0
