"""The remote engine against servers in this process, which sample with the transformers engine."""

import json
import subprocess
import sys
import threading
from pathlib import Path

import pytest
import torch

from data.generated import problems
from reasoner.config.check import check_run, check_values
from reasoner.config.learning import LoraConfig
from reasoner.config.schema import Config, EngineConfig
from reasoner.inference.factory import make_engine
from reasoner.inference.hf_engine import TransformersEngine
from reasoner.inference.server_answers import check_identity, identity
from reasoner.inference.weight_file import WeightFolder, open_weights
from reasoner.models.loading import load_config, load_policy, load_tokenizer
from reasoner.models.lora import add_adapter, merged_state
from reasoner.rollouts.prompts import load_template, render
from reasoner.trainer.parity import max_logprob_diff
from reasoner.types import Prompt, SamplingParams
from tests.fixtures.families import save_family
from tests.fixtures.full_disk import largest_file
from tests.fixtures.inference_server import InferenceServer, alive
from tests.fixtures.tiny import perturbed, save_tiny, tiny_tokenizer

CPU = torch.device("cpu")
ROOT = Path(__file__).parents[2]
SAMPLED = SamplingParams(num_samples=4, temperature=1.0, max_tokens=24, stop=("</answer>", " and"))
SEEDS = [[2**62 + 1000 * i + j for j in range(4)] for i in range(4)]


class SamplingServer(InferenceServer):
    """A server that samples as vLLM does with our extension: by the transformers engine, one completion at a time."""

    def __init__(self, folder: Path, **options) -> None:
        own = identity(load_config(folder), load_tokenizer(folder), "float32", 512)
        self.engine = TransformersEngine(folder, EngineConfig(name="transformers"), max_model_len=512)
        self._lock_of_engine = threading.Lock()
        super().__init__(identity=own, complete=self._sample, load=self._load, **options)

    def _sample(self, body, version):
        own = {name: body[name] for name in ("temperature", "top_p", "max_tokens")}
        sampling = SamplingParams(num_samples=1, stop=tuple(body.get("stop", ())), **own)
        self.engine._end_ids = frozenset(body["stop_token_ids"])
        prompt = Prompt(problems("train", 1)[0], "", "", tuple(body["prompt"]))
        with self._lock_of_engine:
            ((completion,),) = self.engine.generate([prompt], sampling, [[body["vllm_xargs"]["seed"]]])
        return [*completion.token_ids], [*completion.logprobs], completion.finish

    def _load(self, update):
        with self._lock_of_engine, open_weights(**update) as weights:
            self.engine.update_weights(weights, 0)


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    return save_tiny(tmp_path_factory.mktemp("tiny"), layers=1)


@pytest.fixture(scope="module")
def prompts() -> list[Prompt]:
    return [render(problem, load_template("r1-zero"), tiny_tokenizer()) for problem in problems("train", 4)]


@pytest.fixture(scope="module")
def servers(folder):
    yield from alive(SamplingServer(folder), SamplingServer(folder))


def engine_of(servers, folder, **settings):
    urls = ", ".join(f"{server.url}/" for server in servers)
    return make_engine(EngineConfig(urls=urls, **settings), folder, max_model_len=512, seed=0)


def test_completions_equal_those_of_an_engine_in_this_process(servers, folder, prompts):
    engine = engine_of(servers, folder)
    assert engine.name == "remote" and not engine.accepts_adapter
    order, counts = [], []
    hooks = (lambda place, own: order.append(place), lambda count: counts.append(count()))
    groups = engine.generate(prompts, SAMPLED, SEEDS, *hooks)
    local = TransformersEngine(folder, EngineConfig(name="transformers"), max_model_len=512)
    for one, other in zip(groups, local.generate(prompts, SAMPLED, SEEDS), strict=True):
        for here, there in zip(one, other, strict=True):
            assert (here.token_ids, here.text, here.finish) == (there.token_ids, there.text, there.finish)
            assert here.logprobs == pytest.approx(there.logprobs, abs=1e-5)
            assert here.policy_version == 0
    assert sorted(order) == [0, 1, 2, 3]
    assert counts == sorted(counts) and counts[-1][0] <= 16
    assert engine.generate([], SAMPLED, []) == []
    engine.close()


def test_gap_to_the_policy_is_rounding_after_each_update_and_completions_carry_its_version(servers, folder, prompts):
    engine = engine_of(servers, folder)
    for version in (3, 4):
        model = perturbed(folder, version)
        assert max_logprob_diff(engine, model, prompts, SAMPLED) > 1e-2  # stale weights would be noticed
        engine.update_weights(model.state_dict().items(), version)
        assert max_logprob_diff(engine, model, prompts, SAMPLED) < 1e-5
        assert {c.policy_version for own in engine.generate(prompts, SAMPLED, SEEDS) for c in own} == {version}
    engine.close()


def test_server_of_a_run_that_lives_refuses_another_one_until_it_has_ended(servers, folder):
    cfg = EngineConfig(urls=servers[0].url)
    first = make_engine(cfg, folder, max_model_len=512, seed=0, run="runs/first")
    with pytest.raises(ValueError, match="runs/first"):
        make_engine(cfg, folder, max_model_len=512, seed=0, run="runs/second")
    first.close()
    make_engine(cfg, folder, max_model_len=512, seed=0, run="runs/second").close()


def test_merged_weights_of_lora_are_sent_and_an_adapter_is_refused(servers, folder, prompts):
    engine, policy = engine_of(servers, folder), load_policy(folder, device=CPU)
    add_adapter(policy, LoraConfig(rank=2), seed=0)
    for name, parameter in policy.named_parameters():
        if ".lora_B." in name:
            parameter.data.normal_(0, 0.05)
    engine.update_weights(merged_state(policy), 1)
    assert max_logprob_diff(engine, policy, prompts, SAMPLED) < 1e-5
    with pytest.raises(ValueError, match="not LoRA adapters"):
        engine.update_weights([("base_model.model.a.lora_A.weight", torch.zeros(2, 2))], 2)
    engine.close()


@pytest.mark.parametrize("change", ["unknown", "missing"])
def test_weights_with_other_names_are_refused_before_anything_is_sent(servers, folder, change):
    engine = engine_of(servers, folder)
    weights = dict(load_policy(folder, device=CPU).state_dict())
    if change == "unknown":
        weights["elsewhere.weight"] = torch.zeros(2)
    else:
        del weights["model.norm.weight"]
    num_updates = len(servers[0].updates)
    with pytest.raises(ValueError, match=r"'elsewhere\.weight'|'model\.norm\.weight'"):
        engine.update_weights(weights.items(), version=9)
    assert len(servers[0].updates) == num_updates
    engine.close()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 5e5}}, r"rope_parameters .*10000.* and .*500000"),
        ({"rms_norm_eps": 1e-5}, r"rms_norm_eps 1e-06 there and 1e-05 here"),
        ({"hidden_act": "gelu"}, r"hidden_act silu there and gelu here"),
    ],
)
def test_server_whose_model_computes_otherwise_is_refused(folder, change, message):
    config, tokenizer = load_config(folder), load_tokenizer(folder)
    server = identity(config, tokenizer, "float32", 512)
    check_identity(json.loads(json.dumps(server)), server, "http://a:1")
    config.sliding_window = 0  # as without one
    check_identity(server, identity(config, tokenizer, "float32", 512), "http://a:1")
    for name, value in change.items():
        setattr(config, name, value)
    with pytest.raises(ValueError, match=message):
        check_identity(server, identity(config, tokenizer, "float32", 512), "http://a:1")


def test_server_with_longrope_beyond_the_original_context_is_refused(tmp_path):
    """vLLM then computes every position with the long factors, the trainer with the short ones."""
    folder = save_family("phi3", tmp_path)
    config, tokenizer = load_config(folder), load_tokenizer(folder)
    own = identity(config, tokenizer, "float32", 96)
    check_identity(identity(config, tokenizer, "float32", 64), own, "http://a:1")
    with pytest.raises(ValueError, match="max_model_len above 96 there"):
        check_identity(identity(config, tokenizer, "float32", 256), own, "http://a:1")


def test_completion_that_a_server_has_no_room_for_is_refused(folder, prompts):
    server = SamplingServer(folder)
    server.max_model_len = 64
    engine = engine_of([server], folder)
    with pytest.raises(ValueError, match=rf"{server.url} .* 64 tokens .*--max-model-len"):
        engine.generate(prompts, SAMPLED, SEEDS)
    engine.close()
    server.die()


def test_weight_file_that_is_not_the_trainer_s_is_refused(tmp_path):
    folder = WeightFolder(str(tmp_path))
    tied = torch.arange(6.0)
    file = folder.write([("a", tied), ("b", tied), ("n", torch.ones(2, dtype=torch.int64))], "one", torch.bfloat16)
    with open_weights(str(file), "one") as weights:
        loaded = dict(weights)
    assert loaded["a"].dtype == loaded["b"].dtype == torch.bfloat16 and loaded["n"].dtype == torch.int64
    assert torch.equal(loaded["a"].float(), tied)
    with pytest.raises(ValueError, match="the trainer wrote"), open_weights(str(file), "two"):
        pass
    whole = file.read_bytes()
    for cut in (whole[:50], whole[:-1], whole + b"\0"):
        file.write_bytes(cut)
        with pytest.raises(ValueError, match=r"engine\.transfer_dir"), open_weights(str(file), "one"):
            pass
    newer = folder.write([("a", tied)], "two", torch.float32)
    assert {path.name for path in folder.path.iterdir()} == {newer.name, "lock"}
    folder.close()
    assert not list(tmp_path.iterdir())


def test_weights_without_room_are_an_error_with_folder_and_setting(tmp_path):
    folder = WeightFolder(str(tmp_path))
    file = folder.write([("a", torch.ones(9))], "one", torch.float32)
    told = rf"4 MiB.* {folder.path}: .*engine\.transfer_dir"
    with largest_file(100_000), pytest.raises(ValueError, match=told):
        folder.write([("a", torch.ones(2**20))], "two", torch.float32)
    assert [*folder.path.glob("*.*")] == [file]


def test_folders_of_trainers_that_were_killed_are_removed(tmp_path):
    """Whatever their process ids: trainers in other containers have the same ones."""
    script = (
        "import os, signal, sys, torch; from reasoner.inference.weight_file import WeightFolder\n"
        "folder = WeightFolder(sys.argv[1]); folder.write([('a', torch.ones(9))], 'one', torch.float32)\n"
        "print(folder.path, flush=True); os.kill(os.getpid(), signal.SIGKILL)\n"
    )
    killed = subprocess.run([sys.executable, "-c", script, tmp_path], cwd=ROOT, capture_output=True, text=True)
    abandoned = Path(killed.stdout.strip())
    assert list(tmp_path.iterdir()) == [abandoned], killed.stderr
    first = WeightFolder(str(tmp_path))
    other = first.path.with_name(first.path.name[:-1] + "-999999999-x")
    first.path.rename(other)  # as of a process that is not seen from here
    first.path = other
    second = WeightFolder(str(tmp_path))
    assert sorted(tmp_path.iterdir()) == sorted([first.path, second.path])
    first.close()
    second.close()
    assert not list(tmp_path.iterdir())
    with pytest.raises(ValueError, match="/nowhere"):
        WeightFolder("/nowhere")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "remote"}, r"needs engine\.urls"),
        ({"urls": "127.0.0.1:8001"}, r"engine\.urls has '127\.0\.0\.1:8001'"),
        ({"urls": "http://a:1/v1"}, r"engine\.urls has 'http://a:1/v1'"),
        ({"urls": "http://a:1,http://a:1/"}, "twice"),
        ({"urls": "http://a:1,"}, r"engine\.urls has ''"),
        ({"urls": "http://a:1", "name": "vllm"}, r"engine\.urls needs engine\.name in \('auto', 'remote'\)"),
    ],
)
def test_addresses_are_checked_with_the_settings(settings, message):
    with pytest.raises(ValueError, match=message):
        for check in (check_values, check_run):
            check(Config(engine=EngineConfig(**settings)))
    check_values(Config(engine=EngineConfig(urls="http://a:1, https://b")))
