"""How much of a run the index reads for a query, and in how many transactions it is made: counted, not timed."""

import random
from functools import partial

import pytest

from bench.store import STEP, questions, write_copies
from reasoner.runs.index import _TOGETHER, RolloutIndex
from tests.app.library_of import write_run
from tests.fixtures.sqlite_steps import vm_steps

SCAN = "advantage"  # a column without an index: its sum reads every rollout
# Queries that read more rollouts than they show: all, until 50 match, and every match of a phrase.
GROWING = {SCAN, "page: a subject, a level, cut off, anywhere", 'phrase "aha moment", count'}


@pytest.fixture(scope="module")
def work(tmp_path_factory):
    """By query: the most steps of SQLite's virtual machine in a run of two training steps, and in one of eight."""
    counts = []
    for steps in (2, 8):
        folder = tmp_path_factory.mktemp("runs") / str(steps)
        write_copies(folder, steps * STEP)
        index = RolloutIndex(folder)
        index.refresh()
        queries = questions(index, random.Random(0)) | {SCAN: partial(index.rows, f"SELECT SUM({SCAN}) FROM rollouts")}
        counts.append({name: max(vm_steps(index, ask) for _ in range(11)) for name, ask in queries.items()})
        index.close()
    return {name: (small, counts[1][name]) for name, small in counts[0].items()}


def test_a_query_reads_what_it_shows_whatever_the_size_of_the_run(work):
    assert {name: pair for name, pair in work.items() if name not in GROWING and pair[1] > 1.5 * pair[0] + 500} == {}


def test_a_query_that_reads_every_rollout_is_noticed(work):
    small, large = work[SCAN]
    assert small > 2 * STEP and large > 3.5 * small


def test_shards_are_indexed_many_in_a_transaction(tmp_path):
    run = write_run(tmp_path / "a", steps=_TOGETHER + 1, written=_TOGETHER + 1, indexed=False)
    index = RolloutIndex(run)
    statements = []
    index._db.set_trace_callback(statements.append)
    index.refresh()
    index._db.set_trace_callback(None)
    index.close()
    assert sum(text.startswith("COMMIT") for text in statements) == 3  # the first one notes what is known
