"""Queries over the index, compared with counts of the rollouts in Python."""

import shutil
from collections import Counter

import pytest

from reasoner.runs.index import RolloutIndex
from reasoner.runs.index_queries import (
    PROBLEM_ROWS,
    exposure_rates,
    first_self_correction,
    group_ids,
    group_members,
    group_range,
    group_row,
    groups_of_problem,
    problem_means,
    problem_rows,
    rollouts_of_problem,
    sampling_counts,
    solve_rates,
    step_rows,
    subjects,
    word_counts,
)
from reasoner.runs.rollouts import shard_path
from tests.app.library_of import STEPS, rows_of, write_run


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return write_run(tmp_path_factory.mktemp("runs") / "a", steps=STEPS)


@pytest.fixture(scope="module")
def rows(run):
    return rows_of(run)


@pytest.fixture
def index(run):
    index = RolloutIndex(run)
    yield index
    index.close()


def test_steps_begin_with_the_first_step(index):
    assert [row["step"] for row in step_rows(index)] == list(range(STEPS))
    assert [row["step"] for row in step_rows(index, first_step=STEPS - 2)] == [STEPS - 2, STEPS - 1]


def test_a_rollout_and_its_group_are_looked_up_without_reading_the_whole_run(index):
    statements = []
    index._db.set_trace_callback(statements.append)
    number = index.find("1.2.0").id
    index.name(number)
    group_ids(index, 1, 2), group_members(index, 1, 2), group_row(index, 1, 2), group_range(index, 1)
    groups_of_problem(index, "any"), rollouts_of_problem(index, "any"), problem_means(index, step=1)
    index._db.set_trace_callback(None)
    assert len(statements) == 9
    plans = {text: [row[-1] for row in index._db.execute(f"EXPLAIN QUERY PLAN {text}")] for text in statements}
    assert not {text: plan for text, plan in plans.items() if any(line.startswith("SCAN") for line in plan)}


def sums_of(index):
    """All that the map of problems shows."""
    maps = [problem_rows(index, by=by, order="problem", subject=only) for by in PROBLEM_ROWS for only in ("", "sums")]
    return [maps, solve_rates(index), exposure_rates(index), sampling_counts(index), subjects(index)]


def test_the_map_of_problems_reads_no_group_that_it_does_not_show(index):
    statements = []
    index._db.set_trace_callback(statements.append)
    sums_of(index)
    index._db.set_trace_callback(None)
    plans = {text: [row[-1] for row in index._db.execute(f"EXPLAIN QUERY PLAN {text}")] for text in statements}
    assert len(plans) > 10 and any("SEARCH groups" in line for plan in plans.values() for line in plan)
    assert not {text: plan for text, plan in plans.items() if any("SCAN groups" in line for line in plan)}


def test_sums_are_the_same_where_shards_are_indexed_one_by_one_and_the_first_ones_last(run, index, tmp_path):
    other = tmp_path / "other"
    (other / "rollouts").mkdir(parents=True)
    late = RolloutIndex(other)
    for step in (3, 4, 1, 7, 0, 6, 2, 5):
        shutil.copy(shard_path(run, step), shard_path(other, step))
        assert late.refresh() > 0
    assert sums_of(late) == sums_of(index)
    assert late.rows("SELECT * FROM groups") == index.rows("SELECT * FROM groups")
    late.close()


def test_subjects_are_sorted_and_words_are_counted_by_step(index, rows):
    assert subjects(index) == sorted({row["subject"] for row in rows if row["subject"] is not None})
    assert word_counts(index, "found") == Counter(row["step"] for row in rows if "found" in row["completion"].lower())


def test_no_span_of_an_unknown_label_is_the_first_self_correction(index):
    assert first_self_correction(index, ["cue"]) is not None and first_self_correction(index, ["none"]) is None
