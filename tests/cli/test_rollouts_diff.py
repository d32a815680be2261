"""`reasoner rollouts diff`: the problems that two runs, or two steps, have in common."""

import json

import pytest

from reasoner.cli.main import main
from tests.fixtures.run_folder import run_folder

RIGHT, WRONG = ("so it is 7", True), ("so it is 8", False)


@pytest.fixture
def runs(tmp_path, monkeypatch):
    """Two runs: `a` with two steps, of which the second asks two problems again, and `b` with one step."""
    run_folder(
        tmp_path / "runs" / "a",
        [{"p": [WRONG, WRONG], "q": [WRONG, RIGHT], "r": [WRONG]}, {"p": [RIGHT, RIGHT], "q": [WRONG, RIGHT]}],
    )
    run_folder(tmp_path / "runs" / "b", [{"q": [RIGHT, RIGHT], "s": [RIGHT]}])
    monkeypatch.chdir(tmp_path)


def result(capsys, *arguments):
    assert main(["rollouts", "diff", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_two_steps_are_compared_on_the_problems_of_both(runs, capsys) -> None:
    assert main(["rollouts", "diff", "a:0", "a:1"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert [line[:5] for line in lines[1:3]] == [["p", "0.0", "%", "100.0", "%"], ["q", "50.0", "%", "50.0", "%"]]
    assert lines[4] == ["2", "problems", "in", "common"]
    assert lines[5][:9] == ["correct:", "A", "25.0", "%,", "B", "75.0", "%;", "B", "-"]


def test_two_runs_are_compared_over_all_their_steps(runs, capsys) -> None:
    (row,) = result(capsys, "a", "b")
    assert row["problem"] == "q"
    assert (row["a"]["rollouts"], row["a"]["correct"], row["b"]["correct"]) == (4, 0.5, 1.0)


def test_completions_of_a_problem_are_marked_word_by_word(runs, capsys) -> None:
    assert main(["rollouts", "diff", "a:0", "a:1", "--problem", "p"]) == 0
    out = capsys.readouterr().out
    assert out.splitlines()[-1] == "so it is[- 8-]{+ 7+}"
    assert "1.0.0, correct, reward" in out
    texts = [row["completion"] for row in result(capsys, "a:0", "a:1", "--problem", "p")]
    assert texts == ["so it is 8", "so it is 7"]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("a:7", "b"), "a:7 has no rollouts"),
        (("a:1", "b", "--problem", "r"), "a:1 has no rollouts of problem 'r'"),
        (("a", "c"), "no run 'c'"),
        (("a", "b", "--limit", "0"), "--limit is 0"),
    ],
)
def test_sides_without_rollouts_are_refused(runs, capsys, arguments, message) -> None:
    assert main(["rollouts", "diff", *arguments]) == 2
    assert message in capsys.readouterr().err
