"""`reasoner publish --space`: a folder that is a Gradio Space showing one run, with everything that it needs.

The Space carries the source of the dashboard instead of a requirement, so that it shows the run with the version that
wrote it. It needs no torch: the dashboard is read-only and samples nothing.
"""

from __future__ import annotations

import json
import shutil
from importlib.metadata import version
from pathlib import Path

from reasoner.analysis.run_command import publishable
from reasoner.runs.run_dir import read_settings

_SOURCE = Path(__file__).parents[1]
_PACKAGES = ("app", "data", "reasoner", "verifiers")
# What the dashboard imports, of pyproject.toml's dependencies.
_REQUIREMENTS = (
    "gradio", "latex2mathml", "math-verify[antlr4_13_2]", "numpy", "pyarrow", "rich", "sympy", "tokenizers",
)  # fmt: skip
_FILES = (
    "config.json", "versions.json", "sync.json", "metrics.jsonl", "times.jsonl", "evals.jsonl", "alarms.jsonl",
    "report.json", "report.txt", "tokenizer.json",
)  # fmt: skip
_FOLDERS = ("rollouts", "heldout")

_APP = '''"""The Space: a read-only dashboard of the run in runs/."""

import os
from pathlib import Path

from app.server import serve

if __name__ == "__main__":
    port = int(os.environ.get("GRADIO_SERVER_PORT", "7860"))
    serve(Path("runs"), Path("evals"), host="0.0.0.0", port=port, allow_unauthenticated=True, is_read_only=True)
'''

_README = """---
title: "{title}"
emoji: 🧮
colorFrom: blue
colorTo: green
sdk: gradio
sdk_version: {gradio}
python_version: "3.11"
app_file: space.py
pinned: false
license: apache-2.0
short_description: Rollouts and curves of a reinforcement learning run
---

# {title}

Rollouts, curves and reflection of a run of reasoner, which teaches language models to reason about mathematics by
reinforcement learning with verifiable rewards. {summary}

The dashboard is read-only. Try it here first:

    pip install -r requirements.txt
    python space.py

Then upload the folder: `hf upload ORG/NAME . --repo-type space`. It holds the run (`runs/`) and the source of the
dashboard: no checkpoints and no notes, and no setting names a folder.
"""


def write_space(run_dir: Path, folder: Path) -> None:
    """Write the Space of a run into a new or empty folder. ValueError for another folder or a run without rollouts."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise ValueError(f"{folder} is not an empty folder; name a new one")
    if not any((run_dir / "rollouts").glob("step-*.parquet")):
        raise ValueError(f"run {run_dir.name} has no rollouts yet")
    folder.mkdir(parents=True, exist_ok=True)
    _copy_run(run_dir, folder / "runs" / run_dir.name)
    for package in _PACKAGES:
        shutil.copytree(_SOURCE / package, folder / package, ignore=shutil.ignore_patterns("__pycache__", "model"))
    config = publishable(read_settings(run_dir))["config"]
    summary = f"Model: {config.get('model', 'unknown')}. Algorithm: {config.get('algo.name', 'unknown')}."
    readme = _README.format(title=run_dir.name, gradio=version("gradio"), summary=summary)
    (folder / "README.md").write_text(readme, "utf-8")
    (folder / "space.py").write_text(_APP, "utf-8")
    (folder / "requirements.txt").write_text("".join(_requirement(name) for name in _REQUIREMENTS), "utf-8")
    (folder / ".gitattributes").write_text("*.parquet filter=lfs diff=lfs merge=lfs -text\n", "utf-8")


def _requirement(name: str) -> str:
    """A line that pins the installed version."""
    return f"{name}=={version(name.partition('[')[0])}\n"


def _copy_run(run_dir: Path, target: Path) -> None:
    """Copy what the dashboard shows of a run: no checkpoints, no notes, no index."""
    target.mkdir(parents=True)
    for name in _FILES:
        if (run_dir / name).is_file():
            shutil.copy2(run_dir / name, target / name)
    for name in _FOLDERS:
        if (run_dir / name).is_dir():
            shutil.copytree(run_dir / name, target / name, ignore=shutil.ignore_patterns("*.partial"))
    path = target / "config.json"
    path.write_text(json.dumps(publishable(json.loads(path.read_text("utf-8")))), "utf-8")
