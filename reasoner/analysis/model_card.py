"""The model card of an export or a checkpoint: README.md with the front matter that the hub reads. Needs no torch.

Its facts come from the run's folder: settings, versions, the held-out table and the validations. What the folder does
not say (the licence of a base model) is left out, not guessed.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from data.registry import SOURCES, hub_sources
from reasoner.analysis.run_command import PLACES, command, file_name, is_from_python, python_call, shown_value
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
    repository: str = ""  # ORG/NAME on the hub; empty for a local folder


def model_card(run_dir: Path, facts: CardFacts) -> str:
    """Return the text of README.md for the weights after `facts.steps_done` steps of the run."""
    stored = read_settings(run_dir)
    cfg = stored["config"]
    sections = [
        front_matter(cfg, facts),
        f"# {facts.repository.partition('/')[2] or run_dir.name}",
        _summary(cfg, facts),
        "## Training\n\n" + _training(run_dir, stored),
        "## Results\n\n" + _results(run_dir, cfg, facts),
        "## How to prompt it\n\n" + _prompt(cfg, facts),
        "## How to run it\n\n" + (_checkpoint_usage(run_dir.name, cfg) if facts.is_checkpoint else _usage(cfg, facts)),
        "## Versions\n\n" + _table([["package", "version"], *_versions(run_dir)]),
    ]
    return "\n\n".join(sections) + "\n"


# ------------------------------------------------------------------------------------------------ front matter


def front_matter(cfg: Mapping[str, Any], facts: CardFacts) -> str:
    """The YAML block that the hub reads. Every value is written as a JSON text, which YAML reads as the same text."""
    fields: dict[str, str | list[str]] = {"library_name": "transformers", "pipeline_tag": "text-generation"}
    if hub_name(cfg["model"]):
        fields["base_model"] = cfg["model"]
    if licence := facts.licence or ("apache-2.0" if cfg["model"] == "base" else ""):
        fields["license"] = licence
    if sources := hub_sources(str(cfg["data.train"])):
        fields["datasets"] = sources
    methods = ["sft"] if cfg.get("sft.data") else ["reinforcement-learning", str(cfg["algo.name"])]
    fields["tags"] = ["reasoner", "reasoning", "math", *methods]
    lines = []
    for name, value in fields.items():
        if isinstance(value, list):
            lines += [f"{name}:", *(f"- {json.dumps(one)}" for one in value)]
        else:
            lines.append(f"{name}: {json.dumps(value)}")
    return "\n".join(["---", *lines, "---"])


def hub_name(model: str) -> bool:
    """Whether a model is named as ORG/NAME and is no path on this machine."""
    return model.count("/") == 1 and not model.startswith((".", "/", "~")) and not Path(model).exists()


# ------------------------------------------------------------------------------------------------ sections


def _summary(cfg: Mapping[str, Any], facts: CardFacts) -> str:
    method = "supervised finetuning" if cfg.get("sft.data") else "reinforcement learning with verifiable rewards"
    chosen = ", the best checkpoint of the run on its validation problems" if facts.is_best else ""
    return (
        "A language model that writes its reasoning before its answer to a mathematical problem. It is "
        f"{_base(cfg['model'])} after {facts.steps_done} steps of {method}{chosen}."
    )


def _base(model: str) -> str:
    if model == "base":
        return "the embedded base of reasoner (1.4M parameters; it knows five families of generated problems)"
    return f"[{model}](https://huggingface.co/{model})" if hub_name(model) else f"`{file_name(model)}`"


def _training(run_dir: Path, stored: Mapping[str, Any]) -> str:
    cfg = stored["config"]
    rows = [["", ""], ["base model", _base(cfg["model"])]]
    rows += _sft_rows(cfg) if cfg.get("sft.data") else _rl_rows(run_dir, stored)
    rows.append(["seed", str(cfg["seed"])])
    if cfg.get("control"):
        rows.append(["control experiment", f"{cfg['control']}: the reward was replaced, this model is no result"])
    changed = [["setting", "value", "from"], *_changed(stored)]
    call = _code(python_call(stored), "python") if is_from_python(stored) else _code(command(stored))
    return "\n\n".join([_table(rows), "Settings that differ from the defaults:", _table(changed), "Command:", call])


def _rl_rows(run_dir: Path, stored: Mapping[str, Any]) -> list[list[str]]:
    cfg = stored["config"]
    return [
        ["algorithm", f"`{cfg['algo.name']}`"],
        ["training problems", _problems(run_dir, cfg["data.train"])],
        ["prompts per step, completions of each", f"{cfg['data.prompts_per_step']}, {cfg['algo.group_size']}"],
        ["reward", _rewards(stored)],
        ["learning rate, KL coefficient", f"{cfg['optim.lr']:g}, {cfg['algo.beta']:g}"],
    ]


def _sft_rows(cfg: Mapping[str, Any]) -> list[list[str]]:
    return [
        ["algorithm", f"supervised finetuning, loss on {cfg['sft.loss_on']}"],
        ["examples", f"`{file_name(cfg['sft.data'])}`"],
        ["examples per step, epochs", f"{cfg['sft.rows']}, {cfg['sft.epochs']}"],
        ["learning rate", f"{cfg['optim.lr']:g}"],
    ]


def _problems(run_dir: Path, spec: str) -> str:
    if any((run_dir / name).is_file() for name in PROBLEM_FILES[:1]):
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


def _changed(stored: Mapping[str, Any]) -> list[list[str]]:
    return [
        [f"`{key}`", f"`{shown_value(value)}`", file_name(origin)]
        for key, value in stored["config"].items()
        for origin in [stored["origin"].get(key, "unknown")]  # a run of a version without the setting
        if origin != "default" and key not in PLACES
    ]


# ------------------------------------------------------------------------------------------------ results


def _results(run_dir: Path, cfg: Mapping[str, Any], facts: CardFacts) -> str:
    """Held-out results of these weights if the run has them, and the validation of this step; 95 % intervals."""
    if facts.is_checkpoint:
        return _validation(run_dir, cfg, facts) or "The run has no validation of these weights."
    parts = []
    report = read_object(run_dir / "report.json", {"before": OBJECT, "after": OBJECT})
    is_end = len(read_metrics(run_dir)) == facts.steps_done
    # A run that was continued to more steps and stopped has the table of its first end.
    if report and is_end and (facts.steps_done == cfg["steps"] or cfg["max_train_tokens"]):
        about = f"Held-out problems (`{file_name(cfg['eval.heldout'])}`), % with 95 % intervals"
        parts.append(_comparison(about, report["before"], report["after"], facts.template))
    parts.append(_validation(run_dir, cfg, facts))
    return "\n\n".join(filter(None, parts)) or "The run has no evaluation of these weights."


def _validation(run_dir: Path, cfg: Mapping[str, Any], facts: CardFacts) -> str:
    """The validation of these weights beside that before training; empty where there is none."""
    validations = {line["step"]: line for line in read_evals(run_dir)}
    if not {0, facts.steps_done} <= validations.keys():
        return ""
    about = f"Validation problems (`{file_name(cfg['validation.data'])}`), % with 95 % intervals"
    if facts.is_best:
        about += "; the checkpoint was chosen by these problems, so its figures are too high"
    return _comparison(about, validations[0], validations[facts.steps_done], facts.template)


def _comparison(about: str, before: Mapping[str, Any], after: Mapping[str, Any], template: Template) -> str:
    """A table of the metrics of two evaluations, sampled and greedy."""
    sampled = after["sampled"]
    size = f"{sampled['problems']} problems, {sampled['samples']} samples of each"
    form = "; answers outside of the trained form count as wrong" if template.extract == "strict" else ""
    rows = [["metric", "before", "after"]]
    for name, value in sampled["metrics"].items():
        rows.append([name, _interval(before["sampled"]["metrics"].get(name)), _interval(value)])
    rows.append(["greedy", *(_interval(side["greedy"]["metrics"].get("pass@1")) for side in (before, after))])
    return f"{about}. {size} at temperature {sampled['temperature']:g}{form}.\n\n{_table(rows)}"


def _interval(estimate: Mapping[str, float] | None) -> str:
    if estimate is None:
        return "-"
    value, low, high = (100 * estimate[name] for name in ("value", "low", "high"))
    return f"{value:.1f} [{low:.1f}, {high:.1f}]"


# ------------------------------------------------------------------------------------------------ use


def _prompt(cfg: Mapping[str, Any], facts: CardFacts) -> str:
    template = facts.template
    lines = [f"Prompt style `{file_name(cfg['prompt.style'])}`. `{{question}}` is replaced by the problem:"]
    if template.system:
        lines.append(f"system message:\n\n{_code(template.system)}")
    lines.append(_code(template.text))
    if template.chat:
        lines.append("This is the user's message in the base model's own chat template.")
    if template.prefill:
        lines.append(f"The prompt ends with `{template.prefill}`: the response continues it, and does not repeat it.")
    if facts.has_chat_template:
        lines.append("The tokenizer's chat template does all this: pass the problem alone, as one user message.")
    else:
        lines.append("The chat template does not do this: pass the text above to `/v1/completions`, not to a chat.")
    if template.stop:
        lines.append(f"A completion ends at {' or '.join(f'`{stop}`' for stop in template.stop)}, or at an end token.")
    return "\n\n".join(lines)


def _usage(cfg: Mapping[str, Any], facts: CardFacts) -> str:
    model = facts.repository or "FOLDER"
    parts = []
    if facts.has_chat_template:
        parts = ["With transformers:", _code(_TRANSFORMERS % json.dumps(model), "python")]
    parts += ["With vLLM's server:", _code(f"vllm serve {model}", "sh")]
    if facts.has_chat_template:
        body = json.dumps(_request(model, facts.template), ensure_ascii=False, indent=1).replace("'", "'\\''")
        ask = f"curl http://localhost:8000/v1/chat/completions -H 'Content-Type: application/json' -d '{body}'"
        parts.append(_code(ask, "sh"))
    parts += [
        f"`generation_config.json` has the run's sampling: temperature {cfg['sampling.temperature']:g}, at most "
        f"{cfg['sampling.max_tokens']} tokens. vLLM's server takes these as its defaults, and "
        "stop texts from a request.",
    ]
    return "\n\n".join(parts)


def _checkpoint_usage(run: str, cfg: Mapping[str, Any]) -> str:
    parts = ["With the prompt and the sampling of the run:", _code("reasoner eval --model FOLDER --pass@1", "sh")]
    if cfg["lora.rank"]:
        parts.append("The folder holds the LoRA adapter alone; `base_model.json` names its base.")
    parts += [
        "As a model for transformers and vLLM, with a chat template that writes this prompt, a generation config and "
        "the results of the run (`--step N`: after N steps; `--step best`: the best on the validation problems):",
        _code(shlex.join(["reasoner", "export", run, "--out", "my-model"]), "sh"),
    ]
    return "\n\n".join(parts)


_TRANSFORMERS = """from transformers import AutoModelForCausalLM, AutoTokenizer

name = %s
tokenizer = AutoTokenizer.from_pretrained(name)
model = AutoModelForCausalLM.from_pretrained(name)
chat = [{"role": "user", "content": "What is 12 + 30?"}]
inputs = tokenizer.apply_chat_template(chat, add_generation_prompt=True, return_tensors="pt", return_dict=True)
output = model.generate(**inputs, tokenizer=tokenizer)  # the tokenizer finds the stop texts
print(tokenizer.decode(output[0, inputs["input_ids"].shape[1] :]))"""


def _request(model: str, template: Template) -> dict[str, Any]:
    """The body of a request to /v1/chat/completions that ends where the run's completions ended."""
    body: dict[str, Any] = {"model": model, "messages": [{"role": "user", "content": "What is 12 + 30?"}]}
    if template.stop:
        body |= {"stop": list(template.stop), "include_stop_str_in_output": True}
    return body


def _versions(run_dir: Path) -> list[list[str]]:
    skip = ("platform", "processor")
    return [[name, str(value)] for name, value in read_object(run_dir / "versions.json").items() if name not in skip]


# ------------------------------------------------------------------------------------------------ Markdown


def _table(rows: Sequence[Sequence[str]]) -> str:
    lines = ["| " + " | ".join(cell.replace("|", "\\|").replace("\n", " ") for cell in row) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "---|" * len(rows[0]), *lines[1:]])


def _code(text: str, language: str = "") -> str:
    """A code block, fenced by more backticks than the text has in a row."""
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}{language}\n{text}\n{fence}"
