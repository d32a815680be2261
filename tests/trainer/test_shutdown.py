"""Signals that end a run."""

import os
import signal

import pytest

from reasoner.distributed.world import RunInterrupt
from reasoner.runtime import stop_signals
from reasoner.trainer.shutdown import GracefulShutdown


@pytest.fixture(autouse=True)
def handlers():
    """Restore the handlers, and end the test run by none of the signals."""
    before = {number: signal.signal(number, signal.default_int_handler) for number in stop_signals()}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


@pytest.mark.parametrize("first", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_closed_terminal_is_never_a_second_signal(first):
    with GracefulShutdown(lambda line: None) as shutdown:
        os.kill(os.getpid(), first)
        os.kill(os.getpid(), signal.SIGHUP)
        with pytest.raises(RunInterrupt, match=f"stopped by {first.name}"):
            shutdown.check()
    assert signal.getsignal(signal.SIGHUP) is signal.default_int_handler


@pytest.mark.parametrize("first", [signal.SIGHUP, signal.SIGTERM])
@pytest.mark.parametrize("second", [signal.SIGINT, signal.SIGTERM])
def test_second_signal_ends_the_run_at_once(first, second):
    with GracefulShutdown(lambda line: None), pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), first)
        os.kill(os.getpid(), second)


def test_signal_of_a_closed_terminal_that_is_ignored_stays_ignored():
    signal.signal(signal.SIGHUP, signal.SIG_IGN)
    with GracefulShutdown(lambda line: None) as shutdown:
        os.kill(os.getpid(), signal.SIGHUP)
        shutdown.check()
    assert signal.getsignal(signal.SIGHUP) == signal.SIG_IGN
