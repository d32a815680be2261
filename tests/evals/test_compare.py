"""Comparison of two evaluations, problem by problem, or its refusal with the reason."""

import json

import pytest

from data import Problem
from reasoner.evals import eval_log
from reasoner.evals.compare import compare, compare_metrics, mismatches
from reasoner.evals.result import EvalResult, MetricKs
from reasoner.types import EvalSample, Response
from verifiers import Score, Verdict

PROMPT = {"style": "none", "text": "{question}", "extract": "strict"}


def evaluation(spec, correct_by_problem, gold):
    """Problems p0, p1... with so many of four responses right."""
    samples = []
    for i, num_correct in enumerate(correct_by_problem):
        problem = Problem(f"p{i}", f"question {i}\x1b[2J", gold, spec, "x")
        verdicts = [Verdict.CORRECT] * num_correct + [Verdict.WRONG] * (4 - num_correct)
        scores = tuple(Score(0.0, {}, verdict, "4") for verdict in verdicts)
        samples.append(EvalSample(problem, "?", (Response("r", 3, "stop", 0),) * 4, scores))
    return EvalResult(spec, 1.0, MetricKs(pass_at=(1, 4)), tuple(samples), ())


def write(folder, sets, way="sampled", gold="4", **changes):
    result = {spec: {way: evaluation(spec, right, gold)} for spec, right in sets.items()}
    data = {s: eval_log.data_entry([one.problem for one in ways[way].samples]) for s, ways in result.items()}
    manifest = {
        "model": folder.name, "engine": "x", "sampling": {}, "seed": 0, "grader": "g", "prompt": PROMPT,
        "data": data,
    }  # fmt: skip
    eval_log.write(folder, manifest | {"data": data} | changes, result, "")
    return folder


@pytest.fixture
def pair(tmp_path):
    sets = {"a": {"s": [4, 4, 3, 2, 0, 1], "t": [4] * 6}, "b": {"s": [2, 4, 1, 2, 1, 0], "t": [0] * 6}}
    return tuple(write(tmp_path / name, own) for name, own in sets.items())


def test_compare_pairs_problems_and_lists_flips(pair, tmp_path, capsys):
    compare("a", "b", out=tmp_path, force=False, json_file=tmp_path / "out.json")
    text = capsys.readouterr().out
    assert "+16.7 [" in text and "no difference shown" in text and "3/2/1" in text
    assert "with a power of 80 %" in text
    assert "flipped problems: 7 mostly correct in A alone, 0 in B alone" in text
    assert "p2" in text and "\x1b" not in text
    result = json.loads((tmp_path / "out.json").read_text())
    by_name = {(one["spec"], one["metric"]): one for one in result["differences"]}
    assert by_name["s", "pass@1"]["difference"]["p"] == pytest.approx(24 / 64)
    assert by_name["t", "pass@4"]["difference"]["p"] == pytest.approx(2 / 64)  # McNemar on 0 and 1
    assert by_name["t", "pass@1"]["p_holm"] == pytest.approx(min(1, 2 * by_name["t", "pass@1"]["difference"]["p"]))
    assert len(result["flips"]) == 7


def test_equal_differences_have_neither_interval_nor_power(tmp_path, capsys):
    write(tmp_path / "a", {"same": [2, 4, 0], "all": [4, 4, 4]})
    write(tmp_path / "b", {"same": [2, 4, 0], "all": [0, 0, 0]})
    compare("a", "b", out=tmp_path, force=False, json_file=tmp_path / "out.json")
    text = capsys.readouterr().out
    assert "+0.0 (no interval)" in text and "+100.0 (no interval)" in text and "power of 80 %" not in text
    assert "all, pass@1: the difference is the same on all 3 problems, which gives no interval and no power" in text
    assert text.count("no difference shown") == 4  # 3 of 3 against 0 of 3 has p = 0.25
    result = json.loads((tmp_path / "out.json").read_text())["differences"]
    assert {(one["difference"]["low"], one["detectable"]) for one in result} == {(None, None)}


@pytest.mark.parametrize(
    ("changes", "sets", "message"),
    [
        ({"grader": "h"}, {"s": [1, 2]}, r"the grader differs \(g, h: grade the older one again with --regrade\)"),
        ({"prompt": PROMPT | {"text": "Q: {question}"}}, {"s": [1, 2]}, "the prompt differs in its text"),
        ({"prompt": PROMPT | {"extract": "boxed"}}, {"s": [1, 2]}, "the prompt differs in its extract"),
        ({}, {"s": [1, 2, 3]}, r"the data of s differ \(2 and 3 problems\)"),
        ({}, {"s": [1, 2], "t": [1, 1, 1]}, r"the data sets differ \(s; s, t\)"),
        ({}, {"u": [1, 1, 1]}, "the data sets differ"),
    ],
)
def test_compare_refuses_and_names_differences(tmp_path, changes, sets, message):
    write(tmp_path / "a", {"s": [1, 2]})
    write(tmp_path / "b", sets, **changes)
    with pytest.raises(ValueError, match=message):
        compare("a", "b", out=tmp_path, force=False)


def test_another_engine_and_other_sampling_are_told(tmp_path, capsys):
    write(tmp_path / "a", {"s": [4, 2]}, sampling={"sampled": {"temperature": 0.6, "max_tokens": 9, "top_p": 1.0}})
    other = {"sampled": {"temperature": 1.0, "max_tokens": 9}, "greedy": {}}
    write(tmp_path / "b", {"s": [0, 1]}, sampling=other, engine="y")
    compare("a", "b", out=tmp_path, force=False, json_file=tmp_path / "out.json")
    warnings, text = json.loads((tmp_path / "out.json").read_text())["mismatches"], capsys.readouterr().out
    assert len(warnings) == 2 and "engine x" in warnings[0] and "temperature 0.6" in warnings[1]
    assert all(warning in text for warning in warnings)


def test_sampled_and_greedy_responses_are_not_compared(tmp_path, capsys):
    write(tmp_path / "a", {"s": [4, 2]})
    write(tmp_path / "b", {"s": [0, 1]}, way="greedy")
    with pytest.raises(ValueError, match="no metric"):
        compare("a", "b", out=tmp_path, force=False)
    assert "flipped" not in capsys.readouterr().out


def test_force_warns_and_compares_the_shared_problems(tmp_path, capsys):
    write(tmp_path / "a", {"s": [4, 4]}, grader="h")
    write(tmp_path / "b", {"s": [0, 0, 1]})
    compare("a", "b", out=tmp_path, force=True)
    text = capsys.readouterr().out
    assert "warning: the grader differs" in text and "warning: the data of s differ" in text
    assert "2/0/0" in text


def test_force_pairs_no_problem_with_another_one_of_the_same_id(tmp_path):
    write(tmp_path / "a", {"s": [4, 4]})
    write(tmp_path / "b", {"s": [0, 0]}, gold="5")
    with pytest.raises(ValueError):
        compare("a", "b", out=tmp_path, force=True)


@pytest.mark.parametrize(
    ("others", "p", "p_holm", "is_shown"), [([], 2 / 64, 2 / 64, True), ([0] * 30, 2 / 64, 4 / 64, False)]
)
def test_a_difference_is_shown_by_the_p_value_adjusted_for_the_sets(others, p, p_holm, is_shown):
    """6 of 30 problems won: the t-interval excludes 0 whatever the number of sets."""

    def samples(right):
        lines = {str(number): {"metrics": ["pass@1"], "pass@1": float(one)} for number, one in enumerate(right)}
        return {"none": lines}

    pairs = {"s": (samples([1] * 6 + [0] * 24), samples([0] * 30))}
    if others:
        pairs["t"] = samples(others), samples(others)
    one = compare_metrics(pairs)[0]
    assert (one.difference.p, one.p_holm, one.is_shown) == (p, p_holm, is_shown) and one.difference.low > 0


def test_names_and_what_was_left_out_do_not_matter_and_disjoint_sets_are_refused(pair, tmp_path):
    a = eval_log.read_manifest(pair[0])
    renamed = a | {"prompt": a["prompt"] | {"style": "mine.txt"}}
    renamed["data"] = {"copy.jsonl": a["data"]["s"], "t": a["data"]["t"] | {"left_out": 3}}
    assert mismatches(a, renamed) == []
    write(tmp_path / "c", {"u": [1, 1, 1]})
    with pytest.raises(ValueError, match="no data set in common"):
        compare("a", "c", out=tmp_path, force=True)
