"""The model that `reasoner eval` evaluates: its folder, its prompt template, its sampling defaults and its engine."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import astuple, dataclass, fields, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from reasoner.config.presets import find_preset
from reasoner.config.schema import EngineConfig, ToolsConfig
from reasoner.inference.factory import Turns, head_obstacle, make_engine, resolve_engine_name
from reasoner.models.folder import check_generates, check_tokenizer, context_length, model_fingerprint
from reasoner.models.resolve import resolve_model
from reasoner.rollouts.prompts import Template, load_template
from reasoner.rollouts.reward_functions import source_fingerprint
from reasoner.runs.run_dir import read_settings
from reasoner.runtime import free_gpu_share, has_gpu
from reasoner.tools.names import check_tools, function_tools, with_tools
from reasoner.types import Engine
from verifiers import VerifierPool

# For a model that is neither a checkpoint nor the embedded base: those of DeepSeek-R1's evaluation.
DEFAULTS = {"sampling.temperature": 0.6, "sampling.top_p": 0.95, "sampling.max_tokens": 32_768}


@dataclass(frozen=True)
class ModelSpec:
    """A model with its prompt template and sampling settings."""

    name: str
    folder: Path
    template: Template
    prompt: str  # the template's style, or its file
    temperature: float
    top_p: float
    max_tokens: int  # of a completion
    context: int  # tokens of prompt and completion
    tools: ToolsConfig

    @classmethod
    def of(
        cls,
        model: str,
        *,
        runs: Path,
        step: str | None = None,
        prompt: str | None = None,
        extract: str | None = None,
        stop: Sequence[str] = (),
        temperature: float | None = None,
        top_p: float | None = None,
        max_tokens: int | None = None,
        tools: str | ToolsConfig | None = None,
    ) -> ModelSpec:
        """Resolve a model name. Arguments that are None or empty have defaults by model: for a run's checkpoint its
        training settings, for the embedded base those of its preset, for any other model those of DeepSeek-R1
        (temperature 0.6, top-p 0.95, up to 32,768 tokens). `tools`: names, with the other settings of a run's
        checkpoint where it has tools, or all settings; None: those of a run's checkpoint.

        ValueError for a model or prompt template that does not exist.
        """
        folder = resolve_model(model, runs=runs, step=step)
        defaults = training_settings(folder) or (find_preset("base", "cpu").values() if model == "base" else DEFAULTS)
        style = prompt or str(defaults.get("prompt.style", "r1-zero"))
        template = load_template(style)
        if extract:
            template = replace(template, extract=extract)
        if stop:
            template = replace(template, stop=tuple(stop))
        tools_config = _tools(tools, style, training_settings(folder) or {})
        template = with_tools(template, tools_config, style)
        check_generates(folder)
        check_tokenizer(folder, needs_chat=template.chat)
        if (context := context_length(folder)) is None:
            from reasoner.models.loading import load_config

            context = int(load_config(folder).max_position_embeddings)  # the architecture's default
        name = folder.parent.parent.name + "/" + folder.name if folder.parent.name == "checkpoints" else model
        return cls(
            name=name,
            folder=folder,
            template=template,
            prompt=style,
            temperature=_first(temperature, defaults.get("sampling.temperature"), 1.0),
            top_p=_first(top_p, defaults.get("sampling.top_p"), 1.0),
            max_tokens=min(int(_first(max_tokens, defaults.get("sampling.max_tokens"), 256)), context),
            context=context,
            tools=tools_config,
        )

    @cached_property
    def fingerprint(self) -> str:
        """model_fingerprint() of the folder, when it is first asked for."""
        return model_fingerprint(self.folder)

    @property
    def completion_room(self) -> int:
        """Tokens that a prompt must leave in the context: a completion's, or half of it (DeepSeek-R1's are all)."""
        return min(self.max_tokens, max(1, self.context // 2))

    def engine_config(self, engine: str, dtype: str | None = None) -> EngineConfig:
        """The engine's settings. Default dtype: bfloat16 for completions above 1,024 tokens on a GPU and for a run that
        computed in it, whose weights in float32 are another model (reasoner.trainer.parity); else float32.

        "auto" is transformers for a model that vLLM cannot run on a CPU.
        """
        dtype = dtype or ("bfloat16" if has_gpu() and self.max_tokens > 1024 else learnt_precision(self.folder))
        if engine == "auto" and head_obstacle(self.folder):
            engine = "transformers"
        return EngineConfig(name=engine, dtype=dtype, gpu_memory=0.9)


def engine_identity(config: EngineConfig, tools: ToolsConfig) -> str:
    """Name, version, precision and kind of device, and of tools the settings and the files of functions: everything
    about the engine that may change a sampled text.
    """
    name, device = resolve_engine_name(config), "cuda" if has_gpu() else "cpu"
    own = map(str, (*astuple(tools), source_fingerprint(function_tools(tools.names).values())))
    return f"{name} {_version(name)} {config.dtype} {device}" + (f", tools {' '.join(own)}" if tools.names else "")


@dataclass
class EngineFactory:
    """Start the engine on the first call: an evaluation whose responses are all cached needs none. ValueError where the
    model is no longer that of `spec.fingerprint`, by which responses are stored.
    """

    spec: ModelSpec
    config: EngineConfig
    seed: int
    longest_prompt: int  # tokens of the longest prompt that will be sampled from
    environments: VerifierPool | None = None  # of several turns, if there are

    def __call__(self) -> Engine:
        return self._engine

    @cached_property
    def _engine(self) -> Engine:
        # "auto" could be another engine than engine_identity() says, by which responses are stored.
        share = min(self.config.gpu_memory, free_gpu_share())  # vLLM refuses more than is free
        config = replace(self.config, name=resolve_engine_name(self.config), gpu_memory=share)
        try:
            engine = make_engine(
                config,
                self.spec.folder,
                max_model_len=min(self.spec.context, self.longest_prompt + self.spec.max_tokens),
                seed=self.seed,
                turns=Turns(self.spec.tools, self.spec.prompt, self.spec.template, self.environments),
            )
        except ImportError as error:
            raise ValueError(
                f"{config.name} is installed but cannot be imported ({error}); name another engine: "
                "--engine transformers"
            ) from error
        if model_fingerprint(self.spec.folder) != self.spec.fingerprint:
            engine.close()
            raise ValueError(
                f"the model in {self.spec.folder} was replaced before it was loaded, as a run does with its best "
                "checkpoint while it trains; start again for the new one, or name another step"
            )
        return engine

    def close(self) -> None:
        if "_engine" in self.__dict__:
            self._engine.close()


def _tools(tools: str | ToolsConfig | None, style: str, settings: Mapping[str, Any]) -> ToolsConfig:
    """`tools`, or those of the settings, with other names where it is a text. ValueError for what cannot be run."""
    own = {one.name: settings.get(f"tools.{one.name}", one.default) for one in fields(ToolsConfig)}
    cfg = tools if isinstance(tools, ToolsConfig) else ToolsConfig(**own | ({} if tools is None else {"names": tools}))
    check_tools(cfg, style)
    return cfg


def training_settings(folder: Path) -> Mapping[str, Any] | None:
    """The settings of the run that a checkpoint folder belongs to; None for a folder that is no checkpoint."""
    path = folder.parent.parent / "config.json"
    if folder.parent.name != "checkpoints" or not path.is_file():
        return None
    return read_settings(path.parent)["config"]  # type: ignore[no-any-return]


def learnt_precision(folder: Path) -> str:
    """The precision in which a checkpoint's run computed; float32 for any other folder."""
    return str((training_settings(folder) or {}).get("optim.dtype", "float32"))


def _version(package: str) -> str:
    """Installed version of the package or of its -cpu variant; empty if there is none."""
    for name in (package, f"{package}-cpu"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)
