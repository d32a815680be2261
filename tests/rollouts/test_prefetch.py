"""Prefetching: later steps are sampled while a step trains."""

import threading
from dataclasses import replace

import pytest
import torch

from reasoner.config.schema import Config, DataConfig
from reasoner.distributed.world import World
from reasoner.rollouts.generate import RolloutPrefetcher
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.rollout_generator import RolloutGenerator
from reasoner.types import SamplingParams
from tests.e2e.test_resume import content, finish, kill
from tests.e2e.test_resume import tiny as tiny
from tests.fixtures.scripted import Scripted, answering, prompt
from tests.fixtures.trainings import differing
from verifiers import VerifierPool

TWO_AHEAD = (
    "--algo.importance_sampling", "token", "--reward.overlong", 1, "--max_off_policy_steps", 2,
    "--run.save_interval", 5, "--steps", 7,
)  # fmt: skip


def test_steps_are_generated_in_the_background_in_order_and_once():
    may_end, steps = threading.Event(), []

    def generate(step):
        steps.append(step)
        assert may_end.wait(60)
        return step

    with RolloutPrefetcher() as prefetcher:
        for step in (3, 4):
            prefetcher.start(step, lambda step=step: generate(step))  # this thread is not blocked
        assert prefetcher.steps == [3, 4]
        may_end.set()
        prefetcher.wait()
        assert steps == [3, 4]
        assert [prefetcher.take(3), prefetcher.take(4), prefetcher.take(5)] == [3, 4, None]


def test_thread_is_set_up_once_before_its_first_generation():
    calls = []
    with RolloutPrefetcher(lambda: calls.append(threading.get_ident())) as prefetcher:
        for step in (3, 4):
            prefetcher.start(step, threading.get_ident)
        assert [prefetcher.take(3), prefetcher.take(4)] == [calls[0]] * 2
    assert len(calls) == 1 and calls[0] != threading.get_ident()


def test_take_of_an_earlier_step_forgets_what_was_prefetched():
    with RolloutPrefetcher() as prefetcher:
        prefetcher.start(3, lambda: "old")
        prefetcher.start(4, lambda: "old")
        assert prefetcher.take(2) is None and prefetcher.take(3) is None
        prefetcher.start(3, lambda: "new")
        assert prefetcher.take(3) == "new"


def test_error_of_a_step_is_that_of_the_steps_after_it():
    generated = []

    def fail():
        raise RuntimeError("no memory")

    with RolloutPrefetcher() as prefetcher:
        prefetcher.start(1, fail)
        prefetcher.start(2, lambda: generated.append(2))
        prefetcher.wait()
        for step in (1, 2):
            with pytest.raises(RuntimeError, match="no memory"):
                prefetcher.take(step)
        assert generated == []


class VersionedEngine(Scripted):
    """An engine whose completions carry the version of the weights, and which keeps the weights of each version."""

    accepts_adapter = False

    def __init__(self, script):
        super().__init__(script)
        self.version, self.weights = 0, {}

    def update_weights(self, named, version):
        self.version, self.weights[version] = version, {name: tensor.tolist() for name, tensor in named}

    def sleep(self, *, keeps_weights):
        pass

    def wake_up(self):
        pass

    def _completion(self, prompt, sample):
        return replace(super()._completion(prompt, sample), policy_version=self.version)


def test_deferred_weights_are_those_of_their_version_and_in_use_from_the_next_step_that_is_started():
    engine, versions = VersionedEngine({"a": [answering(1), answering(2)]}), []
    policy = torch.nn.ParameterDict({"w": torch.nn.Parameter(torch.zeros(1), requires_grad=False)})
    cfg, sampling = Config(data=DataConfig(prompts_per_step=1)), SamplingParams(num_samples=2)
    with VerifierPool(1) as pool, RolloutPrefetcher() as prefetcher:
        generator = RolloutGenerator(engine, pool, [prompt("a", "1")], sampling, cfg, prefetcher=prefetcher)
        for step in range(6):
            versions.append(generator.generate(step).policy_version)
            with generator.prefetching(range(step + 1, min(step + 3, 6))):
                policy["w"] += 1
            generator.update_weights(policy, version=step + 1, is_deferred=step < 5)
    assert versions == [0, 0, 0, 1, 2, 3]
    assert engine.weights == {version: {"w": [version]} for version in (1, 2, 3, 6)}


def test_first_of_several_ranks_alone_copies_weights_for_servers():
    policy, copies = torch.nn.ParameterDict({"w": torch.nn.Parameter(torch.zeros(1))}), {}
    sampling = SamplingParams(num_samples=2)
    for name in ("remote", "vllm"):
        engine = VersionedEngine({})
        engine.name = name
        for rank in (0, 1):
            generator = RolloutGenerator(engine, None, [], sampling, Config(), world=World(rank, 2))
            generator.update_weights(policy, version=1, is_deferred=True)
            copies[name, rank] = len(generator._next_weights[0])
    assert copies == {("remote", 0): 1, ("remote", 1): 0, ("vllm", 0): 1, ("vllm", 1): 1}


@pytest.fixture(scope="module")
def two_ahead(tmp_path_factory, tiny):
    runs = tmp_path_factory.mktemp("uninterrupted")
    finish(runs, *tiny, *TWO_AHEAD)
    return runs


def test_steps_are_at_most_two_updates_behind_and_the_engine_is_compared_after_validations(two_ahead):
    metrics = read_metrics(two_ahead / "a")
    assert [line["rollouts/policy_age"] for line in metrics] == [0, 1, 2, 2, 2, 0, 1]
    gaps = {int(line["step"]): line["parity/logprob_diff_max"] for line in metrics if "parity/logprob_diff_max" in line}
    assert gaps.keys() == {1, 3, 4, 5, 6} and max(gaps.values()) < 1e-4
    own = [line["sampling/logprob_diff_mean"] for line in metrics if "sampling/logprob_diff_mean" in line]
    assert own[0] < 1e-5 < max(own[1:3])  # the difference that importance sampling corrects


def test_run_with_two_steps_ahead_resumes_exactly_after_kill(tmp_path, tiny, two_ahead):
    kill(tmp_path, "rollouts/step-000006.parquet", (*tiny, *TWO_AHEAD))
    finish(tmp_path, resume=True)
    assert differing(content(tmp_path), content(two_ahead)) == []
