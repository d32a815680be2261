"""Specification of an evaluated model: its folder, prompt, sampling settings and engine."""

from __future__ import annotations

import argparse
import hashlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from reasoner.config.presets import PRESETS
from reasoner.config.schema import EngineConfig
from reasoner.inference.factory import check_engine, make_engine
from reasoner.models.folder import check_tokenizer, context_length
from reasoner.models.resolve import locate
from reasoner.rollouts.prompts import Template, template
from reasoner.runs.run_dir import read_settings
from reasoner.types import Engine

MOST_TOKENS = 32_768  # per response, as in DeepSeek-R1's evaluation


@dataclass(frozen=True)
class Subject:
    """The evaluated model, with the prompt and sampling settings from the command line or their defaults."""

    name: str
    folder: Path
    template: Template
    prompt: str
    temperature: float
    top_p: float
    max_tokens: int
    context: int

    @classmethod
    def of(cls, args: argparse.Namespace) -> Subject:
        """Resolve the command line's settings. Defaults: a run's training settings, the embedded base's preset, and for
        any other model DeepSeek-R1's: temperature 0.6, top-p 0.95, up to 32,768 tokens.

        ValueError for an unknown model, prompt or engine.
        """
        check_engine(args.engine)
        model = args.model or "base"
        folder = locate(model, runs=args.runs, step=args.step)
        trained = _training_settings(folder) or (dict(PRESETS["base"]) if model == "base" else None)
        if trained is None:
            trained = {"sampling.temperature": 0.6, "sampling.top_p": 0.95, "sampling.max_tokens": MOST_TOKENS}
        prompt = args.prompt or str(trained.get("prompt.style", "r1-zero"))
        prompt_template = template(prompt)
        if args.extract:
            prompt_template = replace(prompt_template, extract=args.extract)
        if args.stop:
            prompt_template = replace(prompt_template, stop=tuple(args.stop))
        check_tokenizer(folder, needs_chat=prompt_template.chat)
        context = context_length(folder) or _default_context(folder)
        name = folder.parent.parent.name + "/" + folder.name if folder.parent.name == "checkpoints" else model
        return cls(
            name=name,
            folder=folder,
            template=prompt_template,
            prompt=prompt,
            temperature=_first(args.temperature, trained.get("sampling.temperature"), 1.0),
            top_p=_first(args.top_p, trained.get("sampling.top_p"), 1.0),
            max_tokens=min(int(_first(args.max_tokens, trained.get("sampling.max_tokens"), 256)), context),
            context=context,
        )

    def engine_config(self, args: argparse.Namespace) -> EngineConfig:
        """The engine's settings; without --dtype bfloat16 for long responses on a GPU, else float32."""
        on_gpu = Path("/dev/nvidia0").exists()
        dtype = args.dtype or ("bfloat16" if on_gpu and self.max_tokens > 1024 else "float32")
        return EngineConfig(name=args.engine, dtype=dtype, gpu_memory=0.9)

    def engine_identity(self, args: argparse.Namespace) -> str:
        """Engine name, version, precision and device, any of which may change a sampled text."""
        name = args.engine
        if name == "auto":
            name = "vllm" if importlib.util.find_spec("vllm") is not None else "transformers"
        device = "cuda" if Path("/dev/nvidia0").exists() else "cpu"
        return f"{name} {_version(name)} {self.engine_config(args).dtype} {device}"


class LazyEngine:
    """An engine that is created on first use, so that a fully cached evaluation starts none."""

    def __init__(self, subject: Subject, args: argparse.Namespace, *, longest_prompt: int) -> None:
        self._subject = subject
        self._args = args
        self._max_model_len = min(subject.context, longest_prompt + subject.max_tokens)

    def __call__(self) -> Engine:
        return self._engine

    @cached_property
    def _engine(self) -> Engine:
        cfg = self._subject.engine_config(self._args)
        engine = make_engine(cfg, self._subject.folder, max_model_len=self._max_model_len, seed=self._args.seed)
        if not self._subject.engine_identity(self._args).startswith(engine.name):
            raise ValueError(f"vLLM cannot be imported here; name the engine: --engine {engine.name}")
        return engine

    def close(self) -> None:
        """Close the engine if it was created."""
        if "_engine" in self.__dict__:
            self._engine.close()


def _training_settings(folder: Path) -> Mapping[str, Any] | None:
    """Settings of the run that a checkpoint belongs to; None if the folder is not a checkpoint of a run."""
    path = folder.parent.parent / "config.json"
    if folder.parent.name != "checkpoints" or not path.is_file():
        return None
    return read_settings(path.parent)["config"]  # type: ignore[no-any-return]


def _default_context(folder: Path) -> int:
    """Context of a model whose config.json does not set it: the architecture's default."""
    from reasoner.models.loading import load_config

    return int(load_config(folder).max_position_embeddings)


def model_fingerprint(folder: Path) -> str:
    """16 hex digits of the SHA-256 of the model's weights, configuration and tokenizer files."""
    paths = [p for p in sorted(folder.iterdir()) if p.suffix in (".safetensors", ".json", ".model", ".txt", ".jinja")]
    digest = hashlib.sha256()
    for path in paths:
        digest.update(path.name.encode())
        with path.open("rb") as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()[:16]


def _version(package: str) -> str:
    """Installed version of the package or of its -cpu variant; empty if there is none."""
    for name in (package, f"{package}-cpu"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


def _first(*values: Any) -> Any:
    """The first value that is not None."""
    return next(value for value in values if value is not None)
