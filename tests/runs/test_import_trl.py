"""Rollouts that TRL wrote, as a run."""

import hashlib

import pandas as pd
import pytest

from reasoner.cli.main import main
from reasoner.runs import rollouts as store
from reasoner.runs.importers import import_run
from reasoner.runs.metrics import read_metrics
from tests.runs.foreign_files import BOXED, WELL_FORMED, columns, trl_step


def test_trl_rows_are_grouped_by_prompt_and_scored_by_accuracy(tmp_path, imported):
    rows = [
        ("2 + 2?", WELL_FORMED, (1.0, 1.0), 0.7), ("3 + 3?", "6", (0.0, 0.0), 0.0),
        ("2 + 2?", "5", (0.0, 0.5), -0.7), ("3 + 3?", BOXED, (0.4, 0.0), 0.1),
    ]  # fmt: skip
    trl_step(tmp_path / "dump", 10, rows)
    trl_step(tmp_path / "dump", 9, rows[:1])
    run = imported("trl")
    places = columns(run, 10, "step", "group", "sample", "prompt", "verdict", "layer", "reward", "well_formed")
    assert places == [
        (10, 0, 0, "2 + 2?", "correct", "accuracy_reward", 2.0, True),
        (10, 0, 1, "2 + 2?", "wrong", "accuracy_reward", 0.5, False),
        (10, 1, 0, "3 + 3?", "wrong", "accuracy_reward", 0.0, False),
        (10, 1, 1, "3 + 3?", "wrong", "accuracy_reward", pytest.approx(0.4), True),
    ]
    first = store.read(run, 10)[0]
    assert dict(first["rewards"]) == {"accuracy_reward": 1.0, "format_reward": 1.0}
    assert first["advantage"] == pytest.approx(0.7) and first["source"] == "trl" and first["token_ids"] == []
    assert first["problem_id"] == hashlib.sha256(b"2 + 2?").hexdigest()[:16] == store.read(run, 9)[0]["problem_id"]
    assert first.keys() == set(store.SCHEMA.names)
    assert read_metrics(run)[1] == {
        "step": 10, "reward/mean": pytest.approx((2.0 + 0.5 + 0.0 + 0.4) / 4), "correct": 0.25, "well_formed": 0.5,
        "frac_reward_zero_std": 0.0,
    }  # fmt: skip
    assert [line["step"] for line in read_metrics(run)] == [9, 10]


def test_trl_conversations_become_texts_and_the_question_is_the_users_last(tmp_path, imported):
    messages = [{"role": "system", "content": "Think."}, {"role": "user", "content": "2 + 2?"}]
    said = [{"role": "assistant", "content": WELL_FORMED}]
    parts = [{"role": "user", "content": [{"type": "image", "text": None}, {"type": "text", "text": "What is it?"}]}]
    trl_step(tmp_path / "dump", 1, [(messages, said, (1.0, 1.0), 0.0)])
    trl_step(tmp_path / "dump", 2, [(parts, said, (1.0, 1.0), 0.0)])
    run = imported("trl")
    (row,) = columns(run, 1, "prompt", "question", "completion")
    assert row == ("system:\nThink.\n\nuser:\n2 + 2?", "2 + 2?", WELL_FORMED)
    assert columns(run, 2, "question") == [("[image]\nWhat is it?",)]


def test_rollouts_without_tokens_are_shown_with_an_unknown_number(tmp_path, imported, capsys):
    trl_step(tmp_path / "dump", 1, [("2 + 2?", WELL_FORMED, (1.0, 1.0), 0.0)])
    run = imported("trl")
    assert main(["rollouts", "show", str(run), "1.0.0"]) == 0
    assert "tokens unknown, ended by unknown" in " ".join(capsys.readouterr().out.split())


def test_trl_files_may_lie_in_the_folder_itself_whose_name_is_no_reward(tmp_path, imported):
    trl_step(tmp_path, 3, [("2 + 2?", "4", (1.0, 0.0), 0.0)])
    (tmp_path / "completions").rename(tmp_path / "dump")
    assert columns(imported("trl"), 3, "step") == [(3,)]
    trl_step(tmp_path / "beta=7", 3, [("2 + 2?", "4", (1.0, 0.0), 0.0)])
    import_run("trl", tmp_path / "beta=7", tmp_path / "run")
    assert columns(tmp_path / "run", 3, "reward") == [(1.0,)]


def test_trl_logged_columns_are_read_or_ignored(tmp_path, imported):
    table = {"step": [1], "prompt": ["2 + 2?"], "completion": ["True"], "r": [1.0], "solution": ["$4$"]}
    (tmp_path / "dump").mkdir()
    frame = pd.DataFrame(table | {"answer_parsed": ["4"], "note": ["7"], "advantage": [0.0]})
    frame.to_parquet(tmp_path / "dump" / "completions_00001.parquet")
    (row,) = store.read(imported("trl"), 1)
    assert (row["gold"], row["extracted"], row["rewards"]) == ("$4$", "4", [("r", 1.0)])


def test_rollouts_without_a_score_are_left_out_of_means(tmp_path, imported):
    nothing = float("nan")
    rows = [("a", "x", (1.0, 0.0), 0.5), ("a", "y", (nothing, nothing), 0.0), ("a", "z", (nothing, 0.5), -0.5)]
    trl_step(tmp_path / "dump", 1, rows)
    run = imported("trl")
    values = columns(run, 1, "verdict", "reward", "rewards")
    assert values[1:] == [("refused", 0.0, []), ("refused", 0.5, [("format_reward", 0.5)])]
    assert read_metrics(run)[0]["reward/mean"] == 0.75 and read_metrics(run)[0]["correct"] == 1.0
