"""Rollouts that verl wrote, as a run."""

import pytest

from reasoner.runs import rollouts as store
from reasoner.runs.metrics import read_metrics
from tests.runs.foreign_files import BOXED, WELL_FORMED, columns, lines, verl_line
from verifiers import Verdict


def test_verl_acc_gives_the_verdict(tmp_path, imported):
    prompt = "system\nYou help.\nuser\nWhat is 2 + 2?\nassistant\n"
    records = [
        verl_line(prompt, WELL_FORMED, 1.0, 2, acc=True, pred="4"),
        verl_line(prompt, "5", -1.0, 2, acc=False, pred="5"),
        verl_line(prompt, "4", 0.5, 2, acc="True", pred=None, format_correct=0.0),
    ]
    lines(tmp_path / "dump" / "2.jsonl", records)
    lines(tmp_path / "dump" / "10.jsonl", records[:1])
    (tmp_path / "dump" / "notes.jsonl").write_text("not a step")
    run = imported("verl")
    assert [line["step"] for line in read_metrics(run)] == [2, 10]
    assert columns(run, 2, "verdict", "layer", "extracted", "gold", "question") == [
        ("correct", "acc", "4", "4", "What is 2 + 2?"),
        ("wrong", "acc", "5", "4", "What is 2 + 2?"),
        ("correct", "acc", None, "4", "What is 2 + 2?"),
    ]
    assert dict(store.read(run, 2)[0]["rewards"]) == {"score": 1.0, "acc": 1.0}
    mean = (1.0 - 1.0 + 0.5) / 3
    assert [a for (a,) in columns(run, 2, "advantage")] == pytest.approx([1 - mean, -1 - mean, 0.5 - mean])


@pytest.mark.parametrize(
    ("scores", "verdicts"),
    [
        ([1.0, 0.0, 0.0, 1.0], ["correct", "wrong", "wrong", "correct"]),
        ([0.1, -2.0, 0.1, 0.1], ["correct", "wrong", "correct", "correct"]),
        ([1.0, 0.5, 0.0, 0.0], ["refused"] * 4),
        ([1.0, 1.0, 1.0, 1.0], ["refused"] * 4),
    ],
)
def test_without_accuracy_the_higher_of_two_rewards_is_correct(tmp_path, imported, scores, verdicts):
    for step in range(2):
        own = scores[2 * step : 2 * step + 2]
        lines(tmp_path / "dump" / f"{step}.jsonl", [verl_line("q", str(s), s, step, length=7 * s) for s in own])
    run = imported("verl")
    assert [v for step in range(2) for (v,) in columns(run, step, "verdict")] == verdicts
    assert ("correct" in read_metrics(run)[0]) == ("refused" not in verdicts)
    assert set(verdicts) <= {str(verdict) for verdict in Verdict}


def test_gold_answers_of_any_shape_become_text(tmp_path, imported):
    golds = ["4", 4, ["4"], ["4", "four"], {"target": 4}, None]
    lines(tmp_path / "dump" / "0.jsonl", [verl_line("q", "", 1.0, 0) | {"gts": gold} for gold in golds])
    values = [gold for (gold,) in columns(imported("verl"), 0, "gold")]
    assert values == ["4", "4", "4", '["4", "four"]', '{"target": 4}', ""]


def test_a_think_tag_that_ends_the_prompt_belongs_to_the_completion(tmp_path, imported):
    outputs = ["so</think>\\boxed{4}", "<think>so</think>\\boxed{4}"]
    lines(tmp_path / "dump" / "0.jsonl", [verl_line("q <think>\n", output, 1.0, 0) for output in outputs])
    assert columns(imported("verl"), 0, "completion", "well_formed") == [("<think>so</think>\\boxed{4}", True)] * 2


@pytest.mark.parametrize(
    ("text", "is_well_formed"),
    [
        (WELL_FORMED, True),
        (BOXED, True),
        ("<think>\\boxed{4}</think> 4", False),
        ("</think> \\boxed{4}", False),
        ("<think> \\boxed{4}", False),
        ("<think>a</think> </answer> 4 <answer>", False),
        ("<think>" * 100_000, False),
    ],
)
def test_well_formed_requires_a_thought_before_an_answer(tmp_path, imported, text, is_well_formed):
    lines(tmp_path / "dump" / "0.jsonl", [verl_line("q", text, 1.0, 0)])
    assert columns(imported("verl"), 0, "well_formed") == [(is_well_formed,)]
