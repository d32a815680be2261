"""Sampling engines: one protocol, a table of them."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reasoner.config import EngineConfig
from reasoner.types import Completion, Prompt, Sampling

if TYPE_CHECKING:
    from torch import Tensor


class Engine(Protocol):
    """Draws completions under the weights that it was last given. Token ids in, the drawn token ids out."""

    name: str

    def sample(
        self, prompts: Sequence[Prompt], sampling: Sampling, seeds: Sequence[Sequence[int]]
    ) -> list[tuple[Completion, ...]]:
        """`sampling.num` completions of each prompt; the weights and seeds[i][j] decide completion j of prompt i."""
        ...

    def load_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Take new weights, named as a checkpoint names them, and forget everything computed with the old ones."""
        ...

    def pause(self) -> None:
        """Give memory back while the learner works, where there is some to give."""
        ...

    def resume(self) -> None: ...

    def close(self) -> None: ...


def _vllm(folder: Path, cfg: EngineConfig, max_model_len: int, seed: int) -> Engine:
    from reasoner.engines.vllm import VllmEngine

    return VllmEngine(folder, cfg, max_model_len=max_model_len, seed=seed)


def _transformers(folder: Path, cfg: EngineConfig, max_model_len: int, seed: int) -> Engine:
    from reasoner.engines.transformers import TransformersEngine

    return TransformersEngine(folder, cfg, max_model_len=max_model_len)


ENGINES: dict[str, Callable[[Path, EngineConfig, int, int], Engine]] = {"vllm": _vllm, "transformers": _transformers}


def make_engine(cfg: EngineConfig, folder: Path, *, max_model_len: int, seed: int) -> Engine:
    """The engine of that name over the model in the folder. "auto" is vLLM where it is installed, else transformers.

    ValueError for an unknown name, and for vllm where it is not installed.
    """
    name = cfg.name
    has_vllm = importlib.util.find_spec("vllm") is not None
    if name == "auto":
        name = "vllm" if has_vllm else "transformers"
    if name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; known are auto, {', '.join(ENGINES)}")
    if name == "vllm" and not has_vllm:
        raise ValueError("engine 'vllm' is not installed here; use --engine.name transformers")
    return ENGINES[name](folder, cfg, max_model_len, seed)
