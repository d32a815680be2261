"""Damaged folders: each has a row, or an entry, with its reason, and everything beside it works as ever."""

import json
import os
import shutil
from dataclasses import asdict
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient

from app.library import Library
from app.shell import build
from data import Problem
from reasoner.cli import main
from reasoner.evals import files
from reasoner.evals.evaluation import Evaluation, Ks
from reasoner.locate import BASE
from reasoner.prompts import template
from reasoner.types import Answered, Response
from tests.app.library_of import asking, write_run
from verifiers import Score, Verdict

pytestmark = pytest.mark.timeout(120)  # nothing here may wait for a named pipe

SPEC = "set"
RUN = {"run": "good"}
QUESTIONS = [
    ("overview", RUN),
    ("rollouts", RUN),
    ("rollout", RUN | {"name": "0.0.0"}),
    ("group", RUN | {"step": 0, "group": 0}),
    ("difference", RUN | {"a": "0.0.0", "b": "0.0.1"}),
    ("problem", RUN | {"id": "made/0"}),
    ("problems", RUN),
    ("aha", RUN),
    ("words", RUN | {"text": "wait"}),
    ("notes", RUN),
    ("compare", {"runs": ["good", "fine"]}),
    ("evaluation", {"name": "good"}),
    ("evaluation", {"name": "good/after"}),
    ("runs", {}),
    ("evals", {}),
    ("models", {}),
]
ALARM = {"name": "cut off", "step": 1, "since": 0, "value": 0.5, "limit": 0.3, "when": "w", "meaning": "m", "help": "h"}
LOOK = {"step": 0, "sampled": {"problems": 3, "metrics": {"pass@1": {"value": 0.5}}}, "greedy": {"metrics": {}}}
NOTE = {"rollout": "0.0.1", "star": True, "note": "look", "time": 1.0}


def write_evaluation(folder: Path) -> Path:
    """Two problems with two answers each, one problem right."""
    sets = {}
    for way, num, temperature in (("sampled", 2, 1.0), ("greedy", 1, 0.0)):
        answered = tuple(
            Answered(
                Problem(f"p{i}", f"question {i}", "4", SPEC, "x"),
                "?",
                (Response("r", 3, "stop", 0),) * num,
                (Score(float(i), {}, Verdict.CORRECT if i else Verdict.WRONG, "4"),) * num,
            )
            for i in range(2)
        )
        sets[way] = Evaluation(SPEC, temperature, Ks(), answered, ())
    data = {SPEC: files.about_data([one.problem for one in sets["sampled"].answered])}
    about = {"model": "org/name", "engine": "x", "sampling": {}, "samples": 2, "seed": 0, "grader": "g", "data": data}
    files.write(folder, about | {"prompt": {"style": "none", **asdict(template("none"))}}, {SPEC: sets}, "table")
    return folder


@pytest.fixture(scope="module")
def healthy(tmp_path_factory) -> Path:
    """A library of three equal runs and two equal evaluations."""
    folder = tmp_path_factory.mktemp("healthy")
    run = write_run(folder / "runs" / "good", steps=8, written=3)
    for name, line in (("alarms", ALARM), ("notes", NOTE), ("times", {"step": 0, "time/step": 2.0})):
        (run / f"{name}.jsonl").write_text(json.dumps(line) + "\n")
    shutil.copy(BASE / "tokenizer.json", run)
    (run / "lock").touch()
    (run / "report.json").write_text("{}")
    (run / "checkpoints" / "step-000002").mkdir(parents=True)
    write_evaluation(run / "heldout" / "after")
    write_evaluation(folder / "evals" / "good")
    for name in ("fine", "bad"):
        shutil.copytree(run, folder / "runs" / name)
    shutil.copytree(folder / "evals" / "good", folder / "evals" / "bad")
    return folder


@pytest.fixture
def library(healthy, tmp_path) -> Path:
    return Path(shutil.copytree(healthy, tmp_path / "library"))


@pytest.fixture
def ask(library):
    """What asks the library; an answer must be JSON."""
    for asked in asking(library):

        def ask(query, **given):
            answer = asked(query, **given)
            json.dumps(answer, allow_nan=False).encode()
            return answer

        yield ask


# ---------------------------------------------------------------------------------------------------- what is done to a file


def missing(path):
    shutil.rmtree(path) if path.is_dir() else path.unlink()


def empty(path):
    path.write_bytes(b"")


def truncated(path):
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])


def binary(path):
    path.write_bytes(bytes(range(256)) * 4)


def directory(path):
    missing(path)
    path.mkdir()


def plain_file(path):
    missing(path)
    path.write_text("x")


def pipe(path):
    missing(path)
    os.mkfifo(path)


def link_out(path):
    outside = path.parents[3] / "outside"
    path.rename(outside)
    path.symlink_to(outside)


def link_to_nothing(path):
    missing(path)
    path.symlink_to(path.parent / "nothing")


def circle(path):
    missing(path)
    path.symlink_to(path.name)


def holding(text):
    """Write this text into the file."""

    def damage(path):
        path.write_bytes(text if isinstance(text, bytes) else (text + "\n").encode())

    damage.__name__ = repr(text)[:50]
    return damage


def with_line(line, **changes):
    """Put the line, changed, before the file's own lines."""

    def damage(path):
        text = json.dumps({name: value for name, value in (line | changes).items() if value != "LEFT OUT"})
        path.write_text(text.replace('"HUGE"', "1" + "0" * 400) + "\n" + path.read_text())

    damage.__name__ = ", ".join(f"{name} is {value!r}"[:40] for name, value in changes.items())
    return damage


NOT_A_FILE = {
    directory: "is no file but a directory",
    pipe: "is no file but a named pipe",
    link_out: "is a link that leads outside it",
    link_to_nothing: "is a link to nothing",
    circle: "is a circle of links",
}
NO_OBJECT = {
    holding("null"): "it holds no object",
    holding("[]"): "it holds no object",
    holding("3"): "it holds no object",
    binary: "is damaged",
    holding(b'{"a": "\xed\xa0\x80"}\n{"step": 0}\n'): "is damaged",  # a surrogate in bytes: no UTF-8
    holding("[" * 100_000 + "\n{}"): "is damaged",
    holding("9" * 5_000 + "\n{}"): "is damaged",
}
NO_LINES = NOT_A_FILE | NO_OBJECT | {holding("{}\n{}\n{}"): "it has no"}
GROWS = {missing: None, empty: None, truncated: None}
SETTINGS = '{{"config": {}}}'
STEP = {"step": 0, "correct": 0.5}
RUNS = {
    "config.json": NOT_A_FILE
    | NO_OBJECT
    | {
        missing: "has no config.json",
        empty: "is damaged",
        truncated: "is damaged",
        holding("{}"): "it has no 'config'",
        holding(SETTINGS.format("null")): "config is None; it must be an object",
        holding(SETTINGS.format("[1]")): "config is [1]; it must be an object",
        holding(SETTINGS.format('{"steps": null}')): "steps is None; it must be a whole number",
        holding(SETTINGS.format('{"steps": "ten"}')): "steps is 'ten'",
        holding(SETTINGS.format('{"steps": -1}')): "steps is -1",
        holding(SETTINGS.format('{"steps": 1e999}')): "steps is inf",
        holding(SETTINGS.format('{"steps": NaN}')): "NaN is no JSON",
        holding(SETTINGS.format('{"steps": 1' + "0" * 400 + "}")): "steps is a huge number",
        holding(SETTINGS.format('{"algo.name": ["grpo"]}')): "algo.name is ['grpo']; it must be a text",
        holding('{"config": {}, "origin": null}'): "origin is None",
        holding(SETTINGS.format('{"model": "\\ud800"}')): None,  # half a pair of surrogates is a text of JSON
        holding(SETTINGS.format("{}")): None,
    },
    "versions.json": NOT_A_FILE | NO_OBJECT | {missing: None, empty: "is damaged", truncated: "is damaged"},
    "metrics.jsonl": NO_LINES
    | GROWS
    | {
        with_line(STEP, step="LEFT OUT"): "it has no 'step'",
        with_line(STEP, step=None): "step is None",
        with_line(STEP, step="0"): "step is '0'",
        with_line(STEP, step=-1): "step is -1",
        with_line(STEP, step=0.5): "step is 0.5",
        with_line(STEP, step="HUGE"): "step is a huge number",
        with_line(STEP, correct=None): "correct is None",
        with_line(STEP, correct="half"): "correct is 'half'",
        with_line(STEP, correct="\ud800"): "correct is '\\ud800'",
        with_line(STEP, correct="HUGE"): "correct is a huge number",
        with_line(STEP, correct=float("nan")): "NaN is no JSON",
        with_line(STEP, correct=[1]): "correct is [1]",
    },
    "times.jsonl": NO_LINES | GROWS | {with_line(STEP, **{"time/step": None}): "time/step is None"},
    "evals.jsonl": NO_LINES
    | GROWS
    | {
        with_line(LOOK, sampled=None): "sampled is None",
        with_line(LOOK, sampled={}): "it has no 'metrics'",
        with_line(LOOK, greedy={}): "it has no 'metrics'",
        with_line(LOOK, greedy={"metrics": {"pass@1": None}}): "pass@1 is None",
        with_line(LOOK, greedy={"metrics": {"pass@1": {"value": "x"}}}): "value is 'x'",
    },
    "alarms.jsonl": NO_LINES
    | GROWS
    | {with_line(ALARM, step="x"): "step is 'x'", with_line(ALARM, help=3): "help is 3"},
    "notes.jsonl": NO_LINES
    | GROWS
    | {with_line(NOTE, rollout=None): "rollout is None", with_line(NOTE, time="LEFT OUT"): "it has no 'time'"},
    "lock": NOT_A_FILE | {missing: None, binary: None},
    "tokenizer.json": NOT_A_FILE | {missing: None, empty: None, binary: None, truncated: None, holding("{}"): None},
    "report.json": NOT_A_FILE | {missing: None, binary: None},
    "index.sqlite": NOT_A_FILE | {missing: None, empty: None, binary: None, truncated: None},
    "index.sqlite.lock": NOT_A_FILE | {missing: None, binary: None},
    "rollouts": {missing: None, plain_file: "is no directory", pipe: "is no directory", circle: "is a circle of links"},
    "checkpoints": {missing: None, plain_file: "is no directory", pipe: "is no directory"},
    "heldout": {missing: None, plain_file: "is no directory", pipe: "is no directory"},
}
RUN_CASES = [
    pytest.param(file, damage, reason, id=f"{file} {damage.__name__}")
    for file, cases in RUNS.items()
    for damage, reason in cases.items()
]


@pytest.mark.parametrize(("file", "damage", "reason"), RUN_CASES)
def test_a_damaged_run_is_a_row_with_the_reason_and_every_page_of_another_run_works(library, ask, file, damage, reason):
    damage(library / "runs" / "bad" / file)
    rows = {row["name"]: row["fault"] for row in ask("runs")["runs"]}
    fault = rows.pop("bad")
    assert rows == {"good": None, "fine": None}
    assert fault is None if reason is None else (reason in fault and file in fault)
    for query, given in QUESTIONS:
        ask(query, **given)
    for query, given in QUESTIONS:
        refused_at_most(ask, query, {name: "bad" if value == "good" else value for name, value in given.items()})
    refused_at_most(ask, "compare", {"runs": ["good", "bad"]})


def refused_at_most(ask, query, given):
    """The question of a damaged run is answered, or refused in a line of text as the server passes it on."""
    try:
        ask(query, **given)
    except (ValueError, OSError) as error:
        assert str(error)


def test_links_that_come_while_the_dashboard_runs_are_refused(library, ask):
    assert ask("rollouts", run="bad")["total"] > 0
    link_out(library / "runs" / "bad" / "rollouts" / "step-000001.parquet")
    with pytest.raises(ValueError, match="is a link that leads outside it"):
        ask("rollouts", run="bad")


def test_a_rollout_is_shown_without_its_tokens_where_the_tokenizer_is_damaged(library, ask):
    assert ask("rollout", run="bad", name="0.0.0")["tokens"] is not None
    binary(library / "runs" / "bad" / "tokenizer.json")
    answer = ask("rollout", run="bad", name="0.0.0")
    assert answer["tokens"] is None and "tokenizer.json is damaged" in answer["tokens_fault"]


# ------------------------------------------------------------------------------------------------------------ shards


def changed(name, values, kind=None):
    """Write these values into a column of the shard, or none: the column is left out."""

    def damage(path):
        table = pq.read_table(path)
        place = table.column_names.index(name)
        table = table.remove_column(place)
        if values is not None:
            table = table.add_column(place, name, pa.array((values * table.num_rows)[: table.num_rows], kind))
        pq.write_table(table, path)

    damage.__name__ = f"{name} {'left out' if values is None else repr(values)[:30]}"
    return damage


NO_UTF8 = pa.array([b"\xff"]).cast(pa.binary()).view(pa.string()).take(pa.array([0] * 64))


def no_utf8(path):
    table = pq.read_table(path)
    place = table.column_names.index("completion")
    cells = NO_UTF8.slice(0, table.num_rows)
    pq.write_table(table.set_column(place, "completion", cells), path)


SHARDS = {
    empty: "",
    truncated: "",
    binary: "",
    holding("null"): "",
    directory: "is no file but a directory",
    pipe: "is no file but a named pipe",
    no_utf8: "",
    changed("completion", None): "it has no column 'completion'",
    changed("completion", [None], pa.string()): "column 'completion' has empty cells",
    changed("completion", [3]): "column 'completion' holds int values, not text",
    changed("question", [None], pa.string()): "column 'question' has empty cells",
    changed("reward", [float("nan")], pa.float32()): "column 'reward' holds a value that is not finite",
    changed("reward", [float("inf"), 1.0], pa.float32()): "column 'reward' holds a value that is not finite",
    changed("reward", ["1"]): "column 'reward' holds text values, not float",
    changed("reward", [{"a": 1}]): "column 'reward' holds struct<a: int64> values, not float",
    changed("group", [None], pa.int32()): "column 'group' has empty cells",
    changed("tokens", ["x"]): "column 'tokens' holds text values, not int",
    changed("token_ids", [["x"]]): "column 'token_ids' holds list of text values, not list of int",
    changed("verdict", [b"\xff"]): "column 'verdict' holds binary values, not text",
    changed("subject", [[1]]): "column 'subject' holds list of int values, not text",
}
HARMLESS = [
    changed("tokens", [None], pa.int32()),
    changed("advantage", [2**62], pa.int64()),
    changed("level", [2**62, -(2**62)], pa.int64()),
    changed("verifier", ["unknown"]),
    changed("verdict", ["unheard of"]),
    changed("group", [0, 1]),  # a group's rows do not follow each other
    changed("gold", [""]),
    changed("token_ids", [[-1, 2**31 - 1]], pa.list_(pa.int32())),
    changed("logprobs", None),
]


@pytest.mark.parametrize(("damage", "reason"), SHARDS.items(), ids=lambda value: getattr(value, "__name__", ""))
def test_a_damaged_shard_is_named_with_its_reason_and_the_others_are_shown(library, ask, damage, reason):
    damage(library / "runs" / "bad" / "rollouts" / "step-000001.parquet")
    answer = ask("rollouts", run="bad")
    assert answer["total"] == 24 and list(answer["faults"]) == ["1"] and reason in answer["faults"]["1"]
    assert ask("rollout", run="bad", name="2.0.0")["completion"] and ask("aha", run="bad")["steps"] == 2
    for query, given in QUESTIONS:
        ask(query, **given)


@pytest.mark.parametrize("damage", HARMLESS, ids=lambda damage: damage.__name__)
def test_a_strange_value_in_a_shard_ends_no_page_of_its_run(library, ask, damage):
    damage(library / "runs" / "bad" / "rollouts" / "step-000001.parquet")
    for query, given in QUESTIONS:
        ask(query, **{name: "bad" if value == "good" and name == "run" else value for name, value in given.items()})
    assert ask("rollouts", run="bad")["faults"] == {}
    for name in ("1.0.0", "1.0.1"):
        assert ask("rollout", run="bad", name=name)["completion"]


@pytest.mark.parametrize(
    "name", ["step-99999999999999999999.parquet", "step-1.parquet", "step-٠٠٠٠٠٠.parquet", "step-x.parquet"]
)
def test_a_file_that_is_named_like_no_step_is_no_shard(library, ask, name):
    rollouts = library / "runs" / "bad" / "rollouts"
    shutil.copy(rollouts / "step-000001.parquet", rollouts / name)
    answer = ask("rollouts", run="bad")
    assert (answer["total"], answer["shards"], answer["faults"]) == (36, 3, {})


def test_a_checkpoint_that_is_named_like_no_step_cannot_be_asked(library, ask):
    (library / "runs" / "bad" / "checkpoints" / "step-abcdef").mkdir()
    assert [(entry["model"], entry["steps"]) for entry in ask("models")["models"] if entry["model"] == "bad"] == [
        ("bad", ["2"])
    ]


# -------------------------------------------------------------------------------------------------------- evaluations

ABOUT = {"model": "m", "data": {SPEC: {"rows": 2, "sha256": "s"}}, "samples": 2, "grader": "g", "prompt": {}}


def about(**changes):
    damage = holding(json.dumps({name: value for name, value in (ABOUT | changes).items() if value != "LEFT OUT"}))
    damage.__name__ = ", ".join(f"{name} is {value!r}"[:40] for name, value in changes.items())
    return damage


EVALS = {
    "evaluation.json": {name: why for name, why in NOT_A_FILE.items() if name is not link_to_nothing}
    | NO_OBJECT
    | {
        empty: "is damaged",
        truncated: "is damaged",
        holding("{}"): "it has no 'model'",
        about(model=None): "model is None",
        about(model="LEFT OUT"): "it has no 'model'",
        about(data=None): "data is None",
        about(data=[]): "data is []",
        about(data={}): "it names no data set",
        about(data={SPEC: None}): "it holds no object",
        about(data={SPEC: {"rows": float("nan"), "sha256": ""}}): "NaN is no JSON",
        about(data={SPEC: {"rows": 1e300, "sha256": ""}}): "rows is 1e+300",
        about(samples="two"): "samples is 'two'",
        about(prompt="none"): "prompt is 'none'",
    },
    "results.json": NOT_A_FILE
    | NO_OBJECT
    | {
        empty: "is damaged",
        truncated: "is damaged",
        holding('{"results": null}'): "results is None",
        holding('{"results": {"set": []}}'): "it holds no object",
        holding('{"results": {"set": {"pass@1,none": "x"}}}'): "pass@1,none is 'x'",
        holding('{"results": {"set": {"pass@1,none": NaN}}}'): "NaN is no JSON",
    },
}
SAMPLES = {
    f"samples_{SPEC}.jsonl": NOT_A_FILE
    | {
        missing: "has no samples_set.jsonl",
        truncated: "is damaged",
        binary: "is damaged",
        holding("{}"): "it has no 'doc'",
        holding("null"): "it holds no object",
        holding('{"doc": {"id": 1}, "filter": "none", "metrics": []}'): "id is 1",
    },
    "samples.parquet": NOT_A_FILE
    | {
        missing: "has no samples.parquet",
        empty: "is damaged",
        truncated: "is damaged",
        binary: "is damaged",
        changed("right", None): "it has no column 'right'",
        changed("right", [None], pa.bool_()): "column 'right' has empty cells",
        changed("way", [3]): "",
        changed("right", ["perhaps"]): "is damaged",
    },
}


def cases(table):
    return [
        pytest.param(file, damage, reason, id=f"{file} {damage.__name__}")
        for file, own in table.items()
        for damage, reason in own.items()
        if reason != ""
    ]


@pytest.mark.parametrize("name", ["bad", "bad/after"])
@pytest.mark.parametrize(("file", "damage", "reason"), cases(EVALS))
def test_a_damaged_evaluation_is_listed_with_the_reason_and_the_others_work(library, ask, file, damage, reason, name):
    damage(place_of(library, name) / file)
    answer = ask("evals")
    faults = {entry["name"]: entry["fault"] for entry in answer["faults"]}
    assert name in faults and reason in faults[name] and file in faults[name]
    assert {"good", "good/after", "fine/after"} <= {row["name"] for row in answer["rows"]}
    for query, given in QUESTIONS:
        ask(query, **given)
    refused_at_most(ask, "evaluation", {"name": name})
    refused_at_most(ask, "compare", {"runs": ["good", "bad"]})


@pytest.mark.parametrize("name", ["bad", "bad/after"])
@pytest.mark.parametrize(("file", "damage", "reason"), cases(SAMPLES))
def test_damaged_samples_are_the_reason_of_their_evaluation_alone(library, ask, file, damage, reason, name):
    damage(place_of(library, name) / file)
    with pytest.raises(ValueError) as caught:
        ask("evaluation", name=name)
    assert reason in str(caught.value) and file in str(caught.value)
    for query, given in QUESTIONS:
        ask(query, **given)
    refused_at_most(ask, "compare", {"runs": ["good", "bad"]})


def place_of(library, name):
    return library / "evals" / name if "/" not in name else library / "runs" / "bad" / "heldout" / "after"


def test_an_evaluation_that_is_compared_on_the_command_line_has_no_links_out(library, capsys):
    link_out(library / "evals" / "bad" / f"samples_{SPEC}.jsonl")
    assert main(["compare", "good", "bad", "--out", str(library / "evals")]) == 2
    assert "is a link that leads outside it" in capsys.readouterr().err


# -------------------------------------------------------------------------------------------------- through the server


def test_half_a_pair_of_surrogates_reaches_the_page_as_its_escape(library):
    holding(SETTINGS.format('{"model": "half \\ud83d"}'))(library / "runs" / "bad" / "config.json")
    with TestClient(build(Library(library / "runs", library / "evals"))) as client:
        reply = client.post("/ask/runs", json={})
        assert reply.status_code == 200 and b"half \\ud83d" in reply.content
        refused = client.post(
            "/ask/rollouts", content=b'{"run": "\\ud83d"}', headers={"content-type": "application/json"}
        )
        assert refused.status_code == 400 and "no run" in refused.json()["error"]
