"""Damaged runs: each is a row with the reason, and the pages of other runs work."""

import json
import shutil
from dataclasses import asdict

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.app import damage as ways
from tests.app.damage import NOT_A_FILE, binary, changed, directory, empty, holding, missing, truncated, with_line
from tests.app.library_of import client_of, until

pytestmark = pytest.mark.timeout(600)  # nothing here may wait for a named pipe

NO_LINES = NOT_A_FILE | ways.NO_OBJECT | {holding("{}\n{}\n{}"): "it has no"}
GROWS = {missing: None, empty: None, truncated: None}
SETTINGS = '{{"format": 2, "config": {}}}'
STEP = {"step": 0, "correct": 0.5}
RUNS = {
    "config.json": NOT_A_FILE
    | ways.NO_OBJECT
    | {
        missing: "has no config.json",
        empty: "is damaged",
        truncated: "is damaged",
        holding("{}"): "it has no 'config'",
        holding(SETTINGS.format("null")): "config is None; it must be an object",
        holding(SETTINGS.format('{"steps": null}')): "steps is None; it must be a whole number",
        holding(SETTINGS.format('{"steps": -1}')): "steps is -1",
        holding(SETTINGS.format('{"steps": 1e999}')): "steps is inf",
        holding(SETTINGS.format('{"steps": NaN}')): "steps is nan; it must be a whole number",
        holding(SETTINGS.format('{"steps": 1' + "0" * 400 + "}")): "steps is a huge number",
        holding(SETTINGS.format('{"algo.name": ["grpo"]}')): "algo.name is ['grpo']; it must be a text",
        holding('{"config": {}, "origin": null}'): "origin is None",
        holding(SETTINGS.format('{"model": "\\ud800"}')): None,  # half a pair of surrogates is a text of JSON
        holding(SETTINGS.format("{}")): None,
    },
    "versions.json": NOT_A_FILE | ways.NO_OBJECT | {missing: None, empty: "is damaged", truncated: "is damaged"},
    "sync.json": NOT_A_FILE
    | ways.NO_OBJECT
    | {
        missing: None,
        empty: "is damaged",
        truncated: "is damaged",
        holding("{}"): "it has no 'model'",
        holding(json.dumps(asdict(ways.CERTIFICATE) | {"changed": "0"})): "changed is '0'; it must be a number",
        holding(json.dumps(asdict(ways.CERTIFICATE) | {"unseen": [1]})): "unseen is [1]; it must be a list of texts",
    },
    "metrics.jsonl": NO_LINES
    | GROWS
    | {
        with_line(STEP, step="LEFT OUT"): "it has no 'step'", with_line(STEP, step=None): "step is None",
        with_line(STEP, step="0"): "step is '0'", with_line(STEP, step=-1): "step is -1",
        with_line(STEP, step=0.5): "step is 0.5", with_line(STEP, step="HUGE"): "step is a huge number",
        with_line(STEP, correct=None): "correct is None", with_line(STEP, correct="half"): "correct is 'half'",
        with_line(STEP, correct="\ud800"): "correct is '\\ud800'",
        with_line(STEP, correct="HUGE"): "correct is a huge number",
        with_line(STEP, correct=float("nan")): "NaN is not JSON", with_line(STEP, correct=[1]): "correct is [1]",
    },
    "times.jsonl": NO_LINES | GROWS | {with_line(STEP, **{"time/step": None}): "time/step is None"},
    "evals.jsonl": NO_LINES
    | GROWS
    | {
        with_line(ways.LOOK, sampled=None): "sampled is None",
        with_line(ways.LOOK, sampled={}): "it has no 'metrics'",
        with_line(ways.LOOK, greedy={"metrics": {"pass@1": None}}): "pass@1 is None",
        with_line(ways.LOOK, greedy={"metrics": {"pass@1": {"value": "x"}}}): "value is 'x'",
    },
    "alarms.jsonl": NO_LINES
    | GROWS
    | {with_line(ways.ALARM, step="x"): "step is 'x'", with_line(ways.ALARM, help=3): "help is 3"},
    "notes.jsonl": NO_LINES
    | GROWS
    | {with_line(ways.NOTE, rollout=None): "rollout is None"}
    | {with_line(ways.NOTE, time="LEFT OUT"): "it has no 'time'"},
    "lock": NOT_A_FILE | {missing: None, binary: None},
    "tokenizer.json": NOT_A_FILE | {missing: None, empty: None, binary: None, truncated: None, holding("{}"): None},
    "report.json": NOT_A_FILE
    | ways.NO_OBJECT
    | {missing: None, truncated: "is damaged", holding('{"after": {}}'): "is not a JSON object"},
    "rollouts": {
        missing: None, ways.plain_file: "is not a directory", ways.pipe: "is not a directory",
        ways.circle: "is a circle of links",
    },
    "checkpoints": {missing: None, ways.plain_file: "is not a directory", ways.pipe: "is not a directory"},
    "heldout": {missing: None, ways.plain_file: "is not a directory", ways.pipe: "is not a directory"},
}  # fmt: skip


ABOUT_A_RUN = [(query, arguments) for query, arguments in ways.QUESTIONS if "run" in arguments]


@ways.cases(RUNS)
def test_damaged_runs_are_rows_with_their_reasons_and_every_page_of_another_run_works(library, ask, table):
    damaged = ways.copies(library / "runs", table)
    faults = {row["name"]: row["fault"] for row in ask("runs")["runs"]}
    assert [faults.pop(name) for name in ("good", "fine", "bad")] == [None] * 3
    assert faults.keys() == damaged.keys()
    for name, (file, damage, reason) in damaged.items():
        fault = faults[name]
        is_named = fault is None if reason is None else reason in fault and file in fault
        assert is_named, (file, damage.__name__, fault)
    by_file = {}
    for name, (file, _, _) in damaged.items():
        by_file.setdefault(file, []).append(name)
    for name, *_ in by_file.values():  # the pages read as the list of runs does
        for query, arguments in ABOUT_A_RUN:
            ways.refused_at_most(ask, query, arguments | {"run": name})
        ways.refused_at_most(ask, "compare", {"runs": ["good", name]})
    for query, arguments in ways.QUESTIONS:
        ask(query, **arguments)


def test_the_overview_has_the_certificate_of_the_engine_s_weights(library, ask):
    assert ask("overview", run="bad")["weight_sync"] == str(ways.CERTIFICATE)
    missing(library / "runs" / "bad" / "sync.json")
    assert ask("overview", run="bad")["weight_sync"] is None


def test_links_that_come_while_the_dashboard_runs_are_refused(library, ask):
    assert ask("rollouts", run="bad")["total"] > 0
    ways.link_out(library / "runs" / "bad" / "rollouts" / "step-000001.parquet")
    with pytest.raises(ValueError, match="is a link that leads outside it"):
        ask("rollouts", run="bad")


def test_a_rollout_is_shown_without_its_tokens_where_the_tokenizer_is_damaged(library, ask):
    assert ask("rollout", run="bad", name="0.0.0")["tokens"] is not None
    binary(library / "runs" / "bad" / "tokenizer.json")
    answer = ask("rollout", run="bad", name="0.0.0")
    assert answer["tokens"] is None and "tokenizer.json is damaged" in answer["tokens_fault"]


# ------------------------------------------------------------------------------------------------------------ shards

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
    ways.pipe: "is no file but a named pipe",
    changed("completion", None): "it has no column 'completion'",
    changed("completion", [3]): "column 'completion' holds int64 values",
    changed("question", [None], pa.string()): "column 'question' has empty cells",
    changed("reward", [float("inf"), 1.0], pa.float32()): "column 'reward' holds a value that is not finite",
    changed("reward", ["1"]): "column 'reward' holds string values",
    changed("group", [None], pa.int32()): "column 'group' has empty cells",
    changed("tokens", ["x"]): "column 'tokens' holds string values",
    changed("token_ids", [["x"]]): "column 'token_ids' holds list<",
    changed("verdict", [b"\xff"]): "column 'verdict' holds binary values",
    changed("rewards", [[1.0]]): "column 'rewards' holds list<",
    changed("subject", [[1]]): "column 'subject' holds list<",
}
OPTIONAL = ("gold", "rewards", "extracted", "verifier", "finish", "token_ids", "tokens")
HARMLESS = [  # damages of one shard
    [
        changed("tokens", [None], pa.int32()), changed("advantage", [2**62], pa.int64()),
        changed("level", [2**62, -(2**62)], pa.int64()), changed("verifier", ["unknown"]), changed("gold", [""]),
        changed("group", [0, 1]),  # a group's rows do not follow each other
    ],
    [
        changed("verdict", ["unheard of"]), changed("gold", [None], pa.string()), changed("logprobs", None),
        changed("completion", [None, "text"], pa.string()),
        changed("token_ids", [[-1, 2**31 - 1]], pa.list_(pa.int32())),
    ],
    [changed(name, None) for name in OPTIONAL],
]  # fmt: skip


def test_a_damaged_shard_is_named_with_its_reason_and_the_others_are_shown(library, ask):
    table = [("rollouts/step-000001.parquet", damage, reason) for damage, reason in SHARDS.items()]
    for run, (_, damage, reason) in ways.copies(library / "runs", table).items():
        answer, case = ask("rollouts", run=run), damage.__name__
        assert (answer["total"], list(answer["faults"])) == (24, ["1"]) and reason in answer["faults"]["1"], case
        assert ask("rollout", run=run, name="2.0.0")["completion"], case


def test_a_shard_whose_texts_are_damaged_is_named_where_they_are_read(library, ask):
    no_utf8(library / "runs" / "bad" / "rollouts" / "step-000001.parquet")
    answer = ask("rollouts", run="bad", where={"text": "wait"})
    assert {row["step"] for row in answer["rows"]} == {0, 2} and list(answer["faults"]) == ["1"]
    assert until(lambda: ask("reflection", run="bad")["num_analyzed"] == 2)
    with pytest.raises(ValueError, match="step-000001"):
        ask("rollout", run="bad", name="1.0.0")


@pytest.mark.parametrize("damages", HARMLESS, ids=lambda damages: ", ".join(own.__name__ for own in damages))
def test_a_strange_value_in_a_shard_ends_no_page_of_its_run(library, ask, damages):
    for damage in damages:
        damage(library / "runs" / "bad" / "rollouts" / "step-000001.parquet")
    for query, arguments in ABOUT_A_RUN:
        ask(query, **arguments | {"run": "bad"})
    assert ask("rollouts", run="bad")["faults"] == {}
    assert until(lambda: ask("reflection", run="bad")["num_analyzed"] == 3)
    assert until(lambda: len(ask("failures", run="bad")["timeline"]) == 3)
    assert ask("disagreements", run="bad", steps="1")["rollouts"] == 12
    for row in ask("rollouts", run="bad", where={"step": "1"})["rows"]:
        assert ask("rollout", run="bad", name=row["name"])["completion"] is not None


@pytest.mark.parametrize(
    "name", ["step-99999999999999999999.parquet", "step-1.parquet", "step-٠٠٠٠٠٠.parquet", "step-x.parquet"]
)
def test_a_file_that_is_named_like_no_step_is_no_shard(library, ask, name):
    rollouts = library / "runs" / "bad" / "rollouts"
    shutil.copy(rollouts / "step-000001.parquet", rollouts / name)
    answer = ask("rollouts", run="bad")
    assert (answer["total"], answer["faults"]) == (36, {})


def test_a_checkpoint_with_an_invalid_name_is_not_listed(library, ask):
    (library / "runs" / "bad" / "checkpoints" / "step-abcdef").mkdir()
    assert {one["model"]: one["steps"] for one in ask("models")["models"]}["bad"] == ["2"]


# ------------------------------------------------------------------------------------------------ through the server


def test_half_a_pair_of_surrogates_reaches_the_page_as_its_escape(library):
    holding(SETTINGS.format('{"model": "half \\ud83d"}'))(library / "runs" / "bad" / "config.json")
    with client_of(library) as client:
        reply = client.post("/ask/runs", json={})
        assert reply.status_code == 200 and b"half \\ud83d" in reply.content
        json_type = {"content-type": "application/json"}
        refused = client.post("/ask/rollouts", content=b'{"run": "\\ud83d"}', headers=json_type)
        assert refused.status_code == 400 and "no run" in refused.json()["error"]
