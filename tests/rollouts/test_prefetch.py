"""Prefetching: a step is sampled while the previous one trains."""

import threading

import pytest

from reasoner.rollouts.prefetch import RolloutPrefetcher
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.checkpoint import list_checkpoints
from tests.e2e.test_resume import assert_same, content, finish, finish_from_nothing, kill
from tests.e2e.test_resume import pytestmark as pytestmark

AHEAD = (
    "--engine.name",
    "transformers",
    "--max_off_policy_steps",
    1,
    "--algo.importance_sampling",
    "token",
    "--run.save_interval",
    3,
    "--sampling.max_tokens",
    48,  # shorter completions raise an alarm
    "--eval.heldout_problems",
    0,
)


def test_prefetch_runs_in_background_once():
    started, may_end, steps = threading.Event(), threading.Event(), []

    def draw(step):
        steps.append(step)
        started.set()
        assert may_end.wait(60)
        return [step], []

    with RolloutPrefetcher() as prefetcher:
        prefetcher.start(3, draw)
        assert started.wait(60)  # this thread is not blocked
        may_end.set()
        prefetcher.wait()
        assert prefetcher.take(3, draw) == ([3], [])
        assert steps == [3]
        assert prefetcher.take(4, draw) == ([4], [])  # nothing was prefetched


def test_take_ignores_prefetch_of_another_step():
    with RolloutPrefetcher() as prefetcher:
        prefetcher.start(3, lambda step: ([step, "old"], []))
        assert prefetcher.take(2, lambda step: ([step, "new"], [])) == ([2, "new"], [])
        assert prefetcher.take(3, lambda step: ([step, "new"], [])) == ([3, "new"], [])


def test_take_raises_error_of_background_generation():
    def draw(step):
        raise RuntimeError("no memory")

    with RolloutPrefetcher() as prefetcher:
        prefetcher.start(1, draw)
        prefetcher.wait()
        with pytest.raises(RuntimeError, match="no memory"):
            prefetcher.take(1, draw)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    runs = tmp_path_factory.mktemp("max_off_policy_steps")
    finish_from_nothing(runs, *AHEAD)
    return runs


def test_prefetched_step_is_one_update_behind_except_after_save(uninterrupted):
    metrics = read_metrics(uninterrupted / "a")
    assert [line["rollouts/policy_age"] for line in metrics] == [0, 1, 1, 0, 1]
    assert [folder.name for folder in list_checkpoints(uninterrupted / "a")] == ["step-000003", "step-000005"]
    own = [line["sampling/logprob_diff_mean"] for line in metrics if "sampling/logprob_diff_mean" in line]
    assert own[0] < 1e-5 < max(own[1:3])  # the difference that importance sampling corrects
    assert not (uninterrupted / "a" / "alarms.jsonl").exists()


def test_prefetching_run_resumes_exactly_after_kill(tmp_path, uninterrupted):
    kill(tmp_path, "step 4", AHEAD)
    finish(tmp_path, resume=True)
    assert_same(content(tmp_path), content(uninterrupted))
