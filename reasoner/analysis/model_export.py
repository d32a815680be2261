"""Export a checkpoint as a plain model folder, which transformers, vLLM and the hub take as it is.

    config.json, *.safetensors, tokenizer files   as in the checkpoint
    chat_template.jinja       renders a user's message as the run rendered a question (reasoner.rollouts.chat_template)
    generation_config.json    temperature, length and ends of a completion as in the run
    README.md                 the model card, with the front matter that the hub reads

A checkpoint itself stays as training wrote it: runs are resumed from it. Its own model card is not copied.
"""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from data.registry import hub_sources
from reasoner.console import log, markdown_cell, markdown_table
from reasoner.evals.tables import interval
from reasoner.inference.model_spec import learnt_precision
from reasoner.models.checksums import CHECKSUMS, write_checksums
from reasoner.models.folder import is_adapter
from reasoner.models.resolve import resolve_model
from reasoner.rollouts.prompts import Template, load_template
from reasoner.runs.json_files import COUNT, OBJECT, read_object
from reasoner.runs.metrics import read_evals, read_metrics
from reasoner.runs.run_dir import read_settings

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerBase

_OWN = ("trainer", "best.json", "chat_template*", "generation_config.json", "README.md", CHECKSUMS)  # not copied


@dataclass(frozen=True, slots=True)
class Export:
    """What to export. `checkpoint`: a folder in the run's folder checkpoints/."""

    run_dir: Path
    checkpoint: Path
    licence: str = ""  # for the model card; empty where it is not known

    @classmethod
    def of(cls, run_dir: Path, step: str, *, licence: str = "") -> Export:
        """The export of the checkpoint after `step` steps, or of the "best" or the "last" one. ValueError if the run
        has none.
        """
        checkpoint = resolve_model(str(run_dir), runs=run_dir.parent, step=None if step == "last" else step)
        if checkpoint.parent != run_dir / "checkpoints":
            raise ValueError(f"run {run_dir} has no checkpoint yet")
        return cls(run_dir, checkpoint, licence)

    @property
    def is_best(self) -> bool:
        """Whether the checkpoint was chosen by the validation problems."""
        return self.checkpoint.name == "best"

    @property
    def steps_done(self) -> int:
        """Training steps behind the weights."""
        if self.is_best:
            return int(read_object(self.checkpoint / "best.json", {"steps_done": COUNT})["steps_done"])
        return int(self.checkpoint.name.removeprefix("step-"))


def write_export(export: Export, out: Path) -> None:
    """Write the model folder; it appears whole or not at all. ValueError if `out` exists, and for a prompt template
    that is no longer the one of the run.
    """
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise ValueError(f"--out {out} exists; name a folder that does not, or an empty one")
    template = run_template(export.run_dir)
    out.parent.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory(prefix=f"{out.name}.", suffix=".partial", dir=out.parent) as folder:
        model = Path(folder) / "model"  # with the permissions of a new folder, which a temporary one has not
        model.mkdir()
        _copy_model(export.checkpoint, model)
        _write_own_files(export, template, model)
        write_checksums(model)
        if out.is_dir():
            out.rmdir()
        model.rename(out)


def _copy_model(checkpoint: Path, out: Path) -> None:
    """Copy weights, config and tokenizer; of an adapter's checkpoint, those of the base with the adapter added. All
    weights that were trained in bfloat16 are in it: with the steps that its rounding hides they are another model.
    """
    with TemporaryDirectory(dir=out.parent) as folder:
        source = checkpoint
        if is_adapter(checkpoint):
            from reasoner.models.lora import write_merged

            source = Path(folder) / "merged"
            write_merged(checkpoint, source)
        ignore = shutil.ignore_patterns(*_OWN)
        shutil.copytree(source, out, ignore=ignore, dirs_exist_ok=True, copy_function=shutil.copyfile)
    if source == checkpoint and learnt_precision(checkpoint) == "bfloat16":
        from reasoner.models.saving import round_weights

        round_weights(out)


def _write_own_files(export: Export, template: Template, out: Path) -> None:
    """Write chat template, generation config and model card. A chat template that would give other token ids than the
    run's prompts is left out, with a message.
    """
    from reasoner.models.loading import load_tokenizer
    from reasoner.rollouts.chat_template import chat_template

    tokenizer = load_tokenizer(export.checkpoint)
    text = ""
    try:
        text = chat_template(template, tokenizer)
    except ValueError as error:
        log(f"no chat template is written: {error}")
    _write_chat_template(out, text)
    cfg = read_settings(export.run_dir)["config"]
    generation = generation_config(export.checkpoint, cfg, template, tokenizer)
    (out / "generation_config.json").write_text(json.dumps(generation, indent=2, ensure_ascii=False) + "\n", "utf-8")
    (out / "README.md").write_text(model_card(export, template, has_chat_template=bool(text)), "utf-8")


def _write_chat_template(out: Path, text: str) -> None:
    """Put the chat template in a file of its own, the only place: tokenizer_config.json may hold the base model's."""
    path = out / "tokenizer_config.json"
    if path.is_file():
        config = json.loads(path.read_text("utf-8"))
        if config.pop("chat_template", None) is not None:
            path.write_text(json.dumps(config, indent=2, ensure_ascii=False) + "\n", "utf-8")
    if text:
        (out / "chat_template.jinja").write_text(text, "utf-8")


def run_template(run_dir: Path) -> Template:
    """The prompt template of a run. ValueError if it is a file that is gone, or has changed since the run began."""
    stored = read_settings(run_dir)
    style = stored["config"]["prompt.style"]
    template = load_template(style)
    fingerprint = (stored.get("fingerprints") or {}).get("prompt.style")
    if fingerprint is not None and template.fingerprint != fingerprint:
        raise ValueError(f"the prompt template {style!r} has changed since the run began; restore its old content")
    return template


def generation_config(
    checkpoint: Path, cfg: Mapping[str, Any], template: Template, tokenizer: PreTrainedTokenizerBase
) -> dict[str, Any]:
    """The content of generation_config.json: sampling, length and ends of a completion as in the run.

    A stop text that is a special token is one more end token. Any other one is in `stop_strings`: transformers takes
    it with generate(tokenizer=...), and vLLM's server from a request.
    """
    from reasoner.inference.sampling import end_token_ids

    # Those that decoding may skip; tags such as </answer> are usually not among them.
    special = {token.content: number for number, token in tokenizer.added_tokens_decoder.items() if token.special}
    ends = end_token_ids(checkpoint, tokenizer) | {special[stop] for stop in template.stop if stop in special}
    texts = [stop for stop in template.stop if stop not in special]
    temperature = cfg["sampling.temperature"]
    config = {
        "bos_token_id": tokenizer.bos_token_id,
        "eos_token_id": sorted(ends),
        "pad_token_id": tokenizer.pad_token_id,
        "do_sample": temperature > 0,
        "temperature": temperature if temperature > 0 else None,
        "top_p": 1.0 if temperature > 0 else None,  # training samples from the whole distribution
        "top_k": 0 if temperature > 0 else None,  # transformers has 50 where nothing is said
        "max_new_tokens": cfg["sampling.max_tokens"],
        "stop_strings": texts or None,
    }
    return {name: value for name, value in config.items() if value is not None}


# ------------------------------------------------------------------------------------------------ model card


def model_card(export: Export, template: Template, *, has_chat_template: bool) -> str:
    """Return the text of README.md for an export: the template model_card.md.jinja, filled in with what the run's
    folder says: settings, the held-out table and the validations. What it does not say (the licence of a base model) is
    left out, not guessed. `has_chat_template`: whether it renders the run's prompts.
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
    if report and len(read_metrics(run_dir)) == steps_done:
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
