"""The table of sampling engines, and how one is created by name."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from reasoner.config.schema import EngineConfig
from reasoner.console import log
from reasoner.runtime import set_matmul_precision
from reasoner.types import Engine


def _vllm(folder: Path, cfg: EngineConfig, max_model_len: int, seed: int, adapter_rank: int | None) -> Engine:
    from reasoner.inference.vllm_engine import VllmEngine

    return VllmEngine(folder, cfg, max_model_len=max_model_len, seed=seed, adapter_rank=adapter_rank)


def _transformers(folder: Path, cfg: EngineConfig, max_model_len: int, seed: int, adapter_rank: int | None) -> Engine:
    from reasoner.inference.hf_engine import TransformersEngine

    return TransformersEngine(folder, cfg, max_model_len=max_model_len)


def _remote(folder: Path, cfg: EngineConfig, max_model_len: int, seed: int, adapter_rank: int | None) -> Engine:
    from reasoner.inference.remote_engine import RemoteEngine

    if not cfg.urls:
        raise ValueError("engine 'remote' needs engine.urls (reasoner train); evaluate a server by --model-url")
    return RemoteEngine(folder, cfg, max_model_len=max_model_len)


def _auto(folder: Path, cfg: EngineConfig, max_model_len: int, seed: int, adapter_rank: int | None) -> Engine:
    if cfg.urls:
        return _remote(folder, cfg, max_model_len, seed, adapter_rank)
    if importlib.util.find_spec("vllm") is not None:
        try:
            return _vllm(folder, cfg, max_model_len, seed, adapter_rank)
        except ImportError as error:  # built for another torch, or for a GPU whose libraries are missing
            log(f"vLLM is installed but cannot be imported ({error}); sampling with transformers instead")
    return _transformers(folder, cfg, max_model_len, seed, adapter_rank)


ENGINES: dict[str, Callable[[Path, EngineConfig, int, int, int | None], Engine]] = {
    "auto": _auto,
    "vllm": _vllm,
    "transformers": _transformers,
    "remote": _remote,
}


def check_engine(name: str) -> None:
    """Raise ValueError for an unknown engine name, and for vllm if it is not installed."""
    if name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; known are {', '.join(ENGINES)}")
    if name == "vllm" and importlib.util.find_spec("vllm") is None:
        raise ValueError("engine 'vllm' is not installed here; use --engine transformers")


def make_engine(
    cfg: EngineConfig, folder: Path, *, max_model_len: int, seed: int, adapter_rank: int | None = None
) -> Engine:
    """Create the engine `cfg.name` for the model in the folder. "auto" is remote if there are urls, else vLLM if it
    imports, else transformers.

    `adapter_rank`: the rank of the LoRA adapters that the engine will be sent, if it can run them; 0 for none, None for
    that of the adapter in the folder, if there is one. Raises ValueError as check_engine does.
    """
    check_engine(cfg.name)
    set_matmul_precision()  # also for evaluations, which set up nothing else of torch
    return ENGINES[cfg.name](folder, cfg, max_model_len, seed, adapter_rank)
