"""Sampling engines: one protocol, a table of them."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from reasoner.config.schema import EngineConfig
from reasoner.progress import Tick, uncounted
from reasoner.types import Completion, Prompt, Sampling

if TYPE_CHECKING:
    from torch import Tensor


Done = Callable[[int, tuple[Completion, ...]], object]


def unheard(place: int, completions: tuple[Completion, ...]) -> None:
    """A Done for whoever waits for all completions."""


class Engine(Protocol):
    """Draws completions under the weights that it was last given. Token ids in, the drawn token ids out."""

    name: str

    def sample(
        self,
        prompts: Sequence[Prompt],
        sampling: Sampling,
        seeds: Sequence[Sequence[int]],
        done: Done = unheard,
        tick: Tick = uncounted,
    ) -> list[tuple[Completion, ...]]:
        """`sampling.num` completions of each prompt; the weights and seeds[i][j] decide completion j of prompt i.

        `done` is called with a prompt's place and its completions when these are complete, in any order, while others
        may still be drawn. `tick` is called after every token of each row, with a function that counts what there is.
        """
        ...

    def load_weights(self, named: Iterable[tuple[str, Tensor]], version: int) -> None:
        """Take new weights and forget everything computed with the old ones.

        Named as in the model's state_dict, tied ones under each of their names: vLLM on a CPU keeps a copy of the head.
        """
        ...

    def pause(self) -> None:
        """Give memory back while the learner works, where there is some to give."""
        ...

    def resume(self) -> None:
        """The learner is done: take memory again."""
        ...

    def close(self) -> None: ...


def _vllm(folder: Path, cfg: EngineConfig, max_model_len: int, seed: int) -> Engine:
    from reasoner.inference.vllm_engine import VllmEngine

    return VllmEngine(folder, cfg, max_model_len=max_model_len, seed=seed)


def _transformers(folder: Path, cfg: EngineConfig, max_model_len: int, seed: int) -> Engine:
    from reasoner.inference.hf_engine import TransformersEngine

    return TransformersEngine(folder, cfg, max_model_len=max_model_len)


def _auto(folder: Path, cfg: EngineConfig, max_model_len: int, seed: int) -> Engine:
    if importlib.util.find_spec("vllm") is not None:
        try:
            return _vllm(folder, cfg, max_model_len, seed)
        except ImportError as error:  # built for another torch, or for a GPU whose libraries are not here
            print(f"vLLM is installed and does not import ({error}): sampling with transformers", file=sys.stderr)
    return _transformers(folder, cfg, max_model_len, seed)


ENGINES: dict[str, Callable[[Path, EngineConfig, int, int], Engine]] = {
    "auto": _auto,
    "vllm": _vllm,
    "transformers": _transformers,
}


def check_engine(name: str) -> None:
    """ValueError for an unknown name, and for vllm where it is not installed."""
    if name not in ENGINES:
        raise ValueError(f"unknown engine {name!r}; known are {', '.join(ENGINES)}")
    if name == "vllm" and importlib.util.find_spec("vllm") is None:
        raise ValueError("engine 'vllm' is not installed here; use --engine transformers")


def make_engine(cfg: EngineConfig, folder: Path, *, max_model_len: int, seed: int) -> Engine:
    """The engine of that name over the model in the folder. "auto" is vLLM where it imports, else transformers.

    ValueError as check_engine has it.
    """
    check_engine(cfg.name)
    return ENGINES[cfg.name](folder, cfg, max_model_len, seed)
