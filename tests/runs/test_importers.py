"""Imports of dumps of TRL, verl and prime-rl, written here in the format of those trainers."""

import hashlib
import json
import subprocess
import sys

import pandas as pd
import pyarrow as pa
import pytest

from reasoner.runs import rollouts as store
from reasoner.runs.importers import READERS, import_run
from reasoner.runs.index import Filter, RolloutIndex
from reasoner.runs.metric_names import METRICS
from reasoner.runs.metrics import read_metrics
from verifiers import Verdict

WELL_FORMED = "<think>2 + 2 is 4</think> <answer>4</answer>"
BOXED = "<think>so</think> \\boxed{4}"
HOSTILE = "\x1b[2J \u202e <img src=x onerror=y> \u2028 \x00 ${a} $5 and $10 \U0001f600"


def trl_step(folder, step, rows, columns=("accuracy_reward", "format_reward")):
    """What GRPOTrainer.log writes: `rows` of (prompt, completion, rewards, advantage)."""
    prompts, completions, rewards, advantages = zip(*rows, strict=True)
    table = {
        "step": [step] * len(rows),
        "prompt": prompts,
        "completion": completions,
        **dict(zip(columns, zip(*rewards, strict=True), strict=True)),
        "advantage": advantages,
    }
    (folder / "completions").mkdir(parents=True, exist_ok=True)
    pd.DataFrame(table).to_parquet(folder / "completions" / f"completions_{step:05d}.parquet")


def lines(path, records):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in records))


def verl_line(prompt, output, score, step, **extra):
    return {"input": prompt, "output": output, "gts": "4", "score": score, "step": step, **extra}


def message(role, content, parent, *, token_ids=(), sampled=False, **more):
    """A node of a trace. Of a sampled message's tokens the first is the template's."""
    mask = [sampled and place > 0 for place in range(len(token_ids))]
    logprobs = [-0.5] * sum(mask)
    entry = {"message": {"role": role, "content": content, **more}, "sampled": sampled, "timestamp": 1.5}
    return entry | {"parent": parent, "token_ids": list(token_ids), "mask": mask, "logprobs": logprobs}


def trace(name, answer, score, **more):
    """A verifiers trace as its to_record has it."""
    return {
        "version": 1,
        "id": name,
        "task": {"type": "Task", "data": {"idx": 0, "prompt": "2 + 2?", "answer": "4"}, "key": "k", "hash": "h"},
        "agent": {"config": {"model": "m"}, "name": "agent", "trainable": True},
        "nodes": [
            message("system", "Think first.", None, token_ids=[1, 2]),
            message("user", "2 + 2?", 0, token_ids=[3]),
            message("assistant", answer, 1, token_ids=[4, 5, 6, 7], sampled=True),
        ],
        "calls": [{"node": 2, "finish_reason": "stop", "usage": {"prompt_tokens": 4, "completion_decode_steps": 3}}],
        "rewards": {"solved": {"score": score, "weight": 2.0}, "format": {"score": 1.0, "weight": 0.5}, "judge": None},
        "metrics": {"turns": 1.0},
        "info": {},
        "ok": True,
        "errors": [],
        **more,
    }


def episode(traces, step=0, kind="train"):
    work = {"type": kind, "step": step, "policy": {"start": 0, "end": 1}}
    about = {"env": {"id": "sums"}, "run": {"type": "train", "id": "r", "work": work}, "group": {"id": "g"}}
    return {
        "id": f"e-{traces[0]['id']}" if traces else "e",
        **about,
        "ok": bool(traces),
        "errors": [],
        "traces": traces,
    }


@pytest.fixture
def imported(tmp_path):
    """Imports the folder `dump` and gives back the run folder."""

    def run(system, name="run"):
        rollouts = import_run(system, tmp_path / "dump", tmp_path / "runs" / name)
        steps = [line["step"] for line in read_metrics(tmp_path / "runs" / name)]
        assert rollouts == sum(len(store.read(tmp_path / "runs" / name, step)) for step in steps)
        assert [path.name for path in (tmp_path / "runs").iterdir()] == [name]
        return tmp_path / "runs" / name

    return run


def columns(run, step, *names):
    return [tuple(row[name] for name in names) for row in store.read(run, step)]


# ------------------------------------------------------------------------------------------------ TRL


def test_trl_rows_are_grouped_by_prompt_and_scored_by_accuracy(tmp_path, imported):
    rows = [
        ("2 + 2?", WELL_FORMED, (1.0, 1.0), 0.7),
        ("3 + 3?", "6", (0.0, 0.0), 0.0),
        ("2 + 2?", "5", (0.0, 0.5), -0.7),
        ("3 + 3?", BOXED, (0.4, 0.0), 0.1),
    ]
    trl_step(tmp_path / "dump", 10, rows)
    trl_step(tmp_path / "dump", 9, rows[:1])
    run = imported("trl")
    places = columns(run, 10, "step", "group", "sample", "prompt", "verdict", "layer", "reward", "well_formed")
    assert places == [
        (10, 0, 0, "2 + 2?", "correct", "accuracy_reward", 2.0, True),
        (10, 0, 1, "2 + 2?", "wrong", "accuracy_reward", 0.5, False),
        (10, 1, 0, "3 + 3?", "wrong", "accuracy_reward", 0.0, False),
        (10, 1, 1, "3 + 3?", "wrong", "accuracy_reward", pytest.approx(0.4), True),
    ]
    first = store.read(run, 10)[0]
    assert dict(first["rewards"]) == {"accuracy_reward": 1.0, "format_reward": 1.0}
    assert first["advantage"] == pytest.approx(0.7) and first["source"] == "trl" and first["token_ids"] == []
    assert first["problem_id"] == hashlib.sha256(b"2 + 2?").hexdigest()[:16] == store.read(run, 9)[0]["problem_id"]
    assert first.keys() == set(store.SCHEMA.names)
    assert read_metrics(run)[1] == {
        "step": 10,
        "reward/mean": pytest.approx((2.0 + 0.5 + 0.0 + 0.4) / 4),
        "correct": 0.25,
        "well_formed": 0.5,
        "frac_reward_zero_std": 0.0,
    }
    assert [line["step"] for line in read_metrics(run)] == [9, 10]


def test_trl_conversations_become_texts_and_the_question_is_the_users_last(tmp_path, imported):
    messages = [{"role": "system", "content": "Think."}, {"role": "user", "content": "2 + 2?"}]
    said = [{"role": "assistant", "content": WELL_FORMED}]
    parts = [{"role": "user", "content": [{"type": "image", "text": None}, {"type": "text", "text": "What is it?"}]}]
    trl_step(tmp_path / "dump", 1, [(messages, said, (1.0, 1.0), 0.0)])
    trl_step(tmp_path / "dump", 2, [(parts, said, (1.0, 1.0), 0.0)])
    run = imported("trl")
    assert columns(run, 1, "prompt", "question", "completion") == [
        ("system:\nThink.\n\nuser:\n2 + 2?", "2 + 2?", WELL_FORMED)
    ]
    assert columns(run, 2, "question") == [("[image]\nWhat is it?",)]


def test_trl_files_may_lie_in_the_folder_itself(tmp_path, imported):
    trl_step(tmp_path, 3, [("2 + 2?", "4", (1.0, 0.0), 0.0)])
    (tmp_path / "completions").rename(tmp_path / "dump")
    assert columns(imported("trl"), 3, "step") == [(3,)]


def test_trl_folders_named_like_partitions_are_not_rewards(tmp_path):
    trl_step(tmp_path / "beta=7", 3, [("2 + 2?", "4", (1.0, 0.0), 0.0)])
    import_run("trl", tmp_path / "beta=7", tmp_path / "run")
    assert columns(tmp_path / "run", 3, "reward") == [(1.0,)]


def test_trl_logged_columns_are_read_or_ignored(tmp_path, imported):
    table = {"step": [1], "prompt": ["2 + 2?"], "completion": ["True"], "r": [1.0], "solution": ["$4$"]}
    (tmp_path / "dump").mkdir()
    frame = pd.DataFrame(table | {"answer_parsed": ["4"], "note": ["7"], "advantage": [0.0]})
    frame.to_parquet(tmp_path / "dump" / "completions_00001.parquet")
    (row,) = store.read(imported("trl"), 1)
    assert (row["gold"], row["extracted"], row["rewards"]) == ("$4$", "4", [("r", 1.0)])


def test_rollouts_without_a_score_are_left_out_of_means(tmp_path, imported):
    nothing = float("nan")
    rows = [("a", "x", (1.0, 0.0), 0.5), ("a", "y", (nothing, nothing), 0.0), ("a", "z", (nothing, 0.5), -0.5)]
    trl_step(tmp_path / "dump", 1, rows)
    run = imported("trl")
    values = columns(run, 1, "verdict", "reward", "rewards")
    assert values[1:] == [("refused", 0.0, []), ("refused", 0.5, [("format_reward", 0.5)])]
    assert read_metrics(run)[0]["reward/mean"] == 0.75 and read_metrics(run)[0]["correct"] == 1.0


# ------------------------------------------------------------------------------------------------ verl


def test_verl_acc_gives_the_verdict(tmp_path, imported):
    prompt = "system\nYou help.\nuser\nWhat is 2 + 2?\nassistant\n"
    records = [
        verl_line(prompt, WELL_FORMED, 1.0, 2, acc=True, pred="4"),
        verl_line(prompt, "5", -1.0, 2, acc=False, pred="5"),
        verl_line(prompt, "4", 0.5, 2, acc="True", pred=None, format_correct=0.0),
    ]
    lines(tmp_path / "dump" / "2.jsonl", records)
    lines(tmp_path / "dump" / "10.jsonl", records[:1])
    (tmp_path / "dump" / "notes.jsonl").write_text("not a step")
    run = imported("verl")
    assert [line["step"] for line in read_metrics(run)] == [2, 10]
    assert columns(run, 2, "verdict", "layer", "extracted", "gold", "question") == [
        ("correct", "acc", "4", "4", "What is 2 + 2?"),
        ("wrong", "acc", "5", "4", "What is 2 + 2?"),
        ("correct", "acc", None, "4", "What is 2 + 2?"),
    ]
    assert dict(store.read(run, 2)[0]["rewards"]) == {"score": 1.0, "acc": 1.0}
    mean = (1.0 - 1.0 + 0.5) / 3
    assert [a for (a,) in columns(run, 2, "advantage")] == pytest.approx([1 - mean, -1 - mean, 0.5 - mean])


@pytest.mark.parametrize(
    ("scores", "verdicts"),
    [
        ([1.0, 0.0, 0.0, 1.0], ["correct", "wrong", "wrong", "correct"]),
        ([0.1, -2.0, 0.1, 0.1], ["correct", "wrong", "correct", "correct"]),
        ([1.0, 0.5, 0.0, 0.0], ["refused"] * 4),
        ([1.0, 1.0, 1.0, 1.0], ["refused"] * 4),
    ],
)
def test_without_accuracy_the_higher_of_two_rewards_is_correct(tmp_path, imported, scores, verdicts):
    for step in range(2):
        own = scores[2 * step : 2 * step + 2]
        lines(tmp_path / "dump" / f"{step}.jsonl", [verl_line("q", str(s), s, step, length=7 * s) for s in own])
    run = imported("verl")
    assert [v for step in range(2) for (v,) in columns(run, step, "verdict")] == verdicts
    assert ("correct" in read_metrics(run)[0]) == ("refused" not in verdicts)
    assert set(verdicts) <= {str(verdict) for verdict in Verdict}


def test_gold_answers_of_any_shape_become_text(tmp_path, imported):
    golds = ["4", 4, ["4"], ["4", "four"], {"target": 4}, None]
    lines(tmp_path / "dump" / "0.jsonl", [verl_line("q", "", 1.0, 0) | {"gts": gold} for gold in golds])
    values = [gold for (gold,) in columns(imported("verl"), 0, "gold")]
    assert values == ["4", "4", "4", '["4", "four"]', '{"target": 4}', ""]


def test_a_think_tag_that_ends_the_prompt_belongs_to_the_completion(tmp_path, imported):
    outputs = ["so</think>\\boxed{4}", "<think>so</think>\\boxed{4}"]
    lines(tmp_path / "dump" / "0.jsonl", [verl_line("q <think>\n", output, 1.0, 0) for output in outputs])
    assert columns(imported("verl"), 0, "completion", "well_formed") == [("<think>so</think>\\boxed{4}", True)] * 2


@pytest.mark.parametrize(
    ("text", "is_well_formed"),
    [
        (WELL_FORMED, True),
        (BOXED, True),
        ("<think>\\boxed{4}</think> 4", False),
        ("</think> \\boxed{4}", False),
        ("<think> \\boxed{4}", False),
        ("<think>a</think> </answer> 4 <answer>", False),
        ("<think>" * 100_000, False),
    ],
)
def test_well_formed_requires_a_thought_before_an_answer(tmp_path, imported, text, is_well_formed):
    lines(tmp_path / "dump" / "0.jsonl", [verl_line("q", text, 1.0, 0)])
    assert columns(imported("verl"), 0, "well_formed") == [(is_well_formed,)]


# ------------------------------------------------------------------------------------------------ prime-rl


@pytest.mark.parametrize("layout", ["episodes", "traces", "run_default"])
def test_prime_rl_traces_have_tokens_weights_and_gold(tmp_path, imported, layout):
    shown = [trace("a", WELL_FORMED, 1.0), trace("b", "5", 0.0)]
    records = [episode([one]) for one in shown] if layout == "episodes" else shown
    folder = tmp_path / "dump" / ("run_default" if layout == "run_default" else "") / "rollouts" / "step_3" / "train"
    lines(folder / "effective" / "traces.jsonl", records)
    lines(folder / "all" / "traces.jsonl", [*records, episode([trace("c", "not trained on", 0.0)]), episode([])])
    lines(folder.parent / "eval" / "effective" / "traces.jsonl", records)
    run = imported("prime-rl")
    first, second = store.read(run, 3)
    assert (first["completion"], first["question"], first["gold"]) == (WELL_FORMED, "2 + 2?", "4")
    assert first["prompt"] == "system:\nThink first.\n\nuser:\n2 + 2?"
    assert (first["prompt_token_ids"], first["token_ids"], first["logprobs"]) == ([1, 2, 3, 4], [5, 6, 7], [-0.5] * 3)
    assert (first["reward"], second["reward"], dict(first["rewards"])) == (2.5, 0.5, {"solved": 1.0, "format": 1.0})
    assert (first["advantage"], second["advantage"], first["finish"]) == (1.0, -1.0, "stop")
    assert (first["verdict"], second["verdict"], first["layer"]) == ("correct", "wrong", "reward")
    assert first["policy_version"] == (0 if layout == "episodes" else None)
    assert read_metrics(run)[0]["completions/mean_length"] == 3


def test_prime_rl_without_batches_takes_all_rollouts_of_trained_agents(tmp_path, imported):
    judge = trace("j", "fine", 1.0, agent={"name": "judge", "trainable": False})
    failed = trace("f", "", 0.0, rewards={"correct": None}, nodes=[])
    lines(
        tmp_path / "dump" / "rollouts" / "step_0" / "train" / "all" / "traces.jsonl",
        [episode([trace("a", "4", 1.0, metrics={"correct_answer": 1.0}), judge]), episode([]), episode([failed])],
    )
    values = columns(imported("prime-rl"), 0, "prompt", "completion", "verdict", "layer", "reward")
    assert values == [
        ("system:\nThink first.\n\nuser:\n2 + 2?", "4", "correct", "correct_answer", 2.5),
        ("2 + 2?", "", "refused", "", 0.0),
    ]


def test_prime_rl_several_turns_are_one_completion_of_the_last_branch(tmp_path, imported):
    nodes = [
        message("user", "2 + 2?", None, token_ids=[1]),
        message("assistant", "dropped", 0, token_ids=[9, 9], sampled=True),
        message(
            "assistant", None, 0, token_ids=[2, 3], sampled=True, reasoning_content="a tool", tool_calls=[{"a": 1}]
        ),
        message("tool", "4", 2, token_ids=[4]),
        message("assistant", "\\boxed{4}", 3, token_ids=[5, 6], sampled=True),
    ]
    lines(tmp_path / "dump" / "step_0" / "train" / "all" / "traces.jsonl", [trace("a", "", 1.0, nodes=nodes)])
    (row,) = store.read(imported("prime-rl"), 0)
    assert (row["prompt_token_ids"], row["token_ids"], row["logprobs"]) == ([1, 2], [3, 6], [-0.5, -0.5])
    thought = 'assistant:\n<think>\na tool\n</think>\n\n{"a": 1}'
    assert row["completion"] == f"{thought}\n\ntool:\n4\n\nassistant:\n\\boxed{{4}}" and row["well_formed"]


def test_prime_rl_reads_older_layouts(tmp_path, imported):
    output = {
        "example_id": 7,
        "prompt": [{"role": "user", "content": "2 + 2?"}],
        "completion": [{"role": "assistant", "content": "4"}],
        "answer": "4",
        "reward": 1.25,
        "metrics": {"correct_answer": 1.0, "format": 0.25},
        "is_truncated": True,
    }
    early = trace("a", "5", 0.0, rewards={"correct": 0.0}, task={"prompt": "2 + 2?", "answer": "4"}, policy_version=6)
    lines(tmp_path / "dump" / "rollouts" / "step_1" / "train_rollouts.jsonl", [output, early])
    values = columns(imported("prime-rl"), 1, "verdict", "reward", "gold", "finish", "policy_version")
    assert values == [("correct", 1.25, "4", "length", None), ("wrong", 0.0, "4", "stop", 6)]


def stream(folder, *, is_annotated):
    """Three training episodes that arrive in another order than they are shipped, and one of an evaluation."""
    traces = folder / "monitors" / "file" / "traces"
    info = {"kind": "train", "arrival": {"step": 4, "time": 1.0}}
    records = [
        *(
            episode([trace(name, "4", score, info=info)], step=2)
            for name, score in (("a", 1.0), ("b", 0.0), ("c", 0.0))
        ),
        episode([trace("d", "4", 1.0, info=info | {"kind": "eval"})], step=2, kind="eval"),
    ]
    text = [json.dumps(record).encode() + b"\n" for record in records]
    (traces / "stream").mkdir(parents=True)
    skipped = b"\x5e\x2a\x4d\x18\x04\x00\x00\x00seek"  # the table of a seekable file is a frame to skip
    frames = [pa.compress(line, "zstd", asbytes=True) for line in text[:2]]
    (traces / "stream" / "00000.jsonl.zst").write_bytes(b"".join(frames) + skipped)
    (traces / "stream" / "00001.jsonl").write_bytes(b"".join(text[2:]))
    lines(traces / "stream.index.jsonl", [{"line": 1}])
    if is_annotated:
        shipped = {"a": (6, 0.5), "b": (5, -0.5)}
        updates = [
            {"version": 1, "trace_id": name, "info": {"effective": True, "ship": {"step": step}, "advantage": value}}
            for name, (step, value) in shipped.items()
        ]
        lines(traces / "annotations" / "orchestrator" / "00000.jsonl", updates)
        lines(traces / "annotations" / "trainer" / "00000.jsonl", [{"trace_id": "c", "info": {"effective": True}}])


def test_prime_rl_stream_is_sorted_into_the_steps_that_trained_on_it(tmp_path, imported):
    stream(tmp_path / "dump", is_annotated=True)
    run = imported("prime-rl")
    assert [line["step"] for line in read_metrics(run)] == [5, 6]
    assert columns(run, 5, "reward", "advantage", "step") == [(0.5, -0.5, 5)]
    assert columns(run, 6, "reward", "advantage", "step") == [(2.5, 0.5, 6)]


def test_prime_rl_stream_without_annotations_takes_all_rollouts(tmp_path, imported):
    stream(tmp_path / "dump", is_annotated=False)
    assert columns(imported("prime-rl"), 4, "reward") == [(2.5,), (0.5,), (0.5,)]


# ------------------------------------------------------------------------------------------------ all of them


def test_hostile_text_round_trips_and_lone_surrogates_are_replaced(tmp_path, imported):
    hostile = HOSTILE + "\ud800"  # json.dumps writes it as \ud800, which json.loads gives back
    record = verl_line(hostile, hostile, 1.0, 0) | {"gts": hostile, "pred": hostile, "\ud800": 1.0, "huge": 10**400}
    lines(tmp_path / "dump" / "0.jsonl", [record])
    with (tmp_path / "dump" / "0.jsonl").open("ab") as file:
        file.write(b'{"input": "bytes \xff", "output": "", "score": NaN}\n')
    first, second = store.read(imported("verl"), 0)
    whole = HOSTILE + "\ufffd"
    assert [first[name] for name in ("prompt", "question", "completion", "gold", "extracted")] == [whole] * 5
    assert dict(first["rewards"]) == {"score": 1.0, "\ufffd": 1.0}
    assert (second["prompt"], second["rewards"], second["verdict"]) == ("bytes \ufffd", [], "refused")


def test_prime_rl_hostile_conversation_is_imported_as_text(tmp_path, imported):
    nodes = [
        message("\ud800", "\udfff", None),
        message("user", HOSTILE, 0),
        message("assistant", "\udc00", 1, sampled=True),
    ]
    lines(
        tmp_path / "dump" / "rollouts" / "step_0" / "train" / "all" / "traces.jsonl", [trace("a", "", 1.0, nodes=nodes)]
    )
    values = columns(imported("prime-rl"), 0, "prompt", "completion")
    assert values == [(f"\ufffd:\n\ufffd\n\nuser:\n{HOSTILE}", "\ufffd")]


def test_an_imported_run_can_be_indexed(tmp_path, imported):
    rows = [("q1", WELL_FORMED, (1.0, 1.0), 0.7), ("q2", "waiting", (0.0, 0.0), 0.0), ("q1", "", (0.0, 0.0), -0.7)]
    for step in (3, 5):
        trl_step(tmp_path / "dump", step, rows)
    run = imported("trl")
    index = RolloutIndex(run)
    assert index.refresh() == 6 and index.faults() == {}
    assert [one.name for one in index.page()] == ["3.0.0", "3.0.1", "3.1.0", "5.0.0", "5.0.1", "5.1.0"]
    assert [one.name for one in index.page(Filter(verdict="correct", first_step=4))] == ["5.0.0"]
    assert [one.name for one in index.page(Filter(text="waiting"))] == ["3.1.0", "5.1.0"]
    assert index.rollout(index.find("5.1.0").id) == store.read(run, 5)[2]
    index.close()


def test_import_records_its_origin_in_config_and_versions(tmp_path, imported):
    lines(tmp_path / "dump" / "0.jsonl", [verl_line("q", "4", 1.0, 0)])
    run = imported("verl")
    stored = json.loads((run / "config.json").read_text())
    assert stored == {"format": 2, "config": {"model": "?", "imported": "verl", "source": "dump"}, "origin": {}}
    assert json.loads((run / "versions.json").read_text()) == {"imported_from": "verl"}
    assert read_metrics(run)[0].keys() <= METRICS.keys()
    assert sorted(path.name for path in run.iterdir()) == ["config.json", "metrics.jsonl", "rollouts", "versions.json"]


DAMAGES = [
    ("verl", "1.jsonl", '{"input": "q", "output": "4", "score": 1}\n{"input": ', "1.jsonl, line 2: "),
    ("verl", "1.jsonl", "\n[1]\n", "1.jsonl, line 2: not a JSON object"),
    ("verl", "1.jsonl", '{"input": "q", "output": "4"}\n', "1.jsonl, line 1: no 'score'"),
    ("verl", "1.jsonl", "[" * 100_000 + "\n", "1.jsonl, line 1: "),
    ("trl", "completions_00001.parquet", "PAR1 torn", "completions_00001.parquet: "),
    ("prime-rl", "rollouts/step_1/train/all/traces.jsonl", '{"nodes": 3, "rewards": {}}\n', "traces.jsonl, line 1: "),
    ("prime-rl", "rollouts/step_1/train/all/traces.jsonl", '{"traces": [7]}\n', "traces.jsonl, line 1: "),
    ("prime-rl", "rollouts/step_1/train_rollouts.jsonl", '{"a": 1}\n', "train_rollouts.jsonl, line 1: no 'reward'"),
    ("prime-rl", "traces/stream/00000.jsonl.zst", "no frame", "00000.jsonl.zst: "),
    ("verl", "notes.txt", "", "has no rollouts that verl dumped"),
    ("trl", "1.jsonl", "{}", "has no rollouts that trl dumped"),
    ("prime-rl", "rollouts/step_1/train/all/traces.jsonl", "", "has no rollouts that prime-rl dumped"),
    ("nemo", "notes.txt", "", "unknown system 'nemo'; known are trl, verl, prime-rl"),
]


@pytest.mark.parametrize(("system", "name", "text", "complaint"), DAMAGES)
def test_an_unreadable_dump_is_refused_with_its_place_and_leaves_no_folder(tmp_path, system, name, text, complaint):
    path = tmp_path / "dump" / name
    path.parent.mkdir(parents=True)
    path.write_text(text)
    with pytest.raises(ValueError) as caught:
        import_run(system, tmp_path / "dump", tmp_path / "runs" / "a")
    assert complaint in str(caught.value) and "\n" not in str(caught.value)
    assert not list(tmp_path.glob("runs/*"))


def test_an_import_that_fails_late_leaves_no_folder(tmp_path):
    for step in range(3):
        lines(tmp_path / "dump" / f"{step}.jsonl", [verl_line("q", "4", step, step)])
    (tmp_path / "dump" / "3.jsonl").write_text('{"input": 1')
    with pytest.raises(ValueError, match=r"3\.jsonl, line 1"):
        import_run("verl", tmp_path / "dump", tmp_path / "runs" / "a")
    assert not list(tmp_path.glob("runs/*"))


def test_folders_that_are_missing_or_in_use_are_refused(tmp_path):
    lines(tmp_path / "dump" / "0.jsonl", [verl_line("q", "4", 1.0, 0)])
    with pytest.raises(ValueError, match="nowhere: there is no such folder"):
        import_run("verl", tmp_path / "nowhere", tmp_path / "run")
    (tmp_path / "run").mkdir()
    assert import_run("verl", tmp_path / "dump", tmp_path / "run") == 1  # an empty folder is free
    before = (tmp_path / "run" / "config.json").stat().st_mtime_ns
    with pytest.raises(ValueError, match="run is in use"):
        import_run("verl", tmp_path / "dump", tmp_path / "run")
    assert (tmp_path / "run" / "config.json").stat().st_mtime_ns == before


def test_importers_need_no_torch():
    code = "import sys, reasoner.runs.importers; sys.exit(bool({'torch', 'transformers'} & set(sys.modules)))"
    assert list(READERS) == ["trl", "verl", "prime-rl"]
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
