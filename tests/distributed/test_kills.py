"""Runs of two processes that SIGKILL ends at random moments, resumed: the bytes of a run that was never interrupted."""

import random
import signal
import time

import pytest

from tests.distributed.runs import SMALL, content, finish, start, wait_for
from tests.fixtures.trainings import differing


def moment(choice: random.Random) -> tuple[str, float]:
    """(a file of the run whose appearance is waited for, seconds after that)."""
    names = ["config.json", *(f"rollouts/step-{step:06d}.parquet" for step in range(SMALL["steps"] - 1))]
    return choice.choice(names), choice.uniform(0, 1.5)


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("seed", range(6))
def test_run_killed_at_random_moments_ends_with_equal_bytes(tmp_path, unbroken, seed):
    """One rank is killed, or all are; twice a seed. As torchrun does, SIGTERM then ends the rank that is left: while
    the ranks connect, it would wait for the other until the time limit.
    """
    choice = random.Random(seed)
    kills = 0
    for victims in choice.sample([(0,), (1,), (0, 1)], 2):
        name, seconds = moment(choice)
        commands = start(tmp_path, 2)
        wait_for(tmp_path / "a" / name, commands)
        time.sleep(seconds)
        kills += all(commands[rank].poll() is None for rank in victims)
        for rank in victims:
            commands[rank].kill()
        for command in commands:
            command.send_signal(signal.SIGTERM)
        for command in commands:
            command.wait(timeout=600)
    assert kills, "the run ended before it was killed"
    finish(start(tmp_path, 2))
    assert differing(content(tmp_path), content(unbroken[2])) == []
