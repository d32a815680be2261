"""grade and score_response from a plain script, without set-up."""

import subprocess
import sys
from pathlib import Path

import pytest

from verifiers import RewardWeights, Verdict, VerifierPool, grade, score_response
from verifiers.api import _pool
from verifiers.equivalence import judge
from verifiers.maths import UndecidedError, without_algebra

CHECKOUT = Path(__file__).parents[2]
SCRIPT = """
import sys
from verifiers import grade, score_response
assert grade("0.5", "1/2") and not grade("0.6", "1/2")
assert "sympy" not in sys.modules
assert grade("(x+1)^2", "x^2+2x+1")
score = score_response("<think>so</think><answer>(x+1)^2</answer>", "x^2+2x+1")
assert score.correct and score.well_formed and score.reward == 1.2 and score.extracted == "(x+1)^2", score
assert "sympy" not in sys.modules
from verifiers.api import _pool
import os
print(*_pool(os.getpid()).pids)
"""


def test_a_plain_script_needs_no_main_guard_and_leaves_no_process():
    done = subprocess.run([sys.executable, "-c", SCRIPT], cwd=CHECKOUT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    pids = done.stdout.split()
    assert len(pids) == 2
    assert sys.platform != "linux" or not any(Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_judgement_names_its_layer_and_forms():
    judgement = grade(r"2\sqrt{2}", r"\sqrt{8}")
    assert (judgement.verdict, judgement.layer) == (Verdict.CORRECT, "numeric")
    assert judgement.gold_form and judgement.answer_form


def test_faulty_arguments_raise_in_both_functions():
    with pytest.raises(ValueError, match="unknown verifier 'chess'"):
        grade("x+1", "1+x", "chess")
    with pytest.raises(ValueError, match="unknown verifier 'chess'"):
        score_response("<think>a</think><answer>x+1</answer>", "1+x", "chess")


def test_numbers_are_graded_as_they_are_written_and_other_types_are_refused_by_name():
    assert grade("5", 5) and grade(5, "5") and grade(0.5, "1/2") and grade("5.0", 5.0)
    assert grade(None, "5").verdict is Verdict.NO_ANSWER
    assert score_response("<think>a</think><answer>5</answer>", 5).correct
    for prediction, gold, name in (
        ("5", [5], "gold"),
        ("5", None, "gold"),
        ([5], "5", "prediction"),
        (True, 1, "predict"),
    ):
        with pytest.raises(ValueError, match=name):
            grade(prediction, gold)


def test_weights_apply_to_answers_decided_by_algebra():
    response = "<think>2+2=4</think><answer>1+x</answer>"
    score = score_response(response, "x+1", weights=RewardWeights(correct=2.0, steps=0.5))
    assert score.reward == pytest.approx(2.0 + 0.2 + 0.5)


def test_layers_in_the_calling_process_have_a_time_limit():
    with pytest.raises(UndecidedError), without_algebra(seconds=0):
        judge("42", "43")
    with without_algebra(seconds=60):
        assert judge("43.0", "43")


def test_each_process_has_its_own_pool(monkeypatch):
    monkeypatch.setattr("verifiers.api.VerifierPool", lambda **_: VerifierPool())  # which starts no worker yet
    assert _pool(1) is _pool(1)
    first = _pool(1)
    assert _pool(2) is not first
    first.close()
    _pool(2).close()
    _pool.cache_clear()
