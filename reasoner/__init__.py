"""reasoner: reinforcement learning with verifiable rewards for mathematical reasoning.

    from reasoner import Problem, evaluate, grade, train

docs/PYTHON_API.md describes these functions. They are imported when they are first used: `import reasoner` is quick.
"""

import sys
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from data import Problem
    from reasoner.api.evaluation import EvalResults, evaluate
    from reasoner.api.stages import finetune, score_completions, train_reward_model
    from reasoner.api.training import Run, train
    from verifiers import grade, score_response

__all__ = [
    "EvalResults",
    "Problem",
    "Run",
    "evaluate",
    "finetune",
    "grade",
    "score_completions",
    "score_response",
    "train",
    "train_reward_model",
]

__version__ = "0.1.0"

# The import names `data`, `verifiers` and `app` are common ones. Ours come first, whatever else is installed. They are
# beside this package in a checkout, and in a folder of it where it was installed from a wheel (setup.py).
_inside = Path(__file__).resolve().parent / "_packages"
_root = _inside if _inside.is_dir() else _inside.parents[1]
if sys.path[:1] != [str(_root)]:
    sys.path.insert(0, str(_root))


def _foreign_package() -> str:
    """One line about a foreign package imported as `data`, `verifiers` or `app`; "" if all three are ours.

    Left are packages that were imported before this one.
    """
    for name in ("data", "verifiers", "app"):
        module = sys.modules.get(name)
        spec = find_spec(name) if module is None else None
        file = getattr(module, "__file__", None) or (spec.origin if spec else None)
        if file is None or Path(file).resolve() != _root / name / "__init__.py":
            folders = getattr(module, "__path__", None) or (spec.submodule_search_locations if spec else None) or ["?"]
            return (
                f"reasoner: package {name!r} must be {_root / name}, but {file or next(iter(folders))} comes first "
                f"under that name: import reasoner before it, start Python in another folder, or use an "
                f"environment without it"
            )
    return ""


if _message := _foreign_package():
    # A command ends with this line alone; a program that imports reasoner gets an exception that it can handle.
    if sys.argv[:1] == ["-m"] or Path(sys.argv[0] if sys.argv else "").name == "reasoner":
        raise SystemExit(_message)
    raise ImportError(_message)


_MODULES = {  # of the names that are imported when they are first used
    "EvalResults": "reasoner.api.evaluation",
    "Problem": "data",
    "Run": "reasoner.api.training",
    "evaluate": "reasoner.api.evaluation",
    "finetune": "reasoner.api.stages",
    "grade": "verifiers",
    "score_completions": "reasoner.api.stages",
    "score_response": "verifiers",
    "train": "reasoner.api.training",
    "train_reward_model": "reasoner.api.stages",
}


def __getattr__(name: str) -> object:
    """Import a name of the Python API at its first use."""
    if name not in _MODULES:
        raise AttributeError(f"module 'reasoner' has no attribute {name!r}")
    globals()[name] = value = getattr(import_module(_MODULES[name]), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
