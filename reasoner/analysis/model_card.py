"""The model card of an export: README.md with the front matter that the hub reads. Needs no torch.

Its facts come from the run's folder: settings, the held-out table and the validations. What the folder does
not say (the licence of a base model) is left out, not guessed.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from data.registry import hub_sources
from reasoner.console import markdown_cell, markdown_table
from reasoner.evals.tables import interval
from reasoner.rollouts.prompts import Template
from reasoner.runs.json_files import OBJECT, read_object
from reasoner.runs.metrics import read_evals, read_metrics
from reasoner.runs.run_dir import read_settings

if TYPE_CHECKING:
    from reasoner.analysis.model_export import Export


def model_card(export: Export, template: Template, *, has_chat_template: bool) -> str:
    """Return the text of README.md for an export: the template model_card.md.jinja, filled in. `template`: of the run's
    prompts, which the chat template renders unless it has none.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    stored = read_settings(export.run_dir)
    cfg = stored["config"]
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "table": markdown_table, "code": _code, "cell": markdown_cell, "interval": interval, "file_name": file_name,
    }  # fmt: skip
    return environment.get_template("model_card.md.jinja").render(
        export=export,
        template=template,
        has_chat_template=has_chat_template,
        front_matter=_front_matter(cfg, export.licence),
        title=export.run_dir.name,
        base=_base(cfg["model"]),
        cfg=cfg,
        is_supervised=bool(cfg.get("sft.data")),
        changed=_changed_settings(stored),
        results=_results(export, cfg),
    )


def _front_matter(cfg: Mapping[str, Any], licence: str) -> str:
    """The YAML block that the hub reads."""
    from huggingface_hub import ModelCardData

    methods = ["sft"] if cfg.get("sft.data") else ["reinforcement-learning", str(cfg["algo.name"])]
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag="text-generation",
        base_model=cfg["model"] if hub_name(cfg["model"]) else None,
        license=licence or ("apache-2.0" if cfg["model"] == "base" else None),
        datasets=hub_sources(str(cfg["data.train"])) or None,
        tags=["reasoner", "reasoning", "math", *methods],
    )
    return data.to_yaml()


def hub_name(model: str) -> bool:
    """Whether a model is named as ORG/NAME and is no path on this machine."""
    return model.count("/") == 1 and not model.startswith((".", "/", "~")) and not Path(model).exists()


def _base(model: str) -> str:
    if model == "base":
        return "the embedded base of reasoner (1.4M parameters; it knows five families of generated problems)"
    return f"[{model}](https://huggingface.co/{model})" if hub_name(model) else f"`{file_name(model)}`"


def _results(export: Export, cfg: Mapping[str, Any]) -> list[tuple[str, str, Mapping[str, Any]]]:
    """(kind of problems, their specs, evaluations before and after) of held-out results of these weights if the run has
    them, and of the validation of this step.
    """
    results: list[tuple[str, str, Mapping[str, Any]]] = []
    run_dir, steps_done = export.run_dir, export.steps_done
    report = read_object(run_dir / "report.json", {"before": OBJECT, "after": OBJECT})
    is_end = len(read_metrics(run_dir)) == steps_done
    # A run that was continued to more steps and stopped has the table of its first end.
    if report and is_end and (steps_done == cfg["steps"] or cfg["max_train_tokens"]):
        results.append(("Held-out", cfg["eval.heldout"], report))
    validations = {line["step"]: line for line in read_evals(run_dir)}
    if {0, steps_done} <= validations.keys():
        sides = {"before": validations[0], "after": validations[steps_done]}
        results.append(("Validation", cfg["validation.data"], sides))
    return results


_PLACES = ("run.dir", "run.name", "run.track", "threads")  # settings of a machine, not of the recipe


def _changed_settings(stored: Mapping[str, Any]) -> list[list[str]]:
    """A table of the settings that differ from the defaults, with where they come from; no folder is named."""
    rows = [
        [f"`{key}`", f"`{file_name(str(value))}`", file_name(stored["origin"][key])]
        for key, value in stored["config"].items()
        if stored["origin"][key] != "default" and key not in _PLACES
    ]
    functions = stored.get("reward_functions") or {}  # weights of those from Python, by name
    rows += [[f"`{name}`", f"{weight:g}", "reward function"] for name, weight in functions.items()]
    return [["setting", "value", "from"], *rows]


def file_name(spec: str) -> str:
    """The spec with the name alone of each absolute path, or one with dots, that stands in it: a path names a user or a
    machine.
    """
    return re.sub(r"(?:^|(?<=[,=&;]))(?=[/.~])[^,=&;?]*/(?=[^,=&;?])", "", spec)


def _code(text: str) -> str:
    """A code block, fenced by more backticks than the text has in a row."""
    fence = "`" * (1 + max([2, *(len(run) for run in re.findall(r"`+", text))]))
    return f"{fence}\n{text}\n{fence}"
