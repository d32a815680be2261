"""The files of an evaluation, read back by this project and by other programs."""

import json
from dataclasses import asdict

import pyarrow.parquet as pq
import pytest

from reasoner.evals import eval_log
from reasoner.evals.response_files import read_responses
from reasoner.evals.result import MetricKs
from reasoner.evals.tables import details, percent, table
from tests.fixtures.scripted import answering, evaluated, prompt

SPEC = "generated:heldout"
PROMPTS = [prompt("a", "4", subject="sums", level=1), prompt("b", "1/2", subject="words", level=2)]
SCRIPT = {"a": [answering(4), answering(5)], "b": [answering("0.5\x1b[2J"), "no"]}


@pytest.fixture(scope="module")
def sets(pool):
    ks = MetricKs(pass_at=(2,), cons_at=(2,))
    sampled = evaluated(SCRIPT, pool, PROMPTS, 2, label=SPEC, ks=ks)
    return {SPEC: {"sampled": sampled, "greedy": evaluated(SCRIPT, pool, PROMPTS, label=SPEC)}}


@pytest.fixture(scope="module")
def manifest(sets):
    return {
        "model": "org/name", "engine": "scripted", "sampling": {"sampled": {"temperature": 1.0}}, "seed": 0,
        "data": {SPEC: eval_log.data_entry([p.problem for p in PROMPTS])}, "grader": "abc",
        "prompt": {"style": "none", "extract": "strict"},
    }  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory, manifest, sets):
    path = tmp_path_factory.mktemp("evals") / "x"
    eval_log.write(path, manifest, sets, "the table")
    return path


def test_results_have_all_metrics_by_set_and_way(folder, sets):
    results = json.loads((folder / "results.json").read_text())["generated_heldout"]
    assert results.keys() == {"sampled", "greedy"}
    assert {"pass@2", "cons@2"} <= results["sampled"]["metrics"].keys()
    assert results["sampled"]["metrics"]["pass@1"] == asdict(sets[SPEC]["sampled"].pass_at_1)


def test_samples_have_lm_evals_format_can_be_regraded_and_are_rows_of_a_flat_table(folder):
    rows = eval_log.read_samples(folder, SPEC)
    assert [row["filter"] for row in rows] == ["none", "none", "greedy", "greedy"]
    assert rows[0]["metrics"] == ["pass@1", "pass@2", "cons@2"] and rows[0]["pass@1"] == 0.5
    assert rows[0]["filtered_resps"] == ["4", "5"] and rows[0]["target"] == "4"
    assert not {"resps", "arguments"} & rows[0].keys()  # nearly all of the file
    again = read_responses(folder / "samples_generated_heldout.jsonl")
    assert [problem.id for problem, _, _ in again] == ["a", "b"]
    assert [[r.text for r in responses] for _, _, responses in again] == [SCRIPT["a"], SCRIPT["b"]]
    rows = pq.read_table(folder / "samples.parquet").to_pylist()
    assert len(rows) == 6
    assert [row["correct"] for row in rows] == [True, False, False, False, True, False]
    assert [row["class"] for row in rows] == [0, 1, 1, None, None, None]
    assert rows[3]["verdict"] == "no_answer" and rows[3]["answer"] is None


def test_equal_evaluations_have_equal_bytes_and_a_folder_without_one_is_refused(folder, manifest, sets, tmp_path):
    eval_log.write(tmp_path / "again", manifest, sets, "the table")
    one, other = ({p.name: p.read_bytes() for p in path.iterdir()} for path in (folder, tmp_path / "again"))
    assert one == other
    with pytest.raises(ValueError, match="holds no evaluation"):
        eval_log.read_manifest(tmp_path)


@pytest.mark.parametrize(
    ("spec", "name"),
    [
        ("generated:heldout", "generated_heldout"),
        ("/a/b/mine.jsonl?question=q&answer=a", "mine.jsonl"),
        ("org/Name-1.5B", "Name-1.5B"),
        ("..", "set"),
    ],
)
def test_task_name_is_safe_in_file_names(spec, name):
    assert eval_log.task_name(spec) == name


def test_table_has_a_line_per_set_and_way_with_intervals(sets):
    header, sampled, greedy = table(sets).splitlines()
    for column in ("N", "n", "pass@1 (95 % CI)", "cons@2 (95 % CI)", "greedy (95 % CI)", "se_run", "trunc", "tokens"):
        assert column in header
    assert "25.0 [" in sampled and "25.0 %" in sampled  # one of four responses gives no answer
    assert "50.0 [" in greedy
    assert "macro average" in table({SPEC: sets[SPEC], "other": sets[SPEC]})


@pytest.mark.parametrize(
    ("share", "text"),
    [(0, "0.0 %"), (0.0004, "< 0.1 %"), (0.125, "12.5 %"), (0.9996, "> 99.9 %"), (1.0, "100.0 %"), (None, "-")],
)
def test_a_percentage_tells_none_from_few_and_all_from_nearly_all(share, text):
    assert percent(share) == text


def test_scores_that_are_all_equal_have_no_standard_error(pool):
    right = evaluated({"a": [answering(4)] * 2, "b": [answering("1/2")] * 2}, pool, PROMPTS, 2, label=SPEC)
    _, line = table({SPEC: {"sampled": right}}).splitlines()
    assert line.split()[3:8] == ["100.0", "[34.2,", "100.0]", "-", "-"]


def test_details_separate_format_from_reasoning_and_list_families(sets):
    text = details(SPEC, sets[SPEC])
    for row in ("well-formed", "correct, format ignored", "several different answers", "sums 1", "words 2"):
        assert row in text
    assert "\x1b" not in text


def test_columns_of_the_flat_table_are_read_alone(folder):
    table = eval_log.read_flat(folder, ("way", "tokens"))
    assert table.column_names == ["way", "tokens"] and table.num_rows == 6
