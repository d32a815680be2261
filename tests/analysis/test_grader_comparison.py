"""`reasoner grade --compare`: pairs of a file, the kinds of disagreement, errors and timeouts apart."""

import json
from pathlib import Path

import pytest

from data import Problem
from reasoner.analysis import grader_comparison
from reasoner.analysis.grader_comparison import AGREE, OURS, THEIRS, ComparedPair, compare_file, label_counts
from reasoner.cli.main import main
from verifiers import Judgement, Verdict, VerifierPool, peer

ROWS = [
    {"gold": "12", "prediction": "12.0", "correct": True},
    {"gold": "1/3", "prediction": "0.3333333", "correct": False},
    {"gold": r"(1,2)\cup(2,3)", "answer": r"1<x<3, x \ne 2", "label": True},
    {"gold": 5, "prediction": "2+3"},
    {"gold": r"\frac{1}{0}", "prediction": r"\begin{pmatrix} 1 \end{pmatrix}"},
    {"gold": "120", "prediction": "2 hours", "question": "How many minutes does it take?"},
]


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("pairs") / "pairs.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)) + "\n\n", "utf-8")
    return path


@pytest.fixture(scope="module")
def compared(file: Path) -> list[ComparedPair]:
    return compare_file(file)


def test_each_pair_has_the_outcome_of_both_verdicts(compared: list[ComparedPair]) -> None:
    assert [each.outcome for each in compared] == [AGREE, THEIRS, OURS, THEIRS, "its error", OURS]
    assert compared[1].explanation.counterexample == "gold 0.333333333333333, answer 0.3333333"
    assert compared[2].explanation.gold == "set of reals: (1, 2) ∪ (2, 3)"
    assert compared[2].theirs.gold_form == "Union(Interval.open(1, 2), Interval.open(2, 3))"
    assert compared[3].ours.layer == "undone"


def test_counts_are_by_layer_and_against_the_labels(compared: list[ComparedPair]) -> None:
    header, *rows, total = grader_comparison.counts(compared)
    assert header[:5] == ["decided by", "pairs", AGREE, OURS, THEIRS]
    assert total[1:6] == ["6", "1", "2", "2", "1"]
    for column in range(1, len(header)):
        assert sum(int(row[column]) for row in rows) == int(total[column])
    _, ours, theirs = label_counts(compared)
    assert (ours, theirs) == (["ours", *"330000"], ["math-verify", *"311100"])
    assert label_counts(compared[3:]) == []


def test_errors_and_timeouts_are_no_disagreement() -> None:
    right, wrong = Judgement(Verdict.CORRECT, "rational"), Judgement(Verdict.WRONG, "rational")
    outcome = {
        "its timeout": (right, Judgement(Verdict.TIMED_OUT, "clock")),
        "its error": (right, Judgement(Verdict.CRASHED, "RecursionError")),
        "ours unjudged": (Judgement(Verdict.REFUSED, "over 2000 characters"), right),
        AGREE: (wrong, Judgement(Verdict.UNPARSABLE, "math-verify")),
        OURS: (right, Judgement(Verdict.WRONG, "math-verify")),
    }
    for name, judgements in outcome.items():
        assert ComparedPair("a", Problem("1", "", "b"), *judgements).outcome == name
    inside = Judgement(Verdict.WRONG, "TypeError")  # refused by an error in its comparison
    assert ComparedPair("a", Problem("1", "", "b"), wrong, inside).outcome == "its error"
    labelled = Problem("1", "", "b", columns={"correct": False})
    assert label_counts([ComparedPair("a", labelled, wrong, inside)])[2][5] == "1"


def test_math_verify_runs_under_the_limits_of_the_pool() -> None:
    with VerifierPool(seconds=0.5) as pool:
        slow, fast = pool.judge_by_peer([("9^{9^{9^{9}}}", "5"), ("x+1", "1+x")])
        assert (slow.verdict, fast.verdict) == (Verdict.TIMED_OUT, Verdict.CORRECT)
        assert pool.restarts == 1


def test_math_verify_is_asked_in_its_own_way() -> None:
    assert peer.judge("0.3333333", "1/3") and not peer.judge("0.33", "1/3")
    assert peer.judge(r"\boxed{\frac{1}{2}}", "0.5").answer_form == "1/2"
    assert not peer.judge("", "5")


def test_printout_and_values_hold_every_disagreement(compared: list[ComparedPair]) -> None:
    shown = grader_comparison.text(compared)
    for each in compared:
        is_shown = each.outcome != AGREE
        assert (f"\n  {each.problem.id}  ours: " in shown) is is_shown
    assert [row["outcome"] for row in grader_comparison.values(compared)] == [each.outcome for each in compared]
    assert grader_comparison.values(compared)[0]["ours"] == {"verdict": "correct", "layer": compared[0].ours.layer}


def test_compare_of_a_file_writes_json(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    pairs, out = tmp_path / "pairs.jsonl", tmp_path / "out.json"
    pairs.write_text('{"gold": "12", "prediction": "12.0"}\n')
    assert main(["grade", "--compare", str(pairs), "--json", str(out)]) == 0
    assert capsys.readouterr().out.splitlines()[-1].split()[:3] == ["all", "1", "1"]
    assert [row["outcome"] for row in json.loads(out.read_text())] == [AGREE]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"gold": "12"}', "line 1: it must have gold, and prediction or answer; it has gold"),
        ("[1]", "line 1"),
        ('{"gold": ["1", "2"], "prediction": "1, 2"}', "line 1: the gold is ["),
        ("", "has nothing to grade"),
    ],
)
def test_file_without_pairs_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, line: str, message: str
) -> None:
    (tmp_path / "pairs.jsonl").write_text(line)
    assert main(["grade", "--compare", str(tmp_path / "pairs.jsonl")]) == 2
    assert message in capsys.readouterr().err
