"""The model card of an export or a checkpoint: README.md with the front matter that the hub reads. Needs no torch.

Its facts come from the run's folder: settings, versions, the held-out table and the validations. What the folder does
not say (the licence of a base model) is left out, not guessed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.registry import SOURCES, hub_sources
from reasoner.analysis.report_format import code
from reasoner.analysis.run_command import changed_settings, file_name, repetition
from reasoner.console import markdown_cell, markdown_table
from reasoner.evals.tables import interval
from reasoner.rollouts.prompts import Template
from reasoner.runs.json_files import OBJECT, read_object
from reasoner.runs.metrics import read_evals, read_metrics
from reasoner.runs.run_dir import PROBLEM_FILES, read_settings
from verifiers.rewards import REWARDS


@dataclass(frozen=True, slots=True)
class CardFacts:
    """What a model card tells besides the contents of the run's folder."""

    steps_done: int  # training steps behind the weights
    template: Template
    is_best: bool = False  # chosen by the validation problems
    is_checkpoint: bool = False  # a checkpoint as training writes it: before the held-out table, and not an export
    has_chat_template: bool = True  # whether it renders the run's prompts
    licence: str = ""  # identifier of the hub; empty where it is not known


def model_card(run_dir: Path, facts: CardFacts) -> str:
    """Return the text of README.md for the weights after `facts.steps_done` steps of the run: the template
    model_card.md.jinja, filled in.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    stored = read_settings(run_dir)
    cfg = stored["config"]
    call, call_language = repetition(stored)
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters |= {
        "table": markdown_table, "code": code, "cell": markdown_cell, "interval": interval, "file_name": file_name,
    }  # fmt: skip
    return environment.get_template("model_card.md.jinja").render(
        facts=facts,
        template=facts.template,
        front_matter=_front_matter(cfg, facts),
        title=run_dir.name,
        base=_base(cfg["model"]),
        cfg=cfg,
        is_supervised=bool(cfg.get("sft.data")),
        problems=_problems(run_dir, cfg["data.train"]),
        reward=_rewards(stored),
        changed=changed_settings(stored),
        call=call,
        call_language=call_language,
        results=_results(run_dir, cfg, facts),
        export_command=shlex.join(["reasoner", "export", run_dir.name, "--out", "my-model"]),
        request=_request(facts.template),
        versions=_versions(run_dir),
    )


def _front_matter(cfg: Mapping[str, Any], facts: CardFacts) -> str:
    """The YAML block that the hub reads."""
    from huggingface_hub import ModelCardData

    methods = ["sft"] if cfg.get("sft.data") else ["reinforcement-learning", str(cfg["algo.name"])]
    data = ModelCardData(
        library_name="transformers",
        pipeline_tag="text-generation",
        base_model=cfg["model"] if hub_name(cfg["model"]) else None,
        license=facts.licence or ("apache-2.0" if cfg["model"] == "base" else None),
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


def _problems(run_dir: Path, spec: str) -> str:
    if (run_dir / PROBLEM_FILES[0]).is_file():
        return "a list from Python"
    source = SOURCES.get(spec.partition(":")[0].partition("?")[0])
    return f"`{file_name(spec)}`" + (f": {source.about}" if source else "")


def _rewards(stored: Mapping[str, Any]) -> str:
    """Weights of the parts of the reward that count, reward models, and reward functions from Python."""
    names = {key.removeprefix("reward."): value for key, value in stored["config"].items() if key.startswith("reward.")}
    parts = [f"{value:g} × {name}" for name, value in names.items() if name in REWARDS and value]
    functions = stored.get("reward_functions") or {}
    parts += [f"`{file_name(names[name])}`" for name in ("functions", "model") if names.get(name)]
    return " + ".join([*parts, *(f"{weight:g} × `{name}`" for name, weight in functions.items())])


def _results(run_dir: Path, cfg: Mapping[str, Any], facts: CardFacts) -> list[tuple[str, str, Mapping[str, Any]]]:
    """(kind of problems, their specs, evaluations before and after) of held-out results of these weights if the run has
    them, and of the validation of this step.
    """
    results: list[tuple[str, str, Mapping[str, Any]]] = []
    if not facts.is_checkpoint:
        report = read_object(run_dir / "report.json", {"before": OBJECT, "after": OBJECT})
        is_end = len(read_metrics(run_dir)) == facts.steps_done
        # A run that was continued to more steps and stopped has the table of its first end.
        if report and is_end and (facts.steps_done == cfg["steps"] or cfg["max_train_tokens"]):
            results.append(("Held-out", cfg["eval.heldout"], report))
    validations = {line["step"]: line for line in read_evals(run_dir)}
    if {0, facts.steps_done} <= validations.keys():
        sides = {"before": validations[0], "after": validations[facts.steps_done]}
        results.append(("Validation", cfg["validation.data"], sides))
    return results


def _request(template: Template) -> str:
    """A request to /v1/chat/completions that ends where the run's completions ended."""
    body: dict[str, Any] = {"model": "FOLDER", "messages": [{"role": "user", "content": "What is 12 + 30?"}]}
    if template.stop:
        body |= {"stop": list(template.stop), "include_stop_str_in_output": True}
    text = json.dumps(body, ensure_ascii=False, indent=1).replace("'", "'\\''")
    return f"curl http://localhost:8000/v1/chat/completions -H 'Content-Type: application/json' -d '{text}'"


def _versions(run_dir: Path) -> list[list[str]]:
    skip = ("platform", "processor")
    stored = read_object(run_dir / "versions.json")
    return [["package", "version"], *([name, str(value)] for name, value in stored.items() if name not in skip)]
