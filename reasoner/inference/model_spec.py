"""What `reasoner eval` measures: a model, how it is asked, and the engine that it is sampled with."""

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

MOST_TOKENS = 32_768  # of a response, as DeepSeek-R1's evaluation has it


@dataclass(frozen=True)
class Subject:
    """The model that is measured, and how it is asked where the command line does not say."""

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
        """A run is asked as it was trained, the embedded base as its preset has it, any other model at DeepSeek-R1's
        settings: temperature 0.6, top-p 0.95, up to 32,768 tokens.

        ValueError for a model, a prompt or an engine that is not there.
        """
        check_engine(args.engine)
        model = args.model or "base"
        folder = locate(model, runs=args.runs, step=args.step)
        trained = _trained_with(folder) or (dict(PRESETS["base"]) if model == "base" else None)
        if trained is None:
            trained = {"sampling.temperature": 0.6, "sampling.top_p": 0.95, "sampling.max_tokens": MOST_TOKENS}
        prompt = args.prompt or str(trained.get("prompt.style", "r1-zero"))
        chosen = template(prompt)
        if args.extract:
            chosen = replace(chosen, extract=args.extract)
        if args.stop:
            chosen = replace(chosen, stop=tuple(args.stop))
        check_tokenizer(folder, needs_chat=chosen.chat)
        context = context_length(folder) or _default_context(folder)
        name = folder.parent.parent.name + "/" + folder.name if folder.parent.name == "checkpoints" else model
        return cls(
            name=name,
            folder=folder,
            template=chosen,
            prompt=prompt,
            temperature=_first(args.temperature, trained.get("sampling.temperature"), 1.0),
            top_p=_first(args.top_p, trained.get("sampling.top_p"), 1.0),
            max_tokens=min(int(_first(args.max_tokens, trained.get("sampling.max_tokens"), 256)), context),
            context=context,
        )

    def engine_config(self, args: argparse.Namespace) -> EngineConfig:
        on_gpu = Path("/dev/nvidia0").exists()
        dtype = args.dtype or ("bfloat16" if on_gpu and self.max_tokens > 1024 else "float32")
        return EngineConfig(name=args.engine, dtype=dtype, gpu_memory=0.9)

    def engine_identity(self, args: argparse.Namespace) -> str:
        """Name, version, precision and kind of device: what may change a sampled text."""
        name = args.engine
        if name == "auto":
            name = "vllm" if importlib.util.find_spec("vllm") is not None else "transformers"
        device = "cuda" if Path("/dev/nvidia0").exists() else "cpu"
        return f"{name} {_version(name)} {self.engine_config(args).dtype} {device}"


class LazyEngine:
    """The engine, made when the first response is missing: an evaluation that is all there starts none."""

    def __init__(self, subject: Subject, args: argparse.Namespace, *, longest_prompt: int) -> None:
        self._subject = subject
        self._args = args
        self._max_model_len = min(subject.context, longest_prompt + subject.max_tokens)

    def __call__(self) -> Engine:
        return self._engine

    @cached_property
    def _engine(self) -> Engine:
        cfg = self._subject.engine_config(self._args)
        made = make_engine(cfg, self._subject.folder, max_model_len=self._max_model_len, seed=self._args.seed)
        if not self._subject.engine_identity(self._args).startswith(made.name):
            raise ValueError(f"vLLM does not import here; name the engine: --engine {made.name}")
        return made

    def close(self) -> None:
        if "_engine" in self.__dict__:
            self._engine.close()


def _trained_with(folder: Path) -> Mapping[str, Any] | None:
    """The settings of the run that a checkpoint belongs to."""
    path = folder.parent.parent / "config.json"
    if folder.parent.name != "checkpoints" or not path.is_file():
        return None
    return read_settings(path.parent)["config"]  # type: ignore[no-any-return]


def _default_context(folder: Path) -> int:
    """The context of a model whose config.json leaves it to the architecture."""
    from reasoner.models.loading import load_config

    return int(load_config(folder).max_position_embeddings)


def model_fingerprint(folder: Path) -> str:
    """16 hex digits of everything in the folder that decides what the model writes: weights, config, tokenizer."""
    names = [p for p in sorted(folder.iterdir()) if p.suffix in (".safetensors", ".json", ".model", ".txt", ".jinja")]
    found = hashlib.sha256()
    for path in names:
        found.update(path.name.encode())
        with path.open("rb") as file:
            found.update(hashlib.file_digest(file, "sha256").digest())
    return found.hexdigest()[:16]


def _version(package: str) -> str:
    for name in (package, f"{package}-cpu"):
        try:
            return version(name)
        except PackageNotFoundError:
            continue
    return ""


def _first(*values: Any) -> Any:
    return next(value for value in values if value is not None)
