"""The plots of a run agree with its files."""

import json
import struct

import pytest

from data import Problem
from reasoner.analysis.plots import detailed_metrics, draw
from reasoner.evals.estimators import estimate
from reasoner.runs import rollouts as store
from reasoner.runs.rollouts import shard_path
from reasoner.runs.run_start import open_run
from reasoner.types import Completion, Prompt, RolloutGroup
from verifiers import RewardWeights, Score, Verdict
from verifiers.rewards import add_reward
from verifiers.score import RewardInput


def group(name, right, lengths):
    prompt = Prompt(Problem(name, "2+2?", "4", "sums", "train"), "2+2?", "", (1, 2))
    completions = tuple(Completion("", tuple(range(n)), (0.0,) * n, "stop", 0) for n in lengths)
    verdicts = [Verdict.CORRECT if ok else Verdict.WRONG for ok in right]
    return RolloutGroup(
        prompt,
        completions,
        tuple(add_reward(RewardInput("", prompt.problem, Score(0.0, {}, v)), RewardWeights()) for v in verdicts),
    )


def look(step, value):
    def around(middle):
        return {"value": middle, "low": middle - 0.1 if middle else 0.0, "high": middle + 0.1 if middle else 0.0}

    both = {"pass@1": around(value), "cons@16": around(value + 0.2 if value else 0.0)}
    return {"step": step, "sampled": {"problems": 2, "metrics": both}, "greedy": {"metrics": {"pass@1": around(value)}}}


@pytest.fixture
def run(tmp_path):
    """Three steps of two groups of two; evaluations before the first and after the last."""
    open_run(tmp_path, {}, {}, resuming=False)
    lines = []
    for step in range(3):
        groups = [group("a", [True, False], [10, 4]), group("b", [False, False], [6, 8])]
        store.write_step(tmp_path, step, groups, [0.0] * 4)
        lines.append(
            {
                "step": step, "correct": 0.25, "completions/mean_length": 7.0, "reflection/self_check_rate": 0.1,
                "well_formed": 1.0,
            }
        )  # fmt: skip
    lines[1] |= {"reflection/errors_caught": 0.5, "kl": 0.01, "entropy": 1.0}
    lines[2]["validation/pass@1"] = 0.5
    looks = [look(0, 0.0), look(3, 0.5)]
    (tmp_path / "evals.jsonl").write_text("".join(json.dumps(line) + "\n" for line in looks))
    (tmp_path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def test_intervals_and_lengths_come_from_the_rollouts(run):
    line = detailed_metrics(run)[2]
    expected = estimate([0.5, 0.0])
    assert (line["correct/low"], line["correct/high"]) == (expected.low, expected.high)
    assert (line["tokens/correct"], line["tokens/wrong"]) == (10.0, 6.0)


def test_step_0_is_the_model_before_training_and_the_last_step_its_validation_after_it(run):
    start, *between, last, end = detailed_metrics(run)
    assert (start["step"], start["validation/pass@1"], start["correct"]) == (0, 0.0, 0.25)
    assert [line["step"] for line in between] == [1] and (last["step"], end["step"]) == (2, 3)
    assert not any(name.startswith("validation/") for name in (*between[0], *last)) and "correct" not in end
    assert end["validation/cons@k"] == 0.7
    assert (end["validation/pass@1/low"], end["validation/pass@1/high"]) == (0.4, 0.6)


def test_a_step_without_a_shard_keeps_its_metrics(run):
    shard_path(run, 2).unlink()
    assert "correct" in detailed_metrics(run)[2] and "tokens/correct" not in detailed_metrics(run)[2]


def test_draw_writes_a_png_of_the_expected_size(run, tmp_path):
    data = draw(run, tmp_path / "docs" / "run.png").read_bytes()
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    assert struct.unpack(">II", data[16:24]) == (1430, 704)


def test_draw_refuses_a_run_without_metrics(tmp_path):
    with pytest.raises(ValueError, match="has no metrics yet"):
        draw(tmp_path, tmp_path / "run.png")
