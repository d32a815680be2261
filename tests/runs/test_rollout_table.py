"""The table of rollouts: its answers agree with the shards, also when they change or are damaged."""

import json
import shutil
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from reasoner.cli.main import main
from reasoner.runs import rollouts as store
from reasoner.runs.filters import ALL, Filter, read_filter
from reasoner.runs.rollout_table import RolloutTable
from reasoner.runs.run_start import open_run
from tests.fixtures.rollouts import group

CHECKED = "I see. Wait, let me check 5 * 3."
TEXTS = [CHECKED, "the answer is \\boxed{7}", "", "waiter \x1b[2J \u202e <img src=x onerror=y>"]


def write(run, step, texts=TEXTS):
    """Two groups of two; the first sample of each is right."""
    said = list(zip(texts, [True, False] * 2, strict=True))
    groups = [group(f"p{number}", "4", said[2 * number : 2 * number + 2]) for number in range(2)]
    store.write_step(run, step, groups, [0.5, -0.5, 1.0, -1.0])


@pytest.fixture
def run(tmp_path):
    path = tmp_path / "runs" / "a"
    open_run(path, {}, {}, resuming=False)
    for step in range(3):
        write(path, step)
    return path


@pytest.fixture
def table(run):
    return RolloutTable(run)


def rows(run):
    return [row for step in range(3) for row in store.read(run, step)]


def test_table_has_every_rollout_and_reads_it_back_complete(run, table):
    result = table.page()
    assert [one.name for one in result[:4]] == ["0.0.0", "0.0.1", "0.1.0", "0.1.1"]
    assert [table.rollout(one.id) for one in result] == rows(run)
    expected = [(row["reward"], len(row["token_ids"]), row["problem_id"]) for row in rows(run)]
    assert [(one.reward, one.tokens, one.problem) for one in result] == expected


def test_a_renewed_table_has_new_rewritten_and_removed_shards_and_keeps_the_others(run, table):
    assert table.renewed() is table
    write(run, 3)
    write(run, 1, ["fresh words here", "", "", ""])
    store.shard_path(run, 2).unlink()
    renewed = table.renewed()
    assert [shard.step for shard in renewed.shards] == [0, 1, 3] and renewed.count() == 12
    assert renewed.shards[0] is table.shards[0]
    assert [one.step for one in renewed.page(Filter(text="fresh"))] == [1]
    assert table.count() == 12 and table.count(Filter(step=(3, 3))) == 0  # that of then


def test_sums_are_the_same_where_shards_come_one_by_one_and_the_first_ones_last(run, tmp_path):
    for step in range(3, 8):
        write(run, step)
    table, other = RolloutTable(run), tmp_path / "other"
    (other / "rollouts").mkdir(parents=True)
    late = RolloutTable(other)
    for step in (3, 4, 1, 7, 0, 6, 2, 5):
        shutil.copy(store.shard_path(run, step), store.shard_path(other, step))
        late = late.renewed()
        assert sum(group["size"] for group in late.groups) == late.count()
    assert (late.groups, late.steps) == (table.groups, table.steps)


def test_findings_are_kept_until_the_shard_has_other_content(run, table):
    found = pa.table({"id": pa.array([2**24], pa.int64()), "cause": ["repeated"]})
    assert table.analyse("failures", lambda shard: (found, {"tokens": 7}), limit=2) == 2
    assert [one.name for one in RolloutTable(run).page(Filter(failure="repeated"))] == ["1.0.0"]
    (shard, again), *_ = RolloutTable(run).analysed("failures")
    assert again.schema.metadata[b"tokens"] == b"7" and shard.step == 0
    write(run, 1, ["fresh words here", "", "", ""])
    assert [shard.step for shard in RolloutTable(run).lacking("failures")] == [1, 2]
    for path in (run / "analysis").iterdir():
        path.write_bytes(path.read_bytes()[:-9])
    assert len(RolloutTable(run).lacking("failures")) == 3


def reasoner(capsys, *arguments):
    status = main(["rollouts", *map(str, arguments)])
    return status, capsys.readouterr()


def test_rollouts_command_lists_searches_and_shows(run, capsys):
    status, said = reasoner(capsys, "list", run, "--step", "1:", "--verdict", "correct", "--limit", 3)
    assert status == 0 and "3 of 4 rollouts" in said.out and "1.0.0" in said.out and "0.0.0" not in said.out
    status, said = reasoner(capsys, "list", run, "--text", "wait,", "--step", 2)
    assert "2.0.0" in said.out and "Wait, let me check" in said.out and "1 of 1 rollouts" in said.out
    status, said = reasoner(capsys, "show", run, "2.1.1")
    assert "What is p1?" in said.out and "advantage  -1.000" in said.out
    assert "\x1b" not in said.out and "\u202e" not in said.out and "<img src=x onerror=y>" in said.out


def test_completions_are_none_where_the_shard_is_missing_and_its_step_is_named(run, table, capsys):
    ids = table.ids()
    store.shard_path(run, 1).write_bytes(b"torn")
    store.shard_path(run, 2).unlink()
    assert table.completions([ids[2], ids[4], ids[0], ids[8], ids[3]]) == [TEXTS[2], None, TEXTS[0], None, TEXTS[3]]
    assert table.count(Filter(text="wait")) == 2 and list(table.faults()) == [1, 2]
    with pytest.raises(ValueError, match="step-000001"):
        table.rollout(ids[4])
    status, said = reasoner(capsys, "list", run)
    assert status == 0 and "the rollouts of step 1 cannot be read" in said.err and "0.0.0" in said.out


@pytest.mark.parametrize("suffix", [".jsonl", ".parquet"])
def test_exports_hold_the_matching_rollouts(run, tmp_path, capsys, suffix):
    path = tmp_path / f"out{suffix}"
    status, said = reasoner(capsys, "export", run, path, "--problem", "p1")
    assert status == 0 and said.out.startswith("6 rollouts")
    if suffix == ".jsonl":
        result = [json.loads(line) for line in path.read_text().splitlines()]
        assert [row["problem_id"] for row in result] == ["p1"] * 6 and result[0]["rewards"]["correct"] == 1
    else:
        assert store.rows_of(pq.read_table(path)) == [row for row in rows(run) if row["problem_id"] == "p1"]


def test_an_export_has_the_columns_of_calls_where_the_first_shards_have_none(run, tmp_path, capsys):
    rows = [row | {"observation_tokens": [1, 2]} for row in store.read(run, 2)]
    store.write_shard(store.shard_path(run, 2), rows)
    for step in range(3, 300):  # more rows than are written at once
        store.shard_path(run, step).write_bytes(store.shard_path(run, 0).read_bytes())
    store.shard_path(run, 300).write_bytes(store.shard_path(run, 2).read_bytes())
    assert reasoner(capsys, "export", run, tmp_path / "out.parquet", "--step", "3:")[0] == 0
    assert pq.read_table(tmp_path / "out.parquet")["observation_tokens"].to_pylist()[-1] == [1, 2]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["show", "{run}", "12"], "is not the name of a rollout"),
        (["show", "{run}", "9.9.9"], "has no rollout 9.9.9"),
        (["list", "{run}", "--step", "x"], "step is 'x'; it must be a number, or LOW:HIGH"),
        (["list", "{run}", "--step", "7"], "has only rollouts of the steps 0 to 2"),
        (["list", "{run}", "--verdict", "corect"], "verdict is 'corect'; it must be one of correct, wrong, no_answer"),
        (["export", "{run}", "{run}.jsonl", "--finish", "stopped"], "it must be one of stop, length, abort"),
        (["list", "{run}", "--subject", "sumz"], "has no subject 'sumz'; did you mean 'sums'?"),
        (["list", "{run}", "--level", "9"], "has no level '9'; it has 1"),
        (["list", "{run}", "--tokens", "9" * 23], "with either left out (at most 9,223,372,036,854,775,807)"),
        (["list", "{run}", "--limit", "0"], "--limit is 0; it must be at least 1"),
        (["list", "nothing"], "no run 'nothing'"),
        (["export", "{run}", "x.csv"], "unknown kind of file '.csv'"),
    ],
)
def test_bad_input_prints_one_line_and_exits_with_two(run, capsys, arguments, message):
    status, said = reasoner(capsys, *(argument.replace("{run}", str(run)) for argument in arguments))
    assert status == 2 and message in said.err and said.err.count("\n") == 1


@pytest.mark.parametrize(
    ("text", "number"), [("1.1", 3), ("1.1:", 4), (":1.1", 11), ("0.3:1.1", 7), ("1e300", 0), ("-1:1e300", 12)]
)
def test_a_reward_is_found_by_the_number_that_is_shown(run, text, number):
    for step, rewards in enumerate([(0.0, 0.3, 1.1, 2.0), (0.1, 0.3, 1.1, 1.0), (0.0, 0.1, 0.3, 1.1)]):
        own = store.read(run, step)
        store.write_shard(store.shard_path(run, step), [{**a, "reward": b} for a, b in zip(own, rewards, strict=True)])
    assert RolloutTable(run).count(read_filter({"reward": text})) == number


def test_a_run_without_shards_has_no_rollouts_groups_or_steps(tmp_path):
    open_run(tmp_path / "a", {}, {}, resuming=False)
    table = RolloutTable(tmp_path / "a")
    assert [table.page(), table.page(Filter(text="wait"), order="-tokens"), table.groups, table.steps] == [[]] * 4


def test_a_shard_without_rows_has_no_groups(run):
    path = store.shard_path(run, 1)
    pq.write_table(pq.read_table(path).slice(0, 0), path)
    table = RolloutTable(run)
    assert table.faults() == {} and len(table.groups) == 4 and [row["step"] for row in table.steps] == [0, 2]


def test_a_rollout_without_its_tokens_reads_no_column_of_them(table, monkeypatch):
    columns = []
    read = pq.ParquetFile.read
    monkeypatch.setattr(pq.ParquetFile, "read", lambda file, names: (columns.extend(names), read(file, names))[1])
    row = table.rollout(table.ids()[5], with_tokens=False)
    assert not {"token_ids", "logprobs", "prompt"} & {*columns}
    whole = table.rollout(table.ids()[5])
    assert {"completion", "question", "gold", "verdict", "verifier", "rewards", "tokens"} <= row.keys()
    assert {name: row[name] for name in whole if name in row} == {name: whole[name] for name in whole if name in row}


def test_a_question_is_in_memory_once_for_all_rollouts_of_a_step(run):
    one, question = group("p", "4", [(str(number), True) for number in range(64)]), "How many? " * 1000
    prompt = replace(one.prompt, problem=replace(one.prompt.problem, question=question))
    store.write_step(run, 3, [replace(one, prompt=prompt)], [0.0] * 64)
    table = RolloutTable(run)
    assert table.rows(ALL).nbytes < 3 * len(question)
    assert table.groups[-1]["question"] == question and table.groups[0]["question"] == "What is p0?"


def test_control_characters_of_a_problem_reach_no_terminal(run, capsys):
    store.write_step(run, 3, [group("p\x1b[2J\nq", "4", [("x", True)])], [0.0])
    status, said = reasoner(capsys, "list", run, "--step", 3)
    assert status == 0 and "\x1b" not in said.out and "p\\x1b[2J\\nq" in said.out
    status, said = reasoner(capsys, "list", run, "--problem", "zzzzzzzz")
    assert status == 2 and "\x1b" not in said.err and "p\\x1b[2J" in said.err


def test_a_folder_without_rollouts_is_refused(tmp_path):
    with pytest.raises(ValueError, match="has no rollouts"):
        RolloutTable(tmp_path)
