"""Number of parameters in a model folder, without torch and without reading its weights."""

from __future__ import annotations

import json
import math
from pathlib import Path

_MAX_HEADER = 100 * 2**20  # bytes; the limit of the safetensors format


def num_parameters(folder: Path) -> int | None:
    """Count the parameters in the folder's safetensors files from their headers; None if none can be read.

    Tied weights are stored once and count once.
    """
    sizes = [_num_in_file(path) for path in sorted(folder.glob("*.safetensors"))]
    return sum(sizes) or None


def _num_in_file(path: Path) -> int:
    """Count the parameters of one file; 0 if it is damaged, which is reported when it is loaded."""
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if length <= _MAX_HEADER else {}
        return sum(math.prod(tensor["shape"]) for name, tensor in header.items() if name != "__metadata__")
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return 0
