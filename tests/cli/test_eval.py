"""`reasoner eval` from the command line, and evaluate() from Python: with real model, engine and graders."""

import json

import pytest

from reasoner.cli.main import main
from reasoner.evals import PROBLEMS
from reasoner.evals.request import EvalRequest
from reasoner.evals.result import MetricKs
from reasoner.models.folder import model_fingerprint
from reasoner.models.resolve import BASE
from tests.fixtures.full_disk import largest_file

EVAL = ["eval", "--engine", "transformers", "--max-tokens", "12", "--problems", "6"]


def evaluate(tmp_path, *arguments):
    status = main([*EVAL, "--out", str(tmp_path / "evals"), *arguments])
    assert status == 0


def written(folder):
    """Every file but the one of time and machine."""
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.name != "run.json"}


def refused(capsys, *arguments):
    assert main([*EVAL, *arguments]) == 2
    error = capsys.readouterr().err.strip().splitlines()[-1]
    assert error.startswith("reasoner: error: ")
    return error


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    """An evaluation of two sets, both ways; and what it said."""
    tmp_path = tmp_path_factory.mktemp("measure")
    problems = tmp_path / "mine.jsonl"
    problems.write_text("".join(json.dumps({"q": f"What is {i}+1?", "a": str(i + 1)}) + "\n" for i in range(6)))
    sets = f"generated:heldout,{problems}?question=q&answer=a"
    evaluate(tmp_path, "--data", sets, "--pass@1", "--pass@2", "--cons@4", "--greedy", "--name", "one")
    return tmp_path, sets


def test_evaluation_files_exist_and_agree(first):
    folder = first[0] / "evals" / "one"
    names = {path.name for path in folder.iterdir()}
    assert {"evaluation.json", "results.json", "run.json", "samples.parquet", "table.txt"} <= names
    assert {"samples_generated_heldout.jsonl", "samples_mine.jsonl.jsonl"} <= names
    about = json.loads((folder / "evaluation.json").read_text())
    assert about["model_fingerprint"] == model_fingerprint(BASE)
    assert [entry["rows"] for entry in about["data"].values()] == [6, 6]
    table = (folder / "table.txt").read_text()
    assert "pass@2 (95 % CI)" in table and "cons@4 (95 % CI)" in table and "macro average" in table


def test_evaluation_that_does_not_fit_goes_on_when_there_is_room(first, tmp_path, capsys):
    sets = ["--data", first[1], "--pass@1", "--pass@2", "--cons@4", "--greedy", "--name", "one"]
    for size in (300, 3000):  # too little for the responses, then for the tables
        with largest_file(size):
            assert main([*EVAL, "--out", str(tmp_path / "evals"), *sets]) == 1
        said = capsys.readouterr().err
        assert f"cannot write {tmp_path}/evals" in said and "File too large" in said
    evaluate(tmp_path, *sets)
    assert written(tmp_path / "evals" / "one") == written(first[0] / "evals" / "one")


def test_complete_evaluation_samples_nothing(first, monkeypatch, capsys):
    tmp_path, sets = first
    before = written(tmp_path / "evals" / "one")
    monkeypatch.setattr("reasoner.inference.model_spec.make_engine", None)  # would fail if it were called
    again = ["--data", sets, "--pass@1", "--pass@2", "--cons@4", "--greedy", "--name", "one"]
    evaluate(tmp_path, *again)
    evaluate(tmp_path, *again, "--regrade")
    assert written(tmp_path / "evals" / "one") == before
    said = capsys.readouterr().err
    assert "generated:heldout, sampled: 24 of 24 responses are cached" in said
    assert said.count("up to 12 tokens") == 4  # sampled and greedy, twice


def test_regrading_what_is_not_stored_and_a_name_in_use_are_refused(first, capsys):
    tmp_path, _ = first
    error = refused(capsys, "--pass@8", "--out", str(tmp_path / "evals"), "--regrade")
    assert "--regrade samples nothing, and 24 of 48 responses (generated:heldout, sampled) are not stored" in error
    tmp_path, _ = first
    error = refused(capsys, "--pass@1", "--out", str(tmp_path / "evals"), "--name", "one")
    assert "holds another evaluation (sampling differ); choose another --name" in error


def test_responses_that_are_refused_are_not_graded_before(first, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr("reasoner.evals.response_files.score_responses", None)  # would fail if it were called
    (tmp_path / "x.jsonl").write_text('{"gold": "4", "response": "4"}\n')
    (tmp_path / "two.jsonl").write_text('{"gold": "4", "responses": ["4", "5"]}\n')
    arguments = ["--responses", str(tmp_path / "two.jsonl"), "--responses", str(tmp_path / "x.jsonl")]
    for option, told in ((["--name", "one"], "holds another evaluation"), (["--pass@2"], "pass@2 needs at least 2")):
        assert main(["eval", *arguments, *option, "--out", str(first[0] / "evals")]) == 2
        assert told in capsys.readouterr().err


def test_our_own_samples_grade_the_same_as_responses(first):
    tmp_path, _ = first
    samples = tmp_path / "evals" / "one" / "samples_generated_heldout.jsonl"
    arguments = ["--pass@1", "--cons@4", "--out", str(tmp_path / "evals"), "--name", "two"]
    main(["eval", "--responses", str(samples), *arguments])
    theirs, ours = (json.loads((tmp_path / "evals" / name / "results.json").read_text()) for name in ("two", "one"))
    values = theirs["samples_generated_heldout.jsonl"]["sampled"]["metrics"]
    for metric in ("pass@1", "cons@4"):
        assert values[metric] == ours["generated_heldout"]["sampled"]["metrics"][metric]


def test_fewer_samples_or_metrics_do_not_take_the_place_of_more(first):
    tmp_path, sets = first
    before = set((tmp_path / "evals").iterdir())
    evaluate(tmp_path, "--data", sets, "--pass@1", "--cons@4")
    evaluate(tmp_path, "--data", sets, "--pass@1")
    assert len(set((tmp_path / "evals").iterdir()) - before) == 2


def test_our_own_greedy_samples_are_greedy(first):
    tmp_path, _ = first
    samples = tmp_path / "evals" / "one" / "samples_mine.jsonl.jsonl"
    lines = [line for line in samples.read_text().splitlines(keepends=True) if json.loads(line)["filter"] == "greedy"]
    (tmp_path / "greedy.jsonl").write_text("".join(lines))
    arguments = ["--extract", "strict", "--out", str(tmp_path / "evals"), "--name", "four"]
    assert main(["eval", "--responses", str(tmp_path / "greedy.jsonl"), *arguments]) == 0
    theirs, ours = (json.loads((tmp_path / "evals" / name / "results.json").read_text()) for name in ("four", "one"))
    assert theirs["greedy.jsonl"]["greedy"]["metrics"] == ours["mine.jsonl"]["greedy"]["metrics"]


def test_two_evaluations_of_one_model_compare(first, capsys):
    tmp_path, sets = first
    evaluate(tmp_path, "--data", sets, "--pass@1", "--num-samples", "4", "--seed", "1", "--name", "three")
    assert main(["compare", "one", "three", "--out", str(tmp_path / "evals")]) == 0
    assert "no difference shown" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--data", "math500", "--pass@1"], "Without a network give a local copy instead"),
        (["--data", "math500", "--model", "org/name"], "Without a network give a local copy instead"),
        (["--pass@8", "--num-samples", "4"], "the largest K asked for needs 8"),
        (["--data", "{tmp}/x.jsonl?question=q"], "no column 'q' for the question"),
        (["--data", "{tmp}/x.jsonl,{tmp}/x.jsonl"], "would have the same files"),
        (["--model", "{tmp}/bare"], "no tokenizer can be loaded from"),
        (["--model", "org/name"], "the hub cannot be reached to download it"),
        (["--greedy", "--num-samples", "4", "--top-p", "0.9"], "--num-samples, --top-p have no effect on greedy"),
        (["--processes", "0"], "--processes is 0; it must be at least 1"),
        (["--responses", "{tmp}/x.jsonl", "--processes", "2"], "--responses is evaluated by one process, not 2"),
    ],
)
def test_bad_input_is_one_line_and_status_two(tmp_path, capsys, monkeypatch, arguments, message):
    for name in ("HF_HUB_OFFLINE", "HF_DATASETS_OFFLINE"):
        monkeypatch.setenv(name, "1")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr("datasets.config.HF_HUB_OFFLINE", True)
    (tmp_path / "x.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n')
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / "config.json").write_text((BASE / "config.json").read_text())
    filled = [argument.replace("{tmp}", str(tmp_path)) for argument in arguments]
    assert message in refused(capsys, *filled, "--out", str(tmp_path / "evals"))
    assert not (tmp_path / "evals").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "no 'response'"),
        (["--num-samples", "2"], "--num-samples has no effect on the responses in files (--responses)"),
        (
            ["--greedy", "--seed", "9", "--model", "base", "--stop", "x"],
            "--model, --greedy, --stop, --seed have no effect on the responses in files",
        ),
        (["--seed", "0"], "--seed has no effect"),
        (["--data", "gsm8k", "--problems", "1", "--prompt", "boxed"], "--data, --problems, --prompt have no effect"),
    ],
)
def test_flags_without_effect_on_responses_in_files_are_refused(tmp_path, capsys, arguments, message):
    (tmp_path / "x.jsonl").write_text('{"question": "1+1?", "answer": "2"}\n')
    out = tmp_path / "evals"
    assert main(["eval", "--responses", str(tmp_path / "x.jsonl"), *arguments, "--out", str(out)]) == 2
    assert message in capsys.readouterr().err
    assert not out.exists()


def test_unequal_numbers_of_responses_are_reported(tmp_path, capsys):
    rows = [{"id": "a", "gold": "2", "responses": ["2", "3", "2"]}, {"id": "b", "gold": "4", "responses": ["4"]}]
    (tmp_path / "x.jsonl").write_text("\n".join(map(json.dumps, rows)))
    arguments = ["eval", "--responses", str(tmp_path / "x.jsonl"), "--out", str(tmp_path / "evals")]
    assert main([*arguments, "--name", "x"]) == 0
    assert "1 to 3 responses (the fewest: 'b')" in capsys.readouterr().err
    (tmp_path / "x.jsonl").write_text(json.dumps(rows[0]))
    assert main([*arguments, "--name", "y"]) == 0
    assert "responses (the fewest" not in capsys.readouterr().err


def test_files_whose_answers_are_extracted_in_different_ways_need_a_choice(tmp_path, capsys):
    row = {"question": "1+1?", "answer": "2", "response": "2"}
    for name in ("own", "theirs"):
        (tmp_path / name).mkdir()
        (tmp_path / name / f"{name}.jsonl").write_text(json.dumps(row) + "\n")
    manifest = {"model": "m", "grader": "g", "prompt": {"extract": "boxed"}, "data": {"x": {"rows": 1, "sha256": "0"}}}
    (tmp_path / "own" / "evaluation.json").write_text(json.dumps(manifest))
    files = [str(tmp_path / name / f"{name}.jsonl") for name in ("own", "theirs")]
    arguments = ["eval", "--responses", files[0], "--responses", files[1], "--out", str(tmp_path / "evals")]
    assert main(arguments) == 2
    assert f"({files[0]} boxed, {files[1]} lenient); choose one of them by --extract" in capsys.readouterr().err
    assert main([*arguments, "--extract", "boxed", "--name", "x"]) == 0


def test_first_problems_are_taken_of_generated_sets_and_all_of_a_file_whose_name_begins_alike():
    limits = {spec: EvalRequest(ks=MetricKs()).max_problems(spec) for spec in ("generated:heldout", "gym:gcd:heldout")}
    assert set(limits.values()) == {PROBLEMS}
    assert EvalRequest(ks=MetricKs()).max_problems("generated.jsonl") is None
