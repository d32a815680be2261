"""Pages of evaluations and of compared runs: their numbers equal those of the evaluations' files."""

import json
import shutil
from dataclasses import asdict
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reasoner.evals import eval_log as files
from reasoner.evals.compare import compare_metrics, find_flips, samples_by_problem
from reasoner.evals.estimators import class_sizes, cons_at_k, estimate, pass_at_k
from reasoner.evals.paired import format_p
from reasoner.runs.json_files import write_json
from tests.app import library_of
from tests.app.library_of import OTHER_SPEC, PROMPTS, SPEC, N, grouped, num_correct, rows_of, write_evaluation

WITHOUT_CHECKSUMS = shutil.ignore_patterns("sha256.json")  # of evaluations that a test changes


@pytest.fixture(scope="module")
def folder(tmp_path_factory, pool):
    path = library_of.write_library(tmp_path_factory.mktemp("library"))
    write_evaluation(path / "evals" / "voted", pool, specs=(SPEC, OTHER_SPEC))
    write_evaluation(path / "evals" / "unvoted", pool, has_votes=False)
    write_evaluation(path / "runs" / "whole" / "heldout" / "after", pool)
    write_evaluation(path / "runs" / "other" / "heldout" / "after", pool, library_of.WORSE)
    return path


@pytest.fixture
def copied(folder, fresh):
    """A function: a copy of an evaluation in a library without others, and the function that calls its queries."""
    (runs, call), evals = fresh, folder / "evals"
    return lambda name: (shutil.copytree(evals / name, runs.parent / "evals" / name, ignore=WITHOUT_CHECKSUMS), call)


def responses(folder, name, spec=SPEC):
    """The sampled rows of each problem, in the order in which they were asked."""
    rows = pq.read_table(folder / "evals" / name / "samples.parquet").to_pylist()
    own = [row for row in rows if row["set"] == spec and row["way"] == "sampled"]
    return {p.problem.id: [row for row in own if row["problem_id"] == p.problem.id] for p in PROMPTS}


def test_the_list_has_a_row_for_each_evaluation_and_set(call, folder):
    rows = call("evals")["rows"]
    assert sorted((row["name"], row["set"]) for row in rows) == [
        ("other/after", SPEC), ("unvoted", SPEC), ("voted", SPEC), ("voted", OTHER_SPEC), ("whole/after", SPEC),
    ]  # fmt: skip
    assert {(row["problems"], row["samples"]) for row in rows} == {(len(PROMPTS), N)}
    runs = {row["name"]: row["run"] for row in rows if row["run"]}
    assert runs == {"other/after": "other", "whole/after": "whole"}


@pytest.mark.parametrize("model", ["whole/best", "whole/step-000008", "org/name", "whole", "a/whole/best", "responses"])
def test_an_evaluation_of_a_checkpoint_is_of_its_run(copied, model):
    path, ask = copied("unvoted")
    write_json(path / "evaluation.json", files.read_manifest(path) | {"model": model})
    assert ask("evals")["rows"][0]["run"] == ("whole" if model.startswith("whole/") else None)


@pytest.mark.parametrize("name", ["voted", "unvoted"])
def test_figures_are_those_of_results_json(call, folder, name):
    results = json.loads((folder / "evals" / name / "results.json").read_text())[files.task_name(SPEC)]
    sampled, greedy = results["sampled"]["metrics"], results["greedy"]["metrics"]["pass@1"]
    (row,) = [row for row in call("evals")["rows"] if (row["name"], row["set"]) == (name, SPEC)]
    page = call("evaluation", name=name, set=SPEC)["metrics"]
    assert page.keys() == row["metrics"].keys() == sampled.keys() | {"greedy"}
    for metric, one in page.items():
        expected = greedy if metric == "greedy" else sampled[metric]
        assert {key: one[key] for key in one} == {key: pytest.approx(expected[key]) for key in one}
        assert row["metrics"][metric] == pytest.approx({key: one[key] for key in ("value", "low", "high")})


def test_curves_are_those_of_the_counts_and_of_the_votes(call, folder):
    own = list(responses(folder, "voted").values())
    counts = [(len(rows), sum(row["correct"] for row in rows)) for rows in own]
    votes = [class_sizes([row["class"] for row in rows]) for rows in own]
    curves = call("evaluation", name="voted", set=SPEC)["curves"]
    assert [point["k"] for curve in curves.values() for point in curve] == 2 * [1, 2, 3, 4, 6]
    for passed, voted in zip(curves["pass@k"], curves["cons@k"], strict=True):
        k = passed["k"]
        passes, wins = [pass_at_k(n, c, k) for n, c in counts], [cons_at_k(*vote, k) for vote in votes]
        for point, scores in ((passed, passes), (voted, wins)):
            expected = asdict(estimate([float(score) for score in scores]))
            assert point == {"k": k} | {key: pytest.approx(value) for key, value in expected.items()}
    assert all(a["value"] <= b["value"] for a, b in pairwise(curves["pass@k"]))
    assert curves["pass@k"][0]["value"] == pytest.approx(curves["cons@k"][0]["value"])


def test_k_is_never_above_the_fewest_samples(copied):
    """A problem with four responses among those with six ends the curves at four."""
    path, ask = copied("voted")
    table = pq.read_table(path / "samples.parquet")
    kept = table.filter([r["problem_id"] != "tied" or r["sample"] < 4 for r in table.to_pylist()])
    pq.write_table(kept, path / "samples.parquet")
    for curve in ask("evaluation", name="voted", set=SPEC)["curves"].values():
        assert [point["k"] for point in curve] == [1, 2, 3, 4]


HALVES = {"0.5", "1/2", "\\frac{1}{2}"}
# By problem: winner, share, correct, abstentions, and the classes: (is it correct, votes, spellings).
VOTES = {
    "unanimous": ("correct", 1, 6, 0, [(True, 6, {"4"})]),
    "spelt": ("correct", 1 / 2, 3, 0, [(True, 3, HALVES), (False, 2, {"3"}), (False, 1, {"2"})]),
    "confident": ("wrong", 4 / 6, 1, 1, [(False, 4, {"3/4", "0.75"}), (True, 1, {"7"})]),
    "tied": ("tie", 2 / 6, 2, 2, [(True, 2, {"8"}), (False, 2, {"1"})]),
    "silent": ("nobody", 0, 0, 6, []),
    "two-wrong": ("tie", 2 / 6, 1, 1, [(False, 2, {"1"}), (False, 2, {"2"}), (True, 1, {"5"})]),
}
UNMERGED = ("tie", 2 / 6, 1, 1, [(False, 2, {"0.75"}), (False, 2, {"3/4"}), (True, 1, {"7"})])


@pytest.mark.parametrize(("name", "votes"), [("voted", VOTES), ("unvoted", VOTES | {"confident": UNMERGED})])
def test_the_vote_of_each_problem(call, folder, name, votes):
    """Where no vote was asked for, wrong answers are told apart by their texts alone, and do not all abstain."""
    page = call("evaluation", name=name, set=SPEC)
    answers = {p.problem.id: p.problem.answer for p in PROMPTS}
    for one in page["problems"]:
        classes = [(own["is_correct"], own["votes"], set(own["spellings"])) for own in one["classes"]]
        vote = (one["winner"], pytest.approx(one["share"]), one["correct"], one["abstentions"], classes)
        assert vote == votes[one["problem"]]
        assert one["is_tied"] == (one["winner"] == "tie")
        assert one["n"] == N == one["abstentions"] + sum(c["votes"] for c in one["classes"])
        assert (one["question"], one["gold"]) == ("?", answers[one["problem"]])
        texts = [row["text"] for row in responses(folder, name)[one["problem"]]]
        assert [text["text"] for text in one["texts"]] == texts[:4]
    assert len(page["problems"]) == len(votes) and ("cons@k" in page["curves"]) == (name == "voted")


@pytest.mark.parametrize(("verdict", "winner", "abstentions"), [("timed_out", "nobody", N), ("unparsable", "wrong", 0)])
def test_responses_that_were_not_judged_do_not_vote(copied, verdict, winner, abstentions):
    """As in reasoner.evals.result, also where no classes are stored."""
    path, ask = copied("unvoted")
    table = pq.read_table(path / "samples.parquet")
    rows = table.to_pylist()
    for row in rows:
        row |= {"verdict": verdict, "correct": False} if row["problem_id"] == "unanimous" else {}
    pq.write_table(pa.Table.from_pylist(rows, table.schema), path / "samples.parquet")
    page = {p["problem"]: p for p in ask("evaluation", name="unvoted", set=SPEC)["problems"]}
    assert (page["unanimous"]["winner"], page["unanimous"]["abstentions"]) == (winner, abstentions)
    assert sum(own["votes"] for own in page["unanimous"]["classes"]) == N - abstentions


def test_votes_page_has_greedy_answers(call):
    page = {p["problem"]: p["greedy"] for p in call("evaluation", name="voted", set=SPEC)["problems"]}
    assert page["unanimous"] == {"answer": "4", "is_correct": True}
    assert page["silent"] == {"answer": None, "is_correct": False}


SHOWN = {
    "all": list(VOTES), "correct": ["unanimous", "spelt"], "confident and wrong": ["confident"],
    "correct in the minority": ["confident", "two-wrong"], "tied": ["tied", "two-wrong"], "never correct": ["silent"],
}  # fmt: skip


@pytest.mark.parametrize("show", SHOWN)
def test_selection_of_problems_matches_its_count(call, show):
    page = call("evaluation", name="voted", set=SPEC, show=show)
    assert [problem["problem"] for problem in page["problems"]] == SHOWN[show]
    assert page["selections"] == {key: len(names) for key, names in SHOWN.items()} and page["total"] == len(SHOWN[show])


def test_pages_of_problems_follow_one_another(call):
    pages = [call("evaluation", name="voted", offset=n, limit=4)["problems"] for n in (0, 4, 8)]
    assert [problem["problem"] for page in pages for problem in page] == list(VOTES)
    with pytest.raises(ValueError, match="no set 'nothing'"):
        call("evaluation", name="voted", set="nothing")


@pytest.mark.parametrize("sign", ["\u2028", "\u0085", "\x1c"])
def test_texts_with_strange_line_ends_can_be_read(copied, sign):
    path, ask = copied("voted")
    file = path / f"samples_{files.task_name(SPEC)}.jsonl"
    first, rest = file.read_text("utf-8").split("\n", 1)
    line = json.loads(first)
    line["resps"][0][0] = f"one{sign}two"
    file.write_text(f"{json.dumps(line, ensure_ascii=False)}\n{rest}", "utf-8")
    assert ask("evaluation", name="voted", set=SPEC)["total"] == len(PROMPTS)


# ---------------------------------------------------------------------------------------------- comparing


def test_the_held_out_problems_are_compared_as_reasoner_compare_does(call, folder):
    (page,) = call("compare", runs=["whole", "other"])["heldout"]
    a, b = (samples_by_problem(folder / "runs" / name / "heldout" / "after", SPEC) for name in ("whole", "other"))
    own, others = (call("evaluation", name=f"{name}/after")["metrics"] for name in ("whole", "other"))
    expected = [
        {"set": SPEC, "metric": one.metric, "difference": asdict(one.difference), "p": format_p(one.p_holm)}
        | {"a": pytest.approx(own[one.metric]["value"]), "b": pytest.approx(others[one.metric]["value"])}
        for one in compare_metrics({SPEC: (b, a)})
    ]
    assert (page["a"], page["b"], page["fault"]) == ("whole", "other", None)
    assert page["differences"] == expected and {one["metric"] for one in expected} >= {"pass@1", "cons@3", "greedy"}
    assert page["flips"] == [asdict(flip) | {"a": flip.b, "b": flip.a} for flip in find_flips(SPEC, b, a)]
    assert {flip["problem"]: flip["b"] > flip["a"] for flip in page["flips"]} == {"unanimous": False, "silent": True}


def test_flips_are_counted_that_are_not_sent(call, monkeypatch):
    monkeypatch.setattr("app.compare._MOST_FLIPS", 1)
    (page,) = call("compare", runs=["whole", "other"])["heldout"]
    assert (len(page["flips"]), page["num_flips"]) == (1, 2)


def test_compare_names_a_run_without_held_out_evaluation(call):
    page = call("compare", runs=["whole", "stopped", "other"])["heldout"]
    assert [one["fault"] is None for one in page] == [False, True]
    assert page[0]["fault"].startswith("stopped has no held-out evaluation") and page[0]["differences"] == []
    (both,) = call("compare", runs=["stopped", "theirs"])["heldout"]
    assert both["fault"].startswith("stopped and theirs")


def test_evaluations_with_different_specifications_are_not_compared(folder, fresh):
    runs, call = fresh
    shutil.copytree(folder / "runs", runs, ignore=WITHOUT_CHECKSUMS, dirs_exist_ok=True)
    path = runs / "other" / "heldout" / "after"
    write_json(path / "evaluation.json", files.read_manifest(path) | {"grader": "another"})
    (page,) = call("compare", runs=["whole", "other"])["heldout"]
    assert "the grader differs (another, abc" in page["fault"] and page["flips"] == []


def test_p_values_are_adjusted_for_all_runs_that_are_compared(folder, fresh):
    runs, call = fresh
    shutil.copytree(folder / "runs", runs, dirs_exist_ok=True)
    shutil.copytree(runs / "other", runs / "third")
    pages = call("compare", runs=["whole", "other", "third"])["heldout"]
    rows = [row for page in pages for row in page["differences"]]
    assert rows and all(row["p"] == format_p(min(1.0, 2 * row["difference"]["p"])) for row in rows)


def test_compare_has_curves_and_differing_settings(call, folder):
    page = call("compare", runs=["whole", "stopped"])
    assert page["runs"] == ["whole", "stopped"]
    assert {row["key"]: row["values"] for row in page["settings"]} == {"steps": [8, 16]}
    assert page["versions"] == []
    for name in page["runs"]:
        rows = rows_of(folder / "runs" / name)
        correct = [num_correct(own) for own in grouped(rows, "step").values()]
        lines = page["curves"][name]["metrics"]
        assert [12 * line["correct"] for line in lines] == pytest.approx(correct)
        alone = call("overview", run=name)
        assert page["curves"][name]["validations"] == alone["validations"]
        assert [line | own for line, own in zip(alone["metrics"], lines, strict=True)] == alone["metrics"]
