"""Checkpoints are written in order beside the training, and no error of a write is lost."""

from threading import Event

import pytest

from reasoner.trainer.checkpoint_writer import CheckpointWriter


def failing() -> None:
    raise OSError("the disk is full")


def test_writes_wait_for_each_other_and_the_caller_for_those_of_another_step_alone():
    go_on, written = Event(), []
    with CheckpointWriter() as writer:
        writer.begin(1)
        writer.submit(1, go_on.wait)
        writer.submit(1, lambda: written.append("best"))
        writer.begin(1)  # does not wait
        writer.check()
        writer.submit(1, lambda: written.append("checkpoint"))
        assert written == []
        go_on.set()
        writer.begin(2)
        assert written == ["best", "checkpoint"]
        writer.submit(2, lambda: written.append("next"))
    assert written == ["best", "checkpoint", "next"]


@pytest.mark.parametrize("place", ["check", "begin", "wait", "end"])
def test_failed_write_is_an_error_of_the_training(place):
    with pytest.raises(OSError, match="full"), CheckpointWriter() as writer:
        writer.submit(1, failing)
        if place == "check":
            while True:
                writer.check()
        if place == "begin":
            writer.begin(2)
        if place == "wait":
            writer.wait()


def test_error_of_the_training_comes_before_that_of_a_write_which_is_logged(capsys):
    with pytest.raises(RuntimeError, match="sampling"), CheckpointWriter() as writer:
        writer.submit(7, failing)
        raise RuntimeError("sampling failed")
    assert "7 steps: the disk is full" in capsys.readouterr().err
