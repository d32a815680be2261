"""reasoner: reinforcement learning with verifiable rewards for mathematical reasoning."""

import sys
from pathlib import Path

__version__ = "0.1.0"

# The import names `data`, `verifiers` and `app` are common ones. In a checkout ours come first, whatever else is
# installed.
_checkout = Path(__file__).resolve().parent.parent
if (_checkout / "pyproject.toml").is_file() and sys.path[:1] != [str(_checkout)]:
    sys.path.insert(0, str(_checkout))
