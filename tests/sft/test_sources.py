"""Sources of examples: a file, the rollouts of runs, a data set of the hub."""

import pytest

from reasoner.runs.run_start import open_run
from reasoner.sft.sources import check_source, read_source, sft_row, write_examples
from tests.fixtures.rollouts import group, write

RIGHT = "<think> one </think> <answer> 2 </answer>"


@pytest.fixture
def runs(tmp_path):
    open_run(tmp_path / "a", {}, {}, resuming=False)
    write(tmp_path / "a", 0, [group("p", "2", [(RIGHT, True), ("2", False)], tokens=3)])
    return tmp_path


def test_rollouts_of_a_run_are_rows_with_the_sampled_ids_and_the_texts(runs):
    source = read_source("runs:a?where=correct&per_problem=4", runs)
    [(where, row)] = source.rows
    assert (where, source.left_out) == ("0.0.0", {"not correct": 1})
    assert (row["prompt_ids"], row["completion_ids"]) == ([1], [0, 1, 2])
    assert (row["prompt"], row["completion"], row["problem_id"]) == ("?", RIGHT, "p")
    assert len(list(read_source("runs:a?where=", runs).rows)) == 2


def test_several_sources_are_rows_of_one_after_the_other(runs, tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "one"}\n{"text": "two"}\n')
    source = read_source(f"runs:a?where=correct;{tmp_path / 'a.jsonl'};runs:a?where=wrong", runs)
    rows = list(source.rows)
    assert [row.get("text") or row["completion"] for _, row in rows] == [RIGHT, "one", "two", "2"]
    assert rows[2][0].endswith("a.jsonl, line 2")
    assert source.left_out == {"not correct": 1, "not wrong": 1}
    with pytest.raises(ValueError, match=r"no examples 'missing.jsonl'"):
        check_source("runs:a;missing.jsonl", runs)


def test_rows_without_token_ids_are_for_any_tokenizer(runs):
    [(_, row)] = read_source("runs:a?where=correct", runs).rows
    rollout = {"prompt_token_ids": [1], "token_ids": [2], "step": 0, "reward": 1.0, "question": "?", **row}
    assert sft_row(rollout, with_ids=False).keys() == row.keys() - {"prompt_ids", "completion_ids"}
    with pytest.raises(ValueError, match="answers would be learnt"):
        sft_row(rollout | {"observation_tokens": [2, 4]}, with_ids=False)


def test_thinking_that_a_prompt_opens_stands_in_the_completion_alone(runs):
    rollout = {"prompt_token_ids": [1], "token_ids": [2], "step": 0, "reward": 1.0, "question": "?", "problem_id": "p"}
    row = sft_row(rollout | {"prompt": "?<bot><think>\n", "completion": "<think>\n2"})
    assert (row["prompt"], row["completion"]) == ("?<bot>", "<think>\n2")


def test_what_the_prompt_style_begins_a_completion_with_is_written_once(runs):
    (runs / "style.toml").write_text('text = "{question} A:"\nprefill = " So"')
    open_run(runs / "b", {"prompt.style": str(runs / "style.toml")}, {}, resuming=False)
    rollout = {"prompt_token_ids": [1], "token_ids": [2], "step": 0, "reward": 1.0, "question": "?", "problem_id": "p"}
    rollouts = [rollout | {"prompt": "? A: So", "completion": " So 2"}]
    write_examples(runs / "examples.jsonl", runs / "b", rollouts, with_ids=False)
    [(_, row)] = read_source(str(runs / "examples.jsonl"), runs).rows
    assert row["prompt"] + row["completion"] == "? A: So 2"


def test_configuration_of_a_data_set_can_be_named(tmp_path, monkeypatch):
    datasets, calls = pytest.importorskip("datasets"), []

    def load_dataset(*arguments, split):
        calls.append((*arguments, split))
        return datasets.Dataset.from_list([{"text": "one"}])

    monkeypatch.setattr(datasets, "load_dataset", load_dataset)
    for spec in ("org/set", "org/set?config=main", "org/set:test?config=main"):
        assert [row for _, row in read_source(spec, tmp_path).rows] == [{"text": "one"}]
    assert calls == [("org/set", None, "train"), ("org/set", "main", "train"), ("org/set", "main", "test")]


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("runs:", "name a run: runs:RUN"),
        ("runs:b", "no run 'b'"),
        ("runs:a?where=right", "where is 'right'"),
        ("runs:a?where=correct&where=ended", "where=ended"),
        ("runs:a?correct", "unknown condition 'correct'; known are where, per_problem"),
        ("missing.jsonl", "no examples 'missing.jsonl': it must be a file .jsonl or .json or .csv"),
        ("generated", "no examples 'generated'"),
        ("org/set?sample=5", "no examples 'org/set.sample=5'"),
        ("org/set,org/other", "no examples 'org/set,org/other'"),
    ],
)
def test_a_source_that_cannot_be_read_is_refused_before_a_run(runs, spec, message):
    with pytest.raises(ValueError, match=message):
        check_source(spec, runs)
