"""Selection of stored rollouts: conditions, at most some of a problem, each answer once; why others are left out."""

from dataclasses import replace

import pytest

from reasoner.runs import rollouts as store
from reasoner.runs.parquet_files import read_table
from reasoner.runs.selection import Selection, parse_selection, read_rollouts, select
from tests.fixtures.rollouts import group, write


@pytest.fixture
def run(tmp_path):
    """A run of two steps: problem a has four right answers, of which two are equal, b one right and one wrong."""
    folder = tmp_path / "a"
    (folder / "rollouts").mkdir(parents=True)
    write(folder, 0, [group("a", "2", [(text, True) for text in ("one", "two", "one")])])
    write(folder, 3, [group("a", "2", [("three", True), ("no", False)]), group("b", "2", [("x", False), ("y", True)])])
    return folder


def names(selected):
    return [f"{row['step']}.{row['group']}.{row['sample']}" for row in selected.rows]


RIGHT = Selection(("correct",))


@pytest.mark.parametrize(
    ("selection", "rows", "left_out"),
    [
        (RIGHT, ["0.0.0", "0.0.1", "3.0.0", "3.1.1"], {"repeated": 1, "not correct": 2}),
        (replace(RIGHT, per_problem=2), ["0.0.0", "0.0.1", "3.1.1"],
         {"repeated": 1, "not correct": 2, "more of a problem": 1}),
        (Selection(("wrong", "ended")), ["3.0.1", "3.1.0"], {"not wrong": 5}),
        (Selection(("wrong", "well-formed")), [], {"not wrong": 5, "not well-formed": 2}),
        (Selection(()), ["0.0.0", "0.0.1", "3.0.0", "3.0.1", "3.1.0", "3.1.1"], {"repeated": 1}),
    ],
)  # fmt: skip
def test_selection_takes_what_meets_all_conditions_and_counts_the_rest(run, selection, rows, left_out):
    selected = select(read_rollouts([run]), selection)
    assert (names(selected), dict(selected.left_out)) == (rows, left_out)


def test_problems_of_two_runs_with_equal_ids_and_other_questions_are_two(run, tmp_path):
    folder = tmp_path / "b"
    (folder / "rollouts").mkdir(parents=True)
    write(folder, 0, [group("a", "2", [("one", True)], question="What is b?")])
    selected = select(read_rollouts([run, folder]), replace(RIGHT, per_problem=1))
    assert names(selected) == ["0.0.0", "3.1.1", "0.0.0"]


def test_a_rollout_without_token_ids_and_an_answer_that_another_run_has_already_are_left_out(run):
    row = next(read_rollouts([run])) | {"token_ids": []}
    assert select([row], RIGHT).left_out == {"without token ids": 1}
    assert names(select(read_rollouts([run, run]), RIGHT)) == names(select(read_rollouts([run]), RIGHT))


def test_a_completion_whose_answer_was_not_judged_is_neither_right_nor_wrong(run):
    row = next(read_rollouts([run])) | {"verdict": "timed_out"}
    assert not select([row], RIGHT).rows and not select([row], Selection(("wrong",))).rows


def test_a_completion_that_was_cut_off_is_learnt_from_only_where_it_is_asked_for(run):
    """A right answer in a box may stand before the cut; as text it would get an end token there."""
    row = next(read_rollouts([run])) | {"well_formed": True}
    cut, unknown = row | {"finish": "length"}, row | {"finish": None}
    assert select([cut], Selection()).left_out == {"not ended": 1}
    assert all(select([one], own).rows for one, own in ((row, Selection()), (unknown, Selection()), (cut, RIGHT)))


def test_a_run_without_rollouts_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has no rollouts"):
        list(read_rollouts([tmp_path]))


def test_texts_are_read_as_a_selection():
    assert parse_selection({}) == Selection(("correct", "well-formed", "ended"), 0)
    assert parse_selection({"where": "correct,ended", "per_problem": "4"}) == Selection(("correct", "ended"), 4)
    assert parse_selection({"where": ""}).where == ()


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"where": "right"}, "where is 'right'; known are correct, wrong, well-formed, ended"),
        ({"per_problem": "-1"}, "per_problem is -1; it must be at least 0"),
        ({"per_problem": "x"}, "per_problem is 'x'"),
        ({"n": "4"}, "unknown condition 'n'; known are where, per_problem"),
    ],
)
def test_conditions_that_cannot_be_read_are_refused(texts, message):
    with pytest.raises(ValueError, match=message):
        parse_selection(texts)


def test_what_is_taken_has_no_column_that_no_example_needs(run):
    (row, *_) = select(store.rows_of(read_table(store.shard_path(run, 0))), RIGHT).rows
    assert {"token_ids", "prompt_token_ids", "completion", "question"} <= row.keys() and "logprobs" not in row
