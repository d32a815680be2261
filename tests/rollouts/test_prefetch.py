"""A step sampled while the one before it is learnt."""

import threading

import pytest

from reasoner.rollouts.prefetch import Ahead
from reasoner.runs.metrics import read_metrics
from reasoner.trainer.checkpoint import saved
from tests.e2e.test_resume import assert_same, content, finish, kill
from tests.e2e.test_resume import pytestmark as pytestmark

AHEAD = ("--engine.name", "transformers", "--ahead", 1, "--algo.importance", "token", "--run.save_every", 3)


def test_what_was_begun_is_drawn_meanwhile_and_once():
    begun, may_end, asked = threading.Event(), threading.Event(), []

    def draw(step):
        asked.append(step)
        begun.set()
        assert may_end.wait(60)
        return [step], []

    with Ahead() as ahead:
        ahead.begin(3, draw)
        assert begun.wait(60)  # and this thread goes on
        may_end.set()
        ahead.settle()
        assert ahead.take(3, draw) == ([3], [])
        assert asked == [3]
        assert ahead.take(4, draw) == ([4], [])  # nothing was begun


def test_what_was_begun_for_another_step_is_not_taken():
    with Ahead() as ahead:
        ahead.begin(3, lambda step: ([step, "old"], []))
        assert ahead.take(2, lambda step: ([step, "new"], [])) == ([2, "new"], [])
        assert ahead.take(3, lambda step: ([step, "new"], [])) == ([3, "new"], [])


def test_a_fault_while_drawing_comes_out_where_the_step_is_taken():
    def draw(step):
        raise RuntimeError("no memory")

    with Ahead() as ahead:
        ahead.begin(1, draw)
        ahead.settle()
        with pytest.raises(RuntimeError, match="no memory"):
            ahead.take(1, draw)


@pytest.fixture(scope="module")
def uninterrupted(tmp_path_factory):
    runs = tmp_path_factory.mktemp("ahead")
    finish(runs, *AHEAD)
    return runs


def test_the_sampler_is_an_update_behind_except_after_a_step_that_saved(uninterrupted):
    metrics = read_metrics(uninterrupted / "a")
    assert [line["sampler/behind"] for line in metrics] == [0, 1, 1, 0, 1]
    assert [folder.name for folder in saved(uninterrupted / "a")] == ["step-000003", "step-000005"]
    own = [line["sampler/logprob_gap_mean"] for line in metrics if "sampler/logprob_gap_mean" in line]
    assert own[0] < 1e-5 < max(own[1:3])  # the gap that the correction is for
    assert not (uninterrupted / "a" / "alarms.jsonl").exists()


def test_a_run_that_samples_ahead_comes_back_exactly_from_a_kill(tmp_path, uninterrupted):
    kill(tmp_path, "step 4", AHEAD)
    finish(tmp_path, resume=True)
    assert_same(content(tmp_path), content(uninterrupted))
