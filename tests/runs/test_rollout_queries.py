"""Sums over the groups, compared with counts of the rollouts in Python."""

import shutil

import pytest

from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.rollouts import shard_path
from tests.app.library_of import STEPS, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "a", steps=STEPS)


@pytest.fixture(scope="module")
def table(run):
    return RolloutTable(run)


def test_sums_are_the_same_where_shards_are_read_one_by_one_and_the_first_ones_last(run, table, tmp_path):
    other = tmp_path / "other"
    (other / "rollouts").mkdir(parents=True)
    late = RolloutTable(other)
    for step in (3, 4, 1, 7, 0, 6, 2, 5):
        shutil.copy(shard_path(run, step), shard_path(other, step))
        late = late.renewed()
        assert sum(group["size"] for group in late.groups) == late.count()
    assert (late.groups, late.steps) == (table.groups, table.steps)
