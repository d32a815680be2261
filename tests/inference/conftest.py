"""A tiny random model, and for a file of tests an engine of each kind that samples from it."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

import pytest


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The model's: two end tokens, and more rows than ids, as Qwen2.5 has. vLLM on a CPU wants heads of 32 or more."""
    from transformers import GenerationConfig

    from tests.fixtures.tiny import OTHER_END, save_tiny, tiny_tokenizer

    tokenizer = tiny_tokenizer()
    path = save_tiny(tmp_path_factory.mktemp("tiny"), vocabulary=len(tokenizer) + 90, heads=2, key_value_heads=1)
    ends = [tokenizer.eos_token_id, tokenizer.convert_tokens_to_ids(OTHER_END)]
    GenerationConfig(eos_token_id=ends).save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def engines(folder: Path) -> Iterator[dict[str, Any]]:
    """By name; without vLLM's where it is not installed."""
    from reasoner.config.schema import EngineConfig
    from reasoner.inference.factory import make_engine

    names = ["vllm", "transformers"] if importlib.util.find_spec("vllm") else ["transformers"]
    with ExitStack() as stack:
        made = {name: make_engine(EngineConfig(name=name), folder, max_model_len=512, seed=0) for name in names}
        yield {name: stack.enter_context(closing(engine)) for name, engine in made.items()}


@pytest.fixture(params=["transformers", "vllm"])
def engine(request: pytest.FixtureRequest, engines: dict[str, Any]) -> Any:
    return engines[request.param] if request.param in engines else pytest.skip("vLLM is not installed")
