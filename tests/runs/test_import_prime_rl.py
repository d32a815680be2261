"""Rollouts that prime-rl wrote, as a run."""

import json

import pyarrow as pa
import pytest

from reasoner.runs import rollouts as store
from reasoner.runs.metrics import read_metrics
from tests.runs.foreign_files import HOSTILE, WELL_FORMED, columns, episode, lines, message, trace


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
