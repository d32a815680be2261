"""Lists of rollouts, one of them, groups and differences: all as the shards have them."""

import re
from itertools import pairwise
from statistics import fmean, pstdev

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.differences import word_difference
from reasoner.runs import rollouts as store
from tests.app.library_of import (
    PROBLEMS,
    STEPS,
    TEXTS,
    grouped,
    num_right,
    open_run,
    write_step,
)  # fmt: skip


def between(name, kind):
    """(what is typed, predicate) of a bound on a column."""
    bound = st.one_of(st.none(), kind)

    def made(pair):
        low, high = pair
        text = f"{'' if low is None else low}:{'' if high is None else high}"
        return text, lambda row: (low is None or row[name] >= low) and (high is None or row[name] <= high)

    return st.tuples(bound, bound).filter(lambda pair: None in pair or pair[0] <= pair[1]).map(made)


def equal(name, values, written=str):
    return st.sampled_from(values).map(lambda value: (written(value), lambda row: row[name] == value))


FILTERS = {
    "step": between("step", st.integers(-1, STEPS)),
    "reward": between("reward", st.sampled_from([0.0, 0.1, 0.2, 1.0, 1.2])),
    "tokens": between("tokens", st.integers(4, 30)),
    "problem": equal("problem_id", [*(problem.id for problem in PROBLEMS), "nothing"]),
    "subject": equal("subject", ["sums", "words", "nothing"]),
    "level": equal("level", [1, 2, 3]),
    "verdict": equal("verdict", ["correct", "wrong", "malformed", "no_answer", "timed_out"]),
    "correct": st.booleans().map(lambda yes: ("yes" if yes else "no", lambda r: (r["verdict"] == "correct") is yes)),
    "finish": equal("finish", ["stop", "length"]),
    "label": equal("labels", ["cue", "self-correction", "aha"]).map(
        lambda made: (made[0], lambda row: made[0] in row["labels"])
    ),
    "text": st.sampled_from(sorted(TEXTS)).map(
        lambda text: (text, lambda row: TEXTS[text](re.findall(r"\w+", row["completion"].lower())))
    ),
}
wheres = st.fixed_dictionaries({}, optional=FILTERS)


def chosen(rows, labels, where):
    found = [row | {"labels": labels[row["name"]]} for row in rows]
    return [row for row in found if all(holds(row) for _, holds in where.values())]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=wheres)
def test_filters_compose_as_conditions_in_python_do(asked, rows, labels, where):
    expected = chosen(rows, labels, where)
    found = asked("rollouts", run="whole", where={name: text for name, (text, _) in where.items()}, limit=500)
    assert [row["name"] for row in found["rows"]] == [row["name"] for row in expected]
    assert found["total"] == len(expected)


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(where=wheres, near=st.integers(0, 12 * STEPS - 1))
def test_the_place_of_a_rollout_is_how_many_of_the_filter_stand_before_it(asked, rows, labels, where, near):
    expected = {row["name"] for row in chosen(rows, labels, where)}
    found = asked(
        "rollouts",
        run="whole",
        where={name: text for name, (text, _) in where.items()},
        near=rows[near]["name"],
        limit=0,
    )
    assert found["place"] == sum(row["name"] in expected for row in rows[:near])


ORDERS = {
    "step": lambda row: 0,
    "-step": lambda row: (-row["step"], -row["group"], -row["sample"]),
    "tokens": lambda row: row["tokens"],
    "-tokens": lambda row: -row["tokens"],
    "reward": lambda row: row["reward"],
    "-reward": lambda row: -row["reward"],
}


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("where", [{}, {"correct": "no"}])
def test_pages_of_any_order_follow_one_another(asked, rows, order, where):
    expected = sorted((row for row in rows if not where or row["verdict"] != "correct"), key=ORDERS[order])
    pages = [
        asked("rollouts", run="whole", where=where, order=order, offset=offset, limit=7)
        for offset in range(0, len(expected) + 7, 7)
    ]
    assert [row["name"] for page in pages for row in page["rows"]] == [row["name"] for row in expected]
    assert {page["total"] for page in pages} == {len(expected)}


def test_a_row_of_the_list_is_the_rollout_s(asked, rows):
    found = asked("rollouts", run="whole", limit=500)
    for one, row in zip(found["rows"], rows, strict=True):
        for name, column in [("problem", "problem_id"), *((n, n) for n in ("group", "sample", "reward", "tokens"))]:
            assert one[name] == row[column]
        assert one["answer"] == (row["extracted"] or "") and one["well_formed"] == row["well_formed"]
        assert " ".join(row["completion"].removeprefix("<think>").split()).startswith(one["head"])
    assert (found["indexed"], found["shards"], found["faults"]) == (STEPS, STEPS, {})


def test_one_rollout_is_all_that_its_shard_has(asked, rows, labels):
    seen = [[step, group] for (step, group), own in grouped(rows, "step", "group").items()]
    problem_of = {(row["step"], row["group"]): row["problem_id"] for row in rows}
    for row in rows[::7]:
        found = asked("rollout", run="whole", name=row["name"])
        for name in ("question", "gold", "prompt", "completion", "verdict", "extracted", "reward", "advantage"):
            assert found[name] == row[name]
        assert found["rewards"] == dict(row["rewards"]) and found["num_tokens"] == row["tokens"]
        mates = [mate for mate in rows if (mate["step"], mate["group"]) == (row["step"], row["group"])]
        assert [(mate["sample"], mate["reward"], mate["verdict"]) for mate in found["mates"]] == [
            (mate["sample"], mate["reward"], mate["verdict"]) for mate in mates
        ]
        assert [[visit["step"], visit["grp"]] for visit in found["seen"]] == [
            place for place in seen if problem_of[tuple(place)] == row["problem_id"]
        ]
        assert [span["label"] for span in found["spans"]] == labels[row["name"]]
        start, end = found["think"]
        assert f"<think>{row['completion'][start:end]}</think>" in row["completion"]


def test_rendered_texts_lose_nothing(asked, rows):
    found = asked("rollout", run="whole", name=rows[5]["name"], rendered=True)["rendered"]
    for name in ("question", "completion"):
        assert "".join(p if isinstance(p, str) else p["source"] for p in found[name]) == rows[5][name]


def test_the_tokens_of_a_rollout_are_its_text(fresh):
    from tokenizers import Tokenizer
    from tokenizers.decoders import ByteLevel
    from tokenizers.models import BPE
    from tokenizers.pre_tokenizers import ByteLevel as Bytes

    runs, asked = fresh
    run = runs / "a"
    open_run(run, steps=1)
    tokenizer = Tokenizer(BPE({sign: number for number, sign in enumerate(sorted(Bytes.alphabet()))}, []))
    tokenizer.pre_tokenizer, tokenizer.decoder = Bytes(add_prefix_space=False), ByteLevel()
    tokenizer.save(str(run / "tokenizer.json"))
    write_step(run, 0)
    told = "π ≈ 3, naïve 🎉 </think> <answer> 4 </answer>"  # letters of several tokens each
    ids = tokenizer.encode(told).ids
    changed = store.read(run, 0)
    changed[0] |= {"completion": "<think>" + told, "token_ids": ids, "logprobs": [-0.25] * len(ids), "tokens": len(ids)}
    changed[1] |= {"token_ids": []}
    store.write_shard(store.shard(run, 0), changed)
    found = asked("rollout", run="a", name="0.0.0")["tokens"]
    assert found["prefill"] == "<think>" and "".join(found["pieces"]) == told
    assert len(found["pieces"]) == len(found["logprobs"]) == len(ids) > len(told)
    assert asked("rollout", run="a", name="0.0.1")["tokens"] is None


# --------------------------------------------------------------------------------------------------------------- groups


def test_a_group_s_mean_deviation_and_answers_are_those_of_its_members(asked, rows):
    for (step, group), own in grouped(rows, "step", "group").items():
        found = asked("group", run="whole", step=step, group=group)
        rewards = [row["reward"] for row in own]
        assert found["mean"] == pytest.approx(fmean(rewards)) and found["std"] == pytest.approx(pstdev(rewards))
        assert (found["std"] == 0) == (len(set(rewards)) == 1)
        assert found["correct"] == num_right(own)
        assert [member["name"] for member in found["members"]] == [row["name"] for row in own]
        assert [member["completion"] for member in found["members"]] == [row["completion"] for row in own]
        assert [member["advantage"] for member in found["members"]] == [row["advantage"] for row in own]
        assert found["unique_answers"] == len({row["extracted"] for row in own})
        assert found["duplicates"] == len(own) - len({row["completion"].strip() for row in own})
        assert (found["question"], found["gold"]) == (own[0]["question"], own[0]["gold"])
        assert (found["groups"], found["algorithm"]) == ([0, 2], "grpo")


def test_rewards_that_differ_by_rounding_alone_have_no_deviation(fresh):
    runs, asked = fresh
    open_run(runs / "a", steps=1)
    write_step(runs / "a", 0)
    changed = store.read(runs / "a", 0)
    for row in changed[:4]:
        row["reward"] = 0.7 + 1e-6 * row["sample"]
    store.write_shard(store.shard(runs / "a", 0), changed)
    assert asked("group", run="a", step=0, group=0)["std"] == 0


# ---------------------------------------------------------------------------------------------------------- differences

texts = st.text(st.sampled_from("ab 1+=\n\té<"), max_size=60)


@settings(deadline=None)
@given(a=texts, b=texts)
def test_both_texts_can_be_put_together_from_their_difference(a, b):
    pieces = word_difference(a, b)
    for side, text in (("a", a), ("b", b)):
        assert "".join(piece for kind, piece in pieces if kind in ("same", side)) == text
    assert all(before[0] != after[0] for before, after in pairwise(pieces))


@settings(deadline=None)
@given(text=texts.filter(bool))
def test_the_same_text_twice_is_one_piece(text):
    assert word_difference(text, text) == [("same", text)]


def test_the_difference_of_two_rollouts_is_that_of_their_texts(asked, rows):
    a, b = rows[4], rows[9]
    found = asked("difference", run="whole", a=a["name"], b=b["name"])
    assert found["pieces"] == [list(piece) for piece in word_difference(a["completion"], b["completion"])]
