"""Processes that are killed at any moment: what was acknowledged is there, whole."""

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from reasoner.runs import rollouts as store
from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.run_start import open_run
from tests.fixtures.rollouts import numbered, write

KILLS = [3, pytest.param(20, marks=pytest.mark.slow)]
# A process that has the imports behind it and forks a new one for each order, so that starting one costs nothing.
PROGRAM = """
import os, signal, sys, time
from pathlib import Path
import pandas  # as pyarrow does at the first shard
from tests.fixtures.rollouts import numbered, write

run = Path(sys.argv[1])

def write_from(step):
    while True:
        write(run, step, numbered(step))
        print(step, flush=True)
        time.sleep(0.005)
        step += 1

for line in sys.stdin:
    if child := os.fork():
        os.waitpid(child, 0)
        print("killed", flush=True)
    else:
        print(os.getpid(), flush=True)
        write_from(int(line))
"""


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "a"
    open_run(path, {}, {}, resuming=False)
    return path


@pytest.fixture
def nursery(run):
    command, root = [sys.executable, "-c", PROGRAM, str(run)], Path(__file__).parents[2]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    process = subprocess.Popen(command, cwd=root, text=True, start_new_session=True, **pipes)
    yield process
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def killed(nursery, order, seconds, meanwhile=lambda: None):
    """What a new process says until it is killed, so long after its first word."""
    print(order, file=nursery.stdin, flush=True)
    process, said = int(nursery.stdout.readline()), [nursery.stdout.readline().strip()]
    end = time.monotonic() + seconds
    meanwhile()
    time.sleep(max(0.0, end - time.monotonic()))
    os.kill(process, signal.SIGKILL)
    while (line := nursery.stdout.readline().strip()) != "killed":
        said.append(line)
    return said


@pytest.mark.parametrize("kills", KILLS)
def test_killed_writer_leaves_whole_shards_and_every_acknowledged_step(run, nursery, kills):
    drawn, table, acknowledged = random.Random(), RolloutTable(run), []

    def look():
        nonlocal table
        table = table.renewed()

    for _ in range(kills):
        acknowledged += killed(nursery, len(acknowledged), drawn.uniform(0.05, 0.4), meanwhile=look)
        look()
    steps = len(acknowledged)
    assert steps >= kills and acknowledged == [str(step) for step in range(steps)]

    there = sorted(path.name for path in (run / "rollouts").glob("*.parquet"))
    assert there in ([store.shard_path(run, step).name for step in range(size)] for size in (steps, steps + 1))
    for step in range(len(there)):
        expected = [(step, c.text, list(c.token_ids)) for one in numbered(step) for c in one.completions]
        assert [(row["step"], row["completion"], row["token_ids"]) for row in store.read(run, step)] == expected

    left_over = store.shard_path(run, 3).with_name(store.shard_path(run, 3).name + ".partial")
    left_over.write_bytes(b"PAR1 cut off")
    look()
    assert table.faults() == {} and table.count() == 6 * len(there)
    assert table.page() == RolloutTable(run).page() and table.groups == RolloutTable(run).groups
    write(run, 3, numbered(3))
    assert not left_over.exists() and RolloutTable(run).count() == table.count()
