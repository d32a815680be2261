"""The table of sampling engines, and how one is created by name."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from reasoner.config.schema import EngineConfig, ToolsConfig, settings
from reasoner.console import log
from reasoner.distributed.world import ALONE, World
from reasoner.models.families import vllm_obstacle
from reasoner.models.folder import head_size, text_config
from reasoner.models.resolve import full_folder
from reasoner.rollouts.prompts import Template, reply_frame
from reasoner.runtime import has_gpu, set_matmul_precision
from reasoner.tools.forms import tool_form
from reasoner.types import Completion, Engine, Prompt
from verifiers import VerifierPool

if TYPE_CHECKING:
    from torch import Tensor

    from reasoner.inference.answers import AnswerLog

# Sizes of attention heads for which vLLM 0.32 has kernels on a CPU, without the seconds that the import of vLLM takes.
VLLM_CPU_HEAD_SIZES = (32, 64, 80, 96, 112, 128, 160, 192, 224, 256, 512)


@dataclass(frozen=True, slots=True)
class EngineRequest:
    """What an engine is created for; each kind of engine uses a part of it."""

    folder: Path  # of the model
    cfg: EngineConfig
    max_model_len: int
    seed: int
    # Rank of the LoRA adapters that it will be sent, if it can run them; 0 for none, None for that of the adapter in
    # the folder, if there is one.
    adapter_rank: int | None
    is_updated: bool  # whether it will be sent weights
    world: World  # the ranks of the run, each of which creates an engine
    run: str  # name of the run


@dataclass(frozen=True, slots=True)
class Turns:
    """Who answers completions: tools, in the form of the prompt style, and environments of several turns."""

    tools: ToolsConfig
    prompt_style: str
    template: Template
    environments: VerifierPool | None = None
    log: AnswerLog | None = None


class NoEngine(Engine):
    """The engine of a run in which nothing is sampled, such as supervised finetuning without validation: it takes no
    memory, reads no weights, on any rank, and cannot sample.
    """

    name = "none"
    accepts_adapter = False

    def generate(self, prompts: Sequence[Prompt], *_: object, **__: object) -> list[tuple[Completion, ...]]:
        assert not prompts, "a run without an engine samples"
        return []

    def update_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        return


def _vllm(request: EngineRequest) -> Engine:
    if obstacle := head_obstacle(request.folder):
        raise ValueError(f"{obstacle}; use the engine transformers")
    from reasoner.inference.vllm_engine import VllmEngine

    return VllmEngine(
        request.folder,
        request.cfg,
        max_model_len=request.max_model_len,
        seed=request.seed,
        adapter_rank=request.adapter_rank,
    )


def _transformers(request: EngineRequest) -> Engine:
    if request.cfg.dtype == "fp8":
        raise ValueError("the engine transformers has no fp8; set --engine.dtype bfloat16")
    from reasoner.inference.hf_engine import TransformersEngine

    return TransformersEngine(request.folder, request.cfg, max_model_len=request.max_model_len)


def _remote(request: EngineRequest) -> Engine:
    from reasoner.inference.remote_engine import RemoteEngine

    limit, world, run = request.max_model_len, request.world, request.run
    return RemoteEngine(request.folder, request.cfg, max_model_len=limit, world=world, run=run)


def _auto(request: EngineRequest) -> Engine:
    name = resolve_engine_name(request.cfg)
    if name != "vllm":
        return ENGINES[name](request)
    obstacle = head_obstacle(request.folder)
    if request.is_updated and (reason := vllm_obstacle(text_config(request.folder), on_gpu=has_gpu())):
        obstacle = f"vLLM cannot follow the training ({reason})"
    if not obstacle:
        try:
            return _vllm(request)
        except ImportError as error:  # built for another torch, or for a GPU whose libraries are missing
            obstacle = f"vLLM is installed but cannot be imported ({error})"
    log(f"{obstacle}; sampling with transformers instead")
    return _transformers(request)


ENGINES: dict[str, Callable[[EngineRequest], Engine]] = {
    "auto": _auto,
    "vllm": _vllm,
    "transformers": _transformers,
    "remote": _remote,
}


def head_obstacle(folder: Path) -> str:
    """Why vLLM on a CPU has no attention kernel for the folder's model; empty where it has one."""
    size = head_size(full_folder(folder))
    if has_gpu() or size in (None, *VLLM_CPU_HEAD_SIZES):
        return ""
    known = ", ".join(map(str, VLLM_CPU_HEAD_SIZES))
    return f"vLLM on a CPU cannot run {folder}: its attention heads have {size} values, and vLLM knows {known}"


def resolve_engine_name(cfg: EngineConfig) -> str:
    """The name of the engine; "auto" is remote with urls, else vllm if it is installed, else transformers."""
    if cfg.name != "auto":
        return cfg.name
    if cfg.urls:
        return "remote"
    return "vllm" if importlib.util.find_spec("vllm") is not None else "transformers"


def check_engine(name: str, urls: str = "") -> None:
    """Raise ValueError for an unknown engine name, for vllm if it is not installed, and for remote without servers."""
    settings()["engine.name"].check(name)
    if name == "vllm" and importlib.util.find_spec("vllm") is None:
        raise ValueError("engine 'vllm' is not installed here; use --engine transformers")
    if name == "remote" and not urls:
        raise ValueError("engine 'remote' needs engine.urls (reasoner train)")


def training_engine(cfg: EngineConfig, folder: Path) -> str:
    """Name of the engine that samples while the folder's model is trained: "auto" is transformers for a model whose
    training vLLM cannot follow. ValueError where the settings name another one for it.
    """
    name = resolve_engine_name(cfg)
    reason = vllm_obstacle(text_config(folder), on_gpu=name == "remote" or has_gpu())
    if cfg.dtype == "fp8" and (obstacle := reason or head_obstacle(folder)):
        raise ValueError(f"engine.dtype fp8 needs vLLM, which cannot sample from {folder}: {obstacle}")
    if name == "transformers" or not reason:
        return name
    if name == "vllm" and cfg.name == "auto":
        return "transformers"
    raise ValueError(f"vLLM cannot follow the training of {folder}: {reason}; use --engine transformers")


def make_engine(
    cfg: EngineConfig,
    folder: Path,
    *,
    max_model_len: int,
    seed: int,
    adapter_rank: int | None = None,
    is_updated: bool = False,
    world: World = ALONE,
    run: str = "",
    turns: Turns | None = None,
) -> Engine:
    """Create the engine `cfg.name` for the model in the folder. "auto" is that of resolve_engine_name(), or
    transformers where vLLM cannot be imported. `turns`: who answers its completions. The other arguments are the fields
    of EngineRequest.

    Raises ValueError as check_engine does.
    """
    check_engine(cfg.name, cfg.urls)
    set_matmul_precision()  # also for evaluations, which set up nothing else of torch
    request = EngineRequest(folder, cfg, max_model_len, seed, adapter_rank, is_updated, world, run)
    engine = ENGINES[cfg.name](request)
    return engine if turns is None or not (turns.tools.names or turns.environments) else _with(engine, request, turns)


def _with(engine: Engine, request: EngineRequest, turns: Turns) -> Engine:
    """The engine with tools or environments: reasoner.inference.tool_engine."""
    from reasoner.inference.answers import Environments, Source, Tools
    from reasoner.inference.sampling import decode_completions, end_token_ids
    from reasoner.inference.tool_engine import ToolEngine
    from reasoner.models.loading import load_tokenizer
    from reasoner.tools.pool import ToolPool

    folder, sources = full_folder(request.folder), list[Source]()
    tokenizer = load_tokenizer(folder)
    ends = end_token_ids(folder, tokenizer)
    if turns.tools.names:
        form = tool_form(turns.tools.form, turns.prompt_style)
        if marks := form.foreign_marks(tokenizer.get_vocab()):
            log(
                f"warning: {', '.join(marks)} around the answers of tools are no tokens of this model but of another "
                "family's; --tools.form tags has none"
            )
        sources.append(Tools(ToolPool(turns.tools, is_json=form.is_json), form, turns.tools))
    if turns.environments is not None:
        sources.append(Environments(turns.environments, reply_frame(turns.template, tokenizer)))
    return ToolEngine(
        engine,
        sources,
        tokenizer,
        lambda ids: decode_completions([ids], ends, (), tokenizer)[0],
        max_model_len=request.max_model_len,
        log=turns.log,
    )
