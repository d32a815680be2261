"""A tiny random model, and an engine of each kind that samples from it, for two files of tests."""

from __future__ import annotations

import importlib.util
from contextlib import ExitStack, closing
from functools import cache
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


_OPEN = ExitStack()  # of the engines
_FILES = ("test_engines.py", "test_tool_engine.py")


@cache
def _engines(folder: Path) -> dict[str, Any]:
    from reasoner.config.schema import EngineConfig
    from reasoner.inference.factory import make_engine

    names = ["vllm", "transformers"] if importlib.util.find_spec("vllm") else ["transformers"]
    return {
        name: _OPEN.enter_context(closing(make_engine(EngineConfig(name=name), folder, max_model_len=512, seed=0)))
        for name in names
    }


@pytest.fixture
def engines(folder: Path) -> dict[str, Any]:
    """By name; without vLLM's where it is not installed."""
    return _engines(folder)


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """Close the engines after the last test of their files: others start engines of their own."""
    if item.path.name in _FILES and (nextitem is None or nextitem.path.name not in _FILES):
        _OPEN.close()
        _engines.cache_clear()


@pytest.fixture(params=["transformers", "vllm"])
def engine(request: pytest.FixtureRequest, engines: dict[str, Any]) -> Any:
    return engines[request.param] if request.param in engines else pytest.skip("vLLM is not installed")
