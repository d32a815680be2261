"""Every setting is read by the code of a run in which its needs hold: the reads of small runs are recorded."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import torch

from reasoner.config.check import check_effect
from reasoner.config.schema import Config, settings
from reasoner.inference.factory import ENGINES, EngineRequest, make_engine
from reasoner.inference.server_answers import identity
from reasoner.inference.vllm_engine import VllmEngine
from reasoner.models.loading import load_config, load_tokenizer
from reasoner.trainer.resolve_run import resolve_new_run, run_values
from reasoner.trainer.run_stage import run_stage
from reasoner.types import Engine
from tests.fixtures.inference_server import InferenceServer
from tests.fixtures.tiny import save_tiny

SMALL = {"engine.name": "transformers", "threads": 1, "validation.interval": 0, "eval.heldout_problems": 0}
SUMS = str(Path(__file__).parents[1] / "fixtures" / "sums.jsonl")
STEP = {"data.train": SUMS, "steps": 1, "data.prompts_per_step": 2, "algo.group_size": 2, "sampling.max_tokens": 8}
EVALUATED = {
    "validation.interval": 1, "validation.problems": 1, "validation.samples": 1, "eval.heldout_problems": 1,
    "eval.samples": 1,
}  # fmt: skip
SHARED_CRITIC = {"algo.name": "ppo", "algo.critic_backbone": "shared", "algo.minibatches": 1}
# What differs in each run from SMALL, and in reinforcement learning from STEP.
RUNS = {
    "preferences": {"rm.data": "{folder}/pairs.jsonl", "rm.heldout_share": 0.4},
    "examples": EVALUATED | {"sft.data": "{folder}/examples.jsonl", "sampling.max_tokens": 8},
    "dapo": EVALUATED | {
        "steps": 2, "algo.name": "dapo", "algo.minibatches": 2, "algo.kl_target": 0.1,
        "algo.importance_sampling": "token_mask",
    },
    "critic": {
        "algo.name": "ppo", "algo.kl": "k3", "algo.kl_in": "loss", "reward.model": "preferences",
        "critic.init": "preferences",
        "teacher.model": "{folder}/model", "teacher.weight": 0.5, "teacher.alone": True,
        "teacher.prompt": "{{question}} {{answer}}", "teacher.kl": "full",
        "tools.names": "python",
    },
    "shared": SHARED_CRITIC,
    "trpo": {"algo.name": "trpo"},
    "adapter": {"algo.name": "grpo_process", "lora.rank": 2, "engine.name": "vllm"},
}  # fmt: skip
# Names of trackers, which preflight() resolves; the reference, which is read by its stored name; and what several
# processes hold: tests/distributed.
APPLIED_ELSEWHERE = {"run.track", "run.reference", "optim.sharding"}
ONLY_SHOWN = ("reasoner.config", "reasoner.trainer.summary", "reasoner.trainer.preflight", "reasoner.doctor")


class VllmStarted(Exception):
    """Raised in place of vLLM's start."""


def start(*_: object, **__: object) -> None:
    raise VllmStarted


def vllm_settings_alone(request: EngineRequest) -> Engine:
    """Read the settings as VllmEngine does until it starts vLLM; sample by transformers."""
    with suppress(VllmStarted), pytest.MonkeyPatch.context() as on_gpu:  # nothing of vLLM is looked up there
        on_gpu.setattr(torch.cuda, "is_available", lambda: True)
        VllmEngine(request.folder, request.cfg, max_model_len=request.max_model_len, seed=request.seed)
    return ENGINES["transformers"](request)


def record_reads(monkeypatch: pytest.MonkeyPatch, read: set[str]) -> None:
    """Add to `read` each setting that code outside of ONLY_SHOWN reads, by key."""
    prefixes = {type(getattr(Config(), name)): f"{name}." for name in {key.split(".")[0] for key in settings()}}
    for node in [Config, *(node for node in prefixes if hasattr(node, "__dataclass_fields__"))]:
        names, prefix = {one.name for one in fields(node)}, "" if node is Config else prefixes[node]

        def recorded(self: object, name: str, names: set[str] = names, prefix: str = prefix) -> object:
            frame = sys._getframe(1)
            while frame.f_back and frame.f_globals.get("__name__") == "reasoner.config.stages":
                frame = frame.f_back  # problem_sets(), for whoever asks it
            caller = frame.f_globals.get("__name__", "")
            if name in names and caller.startswith(("reasoner.", "verifiers.")) and not caller.startswith(ONLY_SHOWN):
                read.add(prefix + name)
            return object.__getattribute__(self, name)

        monkeypatch.setattr(node, "__getattribute__", recorded)


def keys_with_effect(read: set[str], cfg: Config) -> Iterator[str]:
    """The settings read whose needs hold in the run."""
    for key in read & settings().keys():
        with suppress(ValueError):
            check_effect(run_values(cfg), {key: object()})
            yield key


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with examples and preferences, where vLLM is only started."""
    columns = {"examples": ("question", "completion"), "pairs": ("prompt", "chosen", "rejected", "problem_id")}
    for name, own in columns.items():
        rows = [dict(zip(own, (f"{i} + 1?", f" {i + 1}", " no", str(i)), strict=False)) for i in range(6)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    vllm, backend = ModuleType("vllm"), ModuleType("vllm.model_executor.models.transformers")
    vllm.LLM, backend.base = start, SimpleNamespace()
    vllm.__spec__ = SimpleNamespace()
    for module in (vllm, backend):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setitem(ENGINES, "vllm", vllm_settings_alone)
    return tmp_path


def test_every_setting_is_read_by_a_run_in_which_it_has_an_effect(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read, used, model = set[str](), set(APPLIED_ELSEWHERE), save_tiny(folder / "model", layers=1)
    record_reads(monkeypatch, read)
    for name, changes in RUNS.items():
        stage = {"preferences": "reward-model", "examples": "sft"}.get(name, "rl")
        own = {key: value.format(folder=folder) if isinstance(value, str) else value for key, value in changes.items()}
        common = {"threads": 1} if stage == "reward-model" else SMALL
        values = {
            "model": str(model), **common, **(STEP if stage == "rl" else {}), **own, "run.dir": str(folder / "runs"),
            "run.name": name,
        }  # fmt: skip
        read.clear()
        resolved, run_dir = resolve_new_run(values, origin="a test", stage=stage)
        run_stage(resolved, run_dir)
        used.update(keys_with_effect(read, resolved.config))
    server = InferenceServer(identity=identity(load_config(model), load_tokenizer(model), "float32", 512))
    read.clear()
    values = SMALL | {"model": str(model), "engine.name": "remote", "engine.urls": server.url}
    remote = resolve_new_run(values, origin="a test")[0].config
    make_engine(remote.engine, model, max_model_len=512, seed=0).close()
    used.update(keys_with_effect(read, remote))
    assert settings().keys() - used == set()
