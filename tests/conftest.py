"""Which test files one xdist worker runs, so that what is dear to start is started once: a browser and Gradio for the
dashboard, the forkserver with torch behind it for trainings, vLLM's import. The long groups and files come first.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reasoner.inference.server_token import VARIABLE
from reasoner.runtime import gc_paused

# Of servers and trainers that tests start: none uses or makes the token of the user.
os.environ[VARIABLE] = "the-token-of-the-tests"
# Runs that tests start save at a closed terminal, also where the tests were started by nohup.
signal.signal(signal.SIGHUP, signal.SIG_DFL)

GROUPS = {
    "training": (
        "tests/analysis/test_model_export.py", "tests/cli/test_eval.py", "tests/cli/test_lora_runs.py",
        "tests/distributed/", "tests/doctor/test_checkup.py", "tests/e2e/", "tests/inference/test_chat_worker.py",
        "tests/recipes/test_expert_iteration.py", "tests/rollouts/test_prefetch.py", "tests/trainer/",
    ),
    "dashboard": ("tests/app/",),
    "vllm": (
        "tests/trainer/test_sync_certificate.py", "tests/inference/test_factory.py",
        "tests/inference/test_engines.py", "tests/inference/test_tool_engine.py",
        "tests/inference/test_fp8_engine.py", "tests/inference/test_lora_engines.py",
    ),
}  # fmt: skip
LONG = (  # a file of a quarter of a minute that came last would be waited for
    "tests/verifiers/test_tables.py", "tests/inference/test_server_pool.py", "tests/recipes/test_pipeline.py",
    "tests/verifiers/test_pool.py", "tests/test_api.py", "tests/tools/test_worker.py",
    "tests/verifiers/test_policies.py", "tests/verifiers/test_sizes.py", "tests/rl/test_algorithms.py",
    "tests/rl/test_critic.py", "tests/models/test_recompute.py", "tests/recipes/test_r1.py",
    "tests/runs/test_health.py",
)  # fmt: skip
GROUP_OF = {part: name for name, paths in GROUPS.items() for part in paths} | {path: path for path in LONG}


def part_of(path: str) -> str:
    """The longest beginning of a test file's path that is in a group; of one that is in none its path."""
    return max((part for part in GROUP_OF if path.startswith(part)), key=len, default=path)


@pytest.fixture(scope="module")
def pool() -> Iterator[Any]:
    """Workers that grade."""
    from verifiers import VerifierPool

    with VerifierPool() as opened:
        yield opened


@pytest.fixture(scope="session")
def tiny_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny random model with its tokenizer, which no test changes."""
    from tests.fixtures.tiny import save_tiny

    return save_tiny(tmp_path_factory.mktemp("tiny"))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage among modules and tests, which stay: scanning them takes a quarter of their import."""
    with gc_paused():
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol() -> Iterator[None]:
    """Undo what a run in this process changes of torch, where it is imported."""
    threads = sys.modules["torch"].get_num_threads() if "torch" in sys.modules else 0
    result = yield
    if torch := sys.modules.get("torch"):
        torch.use_deterministic_algorithms(False)
        torch.set_num_threads(threads or torch.get_num_threads())
    return result


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    order = {part: place for place, part in enumerate(GROUP_OF)}
    items.sort(key=lambda item: order.get(part_of(item.nodeid.partition("::")[0]), len(order)))


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    if config.getvalue("dist") != "loadfile":
        return None
    from xdist.scheduler import LoadFileScheduling

    class GroupScheduling(LoadFileScheduling):
        def _split_scope(self, nodeid: str) -> str:
            part = part_of(super()._split_scope(nodeid))
            return GROUP_OF.get(part, part)

    return GroupScheduling(config, log)
