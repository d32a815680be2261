"""`reasoner base build` of a tiny model: a tokenizer of few texts, and a state of every second step."""

from __future__ import annotations

import sys
from pathlib import Path

from reasoner.pretrain import build as module
from reasoner.pretrain.train import Recipe


def main() -> None:
    """Build into the folder that the command line names."""
    module.NUM_TOKENIZER_DOCUMENTS, module._STATE_INTERVAL = 300, 2
    recipe = Recipe(width=32, layers=1, heads=2, feed_forward=64, steps=12, rows=2)
    module.build(Path(sys.argv[1]), recipe=recipe, threads=1)
